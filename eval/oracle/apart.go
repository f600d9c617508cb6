package oracle

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// hostname is the topology key whose domains are single nodes.
const hostname = "kubernetes.io/hostname"

// findApart sets apart: sets of workloads of which a node can run at most one pod in total, because
// any two of their pods, of the same workload or not, have anti-affinity on the same node.
// Templates are constant, so this applies at all times.
func (o *Oracle) findApart() {
	t := o.scenario.Templates
	var alone []int // workloads of which a node can run at most one pod
	for i := range t {
		if !t[i].DaemonSet && refuses(&t[i], &t[i]) {
			alone = append(alone, i)
		}
	}
	// Each of them starts a set. Workloads join it if they cannot share a node with any member.
	// Subsets of other sets are redundant, but do no harm.
	for _, first := range alone {
		set := []int{first}
		for _, next := range alone {
			if next != first && !slices.ContainsFunc(set, func(in int) bool {
				return !refuses(&t[in], &t[next]) &&
					!refuses(&t[next], &t[in])
			}) {
				set = append(set, next)
			}
		}
		slices.Sort(set)
		if !slices.ContainsFunc(o.apart, func(x []int) bool { return slices.Equal(x, set) }) {
			o.apart = append(o.apart, set)
		}
	}
}

// refuses reports whether the required anti-affinity of a excludes pods of b from its node.
func refuses(a, b *policy.Template) bool {
	return slices.ContainsFunc(a.PodAntiAffinity, func(x policy.PodTerm) bool {
		return x.Weight == 0 && x.TopologyKey == hostname && placement.TermMatches(a, &x, b)
	})
}
