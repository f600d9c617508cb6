package karpenter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// Steer sets the markets, share and limits by which a pool should buy. Unless there is an
// emergency, changes of markets and of consolidation are written at most once per
// [Config.WriteEvery]. A later change is kept until [Backend.Tend] writes it, and Steer returns a
// [backend.Held] that contains the time of that write. Weights and limits take effect earlier.
func (b *Backend) Steer(ctx context.Context, s *policy.Snapshot, x *policy.Steer) error {
	pool := &s.Pools[x.Pool]
	t, turn := steeringOf(s, x), b.states.turn(pool.Name)
	if err := turn.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("waiting to write the NodePools of pool %s: %w", pool.Name, err)
	}
	defer turn.Release(1)
	b.states.want(pool.Name, t)
	return b.nodePools.write(ctx, s, pool, nil, emergency(x.Why.Reason))
}

// emergency reports whether a steer with this reason must be written at once, because capacity is
// missing or about to be.
func emergency(r policy.Reason) bool {
	return slices.Contains([]policy.Reason{policy.ReasonNotice, policy.ReasonShortage, policy.ReasonFallback,
		policy.ReasonRisk}, r)
}

// A nodePoolSteerer writes the NodePools of pools. Callers must hold the turn of the pool.
type nodePoolSteerer struct {
	cfg     *Config
	log     *slog.Logger
	sink    backend.Sink
	api     *apiReader
	writes  *writer
	classes *classFinder
	states  *stateTable
}

// A poolView contains the objects from which the NodePools of a pool are written.
type poolView struct {
	s      *policy.Snapshot
	pool   *policy.Pool
	object *v1alpha1.CapacityPool
	class  karpv1.NodeClassReference

	// invalid is the reason why Karpenter would refuse the present template of the pool, nil if it
	// would accept it. While it is set, NodePools keep the template that Karpenter accepted before.
	invalid error

	t      steering
	halves [len(capacities)]half
	live   []unstructured.Unstructured // all NodePools
	claims []karpv1.NodeClaim          // of the pool's own NodePools
}

// write updates the NodePools of a pool to the wanted steer and the present nodes. Each kind of
// change has its own minimum interval, see pace.go. It does nothing before the first steer or if
// nothing would change. seen is a view that was just read; if it is nil, write reads one.
func (n *nodePoolSteerer) write(ctx context.Context, s *policy.Snapshot, pool *policy.Pool, seen *clusterView,
	urgent bool) error {
	w, err := n.read(ctx, s, pool, seen)
	if err != nil || w == nil {
		return err
	}
	var edits []edit
	for i, c := range capacities {
		x, err := n.change(w, c, &w.halves[i])
		if err != nil {
			return err
		}
		if x != nil {
			edits = append(edits, *x)
			urgent = urgent || x.urgent
		}
	}
	written, _, _ := n.states.writes(pool.Name)
	switch {
	case len(edits) == 0:
		n.inForce(pool.Name, &w.t)
		return nil
	case urgent || written == 0:
		return n.apply(ctx, w, edits, n.cfg.now())
	}
	now, full, wait := n.paced(w, edits)
	switch {
	case full:
		return n.apply(ctx, w, now, n.cfg.now())
	case len(now) > 0:
		return cmp.Or(n.apply(ctx, w, now, written), wait)
	}
	return wait
}

// read reads the objects that write needs. It returns nil if the pool was never steered.
func (n *nodePoolSteerer) read(ctx context.Context, s *policy.Snapshot, pool *policy.Pool,
	seen *clusterView) (*poolView, error) {
	w := &poolView{s: s, pool: pool, object: &v1alpha1.CapacityPool{}}
	if err := n.api.client.Get(ctx, client.ObjectKey{Name: pool.Name}, w.object); err != nil {
		return nil, fmt.Errorf("reading CapacityPool %s: %w", pool.Name, err)
	}
	var err error
	if seen == nil {
		if seen, err = n.api.look(ctx, claimsOf(pool.Name)); err != nil {
			return nil, n.states.unreadable(pool.Name, err)
		}
	}
	n.states.readable(pool.Name)
	w.live, w.claims = seen.nodePools, seen.of(pool.Name)
	n.states.recall(w)
	if w.t.Since == 0 {
		return nil, nil
	}
	if w.class, err = n.classes.of(ctx, w.object, 0); err != nil {
		return nil, heldIfMissing(err)
	}
	w.invalid = valid(ctx, w.object, w.class)
	h := holdingsOf(s, pool, &w.t)
	spot, onDemand := n.cfg.divide(pool, &w.t, &h, n.refusedLately(pool))
	spot.closed = closedAt(w.object, n.cfg.now())
	onDemand.closed = spot.closed
	w.halves = [...]half{spot, onDemand}
	return w, nil
}

// refusedLately reports whether a launch of pool was refused less than WriteEvery ago.
func (n *nodePoolSteerer) refusedLately(pool *policy.Pool) bool {
	return pool.Refused != 0 && n.cfg.now().Sub(pool.Refused) < n.cfg.WriteEvery
}

func find(all []unstructured.Unstructured, name string) *unstructured.Unstructured {
	if i := slices.IndexFunc(all, func(u unstructured.Unstructured) bool { return u.GetName() == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// change returns the change of the NodePool of a capacity type, or nil if nothing changes.
func (n *nodePoolSteerer) change(w *poolView, c policy.CapacityType, h *half) (*edit, error) {
	if live := w.adopted(c); live != nil {
		u := adopted(live.GetName(), *h)
		if upToDate(u, live) {
			return nil, nil
		}
		return &edit{full: u, live: live, plain: *h}, nil
	}
	name := NodePoolName(w.pool.Name, c)
	live := find(w.live, name)
	if live != nil && live.GetLabels()[PoolLabel] != w.pool.Name {
		return nil,
			backend.Hold("NameTaken",
				"NodePool %s exists and is not managed by Spotter; annotate it with %s=%s to have its weight and limits written",
				name, AdoptAnnotation, w.pool.Name)
	}
	wanted, there := w.wanted(c), liveOffers(name, w.claims)
	reqs := Requirements(c.String(), wanted, there)
	if len(wanted) == 0 {
		h.limits = nothing()
	}
	fixed, plain := template(w.object, w.class), *h
	if live == nil {
		if len(reqs) == 0 {
			return nil, nil // nothing to buy, and no NodePool
		}
		if w.invalid != nil {
			return nil, w.invalid
		}
		return &edit{full: manifest(name, w.object, *h, fixed, reqs), plain: plain}, nil
	}
	was, err := typed(live)
	if err != nil {
		return nil, err
	}
	if len(reqs) == 0 {
		reqs = was.Spec.Template.Spec.Requirements
	}
	reqs, since, done := n.narrow(w, c, h, live, was, reqs)
	u := manifest(name, w.object, *h, n.hold(w, was, fixed), reqs)
	if since != 0 {
		u.SetAnnotations(map[string]string{NarrowingAnnotation: since.Std().Format(time.RFC3339)})
	}
	n.setWidened(w, c, reqs)
	if upToDate(u, live) {
		return nil, nil
	}
	return &edit{full: u, live: live, plain: plain, urgent: done || outside(was, there) || closing(u, live)}, nil
}

// adopted returns the adopted NodePool that is used for the capacity type, or nil.
func (w *poolView) adopted(c policy.CapacityType) *unstructured.Unstructured {
	for i := range w.live {
		u := &w.live[i]
		if u.GetAnnotations()[AdoptAnnotation] != w.pool.Name || u.GetLabels()[PoolLabel] == w.pool.Name {
			continue
		}
		n, err := typed(u)
		if err != nil {
			continue
		}
		r := scheduling.NewNodeSelectorRequirementsWithMinValues(n.Spec.Template.Spec.Requirements...).Get(karpv1.CapacityTypeLabelKey)
		if r.Has(c.String()) && (c == policy.Spot || !r.Has(karpv1.CapacityTypeSpot)) {
			return u
		}
	}
	return nil
}

func typed(u *unstructured.Unstructured) (*karpv1.NodePool, error) {
	n := &karpv1.NodePool{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, n); err != nil {
		return nil, fmt.Errorf("reading NodePool %s: %w", u.GetName(), err)
	}
	return n, nil
}

// apply writes the edits. It then reads the claims again: the NodePools are widened if Karpenter
// has meanwhile created a claim outside of them. written is when more than weights and limits was
// last changed, including this write.
func (n *nodePoolSteerer) apply(ctx context.Context, w *poolView, edits []edit, written policy.Time) error {
	// Also for a write that fails, so that it is not retried at once.
	before, limited := n.states.setWrites(w.pool.Name, written, n.cfg.now())
	for _, x := range edits {
		if err := n.put(ctx, w, x.full, written); err != nil {
			if ctx.Err() != nil { // cancelled; the next step repeats the write
				n.states.setWrites(w.pool.Name, before, limited)
			}
			return err
		}
		n.log.Info("NodePool written", "pool", w.pool.Name, "nodePool", x.full.GetName(), "share", w.t.Share)
	}
	n.states.block(w.pool.Name, 0, nil)
	n.states.setCondition(w.pool.Name, ConditionFieldConflict, false, "None",
		"no other field manager owns a field that Spotter writes")
	n.inForce(w.pool.Name, &w.t)
	return n.widen(ctx, w)
}

// put applies u. A NodePool of Spotter is annotated with the steer and the time of the write.
func (n *nodePoolSteerer) put(ctx context.Context, w *poolView, u *unstructured.Unstructured,
	written policy.Time) error {
	if u.GetLabels()[PoolLabel] != "" {
		a := map[string]string{SteerAnnotation: w.t.text(), WrittenAnnotation: written.Std().Format(time.RFC3339)}
		maps.Copy(a, u.GetAnnotations())
		u.SetAnnotations(a)
	}
	if err := n.writes.applyNodePool(ctx, w.pool.Name, u); err != nil {
		return n.conflict(w, u.GetName(), err)
	}
	return nil
}

// widen writes the NodePools again if a node has meanwhile been launched outside of them.
func (n *nodePoolSteerer) widen(ctx context.Context, w *poolView) error {
	claims, err := n.api.claimsNow(ctx, claimsOf(w.pool.Name))
	if err != nil {
		return nil //nolint:nilerr // the next Tend looks again
	}
	if slices.EqualFunc(claims, w.claims, func(x, y karpv1.NodeClaim) bool { return x.UID == y.UID }) {
		return nil
	}
	next, err := n.read(ctx, w.s, w.pool, nil)
	if err != nil || next == nil {
		return err
	}
	for i, c := range capacities {
		x, err := n.change(next, c, &next.halves[i])
		if err != nil || x == nil || !x.urgent {
			continue
		}
		if err := n.put(ctx, next, x.full, n.cfg.now()); err != nil {
			return err
		}
	}
	return nil
}

// inForce reports to the sink that the NodePools follow t.
func (n *nodePoolSteerer) inForce(pool string, t *steering) {
	n.sink.SetSteer(pool, t.state())
}

// conflict converts the error of a write. It returns a Held if another manager owns a field, or if
// the API server rejects the NodePool. Such a write is not retried before the next write is due.
func (n *nodePoolSteerer) conflict(w *poolView, nodePool string, err error) error {
	var status apierrors.APIStatus
	if apierrors.IsInvalid(err) {
		held := &backend.Held{Reason: "NodePoolRefused",
			Message: fmt.Sprintf("the API server refuses NodePool %s, which the pool requires: %v", nodePool, err)}
		n.states.block(w.pool.Name, w.object.Generation, held)
		return held
	}
	var held []string
	if apierrors.IsConflict(err) && errors.As(err, &status) {
		for _, c := range ptr.Deref(status.Status().Details, metav1.StatusDetails{}).Causes {
			if c.Type == metav1.CauseTypeFieldManagerConflict {
				held = append(held, fmt.Sprintf("%s: %s", c.Field, c.Message))
			}
		}
	}
	if len(held) == 0 {
		return fmt.Errorf("writing NodePool %s: %w", nodePool, err)
	}
	slices.Sort(held)
	message := fmt.Sprintf("another field manager owns fields of NodePool %s, which is left unchanged: %s", nodePool,
		strings.Join(held, "; "))
	n.states.setCondition(w.pool.Name, ConditionFieldConflict, true, "OtherManager", message)
	n.states.setConflict(w.pool.Name, n.cfg.now())
	return backend.Hold("FieldConflict", "%s", message)
}
