package kube

import (
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
)

// LabelJobSetReplicas is on the jobs of a JobSet: how many equal ones there are.
const LabelJobSetReplicas = "jobset.sigs.k8s.io/replicatedjob-replicas"

// Ranked reports whether the pods of a job have a rank each and run at once, more
// than one: Kubernetes takes such a job for a gang (KEP-5547).
func Ranked(s *batchv1.JobSpec) bool {
	return s.CompletionMode != nil && *s.CompletionMode == batchv1.IndexedCompletion &&
		s.Parallelism != nil && s.Completions != nil && *s.Parallelism > 1 && *s.Parallelism == *s.Completions
}

// Gang returns how many pods work only together with those of a job, its own
// counted: all of its pods where these are ranked, and those of its equals where a
// JobSet has made it. 0 is a job whose pods work each on their own.
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
