package fit

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/generate"
)

// byPreset returns the configuration of a preset.
func byPreset(t testing.TB, name string, seed uint64, markets, days int) generate.Config {
	t.Helper()
	p, err := generate.FindPreset(name)
	if err != nil {
		t.Fatal(err)
	}
	list, err := p.Take(markets)
	if err != nil {
		t.Fatal(err)
	}
	return generate.Config{Seed: seed, From: p.Begin(), To: p.Begin() + policy.Time(days)*day, Markets: list, Law: p.Law}
}

func generated(t testing.TB, c generate.Config) *trace.Trace {
	t.Helper()
	tr, err := generate.Generate(c)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// Availability is joined to prices and cut at the end of the trace.
func TestJoin(t *testing.T) {
	c := byPreset(t, "aws-2024", 1, 3, 2)
	c.Markets = nil
	for _, zone := range []string{"us-east-1a", "us-east-1b"} {
		c.Markets = append(c.Markets, generate.Market{Provider: "aws", Region: "us-east-1", Zone: zone, Type: "p3.2xlarge", OnDemand: 3_060_000})
	}
	c.To = c.From + 10*day + day/2
	prices := generated(t, c)
	joined, err := Join(prices, DefaultAvailability(), AvailabilityOptions{Seed: 1, From: c.From, Days: 11})
	if err != nil {
		t.Fatal(err)
	}
	for i := range joined.Series {
		s := &joined.Series[i]
		if s.Available == nil || s.At[len(s.At)-1] >= joined.To {
			t.Errorf("%s: available %v, last %v, end %v", s.Name(), s.Available != nil, s.At[len(s.At)-1], joined.To)
		}
	}
	if joined.To != prices.To || !joined.Synthetic || joined.Meta["availability"] == "" || joined.Meta["law"] == "" {
		t.Errorf("%v %v %v", joined.To, joined.Synthetic, joined.Meta)
	}
	if err := trace.Write(t.TempDir()+"/x", joined); err != nil {
		t.Error(err)
	}
}

// begin is when made-up traces begin.
var begin = policy.TimeOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

const hour = day / 24
