package bill

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/record"
	"github.com/spotter-dev/spotter/sim"
)

// recordingOf returns the recording of snapshots.
func recordingOf(t *testing.T, steps ...policy.Snapshot) *record.Recording {
	t.Helper()
	return recorded(t, func(w *record.Writer) {
		for i := range steps {
			if err := w.Record(t.Context(), &steps[i], &policy.Memory{}, &policy.Plan{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// recorded returns what write records.
func recorded(t *testing.T, write func(w *record.Writer)) *record.Recording {
	t.Helper()
	dir := t.TempDir()
	w, err := record.NewWriter(dir, record.Meta{Policy: "x", Scenario: "x"})
	if err != nil {
		t.Fatal(err)
	}
	write(w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// idleShare returns which part of the bill of u is idle. All of it is about that of the run.
func idleShare(t *testing.T, u *Usage, r *sim.Result) float64 {
	t.Helper()
	sets, err := u.Allocate("namespace", 0)
	if err != nil {
		t.Fatal(err)
	}
	all := 0.0
	for _, a := range sets[0] {
		all += a.TotalCost
	}
	if all < 0.97*r.Bill.Float() || all > 1.03*r.Bill.Float() {
		t.Errorf("%v are divided, the run was billed %v", all, r.Bill)
	}
	return sets[0][Idle].TotalCost / all
}

// TestLoad makes of a recording of a run the bill that the timeline makes of it, which is
// that of the run but for when nodes left, and divides it as that of the run.
func TestLoad(t *testing.T) {
	for _, c := range cases[:5] {
		t.Run(c.scenario, func(t *testing.T) {
			var res *sim.Result
			var run *Usage
			rec := recorded(t, func(w *record.Writer) {
				cfg := configOf(t, c.scenario, c.policy, false)
				watch := NewWatch(&cfg, About{Account: "shop"})
				cfg.Recorder = w
				var err error
				if res, err = sim.Run(t.Context(), cfg); err != nil {
					t.Fatal(err)
				}
				run = watch.Usage()
			})
			u, err := Load(rec, About{Account: "shop"})
			if err != nil {
				t.Fatal(err)
			}
			lines, err := u.Focus(time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			bill := policy.Money(0)
			for i := range lines {
				bill += lines[i].billed
			}
			tl, err := timeline.Load(rec)
			if err != nil {
				t.Fatal(err)
			}
			var f timeline.Frame
			_, _, to := tl.Span()
			tl.At(to, &f)
			if bill != f.Costs.Bill || len(u.Warnings) == 0 || !strings.Contains(u.Warnings[0], "left between two steps") {
				t.Errorf("the bill is %v, of the timeline %v; %q", bill, f.Costs.Bill, u.Warnings)
			}
			u.Window = run.Window.Clip(u.Window)
			if a, b := idleShare(t, u, res), idleShare(t, run, res); a < b-0.03 || a > b+0.03 {
				t.Errorf("%.3f of it is idle, in the run %.3f", a, b)
			}
		})
	}
}

// snapshotAt is a cluster at the given minute: one Spot node with a pod, and one node whose
// market is unknown.
func snapshotAt(minutes int) policy.Snapshot {
	now := policy.TimeOf(time.Date(2026, 1, 5, 10, minutes, 0, 0, time.UTC))
	return policy.Snapshot{
		Now:   now,
		Types: []policy.InstanceType{{Name: "m5.large", Provider: "aws", VCPU: 2, Capacity: policy.Resources{CPU: 2000, Memory: 8 << 30}}},
		Zones: []string{"a"},
		Markets: []policy.Market{{Name: "aws/r/a/m5.large/spot", Provider: "aws", Region: "r", Capacity: policy.Spot,
			Offered: true, Price: 60_000, PricedAt: 1, OnDemand: 100_000, PlacementScore: -1, Band: -1}},
		Pools: []policy.Pool{{Name: "general"}},
		Templates: []policy.Template{{Workload: policy.None, Name: "shop/web", Namespace: "shop",
			Requests: policy.Resources{CPU: 1000, Pods: 1}}},
		Nodes: []policy.Node{
			{ID: 0, Name: "n1", Market: 0, Phase: policy.NodeInitialized, Launched: now - policy.Time(minutes)*60_000},
			{ID: 1, Name: "n2", Pool: policy.None, Market: policy.None, Phase: policy.NodeInitialized, Launched: 1},
		},
		Pods: []policy.Pod{{Name: "shop/web-1", Node: 0, Nominated: policy.None, VolumeZone: policy.None,
			Phase: policy.PodReady, Bound: now - policy.Time(minutes)*60_000}},
	}
}

// TestLoadByHand: a higher price is in force from when it is reported, but not before the step
// that saw the previous one. Pods are on their node for as long as was observed, a node without a
// price is left out with a warning, and a node that left between two steps is charged until the
// second.
func TestLoadByHand(t *testing.T) {
	first, second, third := snapshotAt(0), snapshotAt(30), snapshotAt(60)
	second.Markets[0].Price, second.Markets[0].PricedAt = 120_000, second.Now-600_000
	third.Markets[0].Price = 240_000
	third.Nodes, third.Pods = third.Nodes[1:], nil
	third.Nodes[0].ID = 0
	third.Ended = []policy.EndedPod{
		{Name: "shop/web-1", Node: "n1", Start: first.Now, End: third.Now - 600_000}, {Name: "shop/brief", Node: "n1",
			Start: second.Now + 1, End: second.Now + 5},
	}
	unseen := first.Pods[0]
	unseen.ID, unseen.Name = 1, "shop/unseen"
	first.Pods = append(first.Pods, unseen)
	u, err := Load(recordingOf(t, first, second, third), About{Account: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	charges, err := u.Meter(time.Hour)
	if err != nil || len(charges) != 1 || charges[0].Billed != 20_000+20_000+120_000 { // 20 minutes at $0.06, 10 at $0.12 and 30 at $0.24
		t.Errorf("%+v, %v", charges, err)
	}
	want := []string{"1 nodes left between two steps, at most 30m0s apart, and are charged until the second: at most $0.12 too much", "1 nodes, which ran for 1.0 hours, have no price that is known: they are not in the bill"}
	if strings.Join(u.Warnings, "\n") != strings.Join(want, "\n") {
		t.Errorf("it warns of %q", u.Warnings)
	}
	for i, want := range []Pod{{"shop/web-1", 0, 0, first.Now, third.Now - 600_000},
		{"shop/unseen", 0, 0, first.Now, second.Now}, {"shop/brief", 0, 0, second.Now + 1, second.Now + 5}} {
		if len(u.Pods) != 3 || u.Pods[i] != want || u.Owners[0].Namespace != "shop" {
			t.Errorf("the pods are %+v, want %+v", u.Pods, want)
		}
	}
}

// TestLoadRefuses what no bill can be made of, and says what is missing.
func TestLoadRefuses(t *testing.T) {
	unpriced, changed := snapshotAt(30), snapshotAt(30)
	unpriced.Markets = nil
	unpriced.Nodes = unpriced.Nodes[1:]
	unpriced.Nodes[0].ID, unpriced.Pods = 0, nil
	later := unpriced
	later.Now += 60_000
	changed.Commitments = []policy.Commitment{{Name: "plan", Amount: 1}}
	for _, c := range []struct {
		want  string
		steps []policy.Snapshot
	}{
		{"no price of any node", []policy.Snapshot{unpriced, later}},
		{"one step", []policy.Snapshot{snapshotAt(0)}},
		{"commitments changed", []policy.Snapshot{snapshotAt(0), changed}},
	} {
		if _, err := Load(recordingOf(t, c.steps...), About{}); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
