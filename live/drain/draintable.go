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

// A drainTable holds the drains that are under way. mu guards it, and of each drain what is
// shown of it, what is wanted of it and whether it counts against a budget.
type drainTable struct {
	cfg *Config

	mu     sync.Mutex
	drains map[string]*drain // by the node's name
	queue  queue             // nil while Run does not run
	pools  counts
	listed bool // all nodes were looked at once for marks of a process before this one
}

// add takes a drain on, unless its node has one.
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

// hurry passes what has become known of a node to its drain, if there is one.
func (t *drainTable) hurry(node string, reclaimAt policy.Time, gentle *bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	d, ok := t.drains[node]
	if !ok {
		return false
	}
	if gentle != nil { // a plan orders it
		d.order.gentle = *gentle
		d.order.unplanned, d.shown.Unplanned = false, false
	}
	if reclaimAt == 0 || reclaimAt == d.order.reclaimAt {
		return true
	}
	if d.order.reclaimAt == 0 && d.cancel != nil {
		d.cancel() // it waits for what a node under notice does not wait for
	}
	d.order.reclaimAt = reclaimAt
	t.enqueue(d)
	return true
}

// find returns the drain of a node; nil where it has none.
func (t *drainTable) find(node string) (d *drain, urgent bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	d = t.drains[node]
	return d, d != nil && d.order.reclaimAt != 0
}

// enqueue has the node of d reconciled at once. The caller holds mu.
func (t *drainTable) enqueue(d *drain) {
	if t.queue == nil {
		return // Run takes up existing drains when it starts
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

// due returns the drains: first those of nodes that the provider takes, the next to be
// taken first.
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

// freed returns those of the launches that d is for that no other drain still has pods
// to move to: several nodes may be emptied onto one. Each drain shows its phase before
// it looks, so that of two that end together one at least finds the launch free.
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

// remove takes d off the list, with how it ended.
func (t *drainTable) remove(d *drain, how Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.drains[d.node] == d {
		delete(t.drains, d.node)
	}
	d.over = how
}

// status returns the drains as they are, ascending by node.
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

// evictedMax is how long the cache may lag behind an eviction.
const evictedMax = 5 * time.Minute

// An evictionLog holds the pods that are being evicted, or were a short while ago. The cache
// may still show them as ready.
type evictionLog struct {
	clock clock.WithTicker

	mu sync.Mutex
	at map[types.UID]time.Time
}

// add notes that a pod is being evicted.
func (l *evictionLog) add(pod types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at[pod] = l.clock.Now()
}

// remove takes back that a pod is being evicted.
func (l *evictionLog) remove(pod types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.at, pod)
}

// trim drops evictions that the cache must have seen by now.
func (l *evictionLog) trim() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid, at := range l.at {
		if l.clock.Since(at) > evictedMax {
			delete(l.at, uid)
		}
	}
}
