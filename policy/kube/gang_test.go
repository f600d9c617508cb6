package kube_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/spotter-dev/spotter/policy/kube"
)

// Pods with ranks that all run at once are a gang, and so are the equal jobs of a
// JobSet together.
func TestGang(t *testing.T) {
	indexed, plain := batchv1.IndexedCompletion, batchv1.NonIndexedCompletion
	for _, c := range []struct {
		mode                     *batchv1.CompletionMode
		parallelism, completions int32
		equals                   string
		want                     int32
	}{
		{&indexed, 16, 16, "", 16}, {&indexed, 4, 16, "", 0}, {&indexed, 1, 1, "", 0}, {&plain, 16, 16, "", 0}, {nil, 16, 16, "", 0},
		{&indexed, 8, 8, "2", 16}, {nil, 1, 1, "4", 4}, {&indexed, 8, 8, "no number", 8},
	} {
		j := &batchv1.Job{Spec: batchv1.JobSpec{CompletionMode: c.mode, Parallelism: &c.parallelism, Completions: &c.completions}}
		if c.equals != "" {
			j.Labels = map[string]string{kube.LabelJobSetReplicas: c.equals}
		}
		if got := kube.Gang(j); got != c.want {
			t.Errorf("%d of %d, equals %q: a gang of %d, want %d", c.parallelism, c.completions, c.equals, got, c.want)
		}
	}
}
