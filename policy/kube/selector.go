package kube

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
)

var operators = map[string]policy.Operator{
	"In": policy.OpIn, "NotIn": policy.OpNotIn, "Exists": policy.OpExists, "DoesNotExist": policy.OpDoesNotExist,
	"Gt": policy.OpGt, "Lt": policy.OpLt,
}

// Selector returns s as requirements, ascending by key. A nil selector matches nothing; an empty
// one matches everything.
func Selector(s *metav1.LabelSelector) (policy.Selector, error) {
	if s == nil {
		return policy.Selector{}, nil
	}
	var out policy.Selector
	for _, l := range Labels(s.MatchLabels) {
		out.Requirements = append(out.Requirements, policy.Requirement{Key: l.Key, Op: policy.OpIn,
			Values: []string{l.Value}})
	}
	for _, e := range s.MatchExpressions {
		op, ok := operators[string(e.Operator)]
		if !ok || op > policy.OpDoesNotExist {
			return out, fmt.Errorf("%q is not an operator; known are In, NotIn, Exists, DoesNotExist", e.Operator)
		}
		if sets := op == policy.OpIn || op == policy.OpNotIn; sets == (len(e.Values) == 0) {
			return out, fmt.Errorf("%s of %s with %d values", e.Operator, e.Key, len(e.Values))
		}
		out.Requirements = append(out.Requirements, policy.Requirement{Key: e.Key, Op: op, Values: e.Values})
	}
	slices.SortStableFunc(out.Requirements, func(a, b policy.Requirement) int { return cmp.Compare(a.Key, b.Key) })
	out.Everything = len(out.Requirements) == 0
	return out, nil
}

// addKeys adds a requirement on the value in labels for each of keys that labels contains.
func addKeys(s *policy.Selector, labels []policy.Label, keys []string, op policy.Operator) {
	for _, k := range keys {
		if v, ok := policy.FindLabel(labels, k); ok {
			s.Requirements = append(s.Requirements, policy.Requirement{Key: k, Op: op, Values: []string{v}})
			s.Everything = false
		}
	}
}
