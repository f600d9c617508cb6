package karpenter

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// SetupWithManager has the manager run the watches, whether it leads or not. Where
// Karpenter is not installed they begin once it is.
func (b *Backend) SetupWithManager(mgr manager.Manager) error {
	return mgr.Add(&watcher{b: b, mgr: mgr})
}

// A watcher is the part of a Backend that a manager runs.
type watcher struct {
	b   *Backend
	mgr manager.Manager
}

// NeedLeaderElection returns false: all replicas watch.
func (*watcher) NeedLeaderElection() bool { return false }

// lookEvery is how often it is looked whether Karpenter has been installed.
const lookEvery = 10 * time.Second

// Start watches until ctx ends.
func (w *watcher) Start(ctx context.Context) error {
	said := false
	err := wait.PollUntilContextCancel(ctx, lookEvery, true, func(context.Context) (bool, error) {
		_, err := w.mgr.GetRESTMapper().RESTMapping(nodeClaimKind.GroupKind(), groupVersion.Version)
		if err != nil && !said {
			w.b.log.Info("Karpenter is not there yet", "error", err)
			said = true
		}
		return err == nil, nil
	})
	if err != nil {
		return nil //nolint:nilerr // the end of ctx is how it is stopped
	}
	var informers [2]cache.Informer // both are there before what looks from one into the other
	for i, of := range []client.Object{&karpv1.NodePool{}, &karpv1.NodeClaim{}} {
		if informers[i], err = w.mgr.GetCache().GetInformer(ctx, of); err != nil {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // as above
			}
			return fmt.Errorf("watching %T: %w", of, err)
		}
	}
	for i, h := range []toolscache.ResourceEventHandler{handler(w.b.seeNodePool, func(*karpv1.NodePool) {}), handler(w.b.seeClaim, w.b.dropClaim)} {
		if _, err := informers[i].AddEventHandler(h); err != nil {
			return fmt.Errorf("watching Karpenter's objects: %w", err)
		}
	}
	return w.watchEvents(ctx)
}

// handler calls see for what is there or has changed, with what it was before, nil where
// it is new; and drop for what is gone.
func handler[T any](see func(was, is *T), drop func(*T)) toolscache.ResourceEventHandlerFuncs {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) {
			if x, ok := o.(*T); ok {
				see(nil, x)
			}
		},
		UpdateFunc: func(old, o any) {
			if x, ok := o.(*T); ok {
				was, _ := old.(*T)
				see(was, x)
			}
		},
		DeleteFunc: func(o any) {
			if d, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = d.Obj
			}
			if x, ok := o.(*T); ok {
				drop(x)
			}
		},
	}
}

// seeNodePool reports the last steer that the pool of a NodePool got. Where the NodePool has
// another pool than before, its NodeClaims are reported with that.
func (b *Backend) seeNodePool(was, n *karpv1.NodePool) {
	pool := ownerOf(n)
	if t, ok := readSteering(n.Annotations[SteerAnnotation]); ok && n.Labels[PoolLabel] != "" {
		b.sink.SetSteer(pool, policy.SteerState{Set: true, Share: t.Share, Since: t.Since})
	}
	if was != nil && ownerOf(was) == pool {
		return
	}
	claims, err := b.cachedClaims(context.Background(), client.MatchingLabels{karpv1.NodePoolLabelKey: n.Name})
	if err != nil {
		b.log.Warn("NodeClaims are not known to be of their pool", "nodePool", n.Name, "pool", pool, "error", err)
	}
	for i := range claims { // in no order: each is of its own
		b.sink.SetMachine(BackendName, b.machine(&claims[i]))
	}
}

// seeClaim reports a NodeClaim as it is now, and a machine that it was given.
func (b *Backend) seeClaim(was, c *karpv1.NodeClaim) {
	m := b.machine(c)
	b.sink.SetMachine(BackendName, m)
	known := was != nil && was.UID == c.UID && launched(was)
	if at := launchedAt(c); launched(c) && !known && at != 0 && at >= b.cfg.Since && m.Market != "" {
		b.sink.Meet(backend.Event{Kind: backend.MetLaunch, Pool: m.Pool, Market: m.Market, At: at})
	}
}

// launchedAt returns when a claim was given its machine.
func launchedAt(c *karpv1.NodeClaim) policy.Time {
	if x := c.StatusConditions(observed).Get(karpv1.ConditionTypeLaunched); x != nil {
		return policy.TimeOf(x.LastTransitionTime.Time)
	}
	return 0
}

// dropClaim reports that a NodeClaim is no more. One that never had a machine was
// refused, unless an unready node class ended it, or we, which was reported then.
func (b *Backend) dropClaim(c *karpv1.NodeClaim) {
	b.mu.Lock()
	_, ours := b.launches[c.Annotations[TokenAnnotation]]
	for _, reason := range [...]string{eventInterrupted, eventRecommendation} {
		delete(b.interrupts, string(c.UID)+"/"+reason)
	}
	b.mu.Unlock()
	b.sink.DropMachine(BackendName, c.Name)
	if launched(c) || ours {
		return
	}
	n := b.nodePoolOf(c)
	if n == nil {
		return // nothing is known: not held against the market
	}
	if no, _ := poolIsNot(n, karpv1.ConditionTypeNodeClassReady); no {
		return
	}
	if pool := b.poolOf(c); pool != "" {
		b.refused(pool, b.launchEnded(c, b.now()), b.now())
	}
}

// refusedMax is the most markets that a claim may have asked for if its refusal is
// to count against each: Karpenter's own ask for nearly all there are.
const refusedMax = 24

// launchEnded notes that a claim came to nothing, where it is of a launch of ours, and
// returns the markets that it asked for.
func (b *Backend) launchEnded(c *karpv1.NodeClaim, at policy.Time) (markets []string) {
	if markets = strings.Split(c.Annotations[MarketsAnnotation], ","); markets[0] == "" {
		markets = b.asked(c)
	}
	if token := c.Annotations[TokenAnnotation]; token != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.launches[token] = launchEnd{at: at, markets: markets}
	}
	return markets
}

// refused reports that none of the markets that a claim asked for had a machine.
func (b *Backend) refused(pool string, markets []string, at policy.Time) {
	if len(markets) == 0 || len(markets) > refusedMax {
		markets = []string{""}
	}
	for _, m := range markets {
		b.sink.Meet(backend.Event{Kind: backend.MetRefusal, Pool: pool, Market: m, At: at})
	}
	b.sink.Wake("refusal")
}

// asked returns the markets that a claim of Karpenter's asks for, as far as its
// region is known.
func (b *Backend) asked(c *karpv1.NodeClaim) []string {
	values := map[string][]string{}
	for _, r := range c.Spec.Requirements {
		if r.Operator == corev1.NodeSelectorOpIn {
			values[r.Key] = r.Values
		}
	}
	var all []string
	for _, t := range values[corev1.LabelInstanceTypeStable] {
		for _, z := range values[corev1.LabelTopologyZone] {
			for _, k := range values[karpv1.CapacityTypeLabelKey] {
				all = append(all, strings.Join([]string{b.provider(c), b.region(c, z), z, t, k}, "/"))
			}
		}
	}
	return all
}

// nodePoolOf returns the NodePool of a claim, of the cache; nil where it has none.
func (b *Backend) nodePoolOf(c *karpv1.NodeClaim) *karpv1.NodePool {
	n := &karpv1.NodePool{}
	if err := b.client.Get(context.Background(), client.ObjectKey{Name: c.Labels[karpv1.NodePoolLabelKey]}, n); err != nil {
		return nil
	}
	return n
}

// ownerOf returns the CapacityPool of a NodePool: it made it, or may write its weight and
// limits.
func ownerOf(n *karpv1.NodePool) string {
	return cmp.Or(n.Labels[PoolLabel], n.Annotations[AdoptAnnotation])
}

// poolOf returns the CapacityPool of a claim.
func (b *Backend) poolOf(c *karpv1.NodeClaim) string {
	if n := b.nodePoolOf(c); n != nil && ownerOf(n) != "" {
		return ownerOf(n)
	}
	return c.Labels[PoolLabel]
}

// machine returns a claim as a machine. One of ours that has no machine yet is reported
// with the first market that it asks for, so that what it will hold is expected.
func (b *Backend) machine(c *karpv1.NodeClaim) backend.Machine {
	m := backend.Machine{
		Name: c.Name, ProviderID: c.Status.ProviderID, Node: c.Status.NodeName, Token: c.Annotations[TokenAnnotation],
		Launched: policy.TimeOf(c.CreationTimestamp.Time), Phase: policy.NodeLaunching, Labels: kube.Labels(c.Labels),
	}
	m.Allocatable, _ = kube.NodeResources(c.Status.Allocatable)
	for _, t := range c.Spec.Taints {
		m.Taints = append(m.Taints, policy.Taint{Key: t.Key, Value: t.Value, Effect: v1alpha1.Effect(t.Effect)})
	}
	m.Pool = b.poolOf(c)
	zone := c.Labels[corev1.LabelTopologyZone]
	if t := c.Labels[corev1.LabelInstanceTypeStable]; t != "" && zone != "" {
		m.Market = strings.Join([]string{b.provider(c), b.region(c, zone), zone, t, c.Labels[karpv1.CapacityTypeLabelKey]}, "/")
	} else if asked := c.Annotations[MarketsAnnotation]; asked != "" {
		m.Market, _, _ = strings.Cut(asked, ",")
	}
	switch {
	case !c.DeletionTimestamp.IsZero():
		m.Phase = policy.NodeDeleting
	case claimIs(c, karpv1.ConditionTypeInitialized):
		m.Phase = policy.NodeInitialized
	case claimIs(c, karpv1.ConditionTypeRegistered):
		m.Phase = policy.NodeRegistered
	}
	switch { // of a node that is drained its mark says
	case !c.DeletionTimestamp.IsZero() && m.Token != "" && !launched(c):
		m.ActedBy = policy.ActorUs
	case !c.DeletionTimestamp.IsZero(), claimIs(c, karpv1.ConditionTypeDisruptionReason):
		m.ActedBy = policy.ActorKarpenter
	}
	return m
}

// provider returns who sells the machine of a claim: as its provider ID says, else
// its node class.
func (b *Backend) provider(c *karpv1.NodeClaim) string {
	if b.cfg.Provider != "" {
		return b.cfg.Provider
	}
	scheme, _, found := strings.Cut(c.Status.ProviderID, "://")
	if !found && c.Spec.NodeClassRef != nil {
		scheme = map[string]string{
			"karpenter.k8s.aws": "aws", "karpenter.azure.com": "azure", "karpenter.k8s.gcp": "gcp", "karpenter.kwok.sh": "kwok",
		}[c.Spec.NodeClassRef.Group]
	}
	if scheme == "gce" {
		return "gcp"
	}
	return scheme
}

// region returns the region of a claim in a zone.
func (b *Backend) region(c *karpv1.NodeClaim, zone string) string {
	if r := cmp.Or(c.Labels[corev1.LabelTopologyRegion], b.cfg.Region); r != "" {
		return r
	}
	switch b.provider(c) {
	case "aws": // us-east-1a
		return strings.TrimRight(zone, "abcdefghijklmnopqrstuvwxyz")
	case "gcp", "azure": // europe-west1-b, westeurope-1
		if i := strings.LastIndexByte(zone, '-'); i > 0 {
			return zone[:i]
		}
	}
	return ""
}
