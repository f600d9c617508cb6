package try

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/capture"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/manifest"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// A poolPlan is the CapacityPools with which Spotter would show its decisions.
type poolPlan struct {
	pools []*v1alpha1.CapacityPool

	// backends and the regions of AWS and Azure are settings of the controller; regions are
	// separated by commas.
	backends              []string
	regions, azureRegions string

	// notes describe which nodes are in no pool, and why.
	notes []string
}

// A group is the nodes of a NodePool or an Auto Scaling group.
type group struct {
	name  string
	made  maker
	nodes []*policy.Node
}

// A maker identifies what created nodes by a label of the nodes.
type maker struct {
	label string

	// tag is the tag of Auto Scaling groups whose value is that of the label; empty for Karpenter.
	tag string
}

// makers are the makers of nodes that Spotter can steer. The first one whose label a node has
// created the node.
var makers = []maker{
	{karpv1.NodePoolLabelKey, ""},
	{"eks.amazonaws.com/nodegroup", "eks:nodegroup-name"},
	{"alpha.eksctl.io/nodegroup-name", "alpha.eksctl.io/nodegroup-name"},
	{"kops.k8s.io/instancegroup", "kops.k8s.io/instancegroup"},
}

// madeBy returns the group that created a node. name is empty if no label names it.
func madeBy(n *policy.Node) (name string, by maker) {
	for _, m := range makers {
		if v, _ := n.Label(m.label); v != "" {
			return v, m
		}
	}
	return "", maker{}
}

// poolsOf returns CapacityPools for the nodes that no pool contains. A pool contains the nodes with
// the labels of its template: NodePools whose nodes cannot be distinguished by labels share one.
func poolsOf(seen *sight, w *scenarios.BoundScenario) *poolPlan {
	p := &poolPlan{}
	groups, others := groupsOf(seen.Snapshot, seen.options.Apart)
	var karpenters []*group
	for _, g := range groups {
		if g.made.tag == "" {
			karpenters = append(karpenters, g)
			continue
		}
		labels := map[string]string{g.made.label: g.name}
		backend := v1alpha1.Backend{AutoScalingGroups: &v1alpha1.AutoScalingGroupsBackend{DiscoveryTags: map[string]string{g.made.tag: g.name}}}
		p.add([]*group{g}, backend, labels, w)
	}
	if apart := tellApart(karpenters, seen.options.NodePools); apart != nil {
		for i, g := range karpenters {
			p.add([]*group{g}, karpenterBackend(g, seen.options.NodePools), apart[i], w)
		}
	} else if len(karpenters) > 0 {
		p.add(karpenters, karpenterBackend(karpenters[0], seen.options.NodePools), widest(karpenters), w)
		p.notes = append(p.notes,
			fmt.Sprintf("a CapacityPool for each of the NodePools %s: no label tells their nodes apart, so one holds all",
				namesOf(karpenters)))
	}
	if others > 0 {
		p.notes = append(p.notes,
			fmt.Sprintf("%s in no CapacityPool: no label says which NodePool of Karpenter or which Auto Scaling group made them; a CapacityPool can name such groups by their tags (docs/asg.md)", figures.Count(others, "node")))
	}
	slices.SortFunc(p.pools, func(a, b *v1alpha1.CapacityPool) int { return cmp.Compare(a.Name, b.Name) })
	return p
}

// groupsOf returns the groups of nodes that no CapacityPool contains, ascending by name, and the
// number of nodes without a group.
func groupsOf(s *policy.Snapshot, apart map[string]string) (out []*group, others int) {
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Pool >= 0 || n.Phase == policy.NodeGone || n.Phase == policy.NodeDeleting || apart[n.Name] != "" {
			continue
		}
		name, made := madeBy(n)
		if name == "" {
			others++
			continue
		}
		at := slices.IndexFunc(out, func(g *group) bool { return g.name == name && g.made == made })
		if at < 0 {
			at = len(out)
			out = append(out, &group{name: name, made: made})
		}
		out[at].nodes = append(out[at].nodes, n)
	}
	slices.SortFunc(out, func(a, b *group) int { return cmp.Compare(a.name, b.name) })
	return out, others
}

func namesOf(groups []*group) string {
	var names []string
	for _, g := range groups {
		names = append(names, g.name)
	}
	return strings.Join(names, ", ")
}

func nodePool(name string, all []karpv1.NodePool) *karpv1.NodePool {
	if i := slices.IndexFunc(all, func(p karpv1.NodePool) bool { return p.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

func karpenterBackend(g *group, all []karpv1.NodePool) v1alpha1.Backend {
	class := "default"
	if p := nodePool(g.name, all); p != nil && p.Spec.Template.Spec.NodeClassRef != nil {
		class = cmp.Or(p.Spec.Template.Spec.NodeClassRef.Name, class)
	}
	return v1alpha1.Backend{Karpenter: &v1alpha1.KarpenterBackend{NodeClassName: class}}
}

// tellApart returns labels for each group that its nodes have and those of other groups lack. It
// returns nil if a group has no such labels.
func tellApart(groups []*group, all []karpv1.NodePool) (out []map[string]string) {
	if len(groups) == 1 {
		return []map[string]string{cmpLabels(ownLabels(groups[0], all), widest(groups))}
	}
	for _, g := range groups {
		labels := ownLabels(g, all)
		if !onlyOf(g, groups, labels) {
			labels = nil
			common := g.common()
			for _, key := range slices.Sorted(maps.Keys(common)) {
				if one := map[string]string{key: common[key]}; onlyOf(g, groups, one) {
					labels = one
					break
				}
			}
		}
		if labels == nil {
			return nil
		}
		out = append(out, labels)
	}
	return out
}

func cmpLabels(a, b map[string]string) map[string]string {
	if len(a) > 0 {
		return a
	}
	return b
}

// ownLabels returns the labels that the NodePool of g states and that all of its nodes have.
func ownLabels(g *group, all []karpv1.NodePool) map[string]string {
	p := nodePool(g.name, all)
	if p == nil {
		return nil
	}
	common, out := g.common(), map[string]string{}
	for key, value := range p.Spec.Template.Labels {
		if common[key] == value && common[key] != "" {
			out[key] = value
		}
	}
	return out
}

// onlyOf reports whether no node of another group has all of the labels.
func onlyOf(g *group, groups []*group, labels map[string]string) bool {
	if len(labels) == 0 {
		return false
	}
	for _, other := range groups {
		if other != g && slices.ContainsFunc(other.nodes, func(n *policy.Node) bool { return has(n, labels) }) {
			return false
		}
	}
	return true
}

func has(n *policy.Node, labels map[string]string) bool {
	for key, value := range labels {
		if v, ok := n.Label(key); !ok || v != value {
			return false
		}
	}
	return true
}

// ofNode are prefixes of the keys of labels that describe a single node, or that Karpenter does not
// allow users to set.
var ofNode = []string{
	"karpenter", "kubernetes.io/hostname", "topology.", "failure-domain.", "node.kubernetes.io/", "beta.kubernetes.io/", "k8s.io/cloud-provider",
	"eks.amazonaws.com/", "alpha.eksctl.io/", "nvidia.com/",
}

// common returns the labels that all nodes of g have, without those that ofNode excludes.
func (g *group) common() map[string]string {
	out := map[string]string{}
	for _, l := range g.nodes[0].Labels {
		single := slices.ContainsFunc(ofNode, func(p string) bool { return strings.HasPrefix(l.Key, p) }) ||
			strings.Contains(l.Key, "karpenter.")
		one := map[string]string{l.Key: l.Value}
		if !single && l.Value != "" && !slices.ContainsFunc(g.nodes, func(n *policy.Node) bool { return !has(n, one) }) {
			out[l.Key] = l.Value
		}
	}
	return out
}

// widest returns a label that all nodes of the groups have.
func widest(groups []*group) map[string]string {
	arch := groups[0].common()[corev1.LabelArchStable]
	for _, g := range groups {
		if g.common()[corev1.LabelArchStable] != arch {
			arch = ""
		}
	}
	if arch == "" {
		return map[string]string{corev1.LabelOSStable: "linux"}
	}
	return map[string]string{corev1.LabelArchStable: arch}
}

// add adds a CapacityPool in mode shadow for groups. It may buy the markets of the scenario's pools
// that correspond to these groups.
func (p *poolPlan) add(groups []*group, backend v1alpha1.Backend, labels map[string]string,
	w *scenarios.BoundScenario) {
	markets, aws, azure := marketsOf(groups, w)
	c := &v1alpha1.CapacityPool{
		TypeMeta:   metav1.TypeMeta{APIVersion: "spotter.dev/v1alpha1", Kind: "CapacityPool"},
		ObjectMeta: metav1.ObjectMeta{Name: cmp.Or(capture.Plain(groups[0].name), "nodes")},
		Spec: v1alpha1.CapacityPoolSpec{
			Mode: v1alpha1.ModeShadow, Backend: backend, Template: v1alpha1.NodeTemplate{Labels: labels},
			Markets: markets, Policy: &v1alpha1.PolicyRef{Name: portfolio},
		},
	}
	for k := 2; slices.ContainsFunc(p.pools, func(x *v1alpha1.CapacityPool) bool { return x.Name == c.Name }); k++ {
		c.Name = fmt.Sprintf("%s-%d", capture.Plain(groups[0].name), k)
	}
	kind := "karpenter"
	if backend.Karpenter == nil {
		kind = "asg"
	}
	whole := c.DeepCopy()
	whole.Default()
	if errs := whole.Validate(); len(errs) > 0 {
		p.notes = append(p.notes, fmt.Sprintf("a CapacityPool for the nodes of %s: %s", namesOf(groups),
			cli.FirstLine(errs.ToAggregate())))
		return
	}
	p.pools = append(p.pools, c)
	if !slices.Contains(p.backends, kind) {
		p.backends = append(p.backends, kind)
		slices.Sort(p.backends)
	}
	p.regions = strings.Join(union(strings.Split(p.regions, ","), aws), ",")
	p.azureRegions = strings.Join(union(strings.Split(p.azureRegions, ","), azure), ",")
}

// union returns the distinct non-empty words of both, ascending.
func union(a, b []string) []string {
	out := slices.DeleteFunc(slices.Concat(a, b), func(s string) bool { return s == "" })
	slices.Sort(out)
	return slices.Compact(out)
}

// marketsOf returns the markets of the scenario's pools that correspond to groups, and their AWS
// regions.
func marketsOf(groups []*group, w *scenarios.BoundScenario) (out v1alpha1.Markets,
	aws, azure []string) {
	of := func(x *policy.Pool) bool {
		return slices.ContainsFunc(groups, func(g *group) bool { return capture.Plain(g.name) == x.Name })
	}
	if !slices.ContainsFunc(w.Pools, func(x policy.Pool) bool { return of(&x) }) {
		of = func(*policy.Pool) bool { return true }
	}
	least, most, gpus := int64(0), int64(0), true
	for i := range w.Pools {
		if !of(&w.Pools[i]) {
			continue
		}
		for _, id := range w.Pools[i].Markets {
			m := &w.Markets[id]
			t := &w.Types[m.Type]
			out.Regions, out.Zones = append(out.Regions, m.Region), append(out.Zones, w.Zones[m.Zone])
			out.Categories, out.Architectures = append(out.Categories, t.Category), append(out.Architectures, t.Arch)
			if least == 0 || t.VCPU < least {
				least = t.VCPU
			}
			most, gpus = max(most, t.VCPU), gpus && t.Capacity.GPU > 0
			switch m.Provider {
			case catalog.AWS:
				aws = append(aws, m.Region)
			case catalog.Azure:
				azure = append(azure, m.Region)
			}
		}
	}
	for _, list := range []*[]string{&out.Regions, &out.Zones, &out.Categories, &out.Architectures} {
		*list = union(*list, nil)
	}
	low, high, one := int32(least), int32(most), int32(1)
	if most > 0 {
		out.MinVCPU, out.MaxVCPU = &low, &high
	}
	if gpus && most > 0 {
		out.MinGPUs = &one
	}
	return out, union(aws, nil), union(azure, nil)
}

// write returns the CapacityPools as a file.
func (p *poolPlan) write(r *result) ([]byte, error) {
	var b bytes.Buffer
	ours := r.row(portfolio)
	manifest.Comment(&b, "# ", "# ", fmt.Sprintf("%s: %s a month. %s: %s a month, %s.", r.Now.title(),
		figures.Dollars(r.Now.Month), ours.Title, figures.Dollars(ours.Month), figures.PercentChange(ours.Change, 1)))
	manifest.Comment(&b, "# ", "# ",
		"CapacityPools for the nodes of this cluster that none holds. In shadow Spotter decides and shows what it would do, and touches nothing: with mode active it would act.")
	for _, n := range p.notes {
		manifest.Comment(&b, "# Left out: ", "#  ", n+".")
	}
	for i, c := range p.pools {
		if i > 0 {
			b.WriteString("---\n")
		}
		if err := manifest.Write(&b, c); err != nil {
			return nil, fmt.Errorf("writing CapacityPool %s: %w", c.Name, err)
		}
	}
	return b.Bytes(), nil
}
