package capture

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// operators are the names of selector operators, indexed by the operator of a requirement.
var operators = [...]string{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"}

const (
	keyCapacity = "karpenter.sh/capacity-type"
	keyHost     = corev1.LabelHostname
)

// nodeSelector returns the node selector of a template. A requirement for Spot or on-demand by the
// label of another system is replaced by Karpenter's label, which all nodes of a run have. A
// required node name is left out: no run has that node.
func (c *podWriter) nodeSelector(t *policy.Template) map[string]string {
	var out map[string]string
	for _, l := range t.NodeSelector {
		if l.Key == keyHost {
			c.assume("the pods of %s, which are bound to one node by name, may run on any", c.names.qualified(t.Name, "app"))
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		if capacity, ok := c.capacity(l.Key, l.Value); ok {
			out[keyCapacity] = capacity
			continue
		}
		out[c.names.key(l.Key)] = c.names.value(l.Key, l.Value)
	}
	return out
}

// capacity returns the capacity type that a label of another system means.
func (c *source) capacity(key, value string) (string, bool) {
	t, ok := c.o.Capacity.Resolve(map[string]string{key: value})
	return t.String(), ok
}

func (c *podWriter) affinity(t *policy.Template) *corev1.Affinity {
	var a corev1.Affinity
	if len(t.Affinity)+len(t.Preferred) > 0 {
		a.NodeAffinity = &corev1.NodeAffinity{}
	}
	for i := range t.Affinity {
		n := a.NodeAffinity
		if n.RequiredDuringSchedulingIgnoredDuringExecution == nil {
			n.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{}
		}
		terms := &n.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		*terms = append(*terms, c.term(&t.Affinity[i]))
	}
	for i := range t.Preferred {
		x := &t.Preferred[i]
		a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = append(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.PreferredSchedulingTerm{Weight: x.Weight, Preference: c.term(&x.Term)})
	}
	if required, preferred := c.podTerms(t.PodAffinity); len(required)+len(preferred) > 0 {
		a.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required,
			PreferredDuringSchedulingIgnoredDuringExecution: preferred}
	}
	if required, preferred := c.podTerms(t.PodAntiAffinity); len(required)+len(preferred) > 0 {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required,
			PreferredDuringSchedulingIgnoredDuringExecution: preferred}
	}
	if a == (corev1.Affinity{}) {
		return nil
	}
	return &a
}

func (c *podWriter) term(t *policy.NodeTerm) (out corev1.NodeSelectorTerm) {
	for i := range t.Labels {
		out.MatchExpressions = append(out.MatchExpressions, c.nodeRequirement(&t.Labels[i]))
	}
	for i := range t.Fields {
		q := &t.Fields[i]
		r := corev1.NodeSelectorRequirement{Key: q.Key, Operator: corev1.NodeSelectorOperator(operators[q.Op])}
		for _, v := range q.Values {
			r.Values = append(r.Values, c.names.of("node", v))
		}
		out.MatchFields = append(out.MatchFields, r)
	}
	return out
}

func (c *podWriter) nodeRequirement(q *policy.Requirement) corev1.NodeSelectorRequirement {
	r := corev1.NodeSelectorRequirement{Key: c.names.key(q.Key), Operator: corev1.NodeSelectorOperator(operators[q.Op]),
		Values: c.names.values(q)}
	if q.Op != policy.OpIn && q.Op != policy.OpNotIn || len(q.Values) == 0 {
		return r
	}
	var translated []string
	for _, v := range q.Values {
		capacity, ok := c.capacity(q.Key, v)
		if !ok {
			return r
		}
		translated = append(translated, capacity)
	}
	r.Key, r.Values = keyCapacity, translated
	return r
}

func (c *podWriter) podTerms(terms []policy.PodTerm) (required []corev1.PodAffinityTerm,
	preferred []corev1.WeightedPodAffinityTerm) {
	for i := range terms {
		x := &terms[i]
		y := corev1.PodAffinityTerm{TopologyKey: c.names.key(x.TopologyKey), LabelSelector: c.names.selector(&x.Selector)}
		for _, n := range x.Namespaces {
			y.Namespaces = append(y.Namespaces, c.names.namespace(n))
		}
		if x.AllSpaces {
			y.NamespaceSelector = &metav1.LabelSelector{}
		}
		if x.Weight == 0 {
			required = append(required, y)
		} else {
			preferred = append(preferred, corev1.WeightedPodAffinityTerm{Weight: x.Weight, PodAffinityTerm: y})
		}
	}
	return required, preferred
}

// asked returns the node labels that the pods of a template require.
func asked(t *policy.Template) (keys []string) {
	for _, l := range t.NodeSelector {
		keys = append(keys, l.Key)
	}
	for i := range t.Affinity {
		for _, q := range t.Affinity[i].Labels {
			if q.Op == policy.OpIn || q.Op == policy.OpExists {
				keys = append(keys, q.Key)
			}
		}
	}
	return keys
}

// carried reports whether every node of a run has a label without a manifest that states it.
func (c *source) carried(key string) bool {
	switch key {
	case keyCapacity, "karpenter.sh/nodepool", corev1.LabelArchStable, corev1.LabelOSStable, corev1.LabelInstanceTypeStable,
		corev1.LabelTopologyRegion, corev1.LabelTopologyZone, keyHost:
		return true
	}
	if _, ok := c.capacity(key, "spot"); ok {
		return true
	}
	return strings.HasPrefix(key, "karpenter.k8s.aws/instance-") && slices.Contains(catalog.Providers(), c.o.Provider)
}

// carries reports whether key is a label of EKS Auto Mode for instance types and the nodes of the
// pool have such labels.
func (p *pool) carries(key string) bool {
	return p.own != nil && p.own.class != nil && p.own.class.Kind == "NodeClass" &&
		strings.HasPrefix(key, "eks.amazonaws.com/instance-")
}

// labelPools adds to pools the labels that pods require and that all nodes of the pool have.
func (c *poolSet) labelPools() {
	for _, key := range c.keys() {
		if c.carried(key) {
			continue
		}
		for _, p := range c.all {
			if v, ok := c.common(p, key); ok {
				p.labels[key] = v
			}
		}
	}
}

// common returns the value of a label that all nodes of a pool have and that its manifest does not
// state.
func (c *poolSet) common(p *pool, key string) (string, bool) {
	if _, stated := p.manifest.Spec.Template.Labels[key]; stated || len(p.nodes) == 0 || p.carries(key) ||
		p.requires(key) {
		return "", false
	}
	first, has := c.s.Nodes[p.nodes[0]].Label(key)
	for _, id := range p.nodes {
		if v, ok := c.s.Nodes[id].Label(key); !ok || v != first {
			return "", false
		}
	}
	if p.labels == nil {
		p.labels = map[string]string{}
	}
	return first, has
}

// requires reports whether the pool is a NodePool whose requirements name a label. Its nodes then
// have the values that their pods select.
func (p *pool) requires(key string) bool { return p.own != nil && slices.Contains(p.own.required, key) }

// checkSelectors reports the labels that pods require and that no node of a run will have.
func (c *poolSet) checkSelectors() {
	for _, key := range c.keys() {
		known := c.carried(key) || slices.ContainsFunc(c.all, func(p *pool) bool {
			_, stated := p.manifest.Spec.Template.Labels[key]
			_, found := p.labels[key]
			return stated || found || p.carries(key) || p.requires(key)
		})
		if known {
			continue
		}
		c.out.Left = append(c.out.Left,
			"the label "+c.names.key(key)+" of nodes, which pods select and which not all nodes of any pool have: these pods stay pending")
	}
}
