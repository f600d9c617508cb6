package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
)

// TestAutoModeLabels: what pods and nodes of EKS Auto Mode call the properties of instance
// types has the catalog's name, wherever it appears. Other labels of EKS stay.
func TestAutoModeLabels(t *testing.T) {
	const ours, theirs, other = "karpenter.k8s.aws/instance-family", "eks.amazonaws.com/instance-family", "eks.amazonaws.com/compute-type"
	need := func() policy.NodeTerm {
		return policy.NodeTerm{Labels: []policy.Requirement{{Key: theirs, Values: []string{"m7g"}}, {Key: other}}}
	}
	x := policy.Template{
		NodeSelector: []policy.Label{{Key: other, Value: "auto"}, {Key: theirs, Value: "m7g"}},
		Affinity:     []policy.NodeTerm{need()}, Preferred: []policy.PreferredNodeTerm{{Term: need()}},
	}
	catalogLabels(&x)
	if x.NodeSelector[0].Key != other || x.NodeSelector[1].Key != ours {
		t.Errorf("selected: %v", x.NodeSelector)
	}
	for _, term := range []policy.NodeTerm{x.Affinity[0], x.Preferred[0].Term} {
		if term.Labels[0].Key != ours || term.Labels[1].Key != other {
			t.Errorf("required: %v", term.Labels)
		}
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{theirs: "m7g", other: "auto", "a": "b", "zone": "z"}}}
	got := nodeLabels(n)
	if v, ok := policy.FindLabel(got, ours); !ok || v != "m7g" {
		t.Errorf("%s is not found in %v", ours, got)
	}
	if v, ok := policy.FindLabel(got, other); !ok || v != "auto" {
		t.Errorf("%s is not found in %v", other, got)
	}
}
