package capture

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// A pool is a pool of the scenario.
type pool struct {
	name  string
	nodes []policy.NodeID

	// manifest is the manifest from the cluster or the snapshot, with defaults. It is nil until
	// derive creates it from the nodes.
	manifest *v1alpha1.CapacityPool

	// own is a NodePool that is written unchanged, or nil for a CapacityPool. With it, manifest has
	// only its labels.
	own *ownPool

	// labels are the labels that all nodes have and pods require but that the manifest does not
	// state.
	labels map[string]string
}

// A poolSet is the pools of the scenario, with the nodes of the snapshot. Each node is either left
// out or in one pool that may buy it.
type poolSet struct {
	*source
	all    []*pool // ascending by name
	places []place // indexed by node

	// began maps the nodes of the history to whether they existed at its start; nil without a
	// history.
	began map[policy.NodeID]bool

	// unread maps the names of the NodePools that cannot be simulated. No other pool may buy in
	// their place, so their nodes are left out.
	unread map[string]*unreadPool

	// listPrice is the on-demand list price of all nodes, in dollars per hour.
	listPrice float64
}

// An unreadPool is a NodePool that is left out with its nodes.
type unreadPool struct {
	why       string
	nodes     int
	listPrice float64
}

// statedPools creates the pools that have a manifest or are in the snapshot.
func (c *poolSet) statedPools() {
	for i := range c.o.Pools {
		p := c.o.Pools[i].DeepCopy()
		p.Default()
		if errs := p.Validate(); len(errs) > 0 {
			c.leave(1, "CapacityPools that are not valid, such as %s", p.Name)
			continue
		}
		c.all = append(c.all, &pool{name: p.Name, manifest: p})
	}
	for i := range c.s.Pools {
		if p := &c.s.Pools[i]; c.find(p.Name) == nil {
			c.all = append(c.all, &pool{name: p.Name, manifest: c.restate(p)})
		}
	}
	c.ownPools()
}

func (c *poolSet) find(name string) *pool {
	i := slices.IndexFunc(c.all, func(p *pool) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return c.all[i]
}

// groupOf returns the name of the node group of n, or empty if no label names it.
func groupOf(n *policy.Node) string {
	for _, k := range kube.GroupLabels() {
		if v, has := n.Label(k); has {
			return v
		}
	}
	return ""
}

// poolOf returns the pool of a node. A node that its pool may not buy is put in a separate pool,
// because it could not exist otherwise.
func (c *poolSet) poolOf(n *policy.Node, at *place) *pool {
	name := ""
	if n.Pool >= 0 {
		p := c.find(c.s.Pools[n.Pool].Name)
		if p != nil && p.takes(at) {
			return p
		}
		name = c.s.Pools[n.Pool].Name + "-others"
	} else if x := c.nodePoolOf(n); x != nil {
		if p := c.find(x.Name); p != nil && p.own != nil {
			if p.takes(at) {
				return p
			}
			name = Plain(x.Name + "-others")
		}
	}
	name = cmp.Or(name, Plain(groupOf(n)), "nodes")
	for p := c.find(name); p != nil && p.manifest != nil; p = c.find(name) {
		name += "-others" // a manifest has the name
	}
	p := c.find(name)
	if p == nil {
		p = &pool{name: name}
		c.all = append(c.all, p)
	}
	return p
}

var notPlain = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^a-z0-9]+`) })

// Plain converts the value of a label to an object name.
func Plain(v string) string {
	const most = 50 // a CapacityPool may have 58; the rest is for a suffix that makes the name unique
	v = strings.Trim(notPlain().ReplaceAllString(strings.ToLower(v), "-"), "-")
	return strings.Trim(v[:min(len(v), most)], "-")
}

// derive creates manifests for the pools that have none. They may buy types similar to those of
// their nodes.
func (c *poolSet) derive() {
	for _, p := range c.all {
		if p.manifest != nil {
			continue
		}
		var m v1alpha1.Markets
		least, most := int64(0), int64(0)
		gpu := false
		for _, id := range p.nodes {
			at := &c.places[id]
			t, _ := catalog.Lookup(at.provider, at.kind)
			m.Regions, m.Zones = add(m.Regions, at.region), add(m.Zones, at.zone)
			m.Categories, m.Architectures = add(m.Categories, t.Category), add(m.Architectures, t.Arch)
			if least == 0 || t.VCPU < least {
				least = t.VCPU
			}
			most, gpu = max(most, t.VCPU), gpu || t.Capacity.GPU > 0
		}
		low, high := int32(least), int32(most)
		m.MinVCPU, m.MaxVCPU = &low, &high
		if one := int32(1); gpu {
			m.MinGPUs = &one
		}
		for _, list := range [][]string{m.Regions, m.Zones, m.Categories, m.Architectures} {
			slices.Sort(list)
		}
		p.manifest = &v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: p.name}, Spec: v1alpha1.CapacityPoolSpec{
			Backend: c.backendOf(p), Markets: m, Mode: v1alpha1.ModeActive,
			Template: v1alpha1.NodeTemplate{Taints: c.commonTaints(p)},
		}}
		p.manifest.Default()
		c.assume("pool %s is made of %d nodes that no CapacityPool holds, and may buy types of the categories %s with %d to %d vCPUs in %s",
			c.names.pool(p.name), len(p.nodes), strings.Join(m.Categories, ", "), low, high, strings.Join(m.Zones, ", "))
	}
}

func add(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// backendOf returns the backend that provisions the nodes of a pool without a manifest.
func (c *poolSet) backendOf(p *pool) v1alpha1.Backend {
	first := &c.s.Nodes[p.nodes[0]]
	if c.places[first.ID].provider == policy.Rackspace {
		return rackspaceBackend()
	}
	if _, karpenters := first.Label("karpenter.sh/nodepool"); karpenters {
		return v1alpha1.Backend{Karpenter: &v1alpha1.KarpenterBackend{NodeClassName: "default"}}
	}
	if c.places[first.ID].provider == "aws" {
		return groupBackend(p.name)
	}
	return v1alpha1.Backend{Karpenter: &v1alpha1.KarpenterBackend{NodeClassName: "default"}}
}

func rackspaceBackend() v1alpha1.Backend {
	return v1alpha1.Backend{Rackspace: &v1alpha1.RackspaceBackend{
		Cloudspace: "captured", Org: "captured", CredentialsSecretRef: corev1.SecretReference{Name: "captured",
			Namespace: "spotter"},
	}}
}

func groupBackend(pool string) v1alpha1.Backend {
	return v1alpha1.Backend{AutoScalingGroups: &v1alpha1.AutoScalingGroupsBackend{DiscoveryTags: map[string]string{"spotter.dev/pool": pool}}}
}

// commonTaints returns the taints that all nodes of a pool have, without temporary ones.
func (c *poolSet) commonTaints(p *pool) (out []corev1.Taint) {
	for _, t := range c.s.Nodes[p.nodes[0]].Taints {
		everywhere := !slices.ContainsFunc(p.nodes,
			func(id policy.NodeID) bool { return !slices.Contains(c.s.Nodes[id].Taints, t) })
		if t.Owner == policy.ActorNone && everywhere && !strings.HasPrefix(t.Key, "node.kubernetes.io/") {
			out = append(out, corev1.Taint{Key: t.Key, Value: t.Value, Effect: effects[t.Effect]})
		}
	}
	return out
}

// effects are the names of taint effects, indexed by [policy.TaintEffect].
var effects = [...]corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule,
	corev1.TaintEffectNoExecute}

// manifests returns the pools as they are written.
func (c *poolSet) manifests() []any {
	out := make([]any, 0, len(c.all))
	written := map[string]bool{}
	for _, p := range c.all {
		if p.own != nil {
			out = append(out, c.objects(p, written)...)
			c.out.own = append(c.out.own, p.own)
			continue
		}
		m := &v1alpha1.CapacityPool{
			TypeMeta:   metav1.TypeMeta{APIVersion: "spotter.dev/v1alpha1", Kind: "CapacityPool"},
			ObjectMeta: metav1.ObjectMeta{Name: c.names.pool(p.name)}, Spec: *p.manifest.Spec.DeepCopy(),
		}
		m.Annotations = c.allowed(p)
		t := &m.Spec.Template
		if t.Labels == nil && len(p.labels) > 0 {
			t.Labels = map[string]string{}
		}
		maps.Copy(t.Labels, p.labels)
		c.names.hide(&m.Spec)
		out = append(out, m)
		c.out.pools = append(c.out.pools, *m)
	}
	c.out.Pools = len(c.all)
	return out
}
