package live

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
)

// The kinds of entries with special rules for their withdrawal.
const (
	kindSteer  = "steer"
	kindLaunch = "launch"
	kindDrain  = "drain"
)

// An entry is one action of a plan, for a backend or for the enforcer of GPU budgets.
type entry struct {
	kind string // name of the kind in metrics
	node string // node of a drain
	do   func(context.Context) error
}

// A target is the object of an intent: a CapacityPool or a GPUBudget.
type target struct{ pool, budget string }

// An intent is the desired state of a CapacityPool or a GPUBudget. A reconciler carries it out
// while the next step is computed.
type intent struct {
	priority int

	// entries are the remaining entries, in order. running is the entry in progress, which may
	// belong to an earlier plan; nil if no entry is in progress.
	entries []*entry
	running *entry

	// held is the first entry that was held.
	held held
}

// A held describes an action that was not taken, and the reason.
type held struct{ reason, message string }

// A result is the result of the last processed intent of a pool. failed is the text of the first
// error.
type result struct {
	held   held
	failed string
}

// A table contains the state that steps and reconcilers share.
type table struct {
	mu sync.Mutex

	// intents is the remaining work. ended is closed, and replaced, whenever an entry has ended.
	intents map[target]*intent
	ended   chan struct{}

	last    *policy.Snapshot   // snapshot of the last step
	results map[string]result  // by CapacityPool
	reports map[string]*report // findings of the last step, by CapacityPool

	// drains contains the last drain of each pool that has ended. drained reports whether the last
	// drain of a node succeeded, until the result was passed to the ramps.
	drains  map[string]endedDrain
	drained map[string]bool

	// gates contains the last written state of each gate, by budget.
	gates map[string]bool

	// approving reports whether a pool of the last step requires approval.
	approving bool

	// kill is the kill switch at the last step. undone contains the nodes whose drains were undone
	// since it has stopped all changes.
	kill   permit.Switch
	undone []string
}

func newTable() *table {
	return &table{
		intents: map[target]*intent{}, ended: make(chan struct{}),
		results: map[string]result{}, gates: map[string]bool{}, reports: map[string]*report{}, drains: map[string]endedDrain{}, drained: map[string]bool{},
	}
}

// withdraw removes the launches that have not started, and the drains that may wait for them: the
// next plan orders them again.
func (t *table) withdraw() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range t.intents {
		x.entries = slices.DeleteFunc(x.entries, func(e *entry) bool {
			gone := (e.kind == kindLaunch || e.kind == kindDrain) && e != x.running
			if gone && e.node != "" {
				t.drained[e.node] = false
			}
			return gone
		})
	}
}

// launching returns the pools for which a launch is in progress, and a channel that is closed when
// the next entry ends.
func (t *table) launching() (pools map[string]bool, ended <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	pools = map[string]bool{}
	for of, x := range t.intents {
		if x.running != nil && x.running.kind == kindLaunch {
			pools[of.pool] = true
		}
	}
	return pools, t.ended
}

// publish replaces the entries of the previous step that have not started with the intents of a
// step. A pool keeps its steer until a plan changes it.
func (t *table) publish(s *policy.Snapshot, next map[target]*intent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = s
	maps.DeleteFunc(t.gates, func(budget string, _ bool) bool {
		_, there := slices.BinarySearchFunc(s.Budgets, budget, func(b policy.Budget,
			name string) int {
			return strings.Compare(b.Name, name)
		})
		return !there
	})
	for of, x := range t.intents {
		n := next[of]
		switch {
		case n == nil && x.running == nil:
			delete(t.intents, of)
			delete(t.results, of.pool)
		case n == nil:
			x.entries = nil
		default:
			n.running = x.running
			if i := slices.IndexFunc(x.entries, func(e *entry) bool {
				return e.kind == kindSteer &&
					e != x.running
			}); i >= 0 && !n.has(kindSteer) {
				n.entries = slices.Insert(n.entries, 0, x.entries[i])
			}
		}
	}
	maps.Copy(t.intents, next)
	for of, x := range next {
		if len(x.entries) == 0 { // otherwise the result is known once the entries have ended
			t.results[of.pool] = result{held: x.held}
		}
	}
}

func (x *intent) has(kind string) bool {
	return slices.ContainsFunc(x.entries, func(e *entry) bool { return e.kind == kind })
}

// remaining returns the entries of an intent that have not ended.
func (t *table) remaining(of target) []*entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if x := t.intents[of]; x != nil {
		return slices.Clone(x.entries)
	}
	return nil
}

// begin marks an entry as running, and reports whether it is still wanted.
func (t *table) begin(of target, e *entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.intents[of]
	if x == nil || !slices.Contains(x.entries, e) {
		return false
	}
	x.running = e
	return true
}

// end records the result of an entry. A failed entry is retried unless another replaces it first.
func (t *table) end(of target, e *entry, v outcome, why held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.intents[of]
	x.running = nil
	x.hold(why)
	if e.node != "" && v != outcomeDone {
		t.drained[e.node] = false
	}
	if v != outcomeFailed {
		x.entries = slices.DeleteFunc(x.entries, func(y *entry) bool { return y == e })
	}
	close(t.ended)
	t.ended = make(chan struct{})
}

// hold records that an action was not taken. Only the first is reported.
func (x *intent) hold(h held) {
	if x.held.reason == "" {
		x.held = h
	}
}

// settle records the result of a pool's intent, and reports whether it has changed.
func (t *table) settle(pool string, failed error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.intents[target{pool: pool}]
	if x == nil {
		return false
	}
	next := result{held: x.held}
	if failed != nil {
		next.failed = failed.Error()
	}
	if t.results[pool] == next {
		return false
	}
	t.results[pool] = next
	return true
}
