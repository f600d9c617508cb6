package karpenter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// Steer sets what a pool is to buy. What it changes of markets and of consolidation is
// written at most once in [Config.WriteEvery] unless there is an emergency: until then
// the steer is kept, [Backend.Tend] writes it when it is due, and a Held says when that
// is. Its weights and limits are in force before.
func (b *Backend) Steer(ctx context.Context, s *policy.Snapshot, x *policy.Steer) error {
	pool := &s.Pools[x.Pool]
	t := steeringOf(s, x)
	b.mu.Lock()
	p := b.pool(pool.Name)
	b.mu.Unlock()
	if err := p.turn.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("waiting to write the NodePools of pool %s: %w", pool.Name, err)
	}
	defer p.turn.Release(1)
	b.mu.Lock()
	if p.wanted.Since != 0 && p.wanted.same(&t) {
		t.Since = p.wanted.Since
	}
	p.wanted = t
	b.mu.Unlock()
	return b.write(ctx, s, pool, nil, emergency(x.Why.Reason))
}

// emergency reports whether a steer cannot wait: capacity is missing or about to.
func emergency(r policy.Reason) bool {
	return slices.Contains([]policy.Reason{policy.ReasonNotice, policy.ReasonShortage, policy.ReasonFallback, policy.ReasonRisk}, r)
}

// A poolView is all that is read of a pool to write its NodePools.
type poolView struct {
	s      *policy.Snapshot
	pool   *policy.Pool
	object *v1alpha1.CapacityPool
	class  karpv1.NodeClassReference

	// invalid is why Karpenter would refuse the template that the pool states; nil where it
	// would not. What it has taken before is kept.
	invalid error

	t      steering
	halves [len(capacities)]half
	live   []unstructured.Unstructured // all NodePools
	claims []karpv1.NodeClaim          // of the pool's own NodePools
}

// A clusterView is what the API server holds of Karpenter's objects, read once for all pools.
type clusterView struct {
	nodePools []unstructured.Unstructured
	claims    []karpv1.NodeClaim
}

// look reads the NodePools, and the NodeClaims that are chosen, from the API server.
func (b *Backend) look(ctx context.Context, of ...client.ListOption) (*clusterView, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(groupVersion.WithKind("NodePoolList"))
	if err := b.reader.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing NodePools: %w", err)
	}
	claims, err := b.claimsNow(ctx, of...)
	if err != nil {
		return nil, err
	}
	return &clusterView{list.Items, claims}, nil
}

// of returns the claims of the NodePools of ours for a CapacityPool.
func (x *clusterView) of(pool string) []karpv1.NodeClaim {
	return slices.DeleteFunc(slices.Clone(x.claims), func(c karpv1.NodeClaim) bool {
		of := c.Labels[karpv1.NodePoolLabelKey]
		return of != NodePoolName(pool, policy.Spot) && of != NodePoolName(pool, policy.OnDemand)
	})
}

// write brings the NodePools of a pool to what is wanted and what now lives there, at
// the pace that what is written allows. It does nothing before a first steer, and
// nothing that changes nothing. seen is what was read just now; nil has it read.
func (b *Backend) write(ctx context.Context, s *policy.Snapshot, pool *policy.Pool, seen *clusterView, urgent bool) error {
	w, err := b.read(ctx, s, pool, seen)
	if err != nil || w == nil {
		return err
	}
	var edits []edit
	for i, c := range capacities {
		x, err := b.change(w, c, &w.halves[i])
		if err != nil {
			return err
		}
		if x != nil {
			edits = append(edits, *x)
			urgent = urgent || x.drifting
		}
	}
	b.mu.Lock()
	written := b.pool(pool.Name).written
	b.mu.Unlock()
	switch {
	case len(edits) == 0:
		b.inForce(pool.Name, &w.t)
		return nil
	case urgent || written == 0:
		return b.apply(ctx, w, edits, b.now())
	}
	now, full, wait := b.paced(w, edits)
	switch {
	case full:
		return b.apply(ctx, w, now, b.now())
	case len(now) > 0:
		return cmp.Or(b.apply(ctx, w, now, written), wait)
	}
	return wait
}

// read reads what write needs. It returns nil where nothing was ever steered.
func (b *Backend) read(ctx context.Context, s *policy.Snapshot, pool *policy.Pool, seen *clusterView) (*poolView, error) {
	w := &poolView{s: s, pool: pool, object: &v1alpha1.CapacityPool{}}
	if err := b.client.Get(ctx, client.ObjectKey{Name: pool.Name}, w.object); err != nil {
		return nil, fmt.Errorf("reading CapacityPool %s: %w", pool.Name, err)
	}
	var err error
	if seen == nil {
		if seen, err = b.look(ctx, claimsOf(pool.Name)); err != nil {
			return nil, b.unreadable(pool.Name, err)
		}
	}
	b.readable(pool.Name)
	w.live, w.claims = seen.nodePools, seen.of(pool.Name)
	b.recall(w)
	if w.t.Since == 0 {
		return nil, nil
	}
	if w.class, err = b.nodeClass(ctx, w.object, 0); err != nil {
		return nil, heldIfMissing(err)
	}
	w.invalid = valid(ctx, w.object, w.class)
	h := holdingsOf(s, pool, &w.t)
	spot, onDemand := b.cfg.divide(pool, &w.t, &h, b.refusedLately(pool))
	w.halves = [...]half{spot, onDemand}
	return w, nil
}

// refusedLately reports whether a launch of pool failed within the time between two
// writes.
func (b *Backend) refusedLately(pool *policy.Pool) bool {
	return pool.Refused != 0 && b.now().Sub(pool.Refused) < b.cfg.WriteEvery
}

// recall sets what is wanted of the pool, and when it was last written: as set in
// this process, else as its NodePools say.
func (b *Backend) recall(w *poolView) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pool(w.pool.Name)
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

func find(all []unstructured.Unstructured, name string) *unstructured.Unstructured {
	if i := slices.IndexFunc(all, func(u unstructured.Unstructured) bool { return u.GetName() == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// change returns what is to be changed of the NodePool of a capacity type, nil where
// nothing is.
func (b *Backend) change(w *poolView, c policy.CapacityType, h *half) (*edit, error) {
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
		return nil, backend.Hold("NameTaken", "NodePool %s is there and is not ours; annotate it %s=%s to let its weight and limits be written",
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
			return nil, nil // nothing to buy, and nothing there
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
	reqs, since, done := b.narrow(w, c, h, live, was, reqs)
	u := manifest(name, w.object, *h, b.hold(w, was, fixed), reqs)
	if since != 0 {
		u.SetAnnotations(map[string]string{NarrowingAnnotation: since.Std().Format(time.RFC3339)})
	}
	b.sayWider(w, c, reqs)
	if upToDate(u, live) {
		return nil, nil
	}
	return &edit{full: u, live: live, plain: plain, drifting: done || outside(was, there)}, nil
}

// adopted returns the NodePool of somebody else that stands for the capacity type.
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

// apply does the edits and looks once more: a claim that Karpenter made in between
// from a wider NodePool widens it again. written is when more than weights and limits
// was last changed, this write included.
func (b *Backend) apply(ctx context.Context, w *poolView, edits []edit, written policy.Time) error {
	b.mu.Lock()
	p := b.pool(w.pool.Name)
	before, limited := p.written, p.limited
	p.written, p.limited = written, b.now() // also of a write that fails: it is not retried at once
	b.mu.Unlock()
	for _, x := range edits {
		if err := b.put(ctx, w, x.full, written); err != nil {
			if ctx.Err() != nil { // it was cut short, by a step that does the same
				b.mu.Lock()
				p.written, p.limited = before, limited
				b.mu.Unlock()
			}
			return err
		}
		b.log.Info("NodePool written", "pool", w.pool.Name, "nodePool", x.full.GetName(), "share", w.t.Share)
	}
	b.block(w.pool.Name, 0, nil)
	b.say(w.pool.Name, ConditionFieldConflict, false, "None", "no other manager holds a field that is written here")
	b.inForce(w.pool.Name, &w.t)
	return b.widen(ctx, w)
}

// put applies u. On a NodePool of ours it says what that is to buy, and since when.
func (b *Backend) put(ctx context.Context, w *poolView, u *unstructured.Unstructured, written policy.Time) error {
	if u.GetLabels()[PoolLabel] != "" {
		a := map[string]string{SteerAnnotation: w.t.text(), WrittenAnnotation: written.Std().Format(time.RFC3339)}
		maps.Copy(a, u.GetAnnotations())
		u.SetAnnotations(a)
	}
	if err := b.applyNodePool(ctx, w.pool.Name, u); err != nil {
		return b.conflict(w, u.GetName(), err)
	}
	return nil
}

// widen repeats the write where a node came to live outside of a NodePool meanwhile.
func (b *Backend) widen(ctx context.Context, w *poolView) error {
	claims, err := b.claimsNow(ctx, claimsOf(w.pool.Name))
	if err != nil {
		return nil //nolint:nilerr // the next Tend looks again
	}
	if slices.EqualFunc(claims, w.claims, func(x, y karpv1.NodeClaim) bool { return x.UID == y.UID }) {
		return nil
	}
	next, err := b.read(ctx, w.s, w.pool, nil)
	if err != nil || next == nil {
		return err
	}
	for i, c := range capacities {
		x, err := b.change(next, c, &next.halves[i])
		if err != nil || x == nil || !x.drifting {
			continue
		}
		if err := b.put(ctx, next, x.full, b.now()); err != nil {
			return err
		}
	}
	return nil
}

// inForce reports to the sink that t is what the pool buys by.
func (b *Backend) inForce(pool string, t *steering) {
	b.sink.SetSteer(pool, policy.SteerState{Set: true, Share: t.Share, Since: t.Since})
}

// conflict returns what became of a write: a Held where another manager has a field, or
// the API server will have no such NodePool, which is not tried again before the next write
// is due.
func (b *Backend) conflict(w *poolView, nodePool string, err error) error {
	var status apierrors.APIStatus
	if apierrors.IsInvalid(err) {
		held := &backend.Held{Reason: "NodePoolRefused", Message: fmt.Sprintf("the API server refuses NodePool %s, which the pool asks for: %v", nodePool, err)}
		b.block(w.pool.Name, w.object.Generation, held)
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
	message := fmt.Sprintf("another manager holds fields of NodePool %s, which is left as it is: %s", nodePool, strings.Join(held, "; "))
	b.say(w.pool.Name, ConditionFieldConflict, true, "OtherManager", message)
	b.mu.Lock()
	b.pool(w.pool.Name).conflict = b.now()
	b.mu.Unlock()
	return backend.Hold("FieldConflict", "%s", message)
}

// unreadable returns err, of reading Karpenter's objects for a pool, or a Held where
// Karpenter is not installed.
func (b *Backend) unreadable(pool string, err error) error {
	if missing(err) {
		b.block(pool, 0, heldMissing)
	}
	return heldIfMissing(err)
}

// readable takes back what unreadable noted.
func (b *Backend) readable(pool string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.pool(pool); p.refused == heldMissing {
		p.refused = nil
	}
}
