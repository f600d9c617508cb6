package trace_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// The default trace is recorded, says where its prices are from, has at least twelve weeks after a
// day of warm-up, and is small. Each market has an on-demand price at all times, and a Spot price in
// nearly all of them.
func TestDefault(t *testing.T) {
	tr, err := trace.Default()
	if err != nil {
		t.Fatal(err)
	}
	if tr.Synthetic || tr.Scripted || tr.Unmarked || tr.Name != trace.Recorded || len(tr.Warnings) > 0 {
		t.Errorf("%s: synthetic %v, scripted %v, unmarked %v, warnings %q", tr.Name, tr.Synthetic, tr.Scripted, tr.Unmarked, tr.Warnings)
	}
	for _, key := range []string{trace.MetaSource, trace.MetaDates, trace.MetaSampling, trace.MetaFetcher} {
		if tr.Meta[key] == "" {
			t.Errorf("it does not say %q", key)
		}
	}
	if days := tr.To.Sub(tr.From) / (24 * time.Hour); days < 12*7+1 {
		t.Errorf("it has %d days", days)
	}
	if n := len(tr.Series); n < 140 || n > 160 {
		t.Errorf("it has %d markets", n)
	}
	for i := range tr.Series {
		s := &tr.Series[i]
		offered := slices.ContainsFunc(s.Spot, func(p policy.Money) bool { return p != policy.NoPrice })
		if s.At[0] != tr.From || !offered || s.OnDemand == nil {
			t.Errorf("%s begins %v, is offered %v", s.Name(), s.At[0], offered)
		}
	}
	if info, err := os.Stat("embedded/" + trace.Recorded + ".parquet"); err != nil || info.Size() > 500_000 {
		t.Errorf("%v, %v", info, err)
	}
}
