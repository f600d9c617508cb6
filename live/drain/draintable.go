package drain

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/spotter-dev/spotter/policy"
)

// A drainTable contains the current drains. mu guards it, and of each drain the fields shown,
// order, over, cancel and reserved.
type drainTable struct {
	cfg *Config

	mu     sync.Mutex
	drains map[string]*drain // by name of the node
	queue  queue             // nil unless Run is running
	pools  counts
	listed bool // all nodes were searched once for marks of an earlier process
}

// add adds a drain, unless its node already has one.
func (t *drainTable) add(d *drain) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, there := t.drains[d.node]; there {
		return
	}
	d.order.reclaimAt, d.order.gentle = d.ReclaimAt, d.Gentle
	d.shown = d.status()
	t.drains[d.node] = d
	t.enqueue(d)
}

// hurry updates the drain of a node with a notice or an order of a plan, and reports whether there
// is a drain. gentle is nil unless a plan orders the drain.
func (t *drainTable) hurry(node string, reclaimAt policy.Time, gentle *bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	d, ok := t.drains[node]
	if !ok {
		return false
	}
	if gentle != nil { // a plan orders the drain
		d.order.gentle = *gentle
		d.order.unplanned, d.shown.Unplanned = false, false
	}
	if reclaimAt == 0 || reclaimAt == d.order.reclaimAt {
		return true
	}
	if d.order.reclaimAt == 0 && d.cancel != nil {
		d.cancel() // it may be waiting for something that is skipped under a notice
	}
	d.order.reclaimAt = reclaimAt
	t.enqueue(d)
	return true
}

// find returns the drain of a node, or nil if it has none, and whether the node is under notice.
func (t *drainTable) find(node string) (d *drain, urgent bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d = t.drains[node]
	return d, d != nil && d.order.reclaimAt != 0
}

// enqueue requests a reconciliation of the node of d at once. The caller must hold mu.
func (t *drainTable) enqueue(d *drain) {
	if t.queue == nil {
		return // Run enqueues existing drains when it starts
	}
	priority := priorityOrdinary
	switch {
	case d.order.reclaimAt != 0:
		priority = priorityNotice
	case d.shown.Phase == PhaseUndoing:
		priority = priorityUndo
	}
	t.queue.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, requestFor(d.node))
}

// due returns the drains: first those of nodes under notice, in the order of their reclaims, then
// the others in the order of their starts.
func (t *drainTable) due() []*drain {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*drain
	for _, d := range t.drains {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b *drain) int {
		x, y := a.order.reclaimAt, b.order.reclaimAt
		if (x != 0) != (y != 0) {
			x, y = y, x
		}
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a.Since, b.Since), cmp.Compare(a.node, b.node))
	})
	return all
}

// toUndo returns the drains that must be undone before the process ends.
func (t *drainTable) toUndo() []*drain {
	return slices.DeleteFunc(t.due(), func(d *drain) bool { return d.left() != "" })
}

// freed returns the launches of d for which no other drain still has pods to move: several nodes
// may be drained onto one. Each drain publishes its phase before it calls freed, so that if two
// drains end at the same time, at least one of them finds the launch free.
func (t *drainTable) freed(d *drain) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(d.After), func(token string) bool {
		for _, x := range t.drains {
			if x != d && x.shown.moves() && slices.Contains(x.shown.After, token) {
				return true
			}
		}
		return false
	})
}

// remove removes d from the table and sets its outcome.
func (t *drainTable) remove(d *drain, how Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.drains[d.node] == d {
		delete(t.drains, d.node)
	}
	d.over = how
}

// status returns the state of each drain, ascending by node.
func (t *drainTable) status() []Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]Status, 0, len(t.drains))
	for _, d := range t.drains {
		all = append(all, d.shown)
	}
	slices.SortFunc(all, func(a, b Status) int { return cmp.Compare(a.Node, b.Node) })
	return all
}

// evictedMax is the maximum time by which the cache is expected to lag behind an eviction.
const evictedMax = 5 * time.Minute

// An evictionLog contains the pods that are being evicted or were evicted recently. The cache may
// still show them as ready.
type evictionLog struct {
	clock clock.WithTicker

	mu sync.Mutex
	at map[types.UID]time.Time
}

// add records that a pod is being evicted.
func (l *evictionLog) add(pod types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at[pod] = l.clock.Now()
}

// remove deletes the record of a pod.
func (l *evictionLog) remove(pod types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.at, pod)
}

// trim deletes evictions that the cache must show by now.
func (l *evictionLog) trim() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid, at := range l.at {
		if l.clock.Since(at) > evictedMax {
			delete(l.at, uid)
		}
	}
}
