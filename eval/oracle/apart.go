package oracle

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// hostname is the topology of which every node is a domain of its own.
const hostname = "kubernetes.io/hostname"

// findApart fills apart: sets of workloads of which a node holds one pod in all,
// since every two of their pods, of one workload or of two, refuse to share a
// node. What is refused at scheduling stays so, as pods do not change.
func (o *Oracle) findApart() {
	t := o.scenario.Templates
	var alone []int // those of which a node holds one pod
	for i := range t {
		if !t[i].DaemonSet && refuses(&t[i], &t[i]) {
			alone = append(alone, i)
		}
	}
	// Each of them starts a set, which others join that can share a node with no member of the set.
	// Sets that are part of another add nothing but work.
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

// refuses reports whether pods of a keep pods of b off their node.
func refuses(a, b *policy.Template) bool {
	return slices.ContainsFunc(a.PodAntiAffinity, func(x policy.PodTerm) bool {
		return x.Weight == 0 && x.TopologyKey == hostname && placement.TermMatches(a, &x, b)
	})
}
