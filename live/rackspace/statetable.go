package rackspace

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A stateTable contains the state of machines and CapacityPools. mu guards all of it, including the
// fields of machines and pools. It is never held during a request to an API.
type stateTable struct {
	cfg  *Config
	feed *Feed

	mu       sync.Mutex
	machines map[string]*machine // by name of the SpotNode
	strays   map[string]*stray   // by name of the node pool
	pools    map[string]*poolState
	writes   uint64            // number of changes of machines by calls
	erased   map[string]uint64 // the value of writes when a SpotNode was deleted, by its name
}

func newStateTable(cfg *Config, feed *Feed) *stateTable {
	return &stateTable{
		cfg: cfg, feed: feed, machines: map[string]*machine{}, strays: map[string]*stray{}, pools: map[string]*poolState{}, erased: map[string]uint64{},
	}
}

// A poolState is the state of a CapacityPool.
type poolState struct {
	conditions []metav1.Condition
	steer      steer
	active     bool        // whether its mode permits changes
	account    accountKey  // account that it names, kept after it was deleted
	answered   policy.Time // when its cloudspace was last read; zero if the last attempt failed

	// bought is the capacity that was launched for the snapshot of boughtAt, which does not contain
	// it yet.
	bought   policy.Resources
	boughtAt policy.Time
}

// pool returns the state of a CapacityPool. t.mu must be held.
func (t *stateTable) pool(name string) *poolState {
	p := t.pools[name]
	if p == nil {
		p = &poolState{}
		t.pools[name] = p
	}
	return p
}

// conditions returns the conditions of a pool, or nil if its state is unknown.
func (t *stateTable) conditions(pool string) []metav1.Condition {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.pools[pool]; p != nil {
		return append([]metav1.Condition(nil), p.conditions...)
	}
	return nil
}

// reportUnjudged sets the condition of pools whose cloudspace was never read, which may take long.
func (t *stateTable) reportUnjudged(pools []v1alpha1.CapacityPool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range pools {
		p := t.pool(pools[i].Name)
		if len(p.conditions) > 0 {
			continue
		}
		meta.SetStatusCondition(&p.conditions, metav1.Condition{
			Type: CloudspaceReachable, Status: metav1.ConditionFalse, Reason: "NotRead", Message: "The cloudspace has not been read since this replica started.",
			ObservedGeneration: pools[i].Generation, LastTransitionTime: metav1.NewTime(t.cfg.Clock.Now()),
		})
	}
}

// setConditions sets the conditions of a pool from the result of the last read of its account. They
// are input for the status of the pool, which this package does not write.
func (t *stateTable) setConditions(pool string, generation int64, err error) {
	invalid := metav1.Condition{Type: CredentialsInvalid, Status: metav1.ConditionFalse, Reason: "Accepted",
		Message: "Rackspace accepts the credentials."}
	reachable := metav1.Condition{Type: CloudspaceReachable, Status: metav1.ConditionTrue, Reason: "Read",
		Message: "The node pools of the cloudspace were read."}
	if err != nil {
		reachable.Status, reachable.Reason, reachable.Message = metav1.ConditionFalse, "NotRead", err.Error()
		if errors.Is(err, errCredentials) {
			invalid.Status, invalid.Reason, invalid.Message = metav1.ConditionTrue, "Refused", err.Error()
			if apierrors.IsNotFound(err) {
				invalid.Reason = "SecretNotFound"
			}
		} else {
			invalid.Status, invalid.Reason, invalid.Message = metav1.ConditionUnknown, "NotAsked", "The API of Rackspace did not answer."
		}
	}
	t.feed.unplaced(err)
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pool(pool)
	for _, c := range []metav1.Condition{invalid, reachable} {
		c.ObservedGeneration = generation
		c.LastTransitionTime = metav1.NewTime(t.cfg.Clock.Now())
		meta.SetStatusCondition(&p.conditions, c)
	}
}

// judgeStrays sets the condition NodePoolUnknown of all pools. unknown contains the messages by
// pool.
func (t *stateTable) judgeStrays(unknown map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(t.pools)) {
		c := metav1.Condition{Type: NodePoolUnknown, Status: metav1.ConditionFalse, Reason: "AllKnown",
			Message: "Every node pool with Spotter's label belongs to an order by Spotter."}
		if text, bad := unknown[name]; bad {
			c.Status, c.Reason, c.Message = metav1.ConditionTrue, "NotOurOrder", text+"; it is left as it is."
		}
		c.LastTransitionTime = metav1.NewTime(t.cfg.Clock.Now())
		meta.SetStatusCondition(&t.pools[name].conditions, c)
	}
}

// spotNodeOf returns the machine of a node, given its labels. It returns a [backend.Held] if
// Spotter did not create the node.
func (t *stateTable) spotNodeOf(labels map[string]string, node string) (*machine, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.machines[labels[spotNodeLabel]]; m != nil {
		return m, nil
	}
	for _, m := range t.machines {
		if m.order.nodePool == labels[poolNameLabel] {
			return m, nil
		}
	}
	if n := labels[poolNameLabel]; n != "" {
		return nil,
			backend.Hold("NotOurs",
				"Node %s is in node pool %s, which Spotter did not create. The API cannot select the machine of a pool to remove, so it is kept.", node, n)
	}
	return nil, backend.Hold("NotOurs", "Node %s was not created by Spotter.", node)
}

// answeredFor is the minimum time for which a successful read of a cloudspace is valid, whatever
// the interval of polls, because a slow response is not a failure.
const answeredFor = 2 * time.Minute

// answered reports whether the cloudspace of a pool was read recently. t.mu must be held.
func (t *stateTable) answered(pool string) bool {
	p := t.pools[pool]
	return p != nil && p.answered != 0 && t.cfg.now().Sub(p.answered) < max(4*t.cfg.Poll, answeredFor)
}

// unknown reports whether an order should have been listed by now and was not. t.mu must be held.
func (t *stateTable) unknown(m *machine) bool {
	return m.ordered == 0 && !m.over() && t.cfg.now().Sub(m.order.at) >= t.cfg.Settle
}

// remember returns the machine of a ledger entry. It creates the machine if it does not exist.
func (t *stateTable) remember(n *v1alpha1.SpotNode, o order) *machine {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.machines[n.Name]
	if m == nil {
		m = newMachine(n, o)
		t.writes++
		m.written = t.writes
		t.machines[n.Name] = m
	}
	return m
}

// withinLimits returns the markets in which one more node keeps the pool within its limits,
// including the launches for the same snapshot.
func (t *stateTable) withinLimits(s *policy.Snapshot, id policy.PoolID, markets []policy.MarketID) []policy.MarketID {
	pool := &s.Pools[id]
	t.mu.Lock()
	p := t.pool(pool.Name)
	used := pool.Used
	limits := backend.Limits(pool.Limits, policy.Resources{CPU: p.steer.CPU, Memory: p.steer.Memory, GPU: p.steer.GPU})
	if p.boughtAt == s.Now {
		used = used.Plus(p.bought)
	}
	t.mu.Unlock()
	return slices.DeleteFunc(markets, func(m policy.MarketID) bool {
		sum := used.Plus(s.Types[s.Markets[m].Type].Capacity)
		return limits.CPU != 0 && sum.CPU > limits.CPU || limits.Memory != 0 && sum.Memory > limits.Memory ||
			limits.GPU != 0 && sum.GPU > limits.GPU
	})
}

// count adds r to the capacity that was launched for a snapshot.
func (t *stateTable) count(s *policy.Snapshot, id policy.PoolID, r policy.Resources) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pool(s.Pools[id].Name)
	if p.boughtAt != s.Now {
		p.bought, p.boughtAt = policy.Resources{}, s.Now
	}
	p.bought = p.bought.Plus(r)
}

// snapshot returns the state of m to report to the sink.
func (t *stateTable) snapshot(m *machine) backend.Machine {
	t.mu.Lock()
	defer t.mu.Unlock()
	return m.machine()
}
