package scenarios

import (
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// withPods returns the scenario tiny with nodes that have pods at the start.
func withPods(t *testing.T, pods string) (*Scenario, error) {
	t.Helper()
	text, err := Source("tiny")
	if err != nil {
		t.Fatal(err)
	}
	return Parse("tiny.yaml", []byte(strings.Replace(string(text), "\nspec:\n",
		"\nspec:\n  nodes: [{pool: general, count: 2, pods: "+pods+"}]\n", 1)))
}

// TestPodsOnNodes reads pods that run on nodes from the start, and refuses those of no
// workload by name.
func TestPodsOnNodes(t *testing.T) {
	sc, err := withPods(t, "{}")
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(sc.loads, func(l load) bool { return l.schedule == nil && l.replicas > 1 })
	name := sc.loads[at].Name
	daemon := slices.IndexFunc(sc.loads, func(l load) bool { return l.Kind == policy.KindDaemonSet })
	for pods, want := range map[string]string{
		"{" + name + ": 0}":                  `"spec.nodes[0].pods.` + name + `": 0`,
		"{" + name + "x: 1}":                 `there is no workload "` + name + `x"; did you mean "` + name + `"?`,
		"{nowhere: 1}":                       `there is no workload "default/nowhere"`,
		"{" + name + ": many}":               `want an integer`,
		"{" + sc.loads[daemon].Name + ": 1}": `is a DaemonSet`,
	} {
		if _, err := withPods(t, pods); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "tiny.yaml:") {
			t.Errorf("%s: error %v, want one of tiny.yaml with %q", pods, err, want)
		}
	}
	tr, err := trace.Synthetic()
	if err != nil {
		t.Fatal(err)
	}
	for n, warned := range map[string]bool{"1": false, "200": true} {
		if sc, err = withPods(t, "{"+name+": "+n+"}"); err != nil {
			t.Fatal(err)
		}
		w, err := Bind(sc, tr, BindOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(w.Seeds[0].Pods) != 1 || w.Workloads[w.Seeds[0].Pods[0].Workload].Name != name {
			t.Errorf("the nodes begin with %+v", w.Seeds[0].Pods)
		}
		if got := strings.Contains(strings.Join(w.Warnings, "\n"), "spec.nodes has 400 pods of "+name); got != warned {
			t.Errorf("%s pods on each node: warnings %q", n, w.Warnings)
		}
	}
}
