package live

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A herald writes the statuses of CapacityPools beside the steps. Nothing that is done
// waits for a status, and while nodes are drained its turn among the writes may be
// seconds away. Of the statuses of one pool that wait, the last is written. While the
// herald does not run, each is written at once.
type herald struct {
	client client.Client
	log    *slog.Logger

	mu      sync.Mutex
	running bool
	wake    chan struct{}

	// waiting are the statuses that are to be written, oldest first, and sending is the
	// one that is being written.
	waiting []*v1alpha1.CapacityPool
	sending *v1alpha1.CapacityPool

	// sent says by pool which version was overwritten last and by which: the cache may
	// still show the first of them.
	sent map[string]overwrite

	// failed are the pools whose last status was not written.
	failed map[string]bool
}

// An overwrite is a write of an object, by the versions before and after it.
type overwrite struct{ from, to string }

func newHerald(parts *Parts) *herald {
	return &herald{
		client: parts.Client, log: parts.Log, wake: make(chan struct{}, 1), sent: map[string]overwrite{}, failed: map[string]bool{},
	}
}

// current returns the status of a pool as it is, or is about to be once what waits is
// written. The object is as the cache shows it.
func (h *herald) current(object *v1alpha1.CapacityPool) *v1alpha1.CapacityPoolStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range h.waiting {
		if x.UID == object.UID {
			return &x.Status
		}
	}
	if h.sending != nil && h.sending.UID == object.UID {
		return &h.sending.Status
	}
	return &object.Status
}

// tell has the status of next written. It is not changed from then on.
func (h *herald) tell(ctx context.Context, next *v1alpha1.CapacityPool) error {
	h.mu.Lock()
	if !h.running {
		h.mu.Unlock()
		return h.write(ctx, next)
	}
	defer h.mu.Unlock()
	h.waiting = slices.DeleteFunc(h.waiting, func(x *v1alpha1.CapacityPool) bool { return x.Name == next.Name })
	h.waiting = append(h.waiting, next)
	select {
	case h.wake <- struct{}{}:
	default:
	}
	return nil
}

// lost reports whether the last status of a pool was not written, once.
func (h *herald) lost(pool string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	is := h.failed[pool]
	delete(h.failed, pool)
	return is
}

// run writes what it is told until ctx ends. What waits then is left to the next
// leader, who finds that it differs.
func (h *herald) run(ctx context.Context) {
	h.mu.Lock()
	h.running = true
	h.mu.Unlock()
	for {
		next := h.next()
		if next == nil {
			select {
			case <-ctx.Done():
				h.end()
				return
			case <-h.wake:
			}
			continue
		}
		if err := h.write(ctx, next); err != nil && ctx.Err() == nil {
			h.log.Warn("the status of a pool is not up to date", "pool", next.Name, "error", err)
		}
	}
}

// next takes the status that has waited longest; nil when none does.
func (h *herald) next() *v1alpha1.CapacityPool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sending = nil
	if len(h.waiting) > 0 {
		h.sending, h.waiting = h.waiting[0], h.waiting[1:]
	}
	return h.sending
}

func (h *herald) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running, h.waiting = false, nil
}

// write writes one status. One that somebody else has changed meanwhile is seen by the
// next step as it is then.
func (h *herald) write(ctx context.Context, told *v1alpha1.CapacityPool) error {
	next := told.DeepCopy() // the answer is read into it, and who compares reads the other
	h.mu.Lock()
	if last := h.sent[next.Name]; last.from == next.ResourceVersion && last.to != "" {
		next.ResourceVersion = last.to
	}
	h.mu.Unlock()
	from := told.ResourceVersion
	err := h.client.Status().Update(ctx, next, fieldOwner)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		h.sent[next.Name] = overwrite{from, next.ResourceVersion}
		delete(h.failed, next.Name)
		return nil
	}
	delete(h.sent, next.Name)
	h.failed[next.Name] = true
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
