package scenarios

import (
	"maps"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy/kube"
)

// Annotations that only a simulation reads. In a cluster, users and controllers provide this
// information.
const (
	// AnnotationReplicas is the schedule of the desired replicas of a service; see
	// parseReplicaSchedule.
	AnnotationReplicas = kube.OwnPrefix + "replica-schedule"

	// AnnotationLoad is the load over time of a workload with an autoscaler, on the workload or on
	// the autoscaler: CPU cores for all pods together, or the value of another metric.
	AnnotationLoad = kube.OwnPrefix + "load-schedule"

	// AnnotationReleases lists the times at which instances of a job are created; see
	// parseReleases.
	AnnotationReleases = kube.OwnPrefix + "releases"

	// AnnotationRollouts lists the times at which new versions of a Deployment are rolled out, in
	// the format of parseReleases without counts.
	AnnotationRollouts = kube.OwnPrefix + "rollouts"
)

var ownAnnotations = map[string]bool{
	kube.AnnotationDuration: true, kube.AnnotationCheckpoint: true, kube.AnnotationDeadline: true, AnnotationReplicas: true,
	AnnotationLoad: true, AnnotationReleases: true, AnnotationRollouts: true, kube.AnnotationStartup: true, kube.AnnotationPenalty: true, kube.AnnotationCostPerH: true,
	kube.AnnotationCPU: true,
}

// annotations are the annotations of a workload: its own, those of its pod template and those of
// objects between the two. Errors refer to the document.
type annotations struct {
	kube.Annotations
	doc  *document
	path map[string][]string
	errs []error
}

func newAnnotations(doc *document) *annotations {
	a := &annotations{doc: doc, path: map[string][]string{}}
	a.Values, a.Fail = map[string]string{}, a.fail
	return a
}

// add merges the annotations of the object at path. They replace earlier ones with the same key.
func (a *annotations) add(path []string, values map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		at := append(slices.Clip(path), "metadata", "annotations", key)
		if strings.HasPrefix(key, kube.OwnPrefix) && !ownAnnotations[key] {
			a.errs = append(a.errs, a.doc.problem(at, "unknown annotation%s", suggestion(key, ownAnnotations)))
			continue
		}
		a.Values[key], a.path[key] = values[key], at
	}
}

func (a *annotations) fail(key, format string, args ...any) {
	a.errs = append(a.errs, a.doc.problem(a.path[key], format, args...))
}

// schedule returns the replica schedule, or nil if the annotation is absent or invalid.
func (a *annotations) schedule() *schedule {
	return parsed(a, AnnotationReplicas, parseReplicaSchedule)
}

// releases returns the times at which instances of a job are created, or nil if the annotation is
// absent or invalid.
func (a *annotations) releases() []release {
	return parsed(a, AnnotationReleases, parseReleases)
}

// rollouts returns the times at which new versions are rolled out, or nil if the annotation is
// absent or invalid.
func (a *annotations) rollouts() []release {
	all := parsed(a, AnnotationRollouts, parseReleases)
	for _, r := range all {
		if r.count > 1 {
			a.fail(AnnotationRollouts, "%v: a version is rolled out once", r.after)
			return nil
		}
	}
	return all
}

// parsed returns the parsed value of an annotation, or the zero value if it is absent or invalid.
func parsed[T any](a *annotations, key string, parse func(string) (T, error)) (v T) {
	if !a.Has(key) {
		return v
	}
	read, err := parse(a.Values[key])
	if err != nil {
		a.fail(key, "%v", err)
		return v
	}
	return read
}

// refuse reports an error for each of keys that is set, since it has no meaning for this kind of
// workload.
func (a *annotations) refuse(kind string, keys ...string) {
	for _, k := range keys {
		if a.Has(k) {
			a.fail(k, "means nothing for a %s", kind)
		}
	}
}
