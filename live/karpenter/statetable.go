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

// A stateTable contains the state of CapacityPools that is kept between calls. All fields of a
// state except turn are read and changed only while mu is held.
type stateTable struct {
	mu    sync.Mutex
	pools map[string]*poolState // by CapacityPool
}

func newStateTable() *stateTable { return &stateTable{pools: map[string]*poolState{}} }

// A poolState is the state of one CapacityPool that is kept between calls.
type poolState struct {
	// turn serialises the writes of the pool's NodePools.
	turn *semaphore.Weighted

	// wanted is the last steer of the pool. After a restart it is read from the annotations of the
	// NodePools, and the next plan repeats writes that were pending.
	wanted steering

	// written is when more than the weights and limits was last changed, limited when anything was
	// last changed, and conflict when another manager last owned a field that Spotter would write.
	// written is also stored on the NodePools; if the other two are lost in a restart, one write
	// happens early.
	written, limited, conflict policy.Time

	// refused is the reason why the NodePools of the pool could not be read or written at the last
	// attempt, nil if they could. It applies to the given generation of the pool, or to all
	// generations if that is 0. If it is lost, the next write determines it again.
	refused    *backend.Held
	generation int64

	conditions map[string]metav1.Condition
}

// pool returns the state of a CapacityPool. t.mu must be held.
func (t *stateTable) pool(name string) *poolState {
	p := t.pools[name]
	if p == nil {
		p = &poolState{turn: semaphore.NewWeighted(1), conditions: map[string]metav1.Condition{}}
		t.pools[name] = p
	}
	return p
}

// turn returns the semaphore that serialises the writes of a pool's NodePools.
func (t *stateTable) turn(pool string) *semaphore.Weighted {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pool(pool).turn
}

// keepOnly drops the state of all other pools, except those whose NodePools are being written.
func (t *stateTable) keepOnly(pools map[string]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.pools, func(name string, p *poolState) bool { return !pools[name] && p.turn.TryAcquire(1) })
}

// want sets the steer of a pool. The time of an unchanged steer is kept.
func (t *stateTable) want(pool string, x steering) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pool(pool)
	if p.wanted.Since != 0 && p.wanted.same(&x) {
		x.Since = p.wanted.Since
	}
	p.wanted = x
}

// writes returns when the NodePools of a pool were last written, and when another manager last
// owned a field that Spotter would write.
func (t *stateTable) writes(pool string) (written, limited, conflict policy.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pool(pool)
	return p.written, p.limited, p.conflict
}

// setWrites sets the times at which the NodePools of a pool were last written, and returns the
// previous times.
func (t *stateTable) setWrites(pool string, written, limited policy.Time) (wasWritten, wasLimited policy.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pool(pool)
	wasWritten, wasLimited = p.written, p.limited
	p.written, p.limited = written, limited
	return wasWritten, wasLimited
}

// setConflict records when another manager owned a field that Spotter would write.
func (t *stateTable) setConflict(pool string, at policy.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pool(pool).conflict = at
}

// refusal returns the reason why the NodePools of a pool in this generation could not be read or
// written at the last attempt, nil if they could.
func (t *stateTable) refusal(pool string, generation int64) *backend.Held {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.pool(pool); p.generation == 0 || p.generation == generation {
		return p.refused
	}
	return nil
}

// conditions returns the conditions of a pool, sorted by type.
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

// block records the reason why the NodePools of a pool cannot be written, nil if they can. It
// applies to the given generation of the pool, or to all generations if that is 0.
func (t *stateTable) block(pool string, generation int64, held *backend.Held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pool(pool)
	p.refused, p.generation = held, generation
}

// setConditions sets conditions of a CapacityPool.
func (t *stateTable) setConditions(pool string, conditions ...metav1.Condition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range conditions {
		t.pool(pool).conditions[c.Type] = c
	}
}

func condition(kind string, status bool, reason, message string) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	if status {
		c.Status = metav1.ConditionTrue
	}
	return c
}

// unreadable returns the error to report when reading Karpenter's objects for a pool failed with
// err: a Held if Karpenter is not installed, else err.
func (t *stateTable) unreadable(pool string, err error) error {
	if missing(err) {
		t.block(pool, 0, heldMissing)
	}
	return heldIfMissing(err)
}

// readable removes the refusal that unreadable recorded.
func (t *stateTable) readable(pool string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.pool(pool); p.refused == heldMissing {
		p.refused = nil
	}
}

// recall sets the steer in view, from this process or, after a restart, from the annotations of the
// NodePools. It also updates the time at which the NodePools were last written.
func (t *stateTable) recall(view *poolView) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.pool(view.pool.Name)
	for _, c := range capacities {
		u := find(view.live, NodePoolName(view.pool.Name, c))
		if u == nil || u.GetLabels()[PoolLabel] != view.pool.Name {
			continue
		}
		if at, err := time.Parse(time.RFC3339, u.GetAnnotations()[WrittenAnnotation]); err == nil {
			p.written = max(p.written, policy.TimeOf(at))
		}
		if t, ok := readSteering(u.GetAnnotations()[SteerAnnotation]); ok && p.wanted.Since == 0 {
			p.wanted = t
		}
	}
	view.steering = p.wanted
}
