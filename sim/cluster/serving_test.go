package cluster

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/result"
	"github.com/spotter-dev/spotter/sim/setup"
	"github.com/spotter-dev/spotter/sim/simtest"
)

// TestRequired holds what must be there of what is desired.
func TestRequired(t *testing.T) {
	for _, c := range []struct {
		desired int32
		budget  *policy.PDB
		want    int32
	}{
		{0, nil, 0}, {1, nil, 1}, {2, nil, 1}, {4, nil, 3}, {9, nil, 7},
		{9, &policy.PDB{MaxUnavailable: policy.Quantity{Set: true, N: 2}}, 7},
		{9, &policy.PDB{MinAvailable: policy.Quantity{Set: true, Percent: true, N: 50}}, 5},
		{9, &policy.PDB{MaxUnavailable: policy.Quantity{Set: true, Percent: true, N: 25}}, 6},
		{3, &policy.PDB{MinAvailable: policy.Quantity{Set: true, N: 5}}, 3},
	} {
		w := &scenarios.BoundScenario{Templates: make([]policy.Template, 1), Workloads: make([]scenarios.Workload, 1)}
		if c.budget != nil {
			w.PDBs = []policy.PDB{*c.budget}
			w.Templates[0].PDBs = []policy.PDBID{0}
		}
		k := &Cluster{Run: &setup.Run{Scenario: w, Prepared: &setup.Prepared{}, Clock: &engine.Queue{}}}
		k.Workloads = &Workloads{Cluster: k, State: make([]WorkState, 1)}
		sv := Serving{Cluster: k, Of: []Readiness{{desired: c.desired}}}
		sv.setRequired(0)
		if got := sv.Of[0].required; got != c.want {
			t.Errorf("%d desired under %+v: %d required, want %d", c.desired, c.budget, got, c.want)
		}
	}
}

// What the provisioner moves without a PodDisruptionBudget is counted, and said; with one it is not.
func TestOutageWithoutPDB(t *testing.T) {
	bare, guarded := simtest.One(2), simtest.One(2)
	guarded.PDBs = []policy.PDB{{MaxUnavailable: policy.Quantity{Set: true}}}
	guarded.Templates[0].PDBs = []policy.PDBID{0}
	var both result.Outages
	for _, c := range []struct {
		w    scenarios.BoundScenario
		want time.Duration
		says string
	}{
		{bare, time.Minute, "from Spot reclaim 20s, without it provisioner 1m0s without a PDB"},
		{guarded, 0, "from Spot reclaim 20s, without it provisioner 1m0s"},
	} {
		var g Readiness
		g.outages.AddIncident(simtest.Start, &[result.OutageCauses]int64{result.CauseProvisioner: 60_000, result.CauseReclaim: 20_000}, 1)
		sv := Serving{Cluster: &Cluster{Run: &setup.Run{Scenario: &c.w}}}
		o := sv.outages(0, &g)
		if o.WithoutPDB != c.want || o.Sources() != c.says || o.Longest.Workload != "default/web" {
			t.Errorf("%+v, %q; want %v, %q", o, o.Sources(), c.want, c.says)
		}
		both.Add(&o)
	}
	if want := "from Spot reclaim 40s, without it provisioner 2m0s of which 1m0s without a PDB"; both.Sources() != want || both.SpotMinutes() != 1 {
		t.Errorf("%q with %d min, want %q with 1", both.Sources(), both.SpotMinutes(), want)
	}
}
