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

// What Kubernetes has no field for is an annotation of the workload, or of its
// pods; that of the pods counts when both have one.
const (
	AnnotationDuration   = OwnPrefix + "duration"             // running time that one completion of a job needs
	AnnotationCheckpoint = OwnPrefix + "checkpoint-interval"  // how often a job's work is made safe
	AnnotationDeadline   = OwnPrefix + "deadline"             // after release
	AnnotationStartup    = OwnPrefix + "startup-time"         // from binding to ready
	AnnotationPenalty    = OwnPrefix + "outage-penalty"       // in hours of pod value per incident
	AnnotationCostPerH   = OwnPrefix + "outage-cost-per-hour" // in dollars
	AnnotationCPU        = OwnPrefix + "cpu-utilisation"      // CPU used on average, as a part of that requested

	// Those of SpotVortex are read too, so that a cluster keeps its manifests.
	annotationVortexStartup  = "spotvortex.io/startup-time"
	annotationVortexPenalty  = "spotvortex.io/outage-penalty"
	annotationVortexTier     = "spotvortex.io/migration-tier"
	annotationVortexCritical = "spotvortex.io/critical"
	annotationVortexStrategy = "spotvortex.io/migration-strategy"

	annotationSafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict"

	// AnnotationDoNotDisrupt is Karpenter's: "true", or on a pod the time since
	// its start for which it holds.
	AnnotationDoNotDisrupt = "karpenter.sh/do-not-disrupt"

	// LabelPodGroup and AnnotationPodGroupTotal are Kueue's: the group of plain
	// pods that a pod belongs to, and how many pods that has.
	LabelPodGroup           = "kueue.x-k8s.io/pod-group-name"
	AnnotationPodGroupTotal = "kueue.x-k8s.io/pod-group-total-count"

	// AnnotationDeletionCost is read by the ReplicaSet controller.
	AnnotationDeletionCost = "controller.kubernetes.io/pod-deletion-cost"
)

// Annotations are those of a workload and of its pods together.
type Annotations struct {
	Values map[string]string

	// Fail is called for values that are not understood; it may be nil. Such an annotation counts
	// as absent.
	Fail func(key, format string, args ...any)
}

// Has reports whether the annotation key is there.
func (a *Annotations) Has(key string) bool { _, ok := a.Values[key]; return ok }

func (a *Annotations) fail(key, format string, args ...any) {
	if a.Fail != nil {
		a.Fail(key, format, args...)
	}
}

// first returns the first of keys that is there.
func (a *Annotations) first(keys ...string) (string, bool) {
	for _, k := range keys {
		if a.Has(k) {
			return k, true
		}
	}
	return "", false
}

// Duration reads a positive duration, or a plain number of the unit, from the first of keys that is
// there; 0 if all are absent.
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

// penalty returns the hours of the outage penalty, below zero when absent.
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

// costPerHour returns dollars per hour, 0 when absent.
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

// CPUUtilisation is the part of their CPU requests that pods are taken to use where nothing is
// stated: 69% of what is requested is not used, as Cast AI measured in tens of thousands of
// clusters ("State of Kubernetes Optimization", 2026).
const CPUUtilisation = 0.31

// CPUUtilisationMax is the greatest part of its request that a pod may be said to use.
const CPUUtilisationMax = 100

// CPUUtilisation returns the part of its CPU request that a pod uses on average, below zero
// when absent.
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

// CPUUse returns the CPU that a pod of t uses on average where that part of its request is
// stated, or below zero the other assumed.
func CPUUse(t *policy.Template, stated, assumed float64) int64 {
	if stated < 0 {
		stated = assumed
	}
	return int64(math.Round(float64(t.Requests.CPU) * stated))
}

// tier returns SpotVortex's migration tier, below zero when absent.
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

// Flag reads true or false; false when absent.
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

// DoNotDisrupt reads [AnnotationDoNotDisrupt] of a pod as Karpenter does (IsDoNotDisruptActive
// in pkg/utils/pod): whether it protects the pod, and for how long from the pod's start, 0
// without end. A value that Karpenter ignores is an error.
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

// Fill writes into t what the annotations say of a pod.
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
