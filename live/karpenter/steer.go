package karpenter

import (
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

	steering steering
	targets  [len(capacities)]target
	live     []unstructured.Unstructured // all NodePools
	claims   []karpv1.NodeClaim          // of the pool's own NodePools
}

// write updates the NodePools of a pool to the wanted steer and the present nodes. Each kind of
// change has its own minimum interval, see pace.go. It does nothing before the first steer or if
// nothing would change. seen is a view that was just read; if it is nil, write reads one.
func (n *nodePoolSteerer) write(ctx context.Context, s *policy.Snapshot, pool *policy.Pool, seen *clusterView,
	urgent bool) error {
	view, err := n.read(ctx, s, pool, seen)
	if err != nil || view == nil {
		return err
	}
	var edits []edit
	for i, c := range capacities {
		x, conditions, err := n.change(view, c, view.targets[i])
		if err != nil {
			return err
		}
		n.states.setConditions(pool.Name, conditions...)
		if x != nil {
			edits = append(edits, *x)
			urgent = urgent || x.urgent
		}
	}
	if len(edits) == 0 {
		n.inForce(pool.Name, &view.steering)
		return nil
	}
	written, _, _ := n.states.writes(pool.Name)
	if urgent || written == 0 {
		return n.apply(ctx, view, edits, n.cfg.now())
	}
	due, full, held := n.paced(view, edits)
	if full {
		return n.apply(ctx, view, due, n.cfg.now())
	}
	if len(due) > 0 {
		if err := n.apply(ctx, view, due, written); err != nil {
			return err
		}
	}
	return held
}

// read reads the objects that write needs. It returns nil if the pool was never steered.
func (n *nodePoolSteerer) read(ctx context.Context, s *policy.Snapshot, pool *policy.Pool,
	seen *clusterView) (*poolView, error) {
	view := &poolView{s: s, pool: pool, object: &v1alpha1.CapacityPool{}}
	if err := n.api.client.Get(ctx, client.ObjectKey{Name: pool.Name}, view.object); err != nil {
		return nil, fmt.Errorf("reading CapacityPool %s: %w", pool.Name, err)
	}
	var err error
	if seen == nil {
		if seen, err = n.api.look(ctx, claimsOf(pool.Name)); err != nil {
			return nil, n.states.unreadable(pool.Name, err)
		}
	}
	n.states.readable(pool.Name)
	view.live, view.claims = seen.nodePools, seen.of(pool.Name)
	n.states.recall(view)
	if view.steering.Since == 0 {
		return nil, nil
	}
	if view.class, err = n.classes.of(ctx, view.object, 0); err != nil {
		return nil, heldIfMissing(err)
	}
	view.invalid = valid(ctx, view.object, view.class)
	holdings := holdingsOf(s, pool, &view.steering)
	spot, onDemand := n.cfg.divide(pool, &view.steering, &holdings, n.refusedLately(pool))
	spot.closed = closedAt(view.object, n.cfg.now())
	onDemand.closed = spot.closed
	view.targets = [...]target{spot, onDemand}
	return view, nil
}

// refusedLately reports whether a launch of pool was refused less than WriteEvery ago.
func (n *nodePoolSteerer) refusedLately(pool *policy.Pool) bool {
	return pool.Refused != 0 && n.cfg.now().Sub(pool.Refused) < n.cfg.WriteEvery
}

// find returns the object with a name, or nil.
func find(all []unstructured.Unstructured, name string) *unstructured.Unstructured {
	if i := slices.IndexFunc(all, func(u unstructured.Unstructured) bool { return u.GetName() == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// change returns the change of the NodePool of a capacity type, or nil if nothing changes, and the
// conditions to report.
func (n *nodePoolSteerer) change(view *poolView, c policy.CapacityType, to target) (*edit, []metav1.Condition, error) {
	adopted, err := view.adoptedFor(c)
	if err != nil {
		return nil, nil, err
	}
	if adopted != nil {
		manifest := adoptedManifest(adopted.GetName(), to)
		if upToDate(manifest, adopted) {
			return nil, nil, nil
		}
		return &edit{full: manifest, live: adopted, plain: to}, nil, nil
	}
	name := NodePoolName(view.pool.Name, c)
	live := find(view.live, name)
	if live != nil && live.GetLabels()[PoolLabel] != view.pool.Name {
		return nil, nil, backend.Hold("NameTaken",
			"NodePool %s exists and is not managed by Spotter; annotate it with %s=%s to have its weight and limits written",
			name, AdoptAnnotation, view.pool.Name)
	}
	wanted, occupied := view.wanted(c), liveOffers(name, view.claims)
	if len(wanted) == 0 {
		to.limits = nothing()
	}
	requirements := Requirements(c.String(), wanted, occupied)
	if live != nil {
		return n.update(view, c, live, to, requirements, occupied)
	}
	if len(requirements) == 0 {
		return nil, nil, nil // nothing to buy, and no NodePool
	}
	if view.invalid != nil {
		return nil, nil, view.invalid
	}
	created := manifest(name, view.object, to, template(view.object, view.class), requirements)
	return &edit{full: created, plain: to}, nil, nil
}

// update is change for an existing NodePool of Spotter. occupied are the markets of its nodes.
func (n *nodePoolSteerer) update(view *poolView, c policy.CapacityType, live *unstructured.Unstructured, plain target,
	requirements []karpv1.NodeSelectorRequirementWithMinValues, occupied []Offer) (*edit, []metav1.Condition, error) {
	was, err := typed(live)
	if err != nil {
		return nil, nil, err
	}
	if len(requirements) == 0 {
		requirements = was.Spec.Template.Spec.Requirements
	}
	requirements, since, done := n.narrow(view, c, was, requirements)
	to := plain
	if since != 0 {
		to.limits = nothing()
	}
	fixed, conditions := view.hold(was, template(view.object, view.class))
	updated := manifest(was.Name, view.object, to, fixed, requirements)
	if since != 0 {
		updated.SetAnnotations(map[string]string{NarrowingAnnotation: since.Std().Format(time.RFC3339)})
	}
	conditions = append(conditions, view.widened(c, requirements)...)
	if upToDate(updated, live) {
		return nil, conditions, nil
	}
	urgent := done || outside(was, occupied) || closing(updated, live)
	return &edit{full: updated, live: live, plain: plain, urgent: urgent}, conditions, nil
}

// adoptedFor returns the adopted NodePool that is used for the capacity type, or nil. It returns an
// error if an adopted NodePool cannot be decoded: it may buy for the capacity type.
func (view *poolView) adoptedFor(c policy.CapacityType) (*unstructured.Unstructured, error) {
	for i := range view.live {
		u := &view.live[i]
		if u.GetAnnotations()[AdoptAnnotation] != view.pool.Name || u.GetLabels()[PoolLabel] == view.pool.Name {
			continue
		}
		nodePool, err := typed(u)
		if err != nil {
			return nil, err
		}
		r := scheduling.NewNodeSelectorRequirementsWithMinValues(nodePool.Spec.Template.Spec.Requirements...).
			Get(karpv1.CapacityTypeLabelKey)
		if r.Has(c.String()) && (c == policy.Spot || !r.Has(karpv1.CapacityTypeSpot)) {
			return u, nil
		}
	}
	return nil, nil
}

// typed decodes a NodePool.
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
func (n *nodePoolSteerer) apply(ctx context.Context, view *poolView, edits []edit, written policy.Time) error {
	// Set before the write, so that a failed write is not retried at once either.
	wasWritten, wasLimited := n.states.setWrites(view.pool.Name, written, n.cfg.now())
	for _, x := range edits {
		if err := n.put(ctx, view, x.full, written); err != nil {
			if ctx.Err() != nil { // cancelled; the next step repeats the write
				n.states.setWrites(view.pool.Name, wasWritten, wasLimited)
			}
			return err
		}
		n.log.Info("NodePool written", "pool", view.pool.Name, "nodePool", x.full.GetName(), "share", view.steering.Share)
	}
	n.states.block(view.pool.Name, 0, nil)
	n.states.setConditions(view.pool.Name, condition(ConditionFieldConflict, false, "None",
		"no other field manager owns a field that Spotter writes"))
	n.inForce(view.pool.Name, &view.steering)
	return n.widen(ctx, view)
}

// put applies u. A NodePool of Spotter is annotated with the steer and the time of the write.
func (n *nodePoolSteerer) put(ctx context.Context, view *poolView, u *unstructured.Unstructured,
	written policy.Time) error {
	if u.GetLabels()[PoolLabel] != "" {
		a := map[string]string{SteerAnnotation: view.steering.text(), WrittenAnnotation: written.Std().Format(time.RFC3339)}
		maps.Copy(a, u.GetAnnotations())
		u.SetAnnotations(a)
	}
	if err := n.writes.applyNodePool(ctx, view.pool.Name, u); err != nil {
		return n.writeError(view, u.GetName(), err)
	}
	return nil
}

// widen writes the NodePools again if a node has meanwhile been launched outside of them.
func (n *nodePoolSteerer) widen(ctx context.Context, view *poolView) error {
	claims, err := n.api.claimsNow(ctx, claimsOf(view.pool.Name))
	if err != nil {
		return nil //nolint:nilerr // the next Tend looks again
	}
	// Another order costs only a second read.
	if slices.EqualFunc(claims, view.claims, func(x, y karpv1.NodeClaim) bool { return x.UID == y.UID }) {
		return nil
	}
	next, err := n.read(ctx, view.s, view.pool, nil)
	if err != nil || next == nil {
		return err
	}
	for i, c := range capacities {
		x, conditions, err := n.change(next, c, next.targets[i])
		if err != nil {
			continue // the next write reports it
		}
		n.states.setConditions(view.pool.Name, conditions...)
		if x == nil || !x.urgent {
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

// writeError converts the error of a write. It returns a Held if another manager owns a field, or if
// the API server rejects the NodePool. Such a write is not retried before the next write is due.
func (n *nodePoolSteerer) writeError(view *poolView, nodePool string, err error) error {
	var status apierrors.APIStatus
	if apierrors.IsInvalid(err) {
		held := &backend.Held{Reason: "NodePoolRefused",
			Message: fmt.Sprintf("the API server refuses NodePool %s, which the pool requires: %v", nodePool, err)}
		n.states.block(view.pool.Name, view.object.Generation, held)
		return held
	}
	var owners []string
	if apierrors.IsConflict(err) && errors.As(err, &status) {
		for _, c := range ptr.Deref(status.Status().Details, metav1.StatusDetails{}).Causes {
			if c.Type == metav1.CauseTypeFieldManagerConflict {
				owners = append(owners, fmt.Sprintf("%s: %s", c.Field, c.Message))
			}
		}
	}
	if len(owners) == 0 {
		return fmt.Errorf("writing NodePool %s: %w", nodePool, err)
	}
	slices.Sort(owners)
	message := fmt.Sprintf("another field manager owns fields of NodePool %s, which is left unchanged: %s", nodePool,
		strings.Join(owners, "; "))
	n.states.setConditions(view.pool.Name, condition(ConditionFieldConflict, true, "OtherManager", message))
	n.states.setConflict(view.pool.Name, n.cfg.now())
	return backend.Hold("FieldConflict", "%s", message)
}
