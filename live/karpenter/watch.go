package karpenter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A seenClaim is what was last seen of a NodeClaim.
type seenClaim struct {
	claim    *karpv1.NodeClaim
	launched bool // told, or before Config.Since
	lost     bool // told that the provider took it
}

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
	for said := false; ; {
		_, err := w.mgr.GetRESTMapper().RESTMapping(nodeClaimKind.GroupKind(), groupVersion.Version)
		if err == nil {
			break
		}
		if !said {
			w.b.log.Info("Karpenter is not there yet", "error", err)
			said = true
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookEvery):
		}
	}
	watches := []struct {
		of      client.Object
		handler toolscache.ResourceEventHandler
	}{
		{&karpv1.NodePool{}, handler(w.b.seeNodePool, func(*karpv1.NodePool) {})},
		{&karpv1.NodeClaim{}, handler(w.b.seeClaim, w.b.dropClaim)},
	}
	for _, x := range watches {
		informer, err := w.mgr.GetCache().GetInformer(ctx, x.of)
		if err != nil {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // the end of ctx is how it is stopped
			}
			return fmt.Errorf("watching %T: %w", x.of, err)
		}
		if _, err := informer.AddEventHandler(x.handler); err != nil {
			return fmt.Errorf("watching %T: %w", x.of, err)
		}
	}
	return w.watchEvents(ctx)
}

// handler calls see for what is there or has changed, and drop for what is gone.
func handler[T any](see, drop func(T)) toolscache.ResourceEventHandlerFuncs {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) {
			if x, ok := o.(T); ok {
				see(x)
			}
		},
		UpdateFunc: func(_, o any) {
			if x, ok := o.(T); ok {
				see(x)
			}
		},
		DeleteFunc: func(o any) {
			if d, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = d.Obj
			}
			if x, ok := o.(T); ok {
				drop(x)
			}
		},
	}
}

// seeNodePool notes whose NodePool it is, and what its pool was last told.
func (b *Backend) seeNodePool(n *karpv1.NodePool) {
	pool := cmp.Or(n.Labels[PoolLabel], n.Annotations[AdoptAnnotation])
	b.mu.Lock()
	known := b.nodePools[n.Name]
	if pool == "" {
		delete(b.nodePools, n.Name)
	} else {
		b.nodePools[n.Name] = pool
	}
	var claims []*karpv1.NodeClaim
	for _, s := range b.claims {
		if known != pool && s.claim.Labels[karpv1.NodePoolLabelKey] == n.Name {
			claims = append(claims, s.claim)
		}
	}
	b.mu.Unlock()
	if t, ok := readSteering(n.Annotations[SteerAnnotation]); ok && n.Labels[PoolLabel] != "" {
		b.sink.SetSteer(pool, policy.SteerState{Set: true, Share: t.Share, Since: t.Since})
	}
	slices.SortFunc(claims, func(x, y *karpv1.NodeClaim) int { return strings.Compare(x.Name, y.Name) })
	for _, c := range claims { // they were seen before their NodePool
		b.sink.SetMachine(BackendName, b.machine(c))
	}
}

// seeClaim tells of a NodeClaim as it is now, and of a machine that it was given.
func (b *Backend) seeClaim(c *karpv1.NodeClaim) {
	m := b.machine(c)
	b.mu.Lock()
	s := b.claims[c.Name]
	if s == nil || s.claim.UID != c.UID {
		s = &seenClaim{}
		b.claims[c.Name] = s
	}
	s.claim = c
	told := s.launched || !launched(c)
	if launched(c) {
		s.launched = true
	}
	b.mu.Unlock()
	b.sink.SetMachine(BackendName, m)
	if at := launchedAt(c); !told && at != 0 && at >= b.cfg.Since && m.Market != "" {
		b.sink.Meet(backend.Event{Kind: backend.MetLaunch, Pool: m.Pool, Market: m.Market, At: at})
	}
}

// launchedAt returns when a claim was given its machine.
func launchedAt(c *karpv1.NodeClaim) policy.Time {
	for _, x := range c.Status.Conditions {
		if x.Type == karpv1.ConditionTypeLaunched {
			return policy.TimeOf(x.LastTransitionTime.Time)
		}
	}
	return 0
}

// dropClaim tells that a NodeClaim is no more. One that never had a machine was
// refused, unless it was we or an unready node class that ended it.
func (b *Backend) dropClaim(c *karpv1.NodeClaim) {
	b.mu.Lock()
	s := b.claims[c.Name]
	delete(b.claims, c.Name)
	ours := b.released[c.Name]
	delete(b.released, c.Name)
	for _, reason := range [...]string{eventInterrupted, eventRecommendation} {
		delete(b.interrupts, string(c.UID)+"/"+reason)
	}
	had := launched(c) || s != nil && s.launched
	pool := b.poolOf(c)
	b.mu.Unlock()
	b.sink.DropMachine(BackendName, c.Name)
	if had || ours || pool == "" || b.unready(c) {
		return
	}
	b.refuse(c, pool, b.now())
}

// refusedMax is the most markets that a claim may have asked for if its refusal is
// to count against each: Karpenter's own ask for nearly all there are.
const refusedMax = 24

// refuse tells that no market that a claim asked for had a machine.
func (b *Backend) refuse(c *karpv1.NodeClaim, pool string, at policy.Time) {
	markets := strings.Split(c.Annotations[MarketsAnnotation], ",")
	if markets[0] == "" {
		markets = b.asked(c)
	}
	if token := c.Annotations[TokenAnnotation]; token != "" {
		b.mu.Lock()
		b.launches[token] = launchEnd{at: at, markets: markets}
		b.mu.Unlock()
	}
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
				all = append(all, marketName{b.provider(c), b.region(c, z), z, t, k}.String())
			}
		}
	}
	return all
}

// unready reports whether the NodePool of a claim says that its node class is not
// ready, on account of which Karpenter deletes claims.
func (b *Backend) unready(c *karpv1.NodeClaim) bool {
	var n karpv1.NodePool
	if err := b.client.Get(context.Background(), client.ObjectKey{Name: c.Labels[karpv1.NodePoolLabelKey]}, &n); err != nil {
		return true // nothing is known: not held against the market
	}
	no, _ := poolIsNot(&n, karpv1.ConditionTypeNodeClassReady)
	return no
}

// poolOf returns the CapacityPool of a claim; b.mu is held.
func (b *Backend) poolOf(c *karpv1.NodeClaim) string {
	return cmp.Or(b.nodePools[c.Labels[karpv1.NodePoolLabelKey]], c.Labels[PoolLabel])
}

// machine returns a claim as a machine. One of ours that has no machine yet is told
// with the first market that it asks for, so that what it will hold is expected.
func (b *Backend) machine(c *karpv1.NodeClaim) backend.Machine {
	m := backend.Machine{
		Name: c.Name, ProviderID: c.Status.ProviderID, Node: c.Status.NodeName, Token: c.Annotations[TokenAnnotation],
		Launched: policy.TimeOf(c.CreationTimestamp.Time), Phase: policy.NodeLaunching, Allocatable: resources(c.Status.Allocatable),
		Labels: labelsOf(c.Labels), Taints: taintsOf(c.Spec.Taints),
	}
	b.mu.Lock()
	m.Pool = b.poolOf(c)
	released := b.released[c.Name]
	b.mu.Unlock()
	zone := c.Labels[corev1.LabelTopologyZone]
	if t := c.Labels[corev1.LabelInstanceTypeStable]; t != "" && zone != "" {
		m.Market = marketName{b.provider(c), b.region(c, zone), zone, t, c.Labels[karpv1.CapacityTypeLabelKey]}.String()
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
	switch {
	case released:
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

func labelsOf(m map[string]string) []policy.Label {
	all := make([]policy.Label, 0, len(m))
	for k, v := range m {
		all = append(all, policy.Label{Key: k, Value: v})
	}
	slices.SortFunc(all, func(x, y policy.Label) int { return strings.Compare(x.Key, y.Key) })
	return all
}

func taintsOf(in []corev1.Taint) []policy.Taint {
	var out []policy.Taint
	for _, t := range in {
		out = append(out, policy.Taint{Key: t.Key, Value: t.Value, Effect: v1alpha1.Effect(t.Effect)})
	}
	return out
}

func resources(l corev1.ResourceList) policy.Resources {
	if len(l) == 0 {
		return policy.Resources{}
	}
	r := policy.Resources{CPU: l.Cpu().MilliValue(), Memory: l.Memory().Value(), Storage: l.StorageEphemeral().Value(), Pods: l.Pods().Value()}
	for name, q := range l {
		if strings.HasSuffix(string(name), "/gpu") {
			r.GPU += valueOf(q)
		}
	}
	return r
}

func valueOf(q resource.Quantity) int64 { return q.Value() }
