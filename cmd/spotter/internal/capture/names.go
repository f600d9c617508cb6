package capture

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A names replaces names that people chose, each with the same replacement everywhere. Replacements
// are numbered in order of appearance, so that equal snapshots give equal files.
type names struct {
	on    bool
	given map[string]string // replacement by kind and name
	count map[string]int
}

func newNames(on bool) *names {
	return &names{on: on, given: map[string]string{}, count: map[string]int{}}
}

// of returns the replacement for a name of a kind.
func (n *names) of(kind, name string) string {
	if !n.on || name == "" {
		return name
	}
	key := kind + "\x00" + name
	if n.given[key] == "" {
		n.count[kind]++
		n.given[key] = fmt.Sprintf("%s-%d", kind, n.count[kind])
	}
	return n.given[key]
}

func (n *names) pool(name string) string { return n.of("pool", name) }

// namespace replaces the name of a namespace. It keeps those that every cluster has.
func (n *names) namespace(name string) string {
	if name == metav1.NamespaceDefault || strings.HasPrefix(name, "kube-") {
		return name
	}
	return n.of("namespace", name)
}

// qualified replaces both parts of "namespace/name".
func (n *names) qualified(name, kind string) string {
	if !n.on {
		return name
	}
	namespace, _ := split(name)
	return n.namespace(namespace) + "/" + n.of(kind, name)
}

// class replaces the name of a priority class. It keeps the words that determine the price of an
// outage.
func (n *names) class(name string) string {
	if !n.on || strings.HasPrefix(name, "system-") {
		return name
	}
	out := n.of("class", name)
	for _, word := range []string{"critical", "high", "low"} {
		if strings.Contains(strings.ToLower(name), word) {
			return out + "-" + word
		}
	}
	return out
}

// openValues are prefixes of keys whose values no person chose: the location of a node, its
// hardware, how it was bought.
var openValues = []string{
	"topology.kubernetes.io/", "failure-domain.beta.kubernetes.io/", "node.kubernetes.io/", "beta.kubernetes.io/",
	corev1.LabelArchStable, corev1.LabelOSStable, keyCapacity, "karpenter.k8s.aws/instance-", "nvidia.com/gpu", "CriticalAddonsOnly",
	"eks.amazonaws.com/capacityType", "eks.amazonaws.com/instance-", "eks.amazonaws.com/compute-type", "cloud.google.com/gke-spot", "cloud.google.com/gke-preemptible", "kubernetes.azure.com/scalesetpriority",
	"karpenter.azure.com/sku-", "karpenter.k8s.gcp/instance-", "cloud.google.com/machine-family", "cloud.google.com/gke-accelerator",
	"cloud.google.com/gke-provisioning",
}

// openKeys are prefixes of keys that are public although their values are not.
var openKeys = []string{
	"kubernetes.io/", "app.kubernetes.io/", "karpenter.sh/", "karpenter.k8s.aws/", "node-role.kubernetes.io/",
	"eks.amazonaws.com/", "cloud.google.com/", "kubernetes.azure.com/", "karpenter.azure.com/", "karpenter.k8s.gcp/",
	"k8s-app", "pod-template-hash", "controller-revision-hash", "pod-template-generation", labelWorkload,
}

func begins(s string, with []string) bool {
	return slices.ContainsFunc(with, func(p string) bool { return strings.HasPrefix(s, p) })
}

// key replaces the key of a label or taint.
func (n *names) key(k string) string {
	if !n.on || begins(k, openValues) || begins(k, openKeys) {
		return k
	}
	return n.of("label", k)
}

// plainValue matches values that do not identify anyone. Numbers must stay comparable.
var plainValue = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(true|false|[0-9]*)$`) })

// value replaces the value of a label or taint.
func (n *names) value(key, v string) string {
	switch {
	case !n.on, begins(key, openValues), plainValue().MatchString(v):
		return v
	case key == "karpenter.sh/nodepool":
		return n.pool(v)
	case key == "karpenter.k8s.aws/ec2nodeclass", key == "eks.amazonaws.com/nodeclass",
		key == "karpenter.k8s.gcp/gcenodeclass":
		return n.of("nodeclass", v)
	case key == corev1.LabelMetadataName:
		return n.namespace(v)
	}
	return n.of("value", v)
}

// hide replaces the names in the specification of a pool.
func (n *names) hide(s *v1alpha1.CapacityPoolSpec) {
	if !n.on {
		return
	}
	if k := s.Backend.Karpenter; k != nil {
		k.NodeClassName = n.of("nodeclass", k.NodeClassName)
		if k.NodeClassSelector != nil {
			n.hideSelector(k.NodeClassSelector)
		}
	}
	if g := s.Backend.AutoScalingGroups; g != nil {
		g.DiscoveryTags = n.hidden(g.DiscoveryTags)
	}
	if r := s.Backend.Rackspace; r != nil {
		r.Cloudspace, r.Org = n.of("cloudspace", r.Cloudspace), n.of("org", r.Org)
		r.CredentialsSecretRef = corev1.SecretReference{Name: "captured", Namespace: "spotter"}
	}
	s.Template.Labels = n.hidden(s.Template.Labels)
	for i := range s.Template.Taints {
		t := &s.Template.Taints[i]
		t.Value, t.Key, t.TimeAdded = n.value(t.Key, t.Value), n.key(t.Key), nil
	}
}

func (n *names) hidden(m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out[n.key(k)] = n.value(k, m[k])
	}
	return out
}

func (n *names) hideSelector(s *metav1.LabelSelector) {
	if !n.on {
		return
	}
	s.MatchLabels = n.hidden(s.MatchLabels)
	for i := range s.MatchExpressions {
		e := &s.MatchExpressions[i]
		values := make([]string, len(e.Values))
		for k, v := range e.Values {
			values[k] = n.value(e.Key, v)
		}
		e.Key, e.Values = n.key(e.Key), values
	}
}

// selector returns s as a label selector, or nil if it matches nothing.
func (n *names) selector(s *policy.Selector) *metav1.LabelSelector {
	if len(s.Requirements) == 0 && !s.Everything {
		return nil
	}
	out := &metav1.LabelSelector{}
	for i := range s.Requirements {
		q := &s.Requirements[i]
		key := n.key(q.Key)
		if _, twice := out.MatchLabels[key]; q.Op == policy.OpIn && len(q.Values) == 1 && !twice {
			if out.MatchLabels == nil {
				out.MatchLabels = map[string]string{}
			}
			out.MatchLabels[key] = n.value(q.Key, q.Values[0])
			continue
		}
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: key, Operator: metav1.LabelSelectorOperator(operators[q.Op]), Values: n.values(q),
		})
	}
	return out
}

func (n *names) values(q *policy.Requirement) (out []string) {
	for _, v := range q.Values {
		out = append(out, n.value(q.Key, v))
	}
	return out
}
