package scenarios

import (
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// Every embedded world can be read without a warning, and be run on the
// embedded trace.
func TestEmbeddedWorlds(t *testing.T) {
	tr, err := trace.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		sc, err := Load(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if sc.Name != name {
			t.Errorf("%s calls itself %s", name, sc.Name)
		}
		w, err := Bind(sc, tr, BindOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(w.Warnings) > 0 {
			t.Errorf("%s: warnings %q", name, w.Warnings)
		}
		if err := snapshotOf(w).Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		vcpu, pods := demand(w)
		t.Logf("%-12s %d types, %d zones, %d markets, %d workloads, %d pods, %.0f vCPU", name, len(w.Types), len(w.Zones), len(w.Markets), len(w.Workloads), pods, vcpu)
	}
}

// snapshotOf returns the tables of w as the first snapshot of a run has them.
func snapshotOf(w *World) *policy.Snapshot {
	s := &policy.Snapshot{
		Now: w.Start.Add(-w.WarmUp), Types: w.Types, Markets: w.Markets, Pools: w.Pools, Zones: w.Zones,
		Templates: w.Templates, PDBs: w.PDBs,
	}
	for _, l := range w.Workloads {
		s.Workloads = append(s.Workloads, l.Workload)
	}
	return s
}

// demand returns the largest number of vCPUs that the services want at once,
// taken workload by workload, and the number of their pods.
func demand(w *World) (vcpu float64, pods int32) {
	for i, l := range w.Workloads {
		most := int32(0)
		for _, s := range l.Schedule {
			most = max(most, s.Replicas)
		}
		pods += most
		vcpu += float64(most) * float64(w.Templates[i].Requests.CPU) / 1000
	}
	return vcpu, pods
}
