package weather

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

func TestRefused(t *testing.T) {
	late := OrderedShortage{At: begin, Duration: time.Hour, Depth: 1}
	for _, c := range []struct {
		want   string
		change func(*Config, []Market)
	}{
		{"To is", func(c *Config, _ []Market) { c.To = c.From }},
		{"From is 0", func(c *Config, _ []Market) { c.From = 0 }},
		{"longer than", func(c *Config, _ []Market) { c.To = c.From + days(1000) }},
		{"Intensity is -1", func(c *Config, _ []Market) { c.Intensity = -1 }},
		{"Intensity is NaN", func(c *Config, _ []Market) { c.Intensity = math.NaN() }},
		{"Slots is -2", func(c *Config, _ []Market) { c.Slots = -2 }},
		{"Shortages[0].Depth is 1.5", func(c *Config, _ []Market) { s := late; s.Depth = 1.5; c.Shortages = []OrderedShortage{s} }},
		{"Shortages[0].Duration", func(c *Config, _ []Market) { s := late; s.Duration = 0; c.Shortages = []OrderedShortage{s} }},
		{`Shortages[0].Capacity is "spto"`, func(c *Config, _ []Market) { s := late; s.Capacity = "spto"; c.Shortages = []OrderedShortage{s} }},
		{"NoticeFaults[0].Share is 2", func(c *Config, _ []Market) {
			c.NoticeFaults = []NoticeFault{{At: begin, Duration: 1, Share: 2}}
		}},
		{"NoticeFaults[0].Delay", func(c *Config, _ []Market) {
			c.NoticeFaults = []NoticeFault{{At: begin, Duration: 1, Share: 1, Delay: -1}}
		}},
		{"APIFaults[0].At is 0", func(c *Config, _ []Market) { c.APIFaults = []APIFault{{Duration: 1, Share: 1}} }},
		{"Params.SlotsCPU is 0", func(c *Config, _ []Market) { c.Params = Params{} }},
		{"Params.BandMonthly[2] is 1", func(c *Config, _ []Market) { c.Params.BandMonthly[2] = 1 }},
		{"there twice", func(_ *Config, m []Market) { m[1].Name = m[0].Name }},
		{"needs a name", func(_ *Config, m []Market) { m[1].Zone = "" }},
		{"Band is 5", func(_ *Config, m []Market) { m[1].Band = 5 }},
		{"2 instants and 1 values", func(_ *Config, m []Market) {
			m[0].Available = &Availability{At: []policy.Time{1, 2}, Up: []bool{true}}
		}},
		{"2 instants and 1 gaps", func(_ *Config, m []Market) {
			m[0].Available = &Availability{At: []policy.Time{1, 2}, Up: []bool{true, true}, Gap: []policy.Time{1}}
		}},
		{"Available.Gap[1] is -1", func(_ *Config, m []Market) {
			m[0].Available = &Availability{At: []policy.Time{1, 2}, Up: []bool{true, true}, Gap: []policy.Time{1, -1}}
		}},
		{"Own add up to", func(c *Config, _ []Market) { c.Params.Scarce.Common = make([]float64, 5) }},
		{"5 Paces, 1 Common", func(c *Config, _ []Market) { c.Params.Scarce.Common = []float64{1} }},
		{"Paces[2] is 0", func(c *Config, _ []Market) { c.Params.Scarce.Paces = []float64{1, 2, 0, 4, 5} }},
		{"RecommendedPrecision is 0", func(c *Config, _ []Market) { c.Params.RecommendedPrecision = 0 }},
		{"Available.At[1]", func(_ *Config, m []Market) {
			m[0].Available = &Availability{At: []policy.Time{2, 2}, Up: []bool{true, true}}
		}},
	} {
		cfg, markets := config(1), spotMarkets(2)
		c.change(&cfg, markets)
		if _, err := New(cfg, markets); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one that says %q", err, c.want)
		}
	}
}
