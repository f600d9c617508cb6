package scenarios

import (
	"maps"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy/kube"
)

// The annotations that only a simulation reads: a cluster has these things
// themselves.
const (
	// AnnotationReplicas of a service says how many replicas are wanted when; see
	// schedule.
	AnnotationReplicas = kube.OwnPrefix + "replica-schedule"

	// AnnotationLoad of a workload with an autoscaler, or of the autoscaler, says what load there
	// is when: cores of CPU for all pods together, or the value of another metric.
	AnnotationLoad = kube.OwnPrefix + "load-schedule"

	// AnnotationReleases of a job says when instances of it are created; see
	// parseReleases.
	AnnotationReleases = kube.OwnPrefix + "releases"

	// AnnotationRollouts of a Deployment says when new versions of it are rolled out, as
	// parseReleases reads it, none of them several times.
	AnnotationRollouts = kube.OwnPrefix + "rollouts"
)

var ownAnnotations = map[string]bool{
	kube.AnnotationDuration: true, kube.AnnotationCheckpoint: true, kube.AnnotationDeadline: true, AnnotationReplicas: true,
	AnnotationLoad: true, AnnotationReleases: true, AnnotationRollouts: true, kube.AnnotationStartup: true, kube.AnnotationPenalty: true, kube.AnnotationCostPerH: true,
	kube.AnnotationCPU: true,
}

// Annotations are those of a workload, of what stands between, and of its
// pods, with a document to report faults in.
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

// add takes the annotations of the object at path. What is added later
// replaces what was there.
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

// schedule reads the replica schedule; nil when absent or wrong.
func (a *annotations) schedule() *schedule {
	return parsed(a, AnnotationReplicas, parseReplicaSchedule)
}

// releases reads the instants at which a job is created; nil when absent or
// wrong.
func (a *annotations) releases() []release {
	return parsed(a, AnnotationReleases, parseReleases)
}

// rollouts reads the instants at which a new version is rolled out; nil when absent or wrong.
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

// parsed reads an annotation; the zero value when it is absent or wrong.
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

// refuse reports annotations that say nothing for this kind of workload.
func (a *annotations) refuse(kind string, keys ...string) {
	for _, k := range keys {
		if a.Has(k) {
			a.fail(k, "means nothing for a %s", kind)
		}
	}
}
