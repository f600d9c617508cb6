package scenarios

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// embeddedTrace returns the trace of a name that an embedded scenario runs on.
func embeddedTrace(t *testing.T, sc *Scenario, name string) *trace.Trace {
	t.Helper()
	tr, ok, err := trace.EmbeddedNamed(name)
	if !ok || err != nil {
		t.Fatalf("%s: trace %q is not embedded: %v", sc.Name, name, err)
	}
	return tr
}

// Every embedded scenario can be read without a warning, and be run on the trace that it names, or
// else in every recorded week and on the synthetic trace. What an auction assumes is said and is no
// fault of the scenario.
func TestEmbeddedScenarios(t *testing.T) {
	for _, name := range slices.Concat(Names(), Hunted()) {
		sc, err := Load(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if sc.Name != path.Base(name) {
			t.Errorf("%s calls itself %s", name, sc.Name)
		}
		if sc.Trace != "" {
			checkEmbedded(t, name, sc, embeddedTrace(t, sc, sc.Trace), BindOptions{})
			continue
		}
		drawn := checkEmbedded(t, name, sc, embeddedTrace(t, sc, "synthetic"), BindOptions{})
		tr := embeddedTrace(t, sc, "")
		for week := range 12 {
			w := checkEmbedded(t, name, sc, tr, BindOptions{From: tr.From.Add(sc.WarmUp + time.Duration(week)*7*24*time.Hour)})
			if w != nil && drawn != nil && (len(w.Types) != len(drawn.Types) || len(w.Zones) != len(drawn.Zones)) {
				t.Errorf("%s from %v: %d types in %d zones, on synthetic prices %d in %d", name, w.Start, len(w.Types),
					len(w.Zones), len(drawn.Types), len(drawn.Zones))
			}
		}
	}
}

// checkEmbedded binds an embedded scenario to a trace; nil where that fails.
func checkEmbedded(t *testing.T, name string, sc *Scenario, tr *trace.Trace, o BindOptions) *BoundScenario {
	t.Helper()
	w, err := Bind(sc, tr, o)
	if err != nil {
		t.Errorf("%s on %s: %v", name, tr.Name, err)
		return nil
	}
	warnings := slices.DeleteFunc(slices.Clone(w.Warnings), func(text string) bool {
		said := strings.HasPrefix(text, "auctions: ") || strings.HasPrefix(text, "cloudspace ")
		return said && sc.pools[0].capacity.Spec.Backend.Rackspace != nil
	})
	if len(warnings) > 0 {
		t.Errorf("%s on %s from %v: warnings %q", name, tr.Name, w.Start, warnings)
	}
	if err := snapshotOf(w).Validate(); err != nil {
		t.Errorf("%s on %s from %v: %v", name, tr.Name, w.Start, err)
	}
	vcpu, pods := demand(w)
	t.Logf("%-12s on %s from %v: %d types, %d zones, %d markets, %d workloads, %d pods, %.0f vCPU",
		name, tr.Name, w.Start, len(w.Types), len(w.Zones), len(w.Markets), len(w.Workloads), pods, vcpu)
	return w
}

// Embedded scenarios run on any trace, so none names a region, a zone or a type;
// and each says at its head what it teaches, in what the list of scenarios cuts
// at the first colon or full stop.
func TestEmbeddedScenariosNameNoPlace(t *testing.T) {
	for _, name := range slices.Concat(Names(), Hunted()) {
		sc, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range sc.pools {
			if own := sc.pools[i].own; own != nil {
				for _, r := range own.Requirements {
					if slices.Contains(marketLabels[:3], r.Key) {
						t.Errorf("%s: NodePool %s names %v", name, sc.pools[i].name, r)
					}
				}
				continue
			}
			m := &sc.pools[i].capacity.Spec.Markets
			if len(m.Regions)+len(m.Zones)+len(m.InstanceTypes) > 0 {
				t.Errorf("%s: pool %s names %v, %v, %v", name, sc.pools[i].name, m.Regions, m.Zones, m.InstanceTypes)
			}
		}
		for i, f := range sc.faults {
			if f.Zone != "" || f.Type != "" {
				t.Errorf("%s: faults[%d] names zone %q, type %q", name, i, f.Zone, f.Type)
			}
		}
		text, err := Source(name)
		if err != nil {
			t.Fatal(err)
		}
		if head, _, found := strings.Cut(string(text), "\napiVersion"); !found || !strings.HasPrefix(head, "# ") || len(head) < 150 {
			t.Errorf("%s: its head says little: %q", name, head)
		}
	}
}

// Every kind of fault that a scenario may order is ordered by an embedded scenario.
func TestEmbeddedScenariosHaveEveryFault(t *testing.T) {
	seen := map[FaultKind]bool{}
	for _, name := range Names() {
		sc, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range sc.faults {
			seen[f.Kind] = true
		}
	}
	for kind, k := range faultKinds {
		if !seen[k] {
			t.Errorf("no scenario has a %s", kind)
		}
	}
}

// The second zone by name is met by its number; a zone that there is not meets
// no market and not all of them.
func TestFaultInANumberedZone(t *testing.T) {
	for number, want := range map[string]string{"1": "us-east-1a", "3": "us-east-1c", "4": "number 4"} {
		text, err := Source("zone-outage")
		if err != nil {
			t.Fatal(err)
		}
		sc, err := Parse("z.yaml", []byte(strings.Replace(string(text), "zoneNumber: 1", "zoneNumber: "+number, 1)))
		if err != nil {
			t.Fatal(err)
		}
		w, err := Bind(sc, embeddedTrace(t, sc, "synthetic"), BindOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := w.Faults[0].Zone; got != want || (len(w.Warnings) > 0) != (number == "4") {
			t.Errorf("zone %s is %q, want %q; warnings %q", number, got, want, w.Warnings)
		}
	}
}

// snapshotOf returns the tables of w as the first snapshot of a run has them.
func snapshotOf(w *BoundScenario) *policy.Snapshot {
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
func demand(w *BoundScenario) (vcpu float64, pods int32) {
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
