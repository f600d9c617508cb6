package kube

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
)

const (
	fieldRequired  = "requiredDuringSchedulingIgnoredDuringExecution"
	fieldPreferred = "preferredDuringSchedulingIgnoredDuringExecution"
)

func (r *Reader) affinity(t *policy.Template, a *corev1.Affinity) {
	if a == nil {
		return
	}
	at := []string{"spec", "affinity"}
	if n := a.NodeAffinity; n != nil {
		r.nodeAffinity(t, n, join(at, "nodeAffinity"))
	}
	if p := a.PodAffinity; p != nil {
		t.PodAffinity = r.podTerms(t, join(at, "podAffinity"),
			p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		t.PodAntiAffinity = r.podTerms(t, join(at, "podAntiAffinity"),
			p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func (r *Reader) nodeAffinity(t *policy.Template, n *corev1.NodeAffinity, at []string) {
	if req := n.RequiredDuringSchedulingIgnoredDuringExecution; req != nil {
		at := join(at, fieldRequired, "nodeSelectorTerms")
		for i := range req.NodeSelectorTerms {
			term := r.nodeTerm(&req.NodeSelectorTerms[i], join(at, Index(i)))
			if len(term.Labels)+len(term.Fields) > 0 { // an empty term matches no node
				t.Affinity = append(t.Affinity, term)
			}
		}
		if len(t.Affinity) == 0 {
			r.Fail.tell(at, "no term matches any node")
		}
	}
	preferred := join(at, fieldPreferred)
	for i := range n.PreferredDuringSchedulingIgnoredDuringExecution {
		p := &n.PreferredDuringSchedulingIgnoredDuringExecution[i]
		path := join(preferred, Index(i))
		t.Preferred = append(t.Preferred, policy.PreferredNodeTerm{
			Weight: r.weight(p.Weight, path),
			Term:   r.nodeTerm(&p.Preference, join(path, "preference")),
		})
	}
}

func (r *Reader) weight(w int32, at []string) int32 {
	if w < 1 || w > 100 {
		r.Fail.tell(join(at, "weight"), "%d is not from 1 to 100", w)
	}
	return w
}

func (r *Reader) nodeTerm(t *corev1.NodeSelectorTerm, at []string) policy.NodeTerm {
	return policy.NodeTerm{
		Labels: r.nodeRequirements(t.MatchExpressions, join(at, "matchExpressions")),
		Fields: r.nodeRequirements(t.MatchFields, join(at, "matchFields")),
	}
}

func (r *Reader) nodeRequirements(in []corev1.NodeSelectorRequirement, at []string) []policy.Requirement {
	var out []policy.Requirement
	for i, e := range in {
		op, ok := operators[string(e.Operator)]
		if !ok {
			r.Fail.tell(join(at, Index(i), "operator"),
				"%q is not an operator; known are In, NotIn, Exists, DoesNotExist, Gt, Lt", e.Operator)
			continue
		}
		if op == policy.OpGt || op == policy.OpLt {
			if len(e.Values) != 1 {
				r.Fail.tell(join(at, Index(i), "values"), "%s takes one integer, got %d values", e.Operator, len(e.Values))
			} else if _, err := strconv.ParseInt(e.Values[0], 10, 64); err != nil {
				r.Fail.tell(join(at, Index(i), "values"), "%q is not an integer", e.Values[0])
			}
		}
		out = append(out, policy.Requirement{Key: e.Key, Op: op, Values: e.Values})
	}
	return out
}

func (r *Reader) podTerms(t *policy.Template, at []string, required []corev1.PodAffinityTerm,
	preferred []corev1.WeightedPodAffinityTerm) []policy.PodTerm {
	var out []policy.PodTerm
	for i := range required {
		out = append(out, r.podTerm(t, &required[i], 0, join(at, fieldRequired, Index(i))))
	}
	for i := range preferred {
		path := join(at, fieldPreferred, Index(i))
		w := r.weight(preferred[i].Weight, path)
		out = append(out, r.podTerm(t, &preferred[i].PodAffinityTerm, w, join(path, "podAffinityTerm")))
	}
	return out
}

func (r *Reader) podTerm(t *policy.Template, x *corev1.PodAffinityTerm, weight int32, at []string) policy.PodTerm {
	if x.TopologyKey == "" {
		r.Fail.tell(join(at, "topologyKey"), "must be set")
	}
	out := policy.PodTerm{Weight: weight, TopologyKey: x.TopologyKey,
		Namespaces: slices.Sorted(slices.Values(x.Namespaces))}
	out.Selector = r.selector(x.LabelSelector, join(at, "labelSelector"))
	addKeys(&out.Selector, t.Labels, x.MatchLabelKeys, policy.OpIn)
	addKeys(&out.Selector, t.Labels, x.MismatchLabelKeys, policy.OpNotIn)
	if n := x.NamespaceSelector; n != nil {
		r.namespaces(&out, n, join(at, "namespaceSelector"))
	}
	return out
}

// namespaces adds the namespaces that n selects to out.
func (r *Reader) namespaces(out *policy.PodTerm, n *metav1.LabelSelector, at []string) {
	s := r.selector(n, at)
	out.AllSpaces = s.Everything
	if s.Everything {
		return
	}
	names := namedNamespaces
	if r.Namespaces != nil {
		names = r.Namespaces
	}
	selected, err := names(n)
	if err != nil {
		r.Fail.tell(at, "%v", err)
	}
	out.Namespaces = append(out.Namespaces, selected...)
	if len(out.Namespaces) == 0 {
		// A selector that matches no namespace matches no pod. Without this, an empty list would
		// mean the pod's own namespace.
		out.Selector = policy.Selector{}
	}
}

// namedNamespaces returns the namespaces that n selects by name. It is the default of
// Reader.Namespaces.
func namedNamespaces(n *metav1.LabelSelector) ([]string, error) {
	s, err := Selector(n)
	if err != nil {
		return nil, nil //nolint:nilerr // told already
	}
	var names []string
	for _, q := range s.Requirements {
		if q.Key != "kubernetes.io/metadata.name" || q.Op != policy.OpIn {
			return names, fmt.Errorf("only {} and kubernetes.io/metadata.name are known here")
		}
		names = append(names, q.Values...)
	}
	return names, nil
}

func (r *Reader) selector(s *metav1.LabelSelector, at []string) policy.Selector {
	out, err := Selector(s)
	if err != nil {
		r.Fail.tell(at, "%v", err)
	}
	return out
}
