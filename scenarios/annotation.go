package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// What Kubernetes has no field for is an annotation of the workload, or of its
// pods; that of the pods counts when both have one.
const (
	ownPrefix = "spotter.dev/"

	annotationDuration   = ownPrefix + "duration"             // running time that one completion of a job needs
	annotationCheckpoint = ownPrefix + "checkpoint-interval"  // how often a job's work is made safe
	annotationDeadline   = ownPrefix + "deadline"             // after release
	annotationReplicas   = ownPrefix + "replica-schedule"     // see replicaSchedule
	annotationReleases   = ownPrefix + "releases"             // when instances of a job are created; see parseReleases
	annotationStartup    = ownPrefix + "startup-time"         // from binding to ready
	annotationPenalty    = ownPrefix + "outage-penalty"       // in hours of pod value per incident
	annotationCostPerH   = ownPrefix + "outage-cost-per-hour" // in dollars

	// Those of SpotVortex are read too, so that a cluster keeps its manifests.
	annotationVortexStartup  = "spotvortex.io/startup-time"
	annotationVortexPenalty  = "spotvortex.io/outage-penalty"
	annotationVortexTier     = "spotvortex.io/migration-tier"
	annotationVortexCritical = "spotvortex.io/critical"
	annotationVortexStrategy = "spotvortex.io/migration-strategy"

	annotationSafeToEvict  = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	annotationDoNotDisrupt = "karpenter.sh/do-not-disrupt"
)

var ownAnnotations = map[string]bool{
	annotationDuration: true, annotationCheckpoint: true, annotationDeadline: true, annotationReplicas: true,
	annotationReleases: true, annotationStartup: true, annotationPenalty: true, annotationCostPerH: true,
}

// Annotations are those of a workload, of what stands between, and of its
// pods, with a document to report faults in.
type annotations struct {
	doc    *document
	values map[string]string
	path   map[string][]string
	errs   []error
}

// add takes the annotations of the object at path. What is added later
// replaces what was there.
func (a *annotations) add(path []string, values map[string]string) {
	if a.values == nil {
		a.values, a.path = map[string]string{}, map[string][]string{}
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		at := append(slices.Clip(path), "metadata", "annotations", key)
		if strings.HasPrefix(key, ownPrefix) && !ownAnnotations[key] {
			a.errs = append(a.errs, a.doc.problem(at, "unknown annotation%s", suggestion(key, ownAnnotations)))
			continue
		}
		a.values[key], a.path[key] = values[key], at
	}
}

func (a *annotations) has(key string) bool { _, ok := a.values[key]; return ok }

func (a *annotations) fail(key, format string, args ...any) {
	a.errs = append(a.errs, a.doc.problem(a.path[key], format, args...))
}

// first returns the first of keys that is there.
func (a *annotations) first(keys ...string) (string, bool) {
	for _, k := range keys {
		if a.has(k) {
			return k, true
		}
	}
	return "", false
}

// duration reads a positive duration, or a plain number of the unit; 0 when
// the annotation is absent.
func (a *annotations) duration(unit time.Duration, keys ...string) time.Duration {
	key, ok := a.first(keys...)
	if !ok {
		return 0
	}
	d, err := parseDuration(a.values[key], unit)
	if err != nil {
		a.fail(key, "%v", err)
	} else if d <= 0 {
		a.fail(key, "%q is not above 0", a.values[key])
	}
	return d
}

func parseDuration(text string, unit time.Duration) (time.Duration, error) {
	if x, err := strconv.ParseFloat(text, 64); err == nil && x == x && x < 1e6 && x > -1e6 {
		return time.Duration(float64(x * float64(unit))), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 90s, 15m or 2h", text)
	}
	return d, nil
}

// penalty returns the hours of the outage penalty, below zero when absent.
func (a *annotations) penalty() float64 {
	key, ok := a.first(annotationPenalty, annotationVortexPenalty)
	if !ok {
		return -1
	}
	d, err := parseDuration(a.values[key], time.Hour)
	if err != nil || d < 0 {
		a.fail(key, "%q is not a number of hours such as 10 or 10h", a.values[key])
		return -1
	}
	return d.Hours()
}

// costPerHour returns dollars per hour, 0 when absent.
func (a *annotations) costPerHour() policy.Money {
	if !a.has(annotationCostPerH) {
		return 0
	}
	text := a.values[annotationCostPerH]
	x, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	if err != nil || !(x > 0 && x < 1e9) {
		a.fail(annotationCostPerH, "%q is not an amount of dollars above 0, such as 12.50", text)
		return 0
	}
	return policy.Dollars(x)
}

// tier returns SpotVortex's migration tier, below zero when absent.
func (a *annotations) tier() int8 {
	if !a.has(annotationVortexTier) {
		return -1
	}
	switch a.values[annotationVortexTier] {
	case "0":
		return 0
	case "1":
		return 1
	case "2":
		return 2
	}
	a.fail(annotationVortexTier, "%q is not 0, 1 or 2", a.values[annotationVortexTier])
	return -1
}

// flag reads true or false; false when absent.
func (a *annotations) flag(key string) bool {
	if !a.has(key) {
		return false
	}
	v, err := strconv.ParseBool(a.values[key])
	if err != nil {
		a.fail(key, "%q is not true or false", a.values[key])
	}
	return v
}

// schedule reads the replica schedule; nil when absent or wrong.
func (a *annotations) schedule() *replicaSchedule {
	if !a.has(annotationReplicas) {
		return nil
	}
	s, err := parseReplicaSchedule(a.values[annotationReplicas])
	if err != nil {
		a.fail(annotationReplicas, "%v", err)
		return nil
	}
	return s
}

// releases reads the instants at which a job is created; nil when absent or
// wrong.
func (a *annotations) releases() []release {
	if !a.has(annotationReleases) {
		return nil
	}
	all, err := parseReleases(a.values[annotationReleases])
	if err != nil {
		a.fail(annotationReleases, "%v", err)
		return nil
	}
	return all
}

// refuse reports annotations that say nothing for this kind of workload.
func (a *annotations) refuse(kind string, keys ...string) {
	for _, k := range keys {
		if a.has(k) {
			a.fail(k, "means nothing for a %s", kind)
		}
	}
}
