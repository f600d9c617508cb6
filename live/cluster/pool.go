package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// LabelPool is the label of the objects that Spotter creates for a pool, and therefore of its
// nodes. Its value is the name of the pool.
const LabelPool = "spotter.dev/pool"

// chooseEvery is the interval at which the markets of the pools are chosen again, since prices and
// scores change. It is the step of the price history.
const chooseEvery = 10 * time.Minute

// A poolTable contains the CapacityPools and the reports about them.
type poolTable struct {
	book   Book
	wakes  wakeQueue
	clock  *snapshotClock
	faults *faultLog

	objects map[string]*v1alpha1.CapacityPool // as read from the API server

	// valid contains the valid pools, ascending by name. It is rebuilt after a change.
	valid   []*pool
	changed bool
	chosen  policy.Time // time at which the markets were last chosen; 0 if never

	// invalid contains the error of each invalid pool, and conflicts the reason of each pool that
	// claims the same nodes as another, by name of the pool.
	invalid   map[string]string
	conflicts map[string]string

	// nodePools maps the names of Karpenter's NodePools to their CapacityPools.
	nodePools map[string]policy.PoolID

	steers  map[string]policy.SteerState
	refused map[string]policy.Time
}

func newPoolTable(b Book, q wakeQueue, c *snapshotClock, l *faultLog) *poolTable {
	return &poolTable{
		book: b, wakes: q, clock: c, faults: l, changed: true, objects: map[string]*v1alpha1.CapacityPool{},
		invalid: map[string]string{}, conflicts: map[string]string{},
		steers: map[string]policy.SteerState{}, refused: map[string]policy.Time{},
	}
}

// A pool is a valid CapacityPool with its defaults, and its form in snapshots.
type pool struct {
	object *v1alpha1.CapacityPool
	pool   policy.Pool
}

func (t *poolTable) set(p *v1alpha1.CapacityPool) {
	before := t.objects[p.Name]
	if before != nil && before.UID == p.UID && before.Generation == p.Generation && p.Generation != 0 &&
		maps.Equal(before.Annotations, p.Annotations) {
		return // only its status has changed
	}
	t.objects[p.Name] = p
	t.change()
}

// change causes the pools to be read again, and requests a step with their new settings.
func (t *poolTable) change() {
	t.changed = true
	if t.clock.started {
		t.wakes.wake(backend.WakePools)
	}
}

func (t *poolTable) drop(p *v1alpha1.CapacityPool) {
	delete(t.objects, p.Name)
	delete(t.steers, p.Name)
	delete(t.refused, p.Name)
	t.change()
}

// read reads all pools if one has changed, since their identifiers depend on their names, and
// reports whether it did.
func (t *poolTable) read() bool {
	if !t.changed {
		return false
	}
	t.changed, t.chosen = false, 0
	clear(t.invalid)
	t.valid = nil
	for _, name := range slices.Sorted(maps.Keys(t.objects)) {
		p := t.objects[name].DeepCopy()
		p.Default()
		if errs := p.Validate(); len(errs) > 0 {
			t.invalid[name] = errs.ToAggregate().Error()
			t.faults.warn("CapacityPool "+name, t.invalid[name])
			continue
		}
		x := &pool{object: p, pool: p.Pool()}
		x.pool.ID = policy.PoolID(len(t.valid))
		t.valid = append(t.valid, x)
	}
	t.book.Use(used(t.valid))
	t.nodePools = map[string]policy.PoolID{}
	for i, p := range t.valid {
		if p.object.Spec.Backend.Karpenter != nil {
			t.nodePools[p.pool.Name+"-spot"], t.nodePools[p.pool.Name+"-od"] = policy.PoolID(i), policy.PoolID(i)
		}
	}
	t.findConflicts()
	return true
}

// id returns the pool with a name; None if it does not exist.
func (t *poolTable) id(name string) policy.PoolID {
	return policy.PoolID(slices.IndexFunc(t.valid, func(p *pool) bool { return p.pool.Name == name }))
}

// name returns the name of a pool; empty for None.
func (t *poolTable) name(id policy.PoolID) string {
	if id == policy.None || int(id) >= len(t.valid) {
		return ""
	}
	return t.valid[id].pool.Name
}

// of returns the pool of a node: by Spotter's label, by its NodePool, or by all labels of the
// pool's template. If the labels of several pools match, it is the pool with the most labels. It
// returns None if there is no match.
func (t *poolTable) of(n *corev1.Node) policy.PoolID {
	if name, ok := n.Labels[LabelPool]; ok {
		if id := t.id(name); id != policy.None {
			return id
		}
	}
	nodePool, karpenters := n.Labels[labelKarpenterPool]
	if id, ok := t.nodePools[nodePool]; ok && karpenters {
		return id
	}
	best := policy.PoolID(policy.None)
	for i, p := range t.valid {
		template := p.object.Spec.Template.Labels
		fits := len(template) > 0 && labels.SelectorFromSet(template).Matches(labels.Set(n.Labels)) &&
			karpenters == (p.object.Spec.Backend.Karpenter != nil)
		if fits && (best == policy.None || len(template) > len(t.valid[best].object.Spec.Template.Labels)) {
			best = policy.PoolID(i)
		}
	}
	return best
}

// findConflicts finds the pools that claim the same nodes.
func (t *poolTable) findConflicts() {
	clear(t.conflicts)
	for i, p := range t.valid {
		for _, q := range t.valid[i+1:] {
			if why := overlap(p.object, q.object); why != "" {
				t.addConflict(p.pool.Name, q.pool.Name, why)
				t.addConflict(q.pool.Name, p.pool.Name, why)
			}
		}
	}
}

func (t *poolTable) addConflict(pool, other, why string) {
	text := fmt.Sprintf("; it and CapacityPool %s %s", other, why)
	t.conflicts[pool] = strings.TrimPrefix(t.conflicts[pool]+text, "; ")
}

// overlap returns the reason that p and q claim the same nodes; empty if they do not.
func overlap(p, q *v1alpha1.CapacityPool) string {
	a, b := &p.Spec.Backend, &q.Spec.Backend
	switch {
	case a.Karpenter != nil && b.Karpenter != nil:
		for _, x := range []string{p.Name + "-spot", p.Name + "-od"} {
			if x == q.Name+"-spot" || x == q.Name+"-od" {
				return "both create the NodePool " + x
			}
		}
	case a.AutoScalingGroups != nil && b.AutoScalingGroups != nil:
		s, t := a.AutoScalingGroups.DiscoveryTags, b.AutoScalingGroups.DiscoveryTags
		if labels.SelectorFromSet(s).Matches(labels.Set(t)) || labels.SelectorFromSet(t).Matches(labels.Set(s)) {
			return "discover the same Auto Scaling groups: the tags of one include those of the other"
		}
		if s, t := p.Spec.Template.Labels, q.Spec.Template.Labels; len(s) > 0 && maps.Equal(s, t) {
			return "give their nodes the same labels"
		}
	}
	return "" // Spotter creates the node pools of Rackspace, with the name of the pool
}

// fill writes the pools to s, and determines which of their disruption budgets are active.
func (t *poolTable) fill(s *policy.Snapshot) {
	if t.chosen == 0 || s.Now.Sub(t.chosen) >= chooseEvery {
		t.chosen = s.Now
		for _, p := range t.valid {
			p.pool.Markets = t.book.Choose(p.object)
		}
	}
	s.Pools = make([]policy.Pool, 0, len(t.valid))
	for _, p := range t.valid {
		x := p.pool
		x.Steer, x.Refused = t.steers[x.Name], t.refused[x.Name]
		x.Budgets = slices.Clone(x.Budgets)
		for k := range x.Budgets {
			b := &x.Budgets[k]
			b.Active = kube.InForce(b, s.Now)
		}
		s.Pools = append(s.Pools, x)
	}
}

// youngFor is the time after its pool's consolidateAfter for which a node still counts as
// nominated: Karpenter keeps nominations in memory only.
const youngFor = 30 * time.Second

// nominate marks the nodes of Karpenter that are so young that Karpenter may have nominated them
// for pods, as of s.Now, which must be final.
func (t *poolTable) nominate(s *policy.Snapshot) {
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Phase == policy.NodeGone || n.Phase > policy.NodeInitialized || n.Pool == policy.None {
			continue
		}
		p := &t.valid[n.Pool].pool
		since := cmp.Or(n.Registered, n.Launched)
		if p.Provisioner == policy.ProvisionerKarpenter && since != 0 && s.Now.Sub(since) < p.ConsolidateAfter+youngFor {
			n.Nominated = s.Now
		}
	}
}

// used returns the CapacityPools of pools, for which the book provides markets.
func used(pools []*pool) []*v1alpha1.CapacityPool {
	all := make([]*v1alpha1.CapacityPool, len(pools))
	for i, p := range pools {
		all[i] = p.object
	}
	return all
}
