package trace

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// The embedded trace is what the generator draws, so nothing was put in by
// hand.
func TestEmbeddedIsGenerated(t *testing.T) {
	embedded, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := Generate(DefaultGenerator())
	if err != nil {
		t.Fatal(err)
	}
	drawn.Name = embedded.Name
	if !reflect.DeepEqual(embedded, drawn) {
		t.Errorf("the embedded trace (%x) is not what the generator draws (%x); run go generate ./scenarios/trace",
			embedded.Digest, drawn.Digest)
	}
	if !embedded.Synthetic || !strings.Contains(embedded.About, "synthetic") {
		t.Errorf("it does not say that it is synthetic: %q", embedded.About)
	}
	data, err := embeddedFiles.ReadFile("embedded/default.parquet")
	if err != nil || len(data) > 500_000 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

// Changing the draws by accident would change every figure that was published.
func TestGeneratorPinned(t *testing.T) {
	c := DefaultGenerator()
	c.Days, c.Types = 3, c.Types[:4]
	tr, err := Generate(c)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x", tr.Digest[:8]); got != "228f644ec5f14dc5" {
		t.Errorf("digest %s", got)
	}
}

// The ranges are those of recordings of AWS from 2021 to 2024, a little wider
// where few markets make the figure unsteady.
func TestGeneratorFigures(t *testing.T) {
	for seed := uint64(1); seed <= 6; seed++ {
		c := DefaultGenerator()
		c.Seed, c.Days = seed, 60
		tr, err := Generate(c)
		if err != nil {
			t.Fatal(err)
		}
		s := Info(tr)
		for _, f := range []struct {
			name             string
			got, least, most float64
		}{
			{"changes a day", s.PerDay, 1.7, 3.1},
			{"gap, 5th percentile", s.GapHours[0], 4.5, 5.0},
			{"gap, median", s.GapHours[1], 5.9, 6.6},
			{"gap, 95th percentile", s.GapHours[2], 13, 19},
			{"step, median", s.StepMedian, 0.0015, 0.0025},
			{"step, 99th percentile", s.StepP99, 0.018, 0.03},
			{"autocorrelation", s.Autocorrelation, 0.25, 0.6},
			{"same sign", s.SameSign, 0.71, 0.76},
			{"ratio, 5th percentile", s.Ratio[0], 0.19, 0.26},
			{"ratio, median", s.Ratio[1], 0.29, 0.35},
			{"ratio, 95th percentile", s.Ratio[2], 0.43, 0.57},
			{"markets that never move", s.Still, 0.05, 0.20},
			{"zones", s.ZoneCorrelation, 0.12, 0.32},
			{"offered", s.Offered, 1, 1},
		} {
			if !(f.got >= f.least && f.got <= f.most) {
				t.Errorf("seed %d: %s is %v, not from %v to %v", seed, f.name, f.got, f.least, f.most)
			}
		}
	}
}

func TestGeneratorStaysInBounds(t *testing.T) {
	c := DefaultGenerator()
	c.Days, c.Types = 200, c.Types[:5]
	c.Walk.StepMedian, c.Walk.Pull = 0.03, 0 // far larger steps, and nothing that holds them back
	tr, err := Generate(c)
	if err != nil {
		t.Fatal(err)
	}
	low, high := math.Inf(1), 0.0
	for i := range tr.Series {
		s := &tr.Series[i]
		for j := range s.At {
			ratio := float64(s.Spot[j]) / float64(s.OnDemand[j])
			low, high = min(low, ratio), max(high, ratio)
			if s.Spot[j]%priceStep != 0 {
				t.Fatalf("%s: %v is no multiple of %v", s.Name(), s.Spot[j], priceStep)
			}
		}
	}
	if low < 0.0995 || high > 1.0005 || low > 0.15 || high < 0.9 {
		t.Errorf("ratios from %v to %v", low, high)
	}
}

// More of anything moves nothing that was there.
func TestGeneratorIsKeyed(t *testing.T) {
	c := DefaultGenerator()
	c.Days, c.Types, c.Zones = 10, []string{"m5.xlarge", "c5.xlarge"}, []string{"b", "a"}
	base, err := Generate(c)
	if err != nil {
		t.Fatal(err)
	}
	c.Days, c.Types, c.Zones = 20, []string{"g5.xlarge", "c5.xlarge", "m5.xlarge"}, []string{"a", "c", "b"}
	more, err := Generate(c)
	if err != nil {
		t.Fatal(err)
	}
	end := base.To
	for i := range base.Series {
		s := &base.Series[i]
		for k := range more.Series {
			m := &more.Series[k]
			if compareSeries(s, m) != 0 {
				continue
			}
			n := 0
			for n < len(m.At) && m.At[n] < end {
				n++
			}
			if !reflect.DeepEqual(s.At, m.At[:n]) || !reflect.DeepEqual(s.Spot, m.Spot[:n]) {
				t.Errorf("%s differs", s.Name())
			}
		}
	}
	c.Seed = 2
	other, err := Generate(c)
	if err != nil || other.Digest == more.Digest {
		t.Errorf("another seed gives the same: %v", err)
	}
}

func TestGeneratorRefuses(t *testing.T) {
	for name, change := range map[string]func(*GeneratorConfig){
		"Days":        func(c *GeneratorConfig) { c.Days = 0 },
		"From":        func(c *GeneratorConfig) { c.From = 0 },
		"Zones":       func(c *GeneratorConfig) { c.Zones = nil },
		"Types":       func(c *GeneratorConfig) { c.Types = nil },
		"Walk.Pinned": func(c *GeneratorConfig) { c.Walk.Pinned = 1.5 },
		"Walk.Turn":   func(c *GeneratorConfig) { c.Walk.Turn = math.NaN() },
		"Walk.Most":   func(c *GeneratorConfig) { c.Walk.Most = 0.05 },
		"p99.huge":    func(c *GeneratorConfig) { c.Types = []string{"p99.huge"} },
		"twice":       func(c *GeneratorConfig) { c.Zones = []string{"a", "a"} },
	} {
		c := DefaultGenerator()
		change(&c)
		if _, err := Generate(c); !errors.Is(err, ErrValue) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestInfoText(t *testing.T) {
	text := Info(small(t)).Text()
	for _, want := range []string{
		"synthetic (generated, not recorded)", "2026-01-01 00:00Z to 2026-01-06 00:00Z (5.0 days)",
		"aws, gcp", "4 of 3 instance types", "recorded for 1 markets", "1 unknown",
		"gcp/us-central1/us-central1-a/n2 odd/name",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "NaN") {
		t.Errorf("NaN in\n%s", text)
	}
}

// One market at half of on-demand for one day and at a quarter for three.
func TestInfoFigures(t *testing.T) {
	tr, err := New("x", []Series{{
		Provider: "p", Region: "r", Zone: "z", Type: "t",
		At:       []policy.Time{at(1, 0), at(2, 0), at(5, 0), at(7, 0)},
		Spot:     cents(50, 25, -1, 25),
		OnDemand: cents(100, 100, 100, 100),
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := Info(tr)
	if s.Changes != 1 || s.PerDay != 1.0/6 || s.Still != 0 || math.Abs(s.StepMedian-math.Ln2) > 1e-12 {
		t.Errorf("%+v", s)
	}
	if s.Ratio[0] != 0.251 || s.Ratio[1] != 0.251 || s.Ratio[2] != 0.501 || math.Abs(s.Offered-4.0/6) > 1e-12 {
		t.Errorf("ratio %v, offered %v", s.Ratio, s.Offered)
	}
}
