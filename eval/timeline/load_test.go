package timeline

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/record"
	"github.com/spotter-dev/spotter/sim"
)

// recorded runs cfg into a timeline and a recording, which it opens.
func recorded(t *testing.T, cfg sim.Config, spec string) (tl, loaded *Timeline, res *sim.Result, steps []policy.Time) {
	t.Helper()
	dir := t.TempDir()
	w, err := record.NewWriter(dir, record.Meta{Policy: spec, Scenario: "x", Seed: cfg.Seed})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Recorder = w
	cfg.Observed = func(s *policy.Snapshot, _ *policy.Plan) { steps = append(steps, s.Now) }
	tl, res = observed(t, cfg, spec)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if loaded, err = Load(r); err != nil {
		t.Fatal(err)
	}
	return tl, loaded, res, steps
}

// TestLoad compares a recording with the timeline of the same run in what a
// recording can know: decisions, prices and forecasts; and at the steps every
// node and workload in which nothing changed at the very instant of the step (a
// snapshot is from before the plan is carried out) and which the provider has not
// taken unnoticed.
func TestLoad(t *testing.T) {
	for _, c := range cases {
		t.Run(c.scenario+" "+c.policy, func(t *testing.T) {
			tl, loaded, _, steps := recorded(t, config(t, embedded(t, c.scenario, caseLength), c.policy), c.policy)
			if loaded.Decisions() != tl.Decisions() || tl.Decisions() == 0 {
				t.Fatalf("%d decisions are recorded, %d were taken", loaded.Decisions(), tl.Decisions())
			}
			if _, ranks := loaded.NextDecision(0, Rank); ranks != (c.policy == "portfolio") {
				t.Errorf("that it has ranks is %v", ranks)
			}
			for i := range tl.Decisions() {
				if !reflect.DeepEqual(tl.Decision(i), loaded.Decision(i)) {
					t.Fatalf("decision %d is %+v, recorded is %+v", i, tl.Decision(i), loaded.Decision(i))
				}
			}
			var a, b Frame
			compared, skipped := 0, 0
			for _, at := range steps {
				tl.At(at, &a)
				loaded.At(at, &b)
				if !slices.Equal(a.Markets, b.Markets) {
					t.Fatalf("at %v the markets differ", at)
				}
				for w := range a.Workloads {
					if k := tl.workloads[w].Kind; k == policy.KindDaemonSet || tl.stirred(w, at) {
						continue
					}
					x, y := a.Workloads[w], b.Workloads[w]
					if x.Ready != y.Ready || x.OnSpot != y.OnSpot || tl.workloads[w].Kind == policy.KindJob && x.Desired != y.Desired {
						t.Fatalf("at %v %s is %+v, recorded %+v", at, tl.workloads[w].Name, x, y)
					}
				}
				for _, n := range a.Nodes {
					k, found := slices.BinarySearchFunc(b.Nodes, n.Name, func(x Node, name string) int {
						switch {
						case x.Name < name:
							return -1
						case x.Name > name:
							return 1
						}
						return 0
					})
					switch {
					case tl.moved(n.Name, at):
						skipped++
					case !found || b.Nodes[k] != n:
						t.Fatalf("at %v %+v is recorded as (%v) %+v", at, n, found, b.Nodes[min(k, len(b.Nodes)-1)])
					default:
						compared++
					}
				}
			}
			if compared < 5*skipped || compared == 0 {
				t.Errorf("%d nodes were compared, %d were not", compared, skipped)
			}
		})
	}
}

// stirred reports whether workload w changed at an instant, or has pods on a node
// that was taken shortly before.
func (t *Timeline) stirred(w int, at policy.Time) bool {
	if i := t.work[w].find(at); i >= 0 && t.work[w].at[i] == at {
		return true
	}
	i, ok := t.PreviousEvent(at+1, Reclaimed)
	return ok && t.Event(i).At > at.Add(-2*time.Minute)
}

// moved reports whether the node of a name changed at an instant.
func (t *Timeline) moved(name string, at policy.Time) bool {
	for i := range t.nodes {
		if k := t.nodes[i].find(at); k >= 0 && t.names.list[t.nodes[i].what[k].name] == name {
			return t.nodes[i].at[k] == at
		}
	}
	return false
}

// TestLoadEvents holds that what a recording reports has the instants at which it
// happened, and that nothing but nodes too short-lived for any step is missing.
func TestLoadEvents(t *testing.T) {
	tl, loaded, res, steps := recorded(t, config(t, embedded(t, "squeeze", 0), "static"), "static")
	of := func(t *Timeline, kind Kind) map[string]policy.Time {
		out := map[string]policy.Time{}
		for i := range t.Events() {
			if e := t.Event(i); e.Kind == kind && e.At > steps[0] {
				out[e.Subject] = e.At
			}
			if i > 0 && t.Event(i).At < t.Event(i-1).At {
				panic("events descend")
			}
		}
		return out
	}
	for _, kind := range []Kind{Launched, Joined, Noticed, Recommended} {
		all, seen := of(tl, kind), of(loaded, kind)
		exact := 0
		for name, at := range seen {
			if all[name] != at {
				t.Errorf("%s of %s is recorded at %v, it was at %v", kind, name, at, all[name])
			}
			exact++
		}
		if exact*10 < 8*len(all) || kind != Recommended && exact == 0 {
			t.Errorf("%d of %d events %q are recorded", exact, len(all), kind)
		}
	}
	if taken, seen := of(tl, Reclaimed), of(loaded, Reclaimed); len(seen) == 0 || len(seen) > len(taken) {
		t.Errorf("%d of %d reclaims are recorded", len(seen), len(taken))
	}
	var f Frame
	loaded.At(loaded.Until(), &f)
	if f.Costs.Evictions < res.VoluntaryEvictions || f.Costs.Reclaims < res.Reclaims {
		t.Errorf("%+v has less than the metered part, %d and %d", f.Costs, res.VoluntaryEvictions, res.Reclaims)
	}
}

// TestLoadBill reckons the bill of a run without warm-up from what the steps saw.
// It lacks only that nodes left and steps ended between two steps.
func TestLoadBill(t *testing.T) {
	for _, name := range []string{"squeeze", "bidding-war"} {
		w := embedded(t, name, caseLength)
		w.WarmUp = 0
		_, loaded, res, _ := recorded(t, config(t, w, "spotvortex"), "spotvortex")
		var f Frame
		loaded.At(loaded.Until(), &f)
		if got, want := f.Costs.Bill.Float(), res.Bill.Float(); got < 0.97*want || got > 1.03*want {
			t.Errorf("%s: the steps saw %v of nodes, the bill is %v", name, f.Costs.Bill, res.Bill)
		}
	}
}
