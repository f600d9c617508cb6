package oracle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// findExclusiveSets finds sets of workloads that share no node: of all their pods, a node can run one,
// because any two of them, of the same workload or not, have anti-affinity on the same node. The
// members are indices of templates, of which each workload has one here. Templates do not change, so
// the sets hold for the whole run. Not all maximal sets are found, which only lowers the bound.
func (o *Oracle) findExclusiveSets() {
	templates := o.scenario.Templates
	excludes := func(a, b int) bool {
		return refuses(&templates[a], &templates[b]) || refuses(&templates[b], &templates[a])
	}
	var alone []int // a node can run at most one of their pods
	for i := range templates {
		if !templates[i].DaemonSet && excludes(i, i) {
			alone = append(alone, i)
		}
	}
	// Each of them starts a set. Workloads join it if they cannot share a node with any member.
	// Subsets of other sets are redundant, but do no harm.
	for _, first := range alone {
		set := []int{first}
		for _, next := range alone {
			shares := func(member int) bool { return !excludes(member, next) }
			if next != first && !slices.ContainsFunc(set, shares) {
				set = append(set, next)
			}
		}
		slices.Sort(set)
		if !slices.ContainsFunc(o.exclusive, func(x []int) bool { return slices.Equal(x, set) }) {
			o.exclusive = append(o.exclusive, set)
		}
	}
}

// refuses reports whether the required anti-affinity of a excludes pods of b from its node.
func refuses(a, b *policy.Template) bool {
	return slices.ContainsFunc(a.PodAntiAffinity, func(x policy.PodTerm) bool {
		return x.Weight == 0 && x.TopologyKey == corev1.LabelHostname && placement.TermMatches(a, &x, b)
	})
}
