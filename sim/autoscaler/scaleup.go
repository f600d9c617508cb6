package autoscaler

import (
	"cmp"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// An Option is the effect of growing one group.
type Option struct {
	Group int

	// Schedulable are the indices of the lots whose pods fit an empty new node. Similar are the
	// other groups over which new nodes would be balanced.
	Schedulable []int
	Similar     []int

	// Nodes is the number of nodes to add, Pods the indices of the pods that would run on them, and
	// Bins the same indices by node. Nodes can exceed the number of bins; see estimate.
	Nodes int
	Pods  []int
	Bins  [][]int
}

// Lots groups the indices of pods that the scheduler treats as equal
// (core/scaleup/equivalence/groups.go).
func (c *Cluster) Lots(pods []policy.Pod) [][]int {
	var lots [][]int
	of := slices.Repeat([]int{-1}, len(c.Templates))
	for i := range pods {
		t := pods[i].Template
		if c.alike(t) && of[t] >= 0 {
			lots[of[t]] = append(lots[of[t]], i)
			continue
		}
		of[t] = len(lots)
		lots = append(lots, []int{i})
	}
	return lots
}

// ScaleUp returns one option for each group: the effect of growing it for pods that fit no existing
// node. The option of a group that may not grow, or that helps no pod, has no nodes
// (core/scaleup/orchestrator/orchestrator.go).
func (c *Cluster) ScaleUp(m *Memory, pods []policy.Pod) []Option {
	m.search.reset(c)
	lots := c.Lots(pods)
	options := make([]Option, len(c.Groups))
	for g := range c.Groups {
		options[g].Group = g
		if c.Groups[g].room() > 0 {
			options[g].Schedulable = c.schedulable(&c.Groups[g], pods, lots)
		}
	}
	for g := range options {
		o := &options[g]
		if len(o.Schedulable) == 0 {
			continue
		}
		room := c.Groups[g].room()
		if c.Balance {
			o.Similar = c.similar(g, options)
		}
		for _, x := range o.Similar {
			room += c.Groups[x].room()
		}
		if c.NodesMax > 0 {
			room = min(room, c.NodesMax)
		}
		e := newEstimate(c, m, &c.Groups[g], pods, room)
		o.Nodes, o.Pods, o.Bins = e.run(lots, o.Schedulable)
	}
	return options
}

// schedulable returns the lots whose first pod fits an empty new node of g.
func (c *Cluster) schedulable(g *Group, pods []policy.Pod, lots [][]int) (fit []int) {
	n := g.node(c.Free)
	c.Space.SetNode(&n)
	for i, lot := range lots {
		if c.Space.Check(&pods[lot[0]], n.ID) == placement.OK {
			fit = append(fit, i)
		}
	}
	c.Space.RemoveNode(n.ID)
	return fit
}

// node returns a new node of g.
func (g *Group) node(id policy.NodeID) policy.Node {
	return policy.Node{ID: id, Name: newName(int(id)), Phase: policy.NodeInitialized,
		Allocatable: g.Allocatable.Minus(g.Daemons), Labels: g.Labels, Taints: g.Taints,
		VolumesMax: g.VolumesMax, GPUResource: g.GPUResource}
}

// similar returns the groups that are similar to group g and whose new nodes fit the same lots.
func (c *Cluster) similar(g int, options []Option) (similar []int) {
	for x := range options {
		holds := func(lot int) bool { return slices.Contains(options[x].Schedulable, lot) }
		if x == g || len(options[x].Schedulable) == 0 || !c.alikeGroups(&c.Groups[g], &c.Groups[x]) {
			continue
		}
		if !slices.ContainsFunc(options[g].Schedulable, func(lot int) bool { return !holds(lot) }) {
			similar = append(similar, x)
		}
	}
	return similar
}

// An estimate packs pods onto new nodes of one group (estimator/binpacking_estimator.go).
type estimate struct {
	*Cluster
	memory *Memory
	group  *Group
	pods   []policy.Pod

	existing int // number of nodes in the snapshot
	room     int // number of nodes that may still be added
	first    policy.NodeID
	opened   int
	last     policy.NodeID

	bins   [][]int
	placed []int

	// elsewhere are the existing nodes on which pods were placed. They count as nodes to add.
	elsewhere []policy.NodeID
	outside   []int
}

func newEstimate(c *Cluster, m *Memory, g *Group, pods []policy.Pod, room int) *estimate {
	return &estimate{Cluster: c, memory: m, group: g, pods: pods, existing: len(m.search.nodes), room: room,
		first: c.Free, last: policy.None}
}

// run packs the given lots, largest pods first, and leaves the Space unchanged.
func (e *estimate) run(lots [][]int, fit []int) (nodes int, placed []int, bins [][]int) {
	order := slices.Clone(fit)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(e.score(lots[b]), e.score(lots[a])) })
	more := true
	for _, lot := range order {
		rest := e.fill(lots[lot])
		if more {
			more = e.open(rest)
		}
	}
	for _, i := range e.outside {
		for _, n := range e.elsewhere {
			if slices.Contains(e.Space.Pods(n), e.pods[i].ID) {
				e.Space.Unbind(&e.pods[i], n)
			}
		}
	}
	for i := range e.opened {
		e.Space.RemoveNode(e.first + policy.NodeID(i))
	}
	e.memory.search.nodes = e.memory.search.nodes[:e.existing]
	nodes = len(e.elsewhere)
	for _, b := range e.bins {
		if len(b) > 0 {
			nodes++
			bins = append(bins, b)
		}
	}
	return nodes, e.placed, bins
}

// score returns the size of a lot's pods: the sum of the fractions of a new node's CPU and memory
// that one pod requests (estimator/decreasing_pod_orderer.go).
func (e *estimate) score(lot []int) (score float64) {
	r, all := &e.Templates[e.pods[lot[0]].Template].Requests, &e.group.Allocatable
	if all.CPU > 0 {
		score += float64(r.CPU) / float64(all.CPU)
	}
	if all.Memory > 0 {
		score += float64(r.Memory) / float64(all.Memory)
	}
	return score
}

// fill places pods of a lot on nodes that were already added, until one fits none of them. It
// returns that pod and the following ones.
func (e *estimate) fill(lot []int) (rest []int) {
	for k, i := range lot {
		n := policy.NodeID(policy.None)
		if e.opened > 0 {
			n = e.search(&e.pods[i], func(n policy.NodeID) bool { return n >= e.first })
		}
		if n == policy.None {
			return lot[k:]
		}
		e.place(i, n)
	}
	return nil
}

// open places pods of a lot on the newest node, and adds a node where a pod does not fit it. It
// reports whether more nodes may be added for other lots.
func (e *estimate) open(lot []int) bool {
	for _, i := range lot {
		p := &e.pods[i]
		if e.last != policy.None {
			v := e.Space.Check(p, e.last)
			if v == placement.OK {
				e.place(i, e.last)
				continue
			}
			if v == placement.Skewed && e.spreadsByHost(p) {
				n := e.search(p, func(n policy.NodeID) bool { return n != e.last })
				if n != policy.None {
					e.place(i, n)
					continue
				}
			}
			if len(e.bins[e.last-e.first]) == 0 {
				return true // the pod does not fit an empty node, so it fits no other
			}
		}
		if e.room == 0 {
			return false
		}
		e.room--
		e.add()
		if e.Space.Check(p, e.last) != placement.OK {
			return true
		}
		e.place(i, e.last)
	}
	return true
}

func (e *estimate) add() {
	n := e.group.node(e.first + policy.NodeID(e.opened))
	e.Space.SetNode(&n)
	nodes := &e.memory.search.nodes
	*nodes = slices.Insert(*nodes, e.existing+e.draw(e.opened+1), n.ID)
	e.bins = append(e.bins, nil)
	e.last = n.ID
	e.opened++
}

// search finds a node for p. The Cluster Autoscaler keeps its new nodes in a Go map, whose
// iteration order changes. In effect, they have one random order, in which each search starts at a
// random position (simulator/clustersnapshot/store/delta.go).
func (e *estimate) search(p *policy.Pod, accept func(policy.NodeID) bool) policy.NodeID {
	added := e.memory.search.nodes[e.existing:]
	turn := e.draw(len(added))
	rotated := slices.Concat(added[turn:], added[:turn])
	copy(added, rotated)
	return e.find(&e.memory.search, p, accept)
}

func (e *estimate) place(i int, n policy.NodeID) {
	e.Space.Bind(&e.pods[i], n)
	e.placed = append(e.placed, i)
	if n >= e.first {
		e.bins[n-e.first] = append(e.bins[n-e.first], i)
		return
	}
	e.outside = append(e.outside, i)
	if !slices.Contains(e.elsewhere, n) {
		e.elsewhere = append(e.elsewhere, n)
	}
}

func (e *estimate) spreadsByHost(p *policy.Pod) bool {
	return slices.ContainsFunc(e.Templates[p.Template].Spread,
		func(s policy.Spread) bool { return s.TopologyKey == labelHost })
}

const labelHost = "kubernetes.io/hostname"
