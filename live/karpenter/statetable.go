package karpenter

import (
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// A stateTable holds what is remembered of CapacityPools between calls. All of a state but
// its turn is read and changed under mu only.
type stateTable struct {
	mu    sync.Mutex
	pools map[string]*poolState // by CapacityPool
}

func newStateTable() *stateTable { return &stateTable{pools: map[string]*poolState{}} }

// A poolState is what is remembered of one CapacityPool between calls.
type poolState struct {
	// turn is held by who writes the NodePools of the pool.
	turn *semaphore.Weighted

	// wanted is what the pool should buy. After a restart the steer in force is read from its
	// NodePools, and the next plan orders writes that were waiting again.
	wanted steering

	// written is when more than the weight and limits of a NodePool was last changed,
	// limited when anything was, and conflict when another manager held a field. The
	// first is on the NodePools too; without the others one write comes sooner.
	written, limited, conflict policy.Time

	// refused is what was in the way when the NodePools of the pool in this generation, in
	// any where it is 0, were last read or written; nil where nothing was. The next write
	// finds it again.
	refused    *backend.Held
	generation int64

	conditions map[string]metav1.Condition
}

// pool returns the state of a CapacityPool; t.mu is held.
func (t *stateTable) pool(name string) *poolState {
	p := t.pools[name]
	if p == nil {
		p = &poolState{turn: semaphore.NewWeighted(1), conditions: map[string]metav1.Condition{}}
		t.pools[name] = p
	}
	return p
}

// turn returns what is held by who writes the NodePools of a pool.
func (t *stateTable) turn(pool string) *semaphore.Weighted {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pool(pool).turn
}

// keepOnly drops all other pools, but for those whose NodePools are being written.
func (t *stateTable) keepOnly(pools map[string]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.pools, func(name string, p *poolState) bool { return !pools[name] && p.turn.TryAcquire(1) })
}

// want sets what a pool should buy. An unchanged steer keeps its time.
func (t *stateTable) want(pool string, x steering) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pool(pool)
	if p.wanted.Since != 0 && p.wanted.same(&x) {
		x.Since = p.wanted.Since
	}
	p.wanted = x
}

// writes returns when the NodePools of a pool were last written, and when another manager
// last held a field of theirs.
func (t *stateTable) writes(pool string) (written, limited, conflict policy.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pool(pool)
	return p.written, p.limited, p.conflict
}

// setWrites sets when the NodePools of a pool were last written, and returns what that was
// before.
func (t *stateTable) setWrites(pool string, written, limited policy.Time) (wasWritten, wasLimited policy.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pool(pool)
	wasWritten, wasLimited = p.written, p.limited
	p.written, p.limited = written, limited
	return wasWritten, wasLimited
}

// setConflict notes when another manager held a field.
func (t *stateTable) setConflict(pool string, at policy.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pool(pool).conflict = at
}

// refusal returns what was in the way when the NodePools of a pool in this generation were
// last read or written; nil where nothing was.
func (t *stateTable) refusal(pool string, generation int64) *backend.Held {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.pool(pool); p.generation == 0 || p.generation == generation {
		return p.refused
	}
	return nil
}

// conditions returns the conditions of a pool, by type.
func (t *stateTable) conditions(pool string) []metav1.Condition {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pools[pool]
	if p == nil {
		return nil
	}
	var all []metav1.Condition
	for _, kind := range slices.Sorted(maps.Keys(p.conditions)) {
		all = append(all, p.conditions[kind])
	}
	return all
}

// block notes what is in the way of writing the NodePools of a pool, nil where nothing is:
// of its generation, or of any where that is 0.
func (t *stateTable) block(pool string, generation int64, held *backend.Held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pool(pool)
	p.refused, p.generation = held, generation
}

// setCondition sets a condition of a CapacityPool.
func (t *stateTable) setCondition(pool, kind string, status bool, reason, message string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	if status {
		c.Status = metav1.ConditionTrue
	}
	t.pool(pool).conditions[kind] = c
}

// unreadable returns err, of reading Karpenter's objects for a pool, or a Held where
// Karpenter is not installed.
func (t *stateTable) unreadable(pool string, err error) error {
	if missing(err) {
		t.block(pool, 0, heldMissing)
	}
	return heldIfMissing(err)
}

// readable takes back what unreadable noted.
func (t *stateTable) readable(pool string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.pool(pool); p.refused == heldMissing {
		p.refused = nil
	}
}

// recall sets what is wanted of the pool, and when it was last written: as set in
// this process, else as its NodePools say.
func (t *stateTable) recall(w *poolView) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pool(w.pool.Name)
	for _, c := range capacities {
		u := find(w.live, NodePoolName(w.pool.Name, c))
		if u == nil || u.GetLabels()[PoolLabel] != w.pool.Name {
			continue
		}
		if at, err := time.Parse(time.RFC3339, u.GetAnnotations()[WrittenAnnotation]); err == nil {
			p.written = max(p.written, policy.TimeOf(at))
		}
		if t, ok := readSteering(u.GetAnnotations()[SteerAnnotation]); ok && p.wanted.Since == 0 {
			p.wanted = t
		}
	}
	w.t = p.wanted
}
