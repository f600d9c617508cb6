package kube

import (
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
)

// LabelJobSetReplicas is a label on the Jobs of a JobSet. Its value is the number of identical
// Jobs.
const LabelJobSetReplicas = "jobset.sigs.k8s.io/replicatedjob-replicas"

// Ranked reports whether a Job is Indexed and runs all of its completions, more than one, in
// parallel. Kubernetes treats such a Job as a gang (KEP-5547).
func Ranked(s *batchv1.JobSpec) bool {
	return s.CompletionMode != nil && *s.CompletionMode == batchv1.IndexedCompletion &&
		s.Parallelism != nil && s.Completions != nil && *s.Parallelism > 1 && *s.Parallelism == *s.Completions
}

// Gang returns the number of pods in the gang that the pods of j belong to: all pods of the
// identical Jobs if j belongs to a JobSet, otherwise all pods of j if [Ranked] reports true. It
// returns 0 if the pods of j work independently.
func Gang(j *batchv1.Job) int32 {
	pods := int32(1)
	if j.Spec.Parallelism != nil {
		pods = *j.Spec.Parallelism
	}
	if equals, err := strconv.ParseInt(j.Labels[LabelJobSetReplicas], 10, 16); err == nil && equals > 0 {
		return pods * int32(equals)
	}
	if Ranked(&j.Spec) {
		return pods
	}
	return 0
}
