package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/awslabs/operatorpkg/status"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/test/v1alpha1"
)

func init() { log.SetLogger(logging.NopLogger) }

// A provider sells what a state says and launches nothing.
type provider struct {
	cloudprovider.CloudProvider // nil: only the methods below are called
	s                           *State
	types                       []*cloudprovider.InstanceType
	drifted                     map[string]bool // by provider ID
}

func newProvider(s *State) *provider {
	p := &provider{s: s, drifted: map[string]bool{}}
	for i := range s.Types {
		p.types = append(p.types, s.Types[i].instanceType())
	}
	for i := range s.Nodes {
		p.drifted[s.Nodes[i].providerID()] = s.Nodes[i].Drifted
	}
	return p
}

func (p *provider) Name() string { return "karpenterdiff" }

func (p *provider) GetInstanceTypes(context.Context, *v1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return slices.Clone(p.types), nil
}

func (p *provider) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&v1alpha1.TestNodeClass{}}
}

func (p *provider) RepairPolicies() []cloudprovider.RepairPolicy { return nil }

func (p *provider) IsDrifted(_ context.Context, c *v1.NodeClaim) (cloudprovider.DriftReason, error) {
	if p.drifted[c.Status.ProviderID] {
		return "Drifted", nil
	}
	return "", nil
}

// A silence records no event.
type silence struct{}

func (silence) Publish(...events.Event) {}

// A cluster is the state as Karpenter's controllers see it.
type cluster struct {
	ctx         context.Context
	clock       *clocktesting.FakeClock
	client      client.Client
	provider    *provider
	state       *state.Cluster
	provisioner *provisioning.Provisioner
}

// newCluster fills Karpenter's view of s.
func newCluster(s *State) (*cluster, error) {
	return newClusterOf(s, func(c client.Client) client.Client { return &scopingClient{c} })
}

// newClusterOf does so with another client around that of the objects.
func newClusterOf(s *State, around func(client.Client) client.Client) (*cluster, error) {
	c := &cluster{ctx: options.ToContext(context.Background(), settings()), clock: clocktesting.NewFakeClock(now),
		provider: newProvider(s)}
	c.client = around(fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(s.objects()...).
		WithStatusSubresource(&v1.NodeClaim{}, &v1.NodePool{}).
		WithIndex(&corev1.Pod{}, "spec.nodeName",
			func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
		WithIndex(&corev1.Node{}, "spec.providerID",
			func(o client.Object) []string { return []string{o.(*corev1.Node).Spec.ProviderID} }).
		WithIndex(&v1.NodeClaim{}, "status.providerID",
			func(o client.Object) []string { return []string{o.(*v1.NodeClaim).Status.ProviderID} }).
		WithIndex(&storagev1.VolumeAttachment{}, "spec.nodeName",
			func(o client.Object) []string { return []string{o.(*storagev1.VolumeAttachment).Spec.NodeName} }).
		Build())
	c.state = state.NewCluster(c.clock, c.client, c.provider)
	if err := c.fill(s); err != nil {
		return nil, err
	}
	c.provisioner = c.newProvisioner()
	return c, nil
}

// settings are Karpenter's defaults.
func settings() *options.Options {
	return &options.Options{
		CPURequests: 1000, PreferencePolicy: options.PreferencePolicyRespect, MinValuesPolicy: options.MinValuesPolicyStrict,
		IgnoreDRARequests: true, FeatureGates: options.FeatureGates{ReservedCapacity: true},
	}
}

// fill has the cluster state learn of all objects, as its informers would.
func (c *cluster) fill(s *State) error {
	for i := range s.Nodes {
		n := &s.Nodes[i]
		var claim v1.NodeClaim
		if err := c.client.Get(c.ctx, types.NamespacedName{Name: n.Name}, &claim); err != nil {
			return fmt.Errorf("reading the claim of %s: %w", n.Name, err)
		}
		c.state.UpdateNodeClaim(&claim)
		if n.Phase == "launching" {
			continue
		}
		var node corev1.Node
		if err := c.client.Get(c.ctx, types.NamespacedName{Name: n.Name}, &node); err != nil {
			return fmt.Errorf("reading node %s: %w", n.Name, err)
		}
		if err := c.state.UpdateNode(c.ctx, &node); err != nil {
			return fmt.Errorf("learning of node %s: %w", n.Name, err)
		}
	}
	var pods corev1.PodList
	if err := c.client.List(c.ctx, &pods); err != nil {
		return err
	}
	for i := range pods.Items {
		if err := c.state.UpdatePod(c.ctx, &pods.Items[i]); err != nil {
			return fmt.Errorf("learning of pod %s: %w", pods.Items[i].Name, err)
		}
	}
	var sets appsv1.DaemonSetList
	if err := c.client.List(c.ctx, &sets); err != nil {
		return err
	}
	for i := range sets.Items {
		if err := c.state.UpdateDaemonSet(c.ctx, &sets.Items[i]); err != nil {
			return fmt.Errorf("learning of DaemonSet %s: %w", sets.Items[i].Name, err)
		}
	}
	for i := range s.Nodes {
		if s.Nodes[i].Deleting {
			c.state.MarkForDeletion(s.Nodes[i].providerID())
		}
		if s.Nodes[i].Nominated {
			c.state.NominateNodeForPod(c.ctx, s.Nodes[i].providerID())
		}
	}
	return nil
}

// schedule places the pending pods and those of nodes that go, as Provisioner.Schedule
// does. It also returns which pods these are.
func (c *cluster) schedule() (out *Outcome, batch []int, err error) {
	nodes := c.state.DeepCopyNodes()
	pods, err := c.provisioner.GetPendingPods(c.ctx)
	if err != nil {
		return nil, nil, err
	}
	leaving, err := nodes.Deleting().CurrentlyReschedulablePods(c.ctx, c.client, c.clock, silence{})
	if err != nil {
		return nil, nil, err
	}
	pods = append(pods, leaving...)
	if len(pods) == 0 {
		return &Outcome{Nodes: map[int]string{}}, nil, nil
	}
	for _, p := range pods {
		batch = append(batch, podIndex(p.UID))
	}
	solver, err := c.newScheduler(pods, nodes.Active(),
		scheduling.DisableReservedCapacityFallback, scheduling.NumConcurrentReconciles(1), scheduling.MinValuesPolicy(options.MinValuesPolicyStrict))
	if err != nil {
		return nil, nil, fmt.Errorf("making the scheduler: %w", err)
	}
	results, err := solver.Solve(c.ctx, pods)
	if err != nil {
		return nil, nil, fmt.Errorf("solving: %w", err)
	}
	return outcomeOf(results.TruncateInstanceTypes(c.ctx, typesMax)), batch, nil
}

// outcomeOf returns results in the form in which they are compared.
func outcomeOf(r scheduling.Results) *Outcome {
	out := &Outcome{Nodes: map[int]string{}}
	for _, n := range r.ExistingNodes {
		for _, p := range n.Pods {
			out.Nodes[podIndex(p.UID)] = n.Name()
		}
	}
	for p := range r.PodErrors {
		out.Unplaced = append(out.Unplaced, podIndex(p.UID))
	}
	for _, n := range r.NewNodeClaims {
		out.Claims = append(out.Claims, claimOf(n))
	}
	out.sort()
	return out
}

func claimOf(n *scheduling.NodeClaim) Claim {
	c := Claim{Pool: n.NodePoolName, Cheapest: math.MaxInt64,
		Zones: n.Requirements.Get(corev1.LabelTopologyZone).Values(), domains: map[string][]string{}}
	for key, r := range n.Requirements {
		if r.Operator() == corev1.NodeSelectorOpIn {
			c.domains[key] = r.Values()
		}
	}
	for _, p := range n.Pods {
		c.Pods = append(c.Pods, podIndex(p.UID))
	}
	for _, t := range n.InstanceTypeOptions {
		least := int64(math.MaxInt64)
		for _, o := range t.Offerings.Available().Compatible(n.Requirements) {
			least = min(least, int64(math.Round(o.Price*1e6)))
		}
		if least == math.MaxInt64 {
			continue // the claim is restricted to what is reserved, and that is of other types
		}
		c.Types, c.Prices = append(c.Types, t.Name), append(c.Prices, least)
		c.Cheapest = min(c.Cheapest, least)
	}
	slices.Sort(c.Pods)
	slices.Sort(c.Types)
	slices.Sort(c.Zones)
	slices.SortFunc(c.Prices, cmp.Compare)
	return c
}
