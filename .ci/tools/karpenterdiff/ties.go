package main

import (
	"cmp"
	"maps"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// A draw is a choice that Spotter leaves open: among domains of a key that it takes to be
// equal for a pod, by position.
type draw struct {
	pod  int
	key  string
	ties []string
}

// A tieCheck counts the pods of a workload by domain, to see whether domains among which
// Spotter draws are equal. A guide alone would hide it where they are not, since of the
// domains that it is offered it takes the one that Karpenter took.
type tieCheck struct {
	*view
	batch []int
	sol   *placement.Solution
	draws []draw
}

// untied reports whether one of the draws for a topology spread was among domains with
// more and with fewer pods. Draws that cannot be judged from outside count as equal.
func (c *tieCheck) untied() bool {
	for i := range c.s.Pools {
		if slices.ContainsFunc(c.s.Pools[i].Taints, func(t Taint) bool { return t.Effect == "PreferNoSchedule" }) {
			return false // pods are counted again once a pod tolerates the taint
		}
	}
	for i := range c.s.Workloads {
		w := &c.s.Workloads[i]
		for k := range w.Spread {
			if x := &w.Spread[k]; w.countsItself(x) && c.untiedBy(i, x.Key) {
				return true
			}
		}
	}
	return false
}

// countsItself reports whether a constraint counts the pods of w alone, wherever they run,
// is never given up, and whether no rule of w for its key counts other pods.
func (w *Workload) countsItself(x *Spread) bool {
	others := slices.ContainsFunc(w.Spread, func(y Spread) bool { return y.Key == x.Key && !maps.Equal(y.Match, x.Match) })
	zonal := slices.ContainsFunc(w.Volumes, func(v Volume) bool { return v.Zonal }) // its pods may require different zones
	return !others && !zonal && !x.Soft && !x.HonorTaints && len(w.Required) == 0 && len(w.Affinity) == 0 &&
		maps.Equal(x.Match, map[string]string{"app": w.Labels["app"]})
}

// untiedBy is untied for one workload and one key. The pods of the workload have the same
// requests, so they are placed in the order of the queue, and before the draw for a pod
// those before it count. It returns false if one of the pods was not placed or was tried
// again.
func (c *tieCheck) untiedBy(w int, key string) bool {
	count := map[string]int{}
	var queue []int // positions in the batch
	for i := range c.s.Pods {
		p := &c.s.Pods[i]
		switch at := slices.Index(c.batch, i); {
		case p.Workload != w:
		case at >= 0:
			queue = append(queue, at)
		case p.Node != "" && !p.Terminating:
			count[c.onNode(policy.NodeID(slices.IndexFunc(c.s.Nodes, func(n Node) bool { return n.Name == p.Node })), key)]++
		}
	}
	slices.SortStableFunc(queue, func(a, b int) int {
		return cmp.Compare(c.s.Pods[c.batch[b]].Age,
			c.s.Pods[c.batch[a]].Age)
	})
	if slices.ContainsFunc(queue, func(at int) bool { return c.domain(at, key) == "" }) {
		return false
	}
	untied, counted := false, 0
	for i := range c.draws {
		d := &c.draws[i]
		turn := slices.Index(queue, d.pod)
		if d.key != key || turn < 0 {
			continue
		}
		if turn < counted {
			return false
		}
		for ; counted < turn; counted++ {
			count[c.domain(queue[counted], key)]++
		}
		untied = untied || slices.ContainsFunc(d.ties, func(t string) bool { return count[t] != count[d.ties[0]] })
	}
	return untied
}

// onNode returns the domain of a node, empty where it has none.
func (c *tieCheck) onNode(n policy.NodeID, key string) string {
	x := &c.s.Nodes[n]
	return c.s.labelsOn(x)[key]
}

// domain returns the domain in which a pod of the batch was placed; empty unless there is
// exactly one.
func (c *tieCheck) domain(at int, key string) string {
	if n := c.sol.Nodes[at]; n != policy.None {
		return c.onNode(n, key)
	}
	domain := ""
	for i := range c.sol.Bins {
		if !slices.Contains(c.sol.Bins[i].Pods, at) {
			continue
		}
		for _, o := range c.sol.Bins[i].Offers {
			d, _ := policy.FindLabel(c.offers[o].Labels, key)
			if domain != "" && d != domain {
				return ""
			}
			domain = d
		}
	}
	return domain
}
