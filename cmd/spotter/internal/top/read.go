package top

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/cluster"
	livemarket "github.com/spotter-dev/spotter/live/market"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// Labels of Rackspace Spot: the node pool, the server class and the purchase type.
const (
	labelRackspacePool  = "nodepool.ngpc.rxt.io/name"
	labelRackspaceClass = "servers.ngpc.rxt.io/class"
	labelRackspaceType  = "servers.ngpc.rxt.io/type"
)

// labelZoneID is the label with the ID of an AWS zone.
const labelZoneID = "topology.k8s.aws/zone-id"

// A usage is the total requests of the pods on a node.
type usage struct {
	cpu, memory resource.Quantity
	pods        int
}

// Read lists the nodes and pods of a cluster, and determines the prices of the nodes. The right to
// list nodes is required; without that to list pods, usage is unknown and a note reports it.
func Read(ctx context.Context, c client.Reader, p *Prices, now time.Time) (*Table, error) {
	nodes, err := listNodes(ctx, c)
	if apierrors.IsForbidden(err) {
		return nil, cli.Invalid(fmt.Errorf("the right to list nodes is missing: %w", err),
			"grant `list` on nodes, or use another context")
	}
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	t := &Table{At: now, Nodes: []Node{}, Sources: []string{}, Notes: []string{}}
	used, err := listPods(ctx, c)
	switch {
	case apierrors.IsForbidden(err):
		t.Notes = append(t.Notes, "use is unknown: the right to list pods is missing")
	case err != nil:
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	unstated := 0
	for i := range nodes {
		n, stated := nodeOf(&nodes[i], now)
		if used != nil {
			n.fill(&nodes[i], used[n.Name])
		}
		if !stated {
			unstated++
		}
		t.Nodes = append(t.Nodes, n)
	}
	if unstated > 0 {
		t.Notes = append(t.Notes, figures.Count(unstated, "node")+" without a capacity type, counted as on demand")
	}
	p.fill(ctx, t)
	t.Totals = totalsOf(t.Nodes)
	return t, t.Sort("pool")
}

// pageSize is the number of objects in one request.
const pageSize = 500

func listNodes(ctx context.Context, c client.Reader) (all []corev1.Node, err error) {
	var list corev1.NodeList
	err = pages(ctx, c, &list, func() { all = append(all, list.Items...) })
	return all, err
}

// listPods returns the total requests of the pods that have not ended, by node.
func listPods(ctx context.Context, c client.Reader) (map[string]usage, error) {
	used := map[string]usage{}
	running := fields.ParseSelectorOrDie("spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed")
	var list corev1.PodList
	err := pages(ctx, c, &list, func() {
		for i := range list.Items {
			pod := &list.Items[i]
			u, requests := used[pod.Spec.NodeName], kube.Requests(&pod.Spec)
			u.cpu.Add(*requests.Cpu())
			u.memory.Add(*requests.Memory())
			u.pods++
			used[pod.Spec.NodeName] = u
		}
	}, client.MatchingFieldsSelector{Selector: running})
	if err != nil {
		return nil, err
	}
	return used, nil
}

// pages calls page after each page of a list has been read.
func pages(ctx context.Context, c client.Reader, list client.ObjectList, page func(), more ...client.ListOption) error {
	for next := ""; ; {
		if err := c.List(ctx, list, append([]client.ListOption{client.Limit(pageSize), client.Continue(next)},
			more...)...); err != nil {
			return err
		}
		page()
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// nodeOf returns the data of a Node object, and whether the object states its capacity type.
func nodeOf(o *corev1.Node, now time.Time) (n Node, stated bool) {
	n = Node{
		Name: o.Name, Created: o.CreationTimestamp.Time, Age: max(0, now.Sub(o.CreationTimestamp.Time)).Seconds(),
		VCPU: o.Status.Capacity.Cpu().AsApproximateFloat64(), Memory: o.Status.Capacity.Memory().AsApproximateFloat64() / (1 << 30),
	}
	for _, key := range append(kube.GroupLabels(), labelRackspacePool) {
		if n.Pool = o.Labels[key]; n.Pool != "" {
			break
		}
	}
	n.Type, n.Region, n.Zone = cluster.SoldAs(o)
	n.zoneID = o.Labels[labelZoneID]
	if class := o.Labels[labelRackspaceClass]; class != "" {
		n.Type = class
	}
	n.Provider = providerOf(o, n.Type)
	n.Region = cmp.Or(n.Region, livemarket.RegionIn(n.Provider, n.Zone), regionOfClass(n.Provider, n.Type))
	capacity, stated := (&kube.CapacityResolver{}).Resolve(o.Labels)
	if word := o.Labels[labelRackspaceType]; !stated && word != "" {
		capacity, stated = policy.Spot, true
		if word == "ondemand" {
			capacity = policy.OnDemand
		}
	}
	n.Capacity = capacity.String()
	n.Notices = noticesOf(o, now)
	return n, stated
}

// providerOf returns the provider of a node, from its provider ID or otherwise from the catalog
// that contains its type.
func providerOf(o *corev1.Node, kind string) string {
	switch scheme, _, _ := strings.Cut(o.Spec.ProviderID, ":"); scheme {
	case "aws", "azure":
		return scheme
	case "gce":
		return catalog.GCP
	}
	for _, p := range catalog.Providers() {
		if _, known := catalog.Lookup(p, kind); known {
			return p
		}
	}
	return ""
}

// regionOfClass returns the only region in which Rackspace sells a class, or empty for others.
func regionOfClass(provider, class string) string {
	if provider != catalog.Rackspace {
		return ""
	}
	var sold []string
	for _, r := range catalog.Regions(provider) {
		if _, _, ok := catalog.OnDemandModelled(provider, r, class); ok {
			sold = append(sold, r)
		}
	}
	if len(sold) != 1 {
		return ""
	}
	return sold[0]
}

// fill sets the usage of the node.
func (n *Node) fill(o *corev1.Node, u usage) {
	n.Pods = &u.pods
	n.CPUUse, n.MemoryUse = share(u.cpu, o.Status.Allocatable.Cpu()), share(u.memory, o.Status.Allocatable.Memory())
}

// share returns part divided by whole, or nil if whole is not positive.
func share(part resource.Quantity, whole *resource.Quantity) *float64 {
	if whole.Sign() <= 0 {
		return nil
	}
	x := part.AsApproximateFloat64() / whole.AsApproximateFloat64()
	return &x
}

// actors are the names of the controllers that act on nodes.
var actors = map[policy.Actor]string{
	policy.ActorUs: "Spotter", policy.ActorKarpenter: "Karpenter", policy.ActorClusterAutoscaler: "Cluster Autoscaler",
	policy.ActorEKS: "EKS", policy.ActorNTH: "Node Termination Handler",
}

// noticesOf returns the notices that follow from the marks on a node, the most urgent first.
func noticesOf(o *corev1.Node, now time.Time) (all []string) {
	m := cluster.MarksOf(o, 0)
	if m.ReclaimLead > 0 {
		word := "under notice: the provider reclaims it"
		if m.MarkedAt > 0 {
			end := m.MarkedAt.Std().Add(m.ReclaimLead)
			word = "under notice: reclaimed in " + span(end.Sub(now))
			if end.Before(now) {
				word = "under notice since " + span(now.Sub(m.MarkedAt.Std()))
			}
		}
		all = append(all, word)
	}
	if m.Recommended {
		all = append(all, "rebalance recommendation")
	}
	by, known := actors[m.Actor]
	switch {
	case o.DeletionTimestamp != nil:
		all = append(all, "being deleted")
	case m.Draining && known:
		all = append(all, "drained by "+by)
	case known:
		all = append(all, "disrupted by "+by)
	case o.Spec.Unschedulable:
		all = append(all, "cordoned")
	}
	i := slices.IndexFunc(o.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if i < 0 || o.Status.Conditions[i].Status != corev1.ConditionTrue {
		all = append(all, "not ready")
	}
	return all
}
