package eval_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim"
)

// changed is a variant of the scenario w in the given number of windows.
func changed(name string, windows int, change func(*scenarios.BoundScenario)) eval.Variant {
	v := eval.Variant{Name: name, Policy: "as-is"}
	for k := range windows {
		w := evaltest.Scenario("w", k)
		change(w)
		v.Cases = append(v.Cases, eval.Case{Scenario: "w", Window: k, Bound: w})
	}
	return v
}

// cheaper is a runner of made-up runs in which a scenario of 2 slots costs a dollar less,
// and evicts 8 pods more.
func cheaper(calls *sync.Map, breaks func(eval.Job) bool) eval.Runner {
	return func(_ context.Context, j eval.Job) (*sim.Result, error) {
		if _, twice := calls.LoadOrStore(j, true); twice {
			return nil, errors.New("done twice")
		}
		if breaks(j) {
			return nil, errors.New("it broke")
		}
		r := evaltest.Result(evaltest.Run{Scenario: "w", Window: j.Window, Bound: j.Bound, Policy: "static", Seed: j.Seed})
		if j.Bound.Slots == 2 {
			r.Bill -= policy.Dollars(1)
			r.VoluntaryEvictions += 8
		}
		if j.Policy == "spot" {
			r.Incidents, r.OutageCost = 3, policy.Dollars(2)
		}
		return r, nil
	}
}

func never(eval.Job) bool { return false }

// TestWhatIf: every variant is held against the scenario as it is, run by run. A dollar a day is
// $30.42 in a month of 730 hours, and a day has 4 pod-days here.
func TestWhatIf(t *testing.T) {
	cheap := changed("cheap", 1, func(w *scenarios.BoundScenario) { w.Slots = 2 })
	plan := changed("plan", 1, func(w *scenarios.BoundScenario) {
		w.Commitments = []policy.Commitment{{Fee: policy.Dollars(0.5)}, {Fee: policy.NoPrice}}
	})
	more := changed("more", 1, func(w *scenarios.BoundScenario) { w.Workloads[0].Schedule[0].Replicas = 5 })
	other := changed("other", 1, func(*scenarios.BoundScenario) {})
	other.Policy = "spot"
	var calls sync.Map
	cfg := eval.Config{Policies: []string{"as-is"}, Cases: changed("", 1, func(*scenarios.BoundScenario) {}).Cases,
		Seeds: eval.DefaultSeeds(10)}
	w, err := eval.RunWhatIf(t.Context(), cfg, []eval.Variant{cheap, plan, more, other}, cheaper(&calls, never))
	if err != nil {
		t.Fatal(err)
	}
	if n := length(&calls); n != 5*10 || len(w.Variants) != 4 || w.AsIs.Name != "as-is" {
		t.Errorf("%d runs of 4 variants, want 50: as-is is run once a seed", n)
	}
	for i, want := range []struct {
		change, evictions, incidents float64
		equal, demand                bool
	}{{-30.4167, 2, 0, false, false}, {0.5 * 730, 0, 0, false, false}, {0, 0, 0, true, true}, {0, 0, 3, false, false}} {
		x := &w.Variants[i]
		in := x.Change.MedianInterval
		if in == nil || math.Abs(x.Change.Median-want.change) > 0.001 || math.Abs(in.Low-want.change) > 0.001 ||
			math.Abs(in.High-want.change) > 0.001 ||
			math.Abs(x.ChangePct.Median-want.change/w.AsIs.Cost.Median*100) > 3 ||
			x.EvictionChange.Median != want.evictions || x.Incidents.Median != want.incidents || x.Equal != want.equal ||
			x.Demand != want.demand || x.Missing != 0 {
			t.Errorf("%s: change %+v %v, evictions %v, incidents %v, equal %v, demand %v; want %+v", x.Name, x.Change, in,
				x.EvictionChange.Median, x.Incidents.Median, x.Equal, x.Demand, want)
		}
	}
	if x := w.Variants[3]; x.OutageChange.Median <= 50 || x.Nodes.Median != 2 {
		t.Errorf("outages cost %v more, %v nodes", x.OutageChange.Median, x.Nodes.Median)
	}
}

func length(m *sync.Map) (n int) {
	m.Range(func(any, any) bool { n++; return true })
	return n
}

// TestWhatIfMissing: a run that broke takes its pair along and nothing else, and a comparison that
// was stopped says so.
func TestWhatIfMissing(t *testing.T) {
	cheap := changed("cheap", 2, func(w *scenarios.BoundScenario) { w.Slots = 2 })
	cfg := eval.Config{Policies: []string{"as-is"}, Cases: changed("", 2, func(*scenarios.BoundScenario) {}).Cases,
		Seeds: eval.DefaultSeeds(3), Parallel: 1}
	var calls sync.Map
	w, err := eval.RunWhatIf(t.Context(), cfg, []eval.Variant{cheap},
		cheaper(&calls, func(j eval.Job) bool { return j.Seed == 2 && j.Window == 1 && j.Bound.Slots == 2 }))
	if err != nil {
		t.Fatal(err)
	}
	x := &w.Variants[0]
	if x.Missing != 1 || x.Broken < 0 || w.Runs[x.Broken].Seed != 2 || x.Change.N != 5 || w.AsIs.Missing != 0 ||
		x.Change.Over != eval.OverWindows {
		t.Errorf("missing %d, broken %d, %d pairs over %s", x.Missing, x.Broken, x.Change.N, x.Change.Over)
	}
	ctx, stop := context.WithCancel(t.Context())
	calls.Clear()
	inner := cheaper(&calls, never)
	w, err = eval.RunWhatIf(ctx, cfg, []eval.Variant{cheap}, func(ctx context.Context, j eval.Job) (*sim.Result, error) {
		if length(&calls) == 5 {
			stop()
			return nil, ctx.Err()
		}
		return inner(ctx, j)
	})
	if err != nil || !w.Stopped || w.Variants[0].Change.N == 0 || w.Variants[0].Broken >= 0 {
		t.Errorf("stopped: %v, %+v", err, w)
	}
	if _, err = eval.RunWhatIf(ctx, cfg, []eval.Variant{cheap}, inner); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped before the first run: %v", err)
	}
}

// TestAlike: what no change of a cluster can change must be the same on both sides.
func TestAlike(t *testing.T) {
	cases := changed("", 1, func(*scenarios.BoundScenario) {}).Cases
	for _, c := range []struct {
		name    string
		variant eval.Variant
		want    string
	}{
		{"nothing", changed("", 1, func(*scenarios.BoundScenario) {}), ""},
		{"workloads", changed("", 1, func(w *scenarios.BoundScenario) { w.Workloads[0].Schedule[0].Replicas = 9 }), ""},
		{"faults", changed("", 1, func(w *scenarios.BoundScenario) { w.Faults = []scenarios.Fault{{}} }), "the weather itself"},
		{"windows", changed("", 2, func(*scenarios.BoundScenario) {}), "2 windows where the scenario as it is has 1"},
	} {
		err := c.variant.Alike(cases)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	cfg := eval.Config{Policies: []string{"as-is"}, Cases: cases, Seeds: eval.DefaultSeeds(1)}
	twice := []eval.Variant{changed("a", 1, func(*scenarios.BoundScenario) {}), changed("a", 1, func(*scenarios.BoundScenario) {})}
	if _, err := eval.RunWhatIf(t.Context(), cfg, twice, nil); !errors.Is(err, eval.ErrConfig) {
		t.Errorf("two variants of one name: %v", err)
	}
	cfg.Policies = nil
	if _, err := eval.RunWhatIf(t.Context(), cfg, nil, nil); !errors.Is(err, eval.ErrConfig) {
		t.Errorf("no policy: %v", err)
	}
}
