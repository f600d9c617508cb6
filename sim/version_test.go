package sim

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// weekUnder plays web-week under the rules of a version of Karpenter, with words of its
// manifests replaced.
func weekUnder(t *testing.T, version scenarios.KarpenterVersion, replaced ...string) *Result {
	t.Helper()
	text, err := os.ReadFile("../scenarios/library/web-week.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(replaced); i += 2 {
		if !strings.Contains(string(text), replaced[i]) {
			t.Fatalf("web-week has no %q", replaced[i])
		}
	}
	sc, err := scenarios.Parse("web-week.yaml", []byte(strings.NewReplacer(replaced...).Replace(string(text))))
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trace.Synthetic()
	if err != nil {
		t.Fatal(err)
	}
	w, err := scenarios.Bind(sc, tr, scenarios.BindOptions{Karpenter: version})
	if err != nil {
		t.Fatal(err)
	}
	return mustRun(t, Config{Prepared: mustPrepare(t, w), Policy: mustPolicy(t, "karpenter"), Seed: 1})
}

// TestVersionsConsolidate: since 1.14 nodes within consolidateAfter take no pods of
// candidates, so that Karpenter moves far fewer pods and keeps more nodes
// (kubernetes-sigs/karpenter issue 3225). A removal every 25 s at most, as nodes are drained
// for five seconds at least, bounds what older versions move.
func TestVersionsConsolidate(t *testing.T) {
	days := []string{"duration: 168h", "duration: 72h"}
	before, since := weekUnder(t, 13, days...), weekUnder(t, 14, days...)
	if since.VoluntaryEvictions >= before.VoluntaryEvictions*3/5 || since.NodeHours <= before.NodeHours {
		t.Errorf("%d evictions and %.0f node-hours under 1.14, %d and %.0f under 1.13; want less than 60%% of the evictions and more node-hours",
			since.VoluntaryEvictions, since.NodeHours, before.VoluntaryEvictions, before.NodeHours)
	}
	if newest := weekUnder(t, 0, days...); newest.Hash != since.Hash {
		t.Error("the newest version does otherwise than 1.14")
	}
}

// TestVersionsProvision: before 1.14 a DaemonSet that runs nowhere takes room on new nodes
// all the same, and before 1.13 new nodes share host ports, so that pods wait for one
// another.
func TestVersionsProvision(t *testing.T) {
	day := []string{"duration: 168h", "duration: 12h\n  start: on-demand", "consolidationPolicy: WhenEmptyOrUnderutilized", "consolidationPolicy: WhenEmpty"}
	for version, matters := range map[scenarios.KarpenterVersion]bool{13: true, 14: false} {
		daemon := func(cpu string) *Result {
			return weekUnder(t, version, slices.Concat(day, []string{"cpu: 200m, memory: 256Mi", cpu,
				"      priorityClassName: system-node-critical\n", "      priorityClassName: system-node-critical\n      nodeSelector: {kubernetes.io/os: windows}\n"})...)
		}
		if a, b := daemon("cpu: 100m"), daemon("cpu: 3"); (a.Bill != b.Bill) != matters {
			t.Errorf("under 1.%d a DaemonSet that runs nowhere matters: %v, want %v", version, !matters, matters)
		}
	}
	port := slices.Concat(day, []string{"{name: main, image: registry.k8s.io/pause:3.10, resources: {requests: {cpu: 1500m, memory: 2Gi}}}",
		"{name: main, image: registry.k8s.io/pause:3.10, resources: {requests: {cpu: 1500m, memory: 2Gi}}, ports: [{containerPort: 80, hostPort: 80}]}"})
	before, since := weekUnder(t, 12, port...), weekUnder(t, 13, port...)
	if before.TimeToReadyP95 < since.TimeToReadyP95*3/2 {
		t.Errorf("p95 of the time to ready is %v under 1.12, %v under 1.13", before.TimeToReadyP95, since.TimeToReadyP95)
	}
}
