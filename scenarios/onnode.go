package scenarios

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/internal/nearest"
	"github.com/spotter-dev/spotter/policy"
)

// PodsOnNode are pods of one workload that run on a node at the start.
type PodsOnNode struct {
	Workload policy.WorkloadID
	Count    int32
}

// qualified returns the name of a workload with its namespace. A name without a namespace is in the
// default one.
func qualified(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return "default/" + name
}

// checkPods returns errors for pods of workloads that do not exist, or whose pods are not placed by
// the scheduler.
func (sc *Scenario) checkPods(pods map[string]int32, doc *document, at []string) []error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		path := append(slices.Clip(at), name)
		i := slices.IndexFunc(sc.loads, func(l load) bool { return l.Name == qualified(name) })
		switch {
		case i < 0:
			var known []string
			for k := range sc.loads {
				known = append(known, sc.loads[k].Name)
			}
			meant := ""
			if best, ok := nearest.Of(qualified(name), known); ok {
				meant = fmt.Sprintf("; did you mean %q?", best)
			}
			errs = append(errs, doc.problem(path, "there is no workload %q%s", qualified(name), meant))
			continue
		case sc.loads[i].Kind == policy.KindDaemonSet:
			errs = append(errs, doc.problem(path, "is a DaemonSet, which has a pod on each node by itself"))
		case name != qualified(name) && pods[qualified(name)] > 0:
			errs = append(errs, doc.problem(path, "is listed twice, also as %q", qualified(name)))
		}
		if why := outside(pods[name], 1, podsMax); why != "" {
			errs = append(errs, doc.problem(path, "%s", why))
		}
	}
	return errs
}

// podsOn sets the pods that run on the initial nodes. It warns if there are more than a workload
// requires.
func (w *BoundScenario) podsOn(sc *Scenario) {
	placed := make([]int64, len(w.Workloads))
	for i, n := range sc.nodes {
		seed := &w.Seeds[i]
		for name, count := range n.Pods {
			id := slices.IndexFunc(w.Workloads, func(x Workload) bool { return x.Name == qualified(name) })
			seed.Pods = append(seed.Pods, PodsOnNode{policy.WorkloadID(id), count})
			placed[id] += int64(count) * int64(n.Count)
		}
		slices.SortFunc(seed.Pods, func(a, b PodsOnNode) int { return cmp.Compare(a.Workload, b.Workload) })
	}
	for i, n := range placed {
		if n == 0 {
			continue
		}
		if want := w.wantedFirst(&w.Workloads[i]); n > want {
			w.Warnings = append(w.Warnings, fmt.Sprintf("spec.nodes has %d pods of %s, which requires %d when warm-up starts",
				n, w.Workloads[i].Name, want))
		}
	}
}

// wantedFirst returns the number of pods that a workload requires when the warm-up starts.
func (w *BoundScenario) wantedFirst(x *Workload) (n int64) {
	if x.Job == nil {
		return int64(x.Schedule[0].Replicas)
	}
	for _, at := range x.Job.Releases {
		if at == w.Start.Add(-w.WarmUp) {
			n += int64(x.Job.Pods)
		}
	}
	return n
}
