package kube

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// OwnPrefix is the prefix of Spotter's annotations.
const OwnPrefix = "spotter.dev/"

// Spotter's annotations hold settings that have no Kubernetes field. They apply to a workload or to
// its pods. If both have an annotation, the one on the pods takes precedence.
const (
	AnnotationDuration   = OwnPrefix + "duration"             // running time that one completion of a Job needs
	AnnotationCheckpoint = OwnPrefix + "checkpoint-interval"  // time between two checkpoints of a Job
	AnnotationDeadline   = OwnPrefix + "deadline"             // time after release by which the Job must finish
	AnnotationStartup    = OwnPrefix + "startup-time"         // time from binding to ready
	AnnotationPenalty    = OwnPrefix + "outage-penalty"       // hours of pod value, per incident
	AnnotationCostPerH   = OwnPrefix + "outage-cost-per-hour" // dollars per hour
	AnnotationCPU        = OwnPrefix + "cpu-utilisation"      // mean CPU use as a fraction of the CPU request

	// The annotations of SpotVortex are read too, so that its users can keep their manifests.
	annotationVortexStartup  = "spotvortex.io/startup-time"
	annotationVortexPenalty  = "spotvortex.io/outage-penalty"
	annotationVortexTier     = "spotvortex.io/migration-tier"
	annotationVortexCritical = "spotvortex.io/critical"
	annotationVortexStrategy = "spotvortex.io/migration-strategy"

	annotationSafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict"

	// AnnotationDoNotDisrupt is an annotation of Karpenter. Its value is "true" or, on a pod, the
	// time since the pod's start during which it is protected.
	AnnotationDoNotDisrupt = "karpenter.sh/do-not-disrupt"

	// LabelPodGroup and AnnotationPodGroupTotal belong to Kueue: the name of the group of plain
	// pods that a pod belongs to, and the number of pods in that group.
	LabelPodGroup           = "kueue.x-k8s.io/pod-group-name"
	AnnotationPodGroupTotal = "kueue.x-k8s.io/pod-group-total-count"

	// AnnotationDeletionCost is an annotation that the ReplicaSet controller reads.
	AnnotationDeletionCost = "controller.kubernetes.io/pod-deletion-cost"
)

// Annotations are the annotations of a workload merged with those of its pods.
type Annotations struct {
	Values map[string]string

	// Fail is called for each value that cannot be parsed; it may be nil. Such an annotation counts
	// as absent.
	Fail func(key, format string, args ...any)
}

// Has reports whether the annotation key is present.
func (a *Annotations) Has(key string) bool { _, ok := a.Values[key]; return ok }

func (a *Annotations) fail(key, format string, args ...any) {
	if a.Fail != nil {
		a.Fail(key, format, args...)
	}
}

// first returns the first of keys that is present.
func (a *Annotations) first(keys ...string) (string, bool) {
	for _, k := range keys {
		if a.Has(k) {
			return k, true
		}
	}
	return "", false
}

// Duration reads a positive duration, or a plain number in multiples of unit, from the first of
// keys that is present. It returns 0 if all keys are absent or the value is invalid.
func (a *Annotations) Duration(unit time.Duration, keys ...string) time.Duration {
	key, ok := a.first(keys...)
	if !ok {
		return 0
	}
	d, err := parseDuration(a.Values[key], unit)
	if err != nil {
		a.fail(key, "%v", err)
	} else if d <= 0 {
		a.fail(key, "%q is not above 0", a.Values[key])
	}
	return max(0, d)
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

// penalty returns the outage penalty in hours. It is negative if the annotation is absent or
// invalid.
func (a *Annotations) penalty() float64 {
	key, ok := a.first(AnnotationPenalty, annotationVortexPenalty)
	if !ok {
		return -1
	}
	d, err := parseDuration(a.Values[key], time.Hour)
	if err != nil || d < 0 {
		a.fail(key, "%q is not a number of hours such as 10 or 10h", a.Values[key])
		return -1
	}
	return d.Hours()
}

// costPerHour returns the cost of an outage per hour, or 0 if the annotation is absent or invalid.
func (a *Annotations) costPerHour() policy.Money {
	if !a.Has(AnnotationCostPerH) {
		return 0
	}
	text := a.Values[AnnotationCostPerH]
	x, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
	if err != nil || !(x > 0 && x < 1e9) {
		a.fail(AnnotationCostPerH, "%q is not an amount of dollars above 0, such as 12.50", text)
		return 0
	}
	return policy.Dollars(x)
}

// CPUUtilisation is the assumed fraction of its CPU request that a pod uses if no annotation states
// one: 69% of the requested CPU is not used, as Cast AI measured in tens of thousands of clusters
// ("State of Kubernetes Optimization", 2026).
const CPUUtilisation = 0.31

// CPUUtilisationMax is the largest accepted fraction of its CPU request that a pod uses.
const CPUUtilisationMax = 100

// CPUUtilisation returns the fraction of its CPU request that a pod uses on average. It is negative
// if the annotation is absent or invalid.
func (a *Annotations) CPUUtilisation() float64 {
	if !a.Has(AnnotationCPU) {
		return -1
	}
	text := a.Values[AnnotationCPU]
	number, percent := strings.CutSuffix(text, "%")
	x, err := strconv.ParseFloat(number, 64)
	if percent {
		x /= 100
	}
	if err != nil || !(x > 0 && x <= CPUUtilisationMax) {
		a.fail(AnnotationCPU, "%q is not a part of the request above 0, such as 0.4 or 40%%", text)
		return -1
	}
	return x
}

// CPUUse returns the mean CPU use, in milli-CPU, of a pod of t. The use is the fraction stated of
// the pod's CPU request, or the fraction assumed if stated is negative.
func CPUUse(t *policy.Template, stated, assumed float64) int64 {
	if stated < 0 {
		stated = assumed
	}
	return int64(math.Round(float64(t.Requests.CPU) * stated))
}

// tier returns SpotVortex's migration tier. It is negative if the annotation is absent or invalid.
func (a *Annotations) tier() int8 {
	if !a.Has(annotationVortexTier) {
		return -1
	}
	switch a.Values[annotationVortexTier] {
	case "0":
		return 0
	case "1":
		return 1
	case "2":
		return 2
	}
	a.fail(annotationVortexTier, "%q is not 0, 1 or 2", a.Values[annotationVortexTier])
	return -1
}

// Flag returns the boolean value of the annotation key. It returns false if the annotation is
// absent or invalid.
func (a *Annotations) Flag(key string) bool {
	if !a.Has(key) {
		return false
	}
	v, err := strconv.ParseBool(a.Values[key])
	if err != nil {
		a.fail(key, "%q is not true or false", a.Values[key])
	}
	return v
}

// DoNotDisrupt parses the value of [AnnotationDoNotDisrupt] on a pod as Karpenter does
// (IsDoNotDisruptActive in pkg/utils/pod). It reports whether the value protects the pod, and for
// how long from the pod's start; 0 means without end. A value that Karpenter ignores is an error.
func DoNotDisrupt(value string) (protects bool, lasts time.Duration, err error) {
	switch value {
	case "true":
		return true, 0, nil
	case "false", "":
		return false, 0, nil
	}
	if lasts, err = time.ParseDuration(value); err != nil || lasts <= 0 {
		return false, 0, fmt.Errorf("%q is neither true nor a duration above 0 such as 30m: Karpenter ignores it", value)
	}
	return true, lasts, nil
}

// Fill sets the fields of t that annotations configure.
func (a *Annotations) Fill(t *policy.Template) {
	t.Startup = a.Duration(time.Second, AnnotationStartup, annotationVortexStartup)
	t.OutagePenalty = a.penalty()
	t.OutageCost = a.costPerHour()
	t.MigrationTier = a.tier()
	t.Critical = a.Flag(annotationVortexCritical)
	t.GracefulOnly = a.Values[annotationVortexStrategy] == "graceful-only"
	t.SafeToEvict = a.Flag(annotationSafeToEvict)
	t.NotSafeToEvict = a.Has(annotationSafeToEvict) && !t.SafeToEvict
}
