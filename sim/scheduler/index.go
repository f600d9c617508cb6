package scheduler

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// The default constraints: the topology spread that kube-scheduler prefers for pods without a
// spread constraint of their own (pkg/scheduler/framework/plugins/podtopologyspread/plugin.go).
const (
	defaultHostSkew = 3
	defaultZoneSkew = 5
	labelHost       = "kubernetes.io/hostname"
	labelZone       = "topology.kubernetes.io/zone"
)

// A nodeIndex is the scheduler's view of all nodes for one template.
type nodeIndex struct {
	pod  policy.Pod // represents any pod of the template
	read int        // number of entries of the scheduler's changes that were read

	// softs are the spread constraints that only affect scores. requireAll reports whether a node
	// must have the keys of all of them to be scored.
	softs      []softSpread
	requireAll bool

	// affinities are the parts of the score that result from preferred pod affinity.
	affinities []podAffinity

	// byHost and byDomain are the counters on which filters or scores depend: those by node, and
	// the others.
	byHost, byDomain []placement.Counter
	zonal            bool

	// local reports whether the fit of a pod on a node depends on no other node, nor on which pod
	// of the template it is.
	local bool

	requests
	grouping
}

// The requests of a pod, and the requests that scoring assumes.
type requests struct{ cpu, memory, scoredCPU, scoredMemory int64 }

// A grouping is the division of all nodes into groups for one template.
type grouping struct {
	// prefixes are all prefixes of the lists of numbers that distinguish groups; see groupOf.
	groups   []group
	prefixes []prefix

	nodes []membership
	round int32
	seen  []int32 // by node, the last round of prune in which it was found
}

// A softSpread is one spread constraint that only affects scores.
type softSpread struct {
	counter placement.Counter
	skewMax int32
	weight  float64 // weight in the current pick
}

// A podAffinity adds weight for each pod that counter counts in a node's domain.
type podAffinity struct {
	counter placement.Counter
	weight  int64
}

// A membership is the group of a node, and its resource score.
type membership struct {
	group int32 // index plus one; 0 if the node does not pass its own filters
	score int32
}

// A prefix is a prefix of a list of numbers.
type prefix struct {
	// longer is, at index x+1, the index of the prefix that is longer by x; 0 for none.
	longer []int32
	group  int32 // index of the group of this list plus one, 0 for none
}

// A group is a set of nodes that differ only in their resource scores.
type group struct {
	nodes      int32
	disliked   int32
	preference int32

	// heap orders the nodes by descending score, then id. Stale entries are dropped when they reach
	// the top.
	heap []entry
}

// An entry is the score of a node at the time of writing.
type entry struct {
	score int32
	node  policy.NodeID
}

func newNodeIndex(sp *placement.Space, templates []policy.Template, t *policy.Template,
	peers func(t, u *policy.Template) bool) *nodeIndex {
	r := &nodeIndex{
		pod:  policy.Pod{ID: policy.None, Template: t.ID, Node: policy.None, Nominated: policy.None, VolumeZone: policy.None},
		read: -1, zonal: sp.Scoring().Zonal(t.ID),
		grouping: grouping{prefixes: make([]prefix, 1)},
	}
	cpu, memory := placement.Assumptions(t)
	r.requests = requests{t.Requests.CPU, t.Requests.Memory, t.Requests.CPU + cpu, t.Requests.Memory + memory}
	if t.DaemonSet {
		return r // its pods are bound to their nodes directly
	}
	r.addSofts(sp, templates, t, peers)
	r.addAffinities(sp, templates, t)
	counters := sp.Topology().CountersOf(t.ID)
	for _, counter := range counters {
		r.depend(sp, counter)
	}
	r.local = len(counters)+len(t.Volumes) == 0
	return r
}

func (r *nodeIndex) depend(sp *placement.Space, t placement.Counter) {
	if sp.Topology().ByHost(t) {
		r.byHost = append(r.byHost, t)
	} else {
		r.byDomain = append(r.byDomain, t)
	}
}

func (r *nodeIndex) addSofts(sp *placement.Space, templates []policy.Template, t *policy.Template,
	peers func(t, u *policy.Template) bool) {
	if len(t.Spread) == 0 {
		member := func(u *policy.Template) bool { return peers(t, u) }
		if !anyOf(templates, member) {
			return
		}
		r.addSoft(sp, defaultHostSkew, placement.Count{Key: labelHost, Member: member, Live: true})
		r.addSoft(sp, defaultZoneSkew, placement.Count{Key: labelZone, Member: member, Live: true, For: t})
		return
	}
	r.requireAll = true
	var keys []string
	for i := range t.Spread {
		if t.Spread[i].Soft {
			keys = append(keys, t.Spread[i].TopologyKey)
		}
	}
	for i := range t.Spread {
		c := &t.Spread[i]
		if !c.Soft {
			continue
		}
		count := placement.Count{Key: c.TopologyKey, Live: true,
			Member: func(u *policy.Template) bool { return placement.SpreadCounts(t, c, u) }}
		if c.TopologyKey != labelHost {
			count.For, count.Keys = t, keys
			count.IgnoreAffinity, count.HonorTaints = c.IgnoreAffinity, c.HonorTaints
		}
		r.addSoft(sp, c.MaxSkew, count)
	}
}

func anyOf(templates []policy.Template, is func(*policy.Template) bool) bool {
	for i := range templates {
		if is(&templates[i]) {
			return true
		}
	}
	return false
}

func (r *nodeIndex) addSoft(sp *placement.Space, skewMax int32, c placement.Count) {
	r.softs = append(r.softs, softSpread{counter: sp.Topology().Track(c), skewMax: skewMax})
	r.depend(sp, r.softs[len(r.softs)-1].counter)
}

// addAffinities collects the preferred pod affinity of t, and the terms of other pods that match
// pods of t. A required term of another pod has a weight of one.
func (r *nodeIndex) addAffinities(sp *placement.Space, templates []policy.Template, t *policy.Template) {
	for _, own := range [...]struct {
		terms []policy.PodTerm
		sign  int64
	}{{t.PodAffinity, 1}, {t.PodAntiAffinity, -1}} {
		for i := range own.terms {
			term := &own.terms[i]
			if term.Weight > 0 {
				r.addAffinity(sp, term.TopologyKey, own.sign*int64(term.Weight), func(u *policy.Template) bool {
					return placement.TermMatches(t, term, u)
				})
			}
		}
	}
	for i := range templates {
		u := &templates[i]
		only := func(x *policy.Template) bool { return x.ID == u.ID }
		for k := range u.PodAffinity {
			if term := &u.PodAffinity[k]; placement.TermMatches(u, term, t) {
				r.addAffinity(sp, term.TopologyKey, max(1, int64(term.Weight)), only)
			}
		}
		for k := range u.PodAntiAffinity {
			if term := &u.PodAntiAffinity[k]; term.Weight > 0 && placement.TermMatches(u, term, t) {
				r.addAffinity(sp, term.TopologyKey, -int64(term.Weight), only)
			}
		}
	}
}

func (r *nodeIndex) addAffinity(sp *placement.Space, key string, weight int64, member func(*policy.Template) bool) {
	t := sp.Topology().Track(placement.Count{Key: key, Member: member})
	r.affinities = append(r.affinities, podAffinity{t, weight})
	r.depend(sp, t)
}

func (r *nodeIndex) lacksKey(sp *placement.Space, n policy.NodeID) bool {
	for i := range r.softs {
		if sp.Topology().Domain(r.softs[i].counter, n) < 0 {
			return true
		}
	}
	return false
}

// update re-evaluates node n. alone makes n the only node of its group.
func (r *nodeIndex) update(sp *placement.Space, n policy.NodeID, alone bool) {
	for int(n) >= len(r.nodes) {
		r.nodes = append(r.nodes, membership{})
		r.seen = append(r.seen, 0)
	}
	was, now := r.nodes[n], membership{}
	if sp.Scoring().CheckAlone(&r.pod, n) == placement.OK {
		now = membership{r.groupOf(sp, n, alone) + 1, r.resourceScore(sp, n)}
	}
	if now == was {
		return
	}
	r.nodes[n] = now
	if was.group != now.group && was.group > 0 {
		r.groups[was.group-1].nodes--
	}
	if now.group == 0 {
		return
	}
	g := &r.groups[now.group-1]
	if was.group != now.group {
		g.nodes++
	}
	g.push(entry{now.score, n})
	if len(g.heap) > 2*int(g.nodes)+64 {
		r.prune(g, now.group)
	}
}

// groupOf returns the index of the group of n. Groups are distinguished by lists of small numbers,
// which are followed as paths here, so that no list is built or compared.
func (r *nodeIndex) groupOf(sp *placement.Space, n policy.NodeID, alone bool) int32 {
	disliked, preference := sp.Scoring().Disliked(r.pod.Template, n), sp.Scoring().Preference(r.pod.Template, n)
	at := int32(0)
	if disliked|preference != 0 {
		at = r.step(r.step(at, disliked), preference)
	} else {
		at = r.step(at, -1) // most nodes: one step instead of two
	}
	if r.zonal {
		at = r.step(at, int32(sp.Scoring().Zone(n)))
	}
	for _, t := range r.byDomain {
		at = r.step(at, sp.Topology().Domain(t, n))
	}
	for _, t := range r.byHost {
		at = r.step(at, sp.Topology().Counted(t, int32(n)))
	}
	if alone {
		at = r.step(at, int32(n)) // only these lists are longer than the others
	}
	if r.prefixes[at].group == 0 {
		r.groups = append(r.groups, group{disliked: disliked, preference: preference})
		r.prefixes[at].group = int32(len(r.groups))
	}
	return r.prefixes[at].group - 1
}

func (r *grouping) step(at, x int32) int32 {
	p := &r.prefixes[at]
	if int(x+1) < len(p.longer) && p.longer[x+1] != 0 {
		return p.longer[x+1]
	}
	for int(x+1) >= len(p.longer) {
		p.longer = append(p.longer, 0)
	}
	next := int32(len(r.prefixes))
	p.longer[x+1] = next
	r.prefixes = append(r.prefixes, prefix{})
	return next
}

// resourceScore returns the sum of the scores by least and by balanced allocation on n, including
// the pod.
func (r *nodeIndex) resourceScore(sp *placement.Space, n policy.NodeID) int32 {
	have, used := sp.Allocatable(n), sp.Requested(n)
	cpu, memory := sp.Scoring().Assumed(n)
	least, weights := int64(0), int64(0)
	for _, x := range [...][2]int64{
		{used.CPU + cpu + r.scoredCPU, have.CPU}, {used.Memory + memory + r.scoredMemory, have.Memory},
	} {
		if x[1] == 0 {
			continue
		}
		weights++
		if x[0] <= x[1] {
			least += (x[1] - x[0]) * scoreMax / x[1]
		}
	}
	if weights > 0 {
		least /= weights
	}
	return int32(least) + r.balanceScore(have, used)
}

// balanceScore returns the score by balanced allocation, in [0, scoreMax]. It is highest if equal
// fractions of CPU and memory are requested. Pods that request neither score 0.
func (r *nodeIndex) balanceScore(have, used policy.Resources) int32 {
	if r.cpu == 0 && r.memory == 0 {
		return 0
	}
	if have.CPU == 0 || have.Memory == 0 {
		return scoreMax
	}
	cpu := min(1, float64(used.CPU+r.cpu)/float64(have.CPU))
	memory := min(1, float64(used.Memory+r.memory)/float64(have.Memory))
	apart := (cpu - memory) / 2
	if apart < 0 {
		apart = -apart
	}
	return int32((1 - apart) * scoreMax)
}

// top returns the best entry that is still valid. The group must have nodes.
func (g *group) top(r *grouping) entry {
	for {
		e := g.heap[0]
		if s := r.nodes[e.node]; s.score == e.score && s.group > 0 && &r.groups[s.group-1] == g {
			return e
		}
		g.pop()
	}
}

// prune drops outdated and duplicate entries.
func (r *grouping) prune(g *group, id int32) {
	r.round++
	kept := g.heap[:0]
	for _, e := range g.heap {
		s := r.nodes[e.node]
		if s.group == id && s.score == e.score && r.seen[e.node] != r.round {
			r.seen[e.node] = r.round
			kept = append(kept, e)
		}
	}
	g.heap = kept
	for i := len(kept)/2 - 1; i >= 0; i-- {
		g.sink(i)
	}
}

func (e entry) before(x entry) bool {
	return e.score > x.score || e.score == x.score && e.node < x.node
}

func (g *group) push(e entry) {
	g.heap = append(g.heap, e)
	h := g.heap
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(h[up]) {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (g *group) pop() {
	last := len(g.heap) - 1
	g.heap[0] = g.heap[last]
	g.heap = g.heap[:last]
	if last > 0 {
		g.sink(0)
	}
}

func (g *group) sink(i int) {
	h := g.heap
	for {
		least := i
		if l := 2*i + 1; l < len(h) && h[l].before(h[least]) {
			least = l
		}
		if l := 2*i + 2; l < len(h) && h[l].before(h[least]) {
			least = l
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
