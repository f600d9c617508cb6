package cleanup

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/live/drain"
)

// TestTakeNode: a node becomes schedulable where the taint confirms the annotation. Every
// kubelet can write an annotation on its node, also on one that a person has cordoned.
func TestTakeNode(t *testing.T) {
	draining := corev1.Taint{Key: drain.TaintDraining, Effect: corev1.TaintEffectNoSchedule}
	theirs := corev1.Taint{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule}
	for name, x := range map[string]struct {
		annotations map[string]string
		taints      []corev1.Taint
		cordoned    bool // afterwards
		says        string
	}{
		"annotation and taint": {map[string]string{drain.AnnotationCordon: "share"}, []corev1.Taint{theirs, draining}, false,
			"a cordon; the taint spotter.dev/draining"},
		"annotation alone": {map[string]string{drain.AnnotationCordon: "share"}, []corev1.Taint{theirs}, true,
			"spotter.dev/cordon (the taint is missing, so the cordon stays)"},
		"annotation with an invented state": {map[string]string{drain.AnnotationCordon: "",
			drain.AnnotationDrain: `{"phase":"evicting","seal":"x"}`}, nil, true,
			"spotter.dev/cordon (the taint is missing, so the cordon stays); spotter.dev/drain"},
		"taint alone": {nil, []corev1.Taint{draining}, true, "the taint spotter.dev/draining"},
		"no mark":     {map[string]string{"owner": "ops"}, []corev1.Taint{theirs}, true, ""},
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: x.annotations},
			Spec: corev1.NodeSpec{Unschedulable: true, Taints: x.taints}}
		if got := strings.Join(takeNode(n), "; "); got != x.says {
			t.Errorf("%s: it takes %q, want %q", name, got, x.says)
		}
		if n.Spec.Unschedulable != x.cordoned {
			t.Errorf("%s: cordoned is %t, want %t", name, n.Spec.Unschedulable, x.cordoned)
		}
		if again := takeNode(n); len(again) > 0 {
			t.Errorf("%s: the second time it takes %q", name, again)
		}
	}
}
