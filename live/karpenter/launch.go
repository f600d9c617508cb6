package karpenter

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/policy/figures"
)

// ClaimName returns the name of the NodeClaim for a launch token. It contains the token if the
// result is a valid name, as it is for tokens of [policy.Token], else the hash of the token.
func ClaimName(token string) string {
	if name := "spotter-" + token; len(validation.IsDNS1123Label(name)) == 0 {
		return name
	}
	sum := sha256.Sum256([]byte(token))
	return "spotter-" + hex.EncodeToString(sum[:16])
}

// A launcher creates NodeClaims for Spotter.
type launcher struct {
	cfg      *Config
	log      *slog.Logger
	api      *apiReader
	writes   *writer
	classes  *classFinder
	outcomes *outcomeTable

	// turn serialises the creation of NodeClaims, because the claims without a machine are counted
	// before a new one is created.
	turn *semaphore.Weighted
}

// Launch creates a NodeClaim in the same form as Karpenter does. It returns a [backend.Held] if the
// limits of the pool leave no room, which otherwise only Karpenter's provisioner checks, if the
// node class is not ready, or while [Config.UnlaunchedMax] other claims have no machine. In the
// last case, Karpenter replaces a node under notice itself, once its pods are evicted.
func (b *Backend) Launch(ctx context.Context, s *policy.Snapshot, l *policy.Launch) error {
	return b.launcher.launch(ctx, s, l)
}

func (x *launcher) launch(ctx context.Context, s *policy.Snapshot, l *policy.Launch) error {
	if err := checkLaunch(s, l); err != nil {
		return err
	}
	end, ended := x.outcomes.end(l.Token)
	if ended {
		return fmt.Errorf("launch %s was refused by %s: %w", l.Token, strings.Join(end.markets, ", "), driver.ErrNoCapacity)
	}
	name := ClaimName(l.Token)
	if there, err := x.api.there(ctx, "NodeClaim", name, &karpv1.NodeClaim{}); there || err != nil {
		return heldIfMissing(err) // nil if the claim already exists
	}
	seen, err := x.api.cached(ctx)
	if err != nil {
		return heldIfMissing(err)
	}
	if err := x.underWay(s, l, seen); err != nil {
		return err // found without a request to the API server
	}
	if err := x.turn.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("waiting to create NodeClaim %s: %w", name, err)
	}
	defer x.turn.Release(1)
	return x.make(ctx, s, l, name)
}

// make creates the NodeClaim of a launch, unless a condition prevents it.
func (x *launcher) make(ctx context.Context, s *policy.Snapshot, l *policy.Launch, name string) error {
	pool := &s.Pools[l.Pool]
	nodePool, claims, err := x.target(ctx, pool, s.Markets[l.Markets[0]].Capacity)
	if err != nil {
		return err
	}
	if err := x.underWay(s, l, claims); err != nil {
		return err
	}
	markets, err := allowedMarkets(s, l, nodePool)
	if err != nil {
		return err
	}
	if err := x.limitsLeave(s, pool, nodePool, claims, markets); err != nil {
		return err
	}
	if no, why := poolIsNot(nodePool, "Ready"); no {
		return backend.Hold("NodePoolNotReady", "NodePool %s is not ready: %s", nodePool.Name, why)
	}
	if err := x.classes.ready(ctx, nodePool.Spec.Template.Spec.NodeClassRef.Name, 0); err != nil {
		return err
	}
	claim := x.claim(s, l, nodePool, name, markets)
	switch err := x.writes.createClaim(ctx, pool.Name, claim); {
	case apierrors.IsAlreadyExists(err):
		return nil
	case err != nil:
		return fmt.Errorf("creating NodeClaim %s: %w", name, err)
	}
	x.log.Info("NodeClaim created", "pool", pool.Name, "nodeClaim", name, "markets", claim.Annotations[MarketsAnnotation])
	return nil
}

func checkLaunch(s *policy.Snapshot, l *policy.Launch) error {
	if l.Token == "" || len(l.Markets) == 0 {
		return fmt.Errorf("launch without a token or a market")
	}
	for _, m := range l.Markets {
		if !slices.Contains(s.Pools[l.Pool].Markets, m) {
			return fmt.Errorf("market %s is not in pool %s", s.Markets[m].Name, s.Pools[l.Pool].Name)
		}
		if s.Markets[m].Capacity != s.Markets[l.Markets[0]].Capacity {
			return fmt.Errorf("markets %s and %s differ in capacity type", s.Markets[l.Markets[0]].Name, s.Markets[m].Name)
		}
		if pool := &s.Pools[l.Pool]; !pool.Affords(&s.Markets[m]) {
			return backend.Hold("TooDear", "a node of market %s costs %s an hour, but pool %s pays at most %s",
				s.Markets[m].Name, s.Markets[m].Charge().Short(), pool.Name, pool.PriceMax.Short())
		}
	}
	return nil
}

// target returns the NodePool from which a launch is created, and all NodeClaims.
func (x *launcher) target(ctx context.Context, pool *policy.Pool, c policy.CapacityType) (*karpv1.NodePool,
	[]karpv1.NodeClaim, error) {
	var all karpv1.NodePoolList
	if err := x.api.reader.List(ctx, &all); err != nil {
		return nil, nil, heldIfMissing(fmt.Errorf("listing NodePools: %w", err))
	}
	var found *karpv1.NodePool
	for i := range all.Items {
		n := &all.Items[i]
		ours := n.Name == NodePoolName(pool.Name, c) && n.Labels[PoolLabel] == pool.Name
		r := scheduling.NewNodeSelectorRequirementsWithMinValues(n.Spec.Template.Spec.Requirements...)
		adopted := n.Annotations[AdoptAnnotation] == pool.Name && r.Get(karpv1.CapacityTypeLabelKey).Has(c.String())
		if n.DeletionTimestamp.IsZero() && (ours || adopted && found == nil) {
			found = n
		}
	}
	switch {
	case found == nil:
		return nil, nil, backend.Hold("NodePoolMissing", "pool %s has no NodePool for %s yet", pool.Name, c)
	case found.Annotations[karpv1.NodePoolHashAnnotationKey] == "":
		return nil, nil, backend.Hold("NodePoolNotReady", "Karpenter has not yet seen NodePool %s", found.Name)
	}
	claims, err := x.api.claimsNow(ctx)
	if err != nil {
		return nil, nil, err
	}
	return found, claims, nil
}

// underWay returns a Held while UnlaunchedMax claims of Spotter have no machine. Karpenter then
// replaces nodes under notice: the drain does not wait for a launch, and Karpenter launches only
// the NodeClaims that the evicted pods need.
func (x *launcher) underWay(s *policy.Snapshot, l *policy.Launch, claims []karpv1.NodeClaim) error {
	n := 0
	for i := range claims {
		if c := &claims[i]; c.Annotations[TokenAnnotation] != "" && !launched(c) && c.DeletionTimestamp.IsZero() {
			n++
		}
	}
	switch {
	case n < x.cfg.UnlaunchedMax:
		return nil
	case l.Replaces >= 0 && s.Nodes[l.Replaces].ReclaimAt != 0:
		return backend.Hold("LeftToKarpenter",
			"%s without a machine: Karpenter replaces node %s, which is reclaimed, once its pods are evicted and pending", figures.Count(n, "NodeClaim"), s.Nodes[l.Replaces].Name)
	case l.Why.Reason == policy.ReasonNotice:
		return backend.Hold("LeftToKarpenter",
			"%s without a machine: Karpenter replaces reclaimed nodes once their pods are evicted and pending", figures.Count(n, "NodeClaim"))
	}
	return backend.Hold("LaunchesUnderWay", "%s without a machine, and Karpenter disrupts nothing while one has none",
		figures.Count(n, "NodeClaim"))
}

// allowedMarkets returns the markets of a launch that the NodePool includes: a node in another
// market would drift at once. A claim lists types and zones separately, so the markets are all
// pairs of the listed types and zones.
func allowedMarkets(s *policy.Snapshot, l *policy.Launch, n *karpv1.NodePool) ([]policy.MarketID, error) {
	r := scheduling.NewNodeSelectorRequirementsWithMinValues(n.Spec.Template.Spec.Requirements...)
	types, zones := r.Get(corev1.LabelInstanceTypeStable), r.Get(corev1.LabelTopologyZone)
	var inside []Offer
	for _, m := range l.Markets {
		if o := offerOf(s, m); types.Has(o.Type) && zones.Has(o.Zone) {
			inside = append(inside, o)
		}
	}
	t, z := product(inside)
	var markets []policy.MarketID
	for _, m := range l.Markets {
		if o := offerOf(s, m); slices.Contains(t, o.Type) && slices.Contains(z, o.Zone) {
			markets = append(markets, m)
		}
	}
	if len(markets) == 0 {
		return nil, backend.Hold("OutsideNodePool", "NodePool %s does not yet allow any market of the launch, of %d",
			n.Name, len(l.Markets))
	}
	return markets, nil
}

// limitsLeave returns a Held if the capacity of the pool, together with the largest machine that
// the launch may create, would exceed the limits that the user set for the pool. The limits of the
// NodePool are not checked: they divide Karpenter's own launches between the capacity types and lag
// behind the capacity of the pool, and the plan already accounts for the Spot share.
func (x *launcher) limitsLeave(s *policy.Snapshot, pool *policy.Pool, n *karpv1.NodePool, claims []karpv1.NodeClaim,
	markets []policy.MarketID) error {
	limits := (&holdings{gpu: gpuOf(s, pool)}).list(leftOf(pool.Limits, policy.Resources{}))
	owners := map[string]string{n.Name: pool.Name} // name of the CapacityPool by NodePool
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		limit, used := limits[name], resource.Quantity{}
		for i := range claims {
			c := &claims[i]
			of := c.Labels[karpv1.NodePoolLabelKey]
			if _, known := owners[of]; !known {
				owners[of] = x.api.poolOf(c)
			}
			if owners[of] == pool.Name && c.DeletionTimestamp.IsZero() {
				used.Add(capacityOf(s, c)[name])
			}
		}
		largest := resource.Quantity{}
		for _, m := range markets {
			if q := quantities(s, m)[name]; q.Cmp(largest) > 0 {
				largest = q
			}
		}
		used.Add(largest)
		if used.Cmp(limit) > 0 {
			return backend.Hold("LimitReached", "pool %s is limited to %s of %s and would reach %s", pool.Name, limit.String(),
				name, used.String())
		}
	}
	return nil
}

// capacityOf returns the resources that a claim counts against limits. A claim without a machine
// counts as the largest type that it requests.
func capacityOf(s *policy.Snapshot, c *karpv1.NodeClaim) corev1.ResourceList {
	if len(c.Status.Capacity) > 0 {
		out := maps.Clone(c.Status.Capacity)
		out["nodes"] = *resource.NewQuantity(1, resource.DecimalSI)
		return out
	}
	most := corev1.ResourceList{"nodes": *resource.NewQuantity(1, resource.DecimalSI)}
	for _, r := range c.Spec.Requirements {
		if r.Key != corev1.LabelInstanceTypeStable || r.Operator != corev1.NodeSelectorOpIn {
			continue
		}
		for i := range s.Types {
			if t := &s.Types[i]; slices.Contains(r.Values, t.Name) {
				for k, q := range typeQuantities(t) {
					if was := most[k]; q.Cmp(was) > 0 {
						most[k] = q
					}
				}
			}
		}
	}
	return most
}

func quantities(s *policy.Snapshot, m policy.MarketID) corev1.ResourceList {
	return typeQuantities(&s.Types[s.Markets[m].Type])
}

func typeQuantities(t *policy.InstanceType) corev1.ResourceList {
	l := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(t.VCPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(t.Capacity.Memory, resource.BinarySI),
		"nodes":               *resource.NewQuantity(1, resource.DecimalSI),
	}
	if t.GPUResource != "" {
		l[corev1.ResourceName(t.GPUResource)] = *resource.NewQuantity(t.Capacity.GPU, resource.DecimalSI)
	}
	return l
}

// claim returns the NodeClaim of a launch. It is protected until the pods that it is launched for
// have moved, since Karpenter removes empty nodes.
func (x *launcher) claim(s *policy.Snapshot, l *policy.Launch, n *karpv1.NodePool, name string,
	markets []policy.MarketID) *karpv1.NodeClaim {
	t := n.Spec.Template.Spec
	labels, annotations := map[string]string{}, map[string]string{}
	maps.Copy(labels, n.Spec.Template.Labels)
	maps.Copy(annotations, n.Spec.Template.Annotations)
	labels[PoolLabel], labels[karpv1.NodePoolLabelKey] = s.Pools[l.Pool].Name, n.Name
	labels[karpv1.NodeClassLabelKey(t.NodeClassRef.GroupKind())] = t.NodeClassRef.Name
	for _, k := range [...]string{karpv1.NodePoolHashAnnotationKey, karpv1.NodePoolHashVersionAnnotationKey} {
		annotations[k] = n.Annotations[k]
	}
	var offers []Offer
	var names []string
	for _, m := range markets {
		offers, names = append(offers, offerOf(s, m)), append(names, s.Markets[m].Name)
	}
	annotations[TokenAnnotation], annotations[MarketsAnnotation] = l.Token, strings.Join(names, ",")
	if l.Replaces >= 0 {
		annotations[ReplacesAnnotation] = s.Nodes[l.Replaces].Name
	}
	annotations[karpv1.DoNotDisruptAnnotationKey], annotations[ProtectedAnnotation] = "true", x.writes.protection(protectedReplacement)
	return &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: labels, Annotations: annotations,
			// Karpenter makes the deletion of a NodePool wait for its claims: its owner references
			// set blockOwnerDeletion. Such a reference requires the permission to update the
			// NodePool's finalizers if the admission plugin OwnerReferencesPermissionEnforcement is
			// enabled. The claim is deleted with the NodePool in either case.
			OwnerReferences: []metav1.OwnerReference{{APIVersion: groupVersion.String(), Kind: nodePoolKind.Kind, Name: n.Name,
				UID: n.UID}},
		},
		Spec: karpv1.NodeClaimSpec{
			Taints: t.Taints, StartupTaints: t.StartupTaints, NodeClassRef: t.NodeClassRef,
			ExpireAfter: t.ExpireAfter, TerminationGracePeriod: t.TerminationGracePeriod,
			Requirements: claimRequirements(n, s.Markets[markets[0]].Capacity, offers),
			Resources:    karpv1.ResourceRequirements{Requests: requests(s, l)},
		},
	}
}

// claimRequirements returns the requirements of the NodePool, narrowed to the markets of the
// launch.
func claimRequirements(n *karpv1.NodePool, c policy.CapacityType,
	offers []Offer) []karpv1.NodeSelectorRequirementWithMinValues {
	own := Requirements(c.String(), offers, nil)
	for _, r := range n.Spec.Template.Spec.Requirements {
		if !slices.ContainsFunc(own, func(x karpv1.NodeSelectorRequirementWithMinValues) bool { return x.Key == r.Key }) {
			own = append(own, r)
		}
	}
	return own
}

// requests returns the resources that the new node must provide: the requests of the pods on the
// replaced node, including DaemonSet pods, or of one pod of every DaemonSet if no node is replaced.
func requests(s *policy.Snapshot, l *policy.Launch) corev1.ResourceList {
	var sum policy.Resources
	gpu := ""
	for i := range s.Pods {
		p := &s.Pods[i]
		if l.Replaces < 0 || p.Node != l.Replaces || p.Phase != policy.PodStarting && p.Phase != policy.PodReady {
			continue
		}
		t := &s.Templates[p.Template]
		sum = sum.Plus(t.Requests)
		if t.GPUResource != "" {
			gpu = t.GPUResource
		}
	}
	for i := range s.Templates {
		if t := &s.Templates[i]; l.Replaces < 0 && t.DaemonSet && mayServe(&s.Pools[l.Pool],
			&policy.Template{Tolerations: t.Tolerations, NodeSelector: t.NodeSelector}) {
			sum = sum.Plus(t.Requests)
		}
	}
	out := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(sum.CPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(sum.Memory, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(max(1, sum.Pods), resource.DecimalSI),
	}
	if sum.GPU > 0 && gpu != "" {
		out[corev1.ResourceName(gpu)] = *resource.NewQuantity(sum.GPU, resource.DecimalSI)
	}
	return out
}
