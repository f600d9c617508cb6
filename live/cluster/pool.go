package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// LabelPool is on what we make for a pool, and so on its nodes: the name of the pool.
const LabelPool = "spotter.dev/pool"

// chooseEvery is how often the markets of the pools are chosen anew, as prices and
// scores move: the step of the price history.
const chooseEvery = 10 * time.Minute

// A poolTable holds the CapacityPools, and what was reported of them.
type poolTable struct {
	objects map[string]*v1alpha1.CapacityPool // as the API server has them

	// pools are those that are valid, ascending by name; a change makes them anew.
	pools        []*pool
	poolsChanged bool
	chosen       policy.Time // when the markets were last chosen; 0 is before

	// invalid says by the name of a pool what is wrong with it, and conflicts with
	// which it quarrels over nodes.
	invalid   map[string]string
	conflicts map[string]string

	// selecting are the node pools of Karpenter by name, for their CapacityPool.
	nodePools map[string]policy.PoolID

	steers  map[string]policy.SteerState
	refused map[string]policy.Time
	priced  map[string]*pricing // as of the last snapshot
}

// A pricing is how many nodes of a pool there are in the cluster, and how many of them
// are of no market that is known; example says why of one.
type pricing struct {
	nodes, unpriced int
	example         string
}

func (t *poolTable) init() {
	t.objects, t.poolsChanged = map[string]*v1alpha1.CapacityPool{}, true
	t.invalid, t.conflicts = map[string]string{}, map[string]string{}
	t.steers, t.refused = map[string]policy.SteerState{}, map[string]policy.Time{}
}

// A pool is a valid CapacityPool with its defaults, and as snapshots show it.
type pool struct {
	object *v1alpha1.CapacityPool
	pool   policy.Pool
}

func (o *Observer) setPool(p *v1alpha1.CapacityPool) {
	before := o.objects[p.Name]
	if before != nil && before.UID == p.UID && before.Generation == p.Generation && p.Generation != 0 && maps.Equal(before.Annotations, p.Annotations) {
		return // its status has changed
	}
	o.objects[p.Name] = p
	o.changedPools()
}

// changedPools has the pools read anew, and a step taken by what they say now.
func (o *Observer) changedPools() {
	o.poolsChanged = true
	if o.started {
		o.Wake(wakePools)
	}
}

func (o *Observer) dropPool(p *v1alpha1.CapacityPool) {
	delete(o.objects, p.Name)
	delete(o.steers, p.Name)
	delete(o.refused, p.Name)
	o.changedPools()
}

// readPools reads all pools, since their identifiers follow from their names.
func (o *Observer) readPools() {
	o.poolsChanged, o.chosen = false, 0
	clear(o.invalid)
	o.pools = nil
	for _, name := range slices.Sorted(maps.Keys(o.objects)) {
		p := o.objects[name].DeepCopy()
		p.Default()
		if errs := p.Validate(); len(errs) > 0 {
			o.invalid[name] = errs.ToAggregate().Error()
			o.complain("CapacityPool "+name, o.invalid[name])
			continue
		}
		x := &pool{object: p, pool: p.Pool()}
		x.pool.ID = policy.PoolID(len(o.pools))
		o.pools = append(o.pools, x)
	}
	o.book.Use(used(o.pools))
	o.nodePools = map[string]policy.PoolID{}
	for i, p := range o.pools {
		if p.object.Spec.Backend.Karpenter != nil {
			o.nodePools[p.pool.Name+"-spot"], o.nodePools[p.pool.Name+"-od"] = policy.PoolID(i), policy.PoolID(i)
		}
	}
	o.quarrel()
	o.dirtyNodes()
}

// poolID returns the pool of that name, or None.
func (o *Observer) poolID(name string) policy.PoolID {
	return policy.PoolID(slices.IndexFunc(o.pools, func(p *pool) bool { return p.pool.Name == name }))
}

func (o *Observer) poolName(id policy.PoolID) string {
	if id == policy.None || int(id) >= len(o.pools) {
		return ""
	}
	return o.pools[id].pool.Name
}

// poolOf returns the pool that a node belongs to: as our label says, by the node
// pool that it came from, or by all of the labels of the pool's template. Of several
// that the last fits, the one with the most labels has it.
func (o *Observer) poolOf(n *corev1.Node) policy.PoolID {
	if name, ok := n.Labels[LabelPool]; ok {
		if id := o.poolID(name); id != policy.None {
			return id
		}
	}
	nodePool, karpenters := n.Labels[labelKarpenterPool]
	if id, ok := o.nodePools[nodePool]; ok && karpenters {
		return id
	}
	best := policy.PoolID(policy.None)
	for i, p := range o.pools {
		template := p.object.Spec.Template.Labels
		fits := len(template) > 0 && labels.SelectorFromSet(template).Matches(labels.Set(n.Labels)) &&
			karpenters == (p.object.Spec.Backend.Karpenter != nil)
		if fits && (best == policy.None || len(template) > len(o.pools[best].object.Spec.Template.Labels)) {
			best = policy.PoolID(i)
		}
	}
	return best
}

// quarrel finds the pools that lay claim to the same nodes.
func (o *Observer) quarrel() {
	clear(o.conflicts)
	for i, p := range o.pools {
		for _, q := range o.pools[i+1:] {
			if why := overlap(p.object, q.object); why != "" {
				o.blame(p.pool.Name, q.pool.Name, why)
				o.blame(q.pool.Name, p.pool.Name, why)
			}
		}
	}
}

func (o *Observer) blame(pool, other, why string) {
	text := fmt.Sprintf("; it and CapacityPool %s %s", other, why)
	o.conflicts[pool] = strings.TrimPrefix(o.conflicts[pool]+text, "; ")
}

// overlap says why p and q lay claim to the same nodes; empty when they do not.
func overlap(p, q *v1alpha1.CapacityPool) string {
	a, b := &p.Spec.Backend, &q.Spec.Backend
	switch {
	case a.Karpenter != nil && b.Karpenter != nil:
		for _, x := range []string{p.Name + "-spot", p.Name + "-od"} {
			if x == q.Name+"-spot" || x == q.Name+"-od" {
				return "both make the NodePool " + x
			}
		}
	case a.AutoScalingGroups != nil && b.AutoScalingGroups != nil:
		s, t := a.AutoScalingGroups.DiscoveryTags, b.AutoScalingGroups.DiscoveryTags
		if labels.SelectorFromSet(s).Matches(labels.Set(t)) || labels.SelectorFromSet(t).Matches(labels.Set(s)) {
			return "discover the same Auto Scaling groups: the tags of one are among those of the other"
		}
		if s, t := p.Spec.Template.Labels, q.Spec.Template.Labels; len(s) > 0 && maps.Equal(s, t) {
			return "give their nodes the same labels"
		}
	}
	return "" // node pools of Rackspace are our own and carry the name of the pool
}

// Conflicts names the pools that lay claim to the same nodes, each with the reason:
// nothing may be written for them.
func (o *Observer) Conflicts() map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.conflicts)
}

// The conditions that the observer knows of a CapacityPool.
const (
	ConditionValid    = "Valid"
	ConditionObserved = "Observed"
	ConditionPriced   = "NodesPriced"
)

// Conditions reports whether a pool can be understood, whether what is seen of the
// cluster is fresh, whether it is known of all of its nodes what they cost, and whether
// what nodes use.
func (o *Observer) Conditions(pool string) []metav1.Condition {
	stalled := o.Stalled()
	o.mu.Lock()
	defer o.mu.Unlock()
	valid := metav1.Condition{Type: ConditionValid, Status: metav1.ConditionTrue, Reason: "Valid"}
	if why := o.invalid[pool]; why != "" {
		valid.Status, valid.Reason, valid.Message = metav1.ConditionFalse, "Invalid", why
	}
	seen := metav1.Condition{Type: ConditionObserved, Status: metav1.ConditionTrue, Reason: "Fresh"}
	if len(stalled) > 0 {
		seen.Status, seen.Reason = metav1.ConditionFalse, "Stalled"
		seen.Message = fmt.Sprintf("nothing was heard of %s for more than %v", strings.Join(stalled, ", "), o.cfg.DataMax)
	}
	all := []metav1.Condition{valid, seen, o.pricing(pool), o.usage.condition()}
	if p := o.objects[pool]; p != nil {
		for i := range all {
			all[i].ObservedGeneration = p.Generation
		}
	}
	return all
}

// pricing says whether all nodes of a pool are of markets that are known.
func (o *Observer) pricing(pool string) metav1.Condition {
	c := metav1.Condition{Type: ConditionPriced, Status: metav1.ConditionTrue, Reason: "AllPriced"}
	if p := o.priced[pool]; p != nil && p.unpriced > 0 {
		c.Status, c.Reason = metav1.ConditionFalse, "UnpricedNodes"
		c.Message = fmt.Sprintf("%d of %d nodes are of no market that is known, so that they are left alone and in no account: %s", p.unpriced, p.nodes, p.example)
	}
	return c
}

// countPriced counts the nodes of pools of which nobody knows what they cost, those that
// the book was asked for just now left out: it may know them at the next snapshot.
func (o *Observer) countPriced() {
	o.priced = make(map[string]*pricing, len(o.pools))
	for _, p := range o.pools {
		o.priced[p.pool.Name] = &pricing{}
	}
	for i := range o.nodes {
		n, e := &o.nodes[i], &o.nodeX[i]
		if e.object == nil || n.Pool == policy.None {
			continue
		}
		p := o.priced[o.poolName(n.Pool)]
		p.nodes++
		if n.Market == policy.None && e.unpriced {
			p.unpriced++
			if p.example == "" || n.Name < p.example {
				p.example = n.Name
			}
		}
		e.unpriced = n.Market == policy.None
	}
	for _, p := range o.priced {
		if i, ok := o.byName[p.example]; ok {
			p.example = o.whyUnpriced(&o.nodes[i], o.nodeX[i].object)
		}
	}
}

// fillPools writes the pools, with what they hold and which of their disruption
// budgets are in force.
func (o *Observer) fillPools(s *policy.Snapshot) {
	if o.chosen == 0 || s.Now.Sub(o.chosen) >= chooseEvery {
		o.chosen = s.Now
		for _, p := range o.pools {
			p.pool.Markets = o.book.Choose(p.object)
		}
	}
	s.Pools = make([]policy.Pool, 0, len(o.pools))
	for _, p := range o.pools {
		x := p.pool
		x.Steer, x.Refused = o.steers[x.Name], o.refused[x.Name]
		x.Budgets = slices.Clone(x.Budgets)
		for k := range x.Budgets {
			b := &x.Budgets[k]
			b.Active = kube.InForce(b.Schedule, b.Duration, s.Now)
		}
		s.Pools = append(s.Pools, x)
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Phase == policy.NodeGone || n.Pool == policy.None {
			continue
		}
		size := n.Allocatable
		if n.Market != policy.None {
			size = s.Types[s.Markets[n.Market].Type].Capacity
		} else if e := &o.nodeX[i]; e.object != nil && len(e.object.Status.Capacity) > 0 {
			size, _ = kube.NodeResources(e.object.Status.Capacity)
		}
		s.Pools[n.Pool].Used = s.Pools[n.Pool].Used.Plus(size)
	}
	for _, name := range slices.Sorted(maps.Keys(o.budgets)) {
		s.Budgets = append(s.Budgets, o.budgets[name])
	}
}

// setBudget takes in a GPUBudget. One that is not valid bounds nothing.
func (o *Observer) setBudget(b *v1alpha1.GPUBudget) {
	b = b.DeepCopy()
	b.Default()
	selector, err := kube.Selector(&b.Spec.Selector)
	if errs := b.Validate(); len(errs) > 0 {
		err = errs.ToAggregate()
	}
	if err != nil {
		o.complain("GPUBudget "+key(b), err.Error())
		delete(o.budgets, key(b))
		return
	}
	x := b.Budget(b.Namespace, selector)
	x.Closed = strings.EqualFold(string(b.Status.Gate), "closed")
	o.budgets[key(b)] = x
}

func (o *Observer) dropBudget(b *v1alpha1.GPUBudget) { delete(o.budgets, key(b)) }
