package autoscaler

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/spotter-dev/spotter/policy"
)

// An Addition is a number of nodes to add to a group.
type Addition struct{ Group, Nodes int }

// BalanceOption distributes the nodes of an option over its group and the groups similar to it, and
// returns the nodes to add to each. The smallest group grows first
// (processors/nodegroupset/balancing_processor.go).
func (c *Cluster) BalanceOption(o *Option) []Addition {
	groups := append([]int{o.Group}, o.Similar...)
	groups = slices.DeleteFunc(groups, func(g int) bool { return c.Groups[g].room() == 0 })
	slices.SortStableFunc(groups, func(a, b int) int { return cmp.Compare(c.Groups[a].Size, c.Groups[b].Size) })
	added := make([]int, len(groups))
	for range o.Nodes {
		least := -1
		for k, g := range groups {
			if added[k] < c.Groups[g].room() &&
				(least < 0 || c.Groups[g].Size+added[k] < c.Groups[groups[least]].Size+added[least]) {
				least = k
			}
		}
		if least < 0 {
			break
		}
		added[least]++
	}
	var out []Addition
	for k, g := range groups {
		if added[k] > 0 {
			out = append(out, Addition{g, added[k]})
		}
	}
	return out
}

// ignoredLabels are the labels that are not compared when groups are checked for similarity
// (processors/nodegroupset/compare_nodegroups.go).
var ignoredLabels = []string{labelHost, "failure-domain.beta.kubernetes.io/zone",
	"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
	"beta.kubernetes.io/fluentd-ds-ready", "kops.k8s.io/instancegroup"}

// The relative differences that similar groups may have in memory, in allocatable resources and in
// free resources.
const (
	memoryRatio      = 0.015
	allocatableRatio = 0.05
	freeRatio        = 0.05
)

// alikeGroups reports whether new nodes of a and b have similar resources and labels.
func (c *Cluster) alikeGroups(a, b *Group) bool {
	x, y := a.Capacity, b.Capacity
	if !within(x.Memory, y.Memory, memoryRatio) || x.CPU != y.CPU || x.Pods != y.Pods || x.Storage != y.Storage ||
		x.GPU != y.GPU ||
		a.GPUResource != b.GPUResource {
		return false
	}
	return allWithin(a.Allocatable, b.Allocatable, allocatableRatio) &&
		allWithin(a.Allocatable.Minus(a.Daemons), b.Allocatable.Minus(b.Daemons), freeRatio) &&
		c.sameLabels(a.Labels, b.Labels)
}

func allWithin(a, b policy.Resources, ratio float64) bool {
	return within(a.CPU, b.CPU, ratio) && within(a.Memory, b.Memory, ratio) && within(a.Storage, b.Storage, ratio) &&
		within(a.GPU, b.GPU, ratio) && within(a.Pods, b.Pods, ratio)
}

func within(a, b int64, ratio float64) bool {
	return float64(max(a, b)-min(a, b)) <= float64(max(a, b))*ratio
}

// sameLabels reports whether two lists of labels, both in ascending order of keys, are equal, apart
// from labels that may differ.
func (c *Cluster) sameLabels(a, b []policy.Label) bool {
	kept := func(labels []policy.Label) []policy.Label {
		return slices.DeleteFunc(slices.Clone(labels), func(l policy.Label) bool {
			return slices.Contains(ignoredLabels, l.Key) || slices.Contains(c.Ignored, l.Key)
		})
	}
	return slices.Equal(kept(a), kept(b))
}

func newName(i int) string { return "new-" + strconv.Itoa(i) }
