// Package rightstest judges in tests what the rights of package rights allow: as roles of the API
// server, as policies of IAM, and as admission policies.
package rightstest

import (
	"bytes"
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spotter-dev/spotter/live/rights"
)

// Parts are all parts of a controller.
var Parts = []rights.Part{rights.Core, rights.LeaderElection, rights.SecureMetrics, rights.Karpenter, rights.Groups,
	rights.Rackspace, rights.Prices, rights.Queue, rights.Bucket, rights.Prometheus}

// Admission returns the policies of a manifest, each followed by its binding.
func Admission(t testing.TB, manifest []byte) []client.Object {
	t.Helper()
	var all []client.Object
	for i, text := range bytes.Split(manifest, []byte("\n---\n")) {
		var o client.Object = &admissionv1.ValidatingAdmissionPolicy{}
		if i%2 == 1 {
			o = &admissionv1.ValidatingAdmissionPolicyBinding{}
		}
		if err := yaml.UnmarshalStrict(text, o); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}

// Actions returns the actions of IAM that a controller needs, ascending.
func Actions(s rights.Setup) []string {
	var all []string
	for _, p := range rights.AWS() {
		if s.Needs(&rights.Right{Part: p.Part, Active: p.Active}) {
			all = append(all, p.Action)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Rules returns the rules of a role that grant what a controller needs in a scope,
// each resource once for the same names, in an order that does not change.
func Rules(s rights.Setup, in rights.Scope) []rbacv1.PolicyRule {
	type object struct{ group, resource, names string }
	verbs := map[object]map[string]bool{}
	for _, r := range rights.Kubernetes() {
		if r.Scope != in || !s.Needs(&r) {
			continue
		}
		for _, resource := range r.Resources {
			o := object{r.Group, resource, strings.Join(r.Names, " ")}
			if verbs[o] == nil {
				verbs[o] = map[string]bool{}
			}
			for _, v := range r.Verbs {
				verbs[o][v] = true
			}
		}
	}
	type grant struct{ group, names, verbs string }
	grants := map[grant][]string{}
	for o, v := range verbs {
		g := grant{o.group, o.names, strings.Join(slices.Sorted(maps.Keys(v)), " ")}
		grants[g] = append(grants[g], o.resource)
	}
	var rules []rbacv1.PolicyRule
	for g, resources := range grants {
		slices.Sort(resources)
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{g.group}, Resources: resources, ResourceNames: strings.Fields(g.names), Verbs: strings.Fields(g.verbs),
		})
	}
	slices.SortFunc(rules, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(cmp.Compare(a.APIGroups[0], b.APIGroups[0]), slices.Compare(a.Resources, b.Resources),
			slices.Compare(a.ResourceNames, b.ResourceNames), slices.Compare(a.Verbs, b.Verbs))
	})
	return rules
}

// A Request is what IAM judges. Keys are the condition keys that it carries.
type Request struct {
	Action, Resource string
	Keys             map[string][]string
}

// Allows reports whether a policy allows a request, by the operators that policies of package
// rights use.
func Allows(p rights.Policy, r Request) bool {
	return slices.ContainsFunc(p.Statement, func(s rights.Statement) bool {
		return slices.Contains(s.Action, r.Action) && matchesAny(s.Resource, r.Resource) && holds(s.Condition, r)
	})
}

// holds reports whether all conditions of a statement do.
func holds(conditions map[string]map[string][]string, r Request) bool {
	for operator, keys := range conditions {
		for key, values := range keys {
			has := r.Keys[key]
			if len(has) == 0 && !strings.HasPrefix(operator, "ForAllValues:") {
				return false
			}
			for _, x := range has {
				if strings.HasSuffix(operator, "StringLike") && !matchesAny(values, x) ||
					operator == "StringEquals" && !slices.Contains(values, x) {
					return false
				}
			}
		}
	}
	return true
}

// matchesAny reports whether text matches one of the patterns, in which * matches any text.
func matchesAny(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(p), `\*`, ".*") + "$").MatchString(text)
	})
}
