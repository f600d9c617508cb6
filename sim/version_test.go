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
func weekUnder(t *testing.T, version scenarios.KarpenterVersion, seed uint64, replaced ...string) *Result {
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
	return mustRun(t, Config{Prepared: mustPrepare(t, w), Policy: mustPolicy(t, "karpenter"), Seed: seed})
}

// TestVersionsConsolidate: since 1.14 nodes within consolidateAfter take no pods of
// candidates, so that Karpenter moves far fewer pods and keeps more nodes
// (kubernetes-sigs/karpenter issue 3225). A removal every 25 s at most, as nodes are drained
// for five seconds at least, bounds what older versions move. In single runs a node whose pods
// need a new one each time that it is consolidated may hide all of that.
func TestVersionsConsolidate(t *testing.T) {
	days := []string{"duration: 168h", "duration: 72h"}
	var part, more []float64
	for seed := range uint64(5) {
		before, since := weekUnder(t, 13, seed+1, days...), weekUnder(t, 14, seed+1, days...)
		part = append(part, float64(since.VoluntaryEvictions)/float64(before.VoluntaryEvictions))
		more = append(more, since.NodeHours-before.NodeHours)
		if newest := weekUnder(t, 0, seed+1, days...); newest.Hash != since.Hash {
			t.Errorf("seed %d: the newest version does otherwise than 1.14", seed+1)
		}
	}
	slices.Sort(part)
	slices.Sort(more)
	if part[2] >= 0.6 || more[2] <= 0 {
		t.Errorf("under 1.14 there are %.2f times the evictions of 1.13 and %.0f node-hours more; want medians below 0.6 and above 0", part, more)
	}
}

// TestVersionsProvision: before 1.14 a DaemonSet that runs nowhere takes room on new nodes
// all the same, and before 1.13 new nodes share host ports, so that pods wait for one
// another.
func TestVersionsProvision(t *testing.T) {
	day := []string{"duration: 168h", "duration: 12h\n  start: on-demand",
		"consolidationPolicy: WhenEmptyOrUnderutilized", "consolidationPolicy: WhenEmpty"}
	for version, matters := range map[scenarios.KarpenterVersion]bool{13: true, 14: false} {
		daemon := func(cpu string) *Result {
			return weekUnder(t, version, 1, slices.Concat(day, []string{"cpu: 200m, memory: 256Mi", cpu,
				"      priorityClassName: system-node-critical\n", "      priorityClassName: system-node-critical\n      nodeSelector: {kubernetes.io/os: windows}\n"})...)
		}
		if a, b := daemon("cpu: 100m"), daemon("cpu: 3"); (a.Bill != b.Bill) != matters {
			t.Errorf("under 1.%d a DaemonSet that runs nowhere matters: %v, want %v", version, !matters, matters)
		}
	}
	port := slices.Concat(day, []string{"{name: main, image: registry.k8s.io/pause:3.10, resources: {requests: {cpu: 1500m, memory: 2Gi}}}",
		"{name: main, image: registry.k8s.io/pause:3.10, resources: {requests: {cpu: 1500m, memory: 2Gi}}, ports: [{containerPort: 80, hostPort: 80}]}"})
	before, since := weekUnder(t, 12, 1, port...), weekUnder(t, 13, 1, port...)
	if before.TimeToReadyP95 < since.TimeToReadyP95*11/10 {
		t.Errorf("p95 of the time to ready is %v under 1.12, %v under 1.13", before.TimeToReadyP95, since.TimeToReadyP95)
	}
}
