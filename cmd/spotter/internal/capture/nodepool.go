package capture

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/manifest"
	"github.com/spotter-dev/spotter/live/karpenter"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios"
)

// A nodePool is a NodePool as it is written: of the cluster's object, only what the user stated.
type nodePool struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec karpv1.NodePoolSpec `json:"spec"`
}

type nodeClass struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec   map[string]any `json:"spec,omitempty"`
	Status map[string]any `json:"status,omitempty"`
}

// An ownPool is a Karpenter NodePool that is written unchanged, with its node class.
type ownPool struct {
	pool  nodePool
	class *nodeClass // nil if there is no class to write

	// required are the keys of the labels that its requirements name and that its nodes have,
	// before anonymisation.
	required []string

	// alone is a scenario with only this NodePool. It determines what the NodePool may buy.
	alone *scenarios.Scenario
}

// classKinds maps the kinds of node classes that are written to their apiVersion.
var classKinds = map[string]string{"EC2NodeClass": "karpenter.k8s.aws/v1", "NodeClass": "eks.amazonaws.com/v1",
	"GCENodeClass": "karpenter.k8s.gcp/v1alpha1"}

// classOf returns the node class of a NodePool, or nil if its kind is not written.
func (c *poolSet) classOf(p *karpv1.NodePool) *nodeClass {
	ref := p.Spec.Template.Spec.NodeClassRef
	if ref == nil || classKinds[ref.Kind] == "" {
		return nil
	}
	out := &nodeClass{TypeMeta: metav1.TypeMeta{APIVersion: classKinds[ref.Kind], Kind: ref.Kind}}
	out.Metadata.Name = ref.Name
	i := slices.IndexFunc(c.o.NodeClasses, func(u unstructured.Unstructured) bool {
		return u.GetKind() == ref.Kind &&
			u.GetName() == ref.Name
	})
	if i < 0 {
		c.assume("%s %s, which could not be read, has the default settings, and its nodes may be in all zones", ref.Kind,
			c.names.of("nodeclass", ref.Name))
		return out
	}
	u := c.o.NodeClasses[i].DeepCopy()
	out.Spec, _, _ = unstructured.NestedMap(u.Object, "spec")
	out.Status = map[string]any{}
	if subnets, found, _ := unstructured.NestedSlice(u.Object, "status", "subnets"); found {
		out.Status["subnets"] = subnets // they define the zones of the spec
	}
	if reservations, found := c.reservationsOf(u); found {
		out.Status[keyReservations] = reservations
	}
	return out
}

// ownPools adds the NodePools that can be simulated. Those that Spotter made belong to a
// CapacityPool and are skipped; the others are left out with their nodes.
func (c *poolSet) ownPools() {
	for i := range c.o.NodePools {
		p := c.o.NodePools[i].DeepCopy()
		if _, ours := p.Spec.Template.Labels[karpenter.PoolLabel]; ours || c.held(p.Name) {
			continue
		}
		x := &ownPool{class: c.classOf(p)}
		x.pool.TypeMeta = metav1.TypeMeta{APIVersion: "karpenter.sh/v1", Kind: "NodePool"}
		x.pool.Metadata.Name, x.pool.Spec = p.Name, p.Spec
		for _, q := range p.Spec.Template.Spec.Requirements {
			if q.Operator != corev1.NodeSelectorOpDoesNotExist {
				x.required = append(x.required, q.Key)
			}
		}
		var err error
		if x.alone, err = x.read(); err != nil {
			c.unread[p.Name] = &unreadPool{why: c.complaint(err)}
			continue
		}
		if c.find(p.Name) != nil {
			c.out.Left = append(c.out.Left, fmt.Sprintf("NodePool %s as it is: a CapacityPool has its name",
				c.names.pool(p.Name)))
			continue
		}
		c.all = append(c.all, &pool{name: p.Name, own: x, manifest: x.stated()})
	}
}

// fillDefaults sets durations of NodePools that their objects omit, which happens if an API server
// has no defaults for them: karpv1.NodePool cannot distinguish them from Never.
func (l *listed) fillDefaults(ctx context.Context, c client.Reader) {
	open := map[string]*karpv1.NodePool{}
	for _, p := range objectsOf[*karpv1.NodePool](l) {
		if p.Spec.Template.Spec.ExpireAfter.Duration == nil || p.Spec.Disruption.ConsolidateAfter.Duration == nil {
			open[p.Name] = p
		}
	}
	if len(open) == 0 {
		return
	}
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodePoolList"})
	if err := c.List(ctx, &list); err != nil {
		return // they were listed before; the client decoded the durations as Never
	}
	for i := range list.Items {
		p := open[list.Items[i].GetName()]
		set := func(to *karpv1.NillableDuration, value string, path ...string) {
			if _, stated, err := unstructured.NestedFieldNoCopy(list.Items[i].Object, path...); err == nil && !stated {
				*to = karpv1.MustParseNillableDuration(value)
			}
		}
		if p == nil {
			continue
		}
		expire := "720h"
		if ref := p.Spec.Template.Spec.NodeClassRef; ref != nil && ref.Kind == "NodeClass" {
			expire = "336h" // default of EKS Auto Mode
		}
		set(&p.Spec.Template.Spec.ExpireAfter, expire, "spec", "template", "spec", "expireAfter")
		set(&p.Spec.Disruption.ConsolidateAfter, "0s", "spec", "disruption", "consolidateAfter")
	}
}

// held reports whether the nodes of a NodePool belong to a CapacityPool.
func (c *source) held(name string) bool {
	return slices.ContainsFunc(c.s.Nodes, func(n policy.Node) bool {
		v, _ := n.Label(karpv1.NodePoolLabelKey)
		return n.Pool >= 0 && v == name
	})
}

// complaint describes the first error of a NodePool, without its location, and without names that
// people chose if these are hidden.
func (c *source) complaint(err error) string {
	first, _, more := strings.Cut(err.Error(), "\n")
	if _, problem, found := strings.Cut(first, ": field "); found {
		first = problem
	}
	switch field, _, found := strings.Cut(first, ": "); {
	case c.names.on && found:
		first = "what is in field " + field + " is not simulated"
	case more:
		first += ", and more"
	}
	return first
}

// read parses the NodePool as sim does.
func (x *ownPool) read() (*scenarios.Scenario, error) {
	var b bytes.Buffer
	b.WriteString("apiVersion: spotter.dev/v1alpha1\nkind: Scenario\nmetadata: {name: alone}\nspec: {duration: 1h}\n---\n")
	if err := x.write(&b); err != nil {
		return nil, err
	}
	return scenarios.Parse("NodePool", b.Bytes())
}

func (x *ownPool) write(b *bytes.Buffer) error {
	if err := manifest.Write(b, &x.pool); err != nil || x.class == nil {
		return err
	}
	b.WriteString("---\n")
	return manifest.WriteWhole(b, x.class)
}

// stated returns a CapacityPool with the labels of the NodePool and nothing else.
func (x *ownPool) stated() *v1alpha1.CapacityPool {
	labels := map[string]string{}
	for i := range x.alone.Pools() {
		for _, l := range x.alone.Pools()[i].Labels {
			labels[l.Key] = l.Value
		}
	}
	return &v1alpha1.CapacityPool{Spec: v1alpha1.CapacityPoolSpec{Template: v1alpha1.NodeTemplate{Labels: labels}}}
}

// objects returns the NodePool, and its class unless written contains it.
func (c *poolSet) objects(p *pool, written map[string]bool) []any {
	x := p.own
	for _, key := range slices.Sorted(maps.Keys(p.labels)) {
		if karpv1.IsRestrictedLabel(key) == nil {
			if x.pool.Spec.Template.Labels == nil {
				x.pool.Spec.Template.Labels = map[string]string{}
			}
			x.pool.Spec.Template.Labels[key] = p.labels[key]
			c.assume("NodePool %s labels its nodes with %s, which pods require and all of its nodes have",
				c.names.pool(p.name), c.names.key(key))
		}
	}
	c.names.hidePool(&x.pool)
	out := []any{&x.pool}
	if x.class != nil && !written[x.class.Kind+x.class.Metadata.Name] {
		written[x.class.Kind+x.class.Metadata.Name] = true
		c.hideClass(x.class)
		out = append(out, x.class)
	}
	return out
}

// hidePool replaces the names in a NodePool.
func (n *names) hidePool(p *nodePool) {
	if !n.on {
		return
	}
	p.Metadata.Name = n.pool(p.Metadata.Name)
	t := &p.Spec.Template
	t.Labels = n.hidden(t.Labels)
	if v, kept := t.Annotations[karpv1.DoNotDisruptAnnotationKey]; kept {
		t.Annotations = map[string]string{karpv1.DoNotDisruptAnnotationKey: v}
	} else {
		t.Annotations = nil
	}
	for _, taints := range [][]corev1.Taint{t.Spec.Taints, t.Spec.StartupTaints} {
		for i := range taints {
			x := &taints[i]
			x.Value, x.Key, x.TimeAdded = n.value(x.Key, x.Value), n.key(x.Key), nil
		}
	}
	for i := range t.Spec.Requirements {
		q := &t.Spec.Requirements[i]
		for k, v := range q.Values {
			q.Values[k] = n.value(q.Key, v)
		}
		q.Key = n.key(q.Key)
	}
	if ref := t.Spec.NodeClassRef; ref != nil {
		ref.Name = n.of("nodeclass", ref.Name)
	}
}

// openFields are the fields of a node class that contain no names: they only determine the capacity
// of a node.
var openFields = []string{"amiFamily", "kubelet", "instanceStorePolicy", "blockDeviceMappings", "ephemeralStorage",
	"preemptionNoticeDuration"}

// hideClass replaces the name of a node class, and removes fields that may contain other names.
func (c *poolSet) hideClass(x *nodeClass) {
	if !c.names.on {
		return
	}
	x.Metadata.Name = c.names.of("nodeclass", x.Metadata.Name)
	if list, _, _ := unstructured.NestedSlice(x.Spec, "amiSelectorTerms"); x.Spec["amiFamily"] == nil {
		for _, term := range list {
			if alias, found, _ := unstructured.NestedString(map[string]any{"x": term}, "x", "alias"); found {
				family, _, _ := strings.Cut(alias, "@")
				x.Spec["amiFamily"] = family
				break
			}
		}
	}
	var left []string
	for _, field := range slices.Sorted(maps.Keys(x.Spec)) {
		if !slices.Contains(openFields, field) {
			delete(x.Spec, field)
			left = append(left, field)
		}
	}
	if devices, found, _ := unstructured.NestedSlice(x.Spec, "blockDeviceMappings"); found {
		for i := range devices {
			if d, ok := devices[i].(map[string]any); ok {
				unstructured.RemoveNestedField(d, "ebs", "kmsKeyID")
				unstructured.RemoveNestedField(d, "ebs", "snapshotID")
			}
		}
		x.Spec["blockDeviceMappings"] = devices
	}
	unstructured.RemoveNestedField(x.Spec, "kubelet", "clusterDNS")
	unstructured.RemoveNestedField(x.Spec, "ephemeralStorage", "kmsKeyID")
	if subnets, ok := x.Status["subnets"].([]any); ok {
		for i := range subnets {
			if s, ok := subnets[i].(map[string]any); ok {
				delete(s, "id")
			}
		}
	}
	c.hideReservations(x)
	if len(left) > 0 {
		c.out.Left = append(c.out.Left, fmt.Sprintf("%s of %s %s", strings.Join(left, ", "), x.Kind, x.Metadata.Name))
	}
}

// takes reports whether a pool may buy the market of a node.
func (p *pool) takes(at *place) bool {
	if p.own == nil {
		return takes(p.manifest, at)
	}
	return p.own.buys(at.provider, at.region, at.zone, at.kind)
}

func (x *ownPool) buys(provider, region, zone, kind string) bool {
	return x.alone.Takes(provider, region, zone, kind)
}
