package capture

import (
	"slices"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/scenarios"
)

// startMost is the upper limit of a start time. A pod that became ready later was waiting for
// something else.
const startMost = 30 * time.Minute

// ownAnnotations returns the Spotter annotations of a workload. If the pods do not state their
// start time, it is the median of the observed start times.
func ownAnnotations(x *load) map[string]string {
	out := map[string]string{}
	start := x.t.Startup
	if start == 0 && len(x.starts) > 0 {
		slices.Sort(x.starts)
		start = min(x.starts[len(x.starts)/2].Round(time.Second), startMost)
	}
	if start > 0 {
		out[kube.AnnotationStartup] = start.String()
	}
	if x.past != nil && x.past.job == nil {
		out[scenarios.AnnotationReplicas] = x.past.schedule
		if x.past.rollouts != "" {
			out[scenarios.AnnotationRollouts] = x.past.rollouts
		}
	}
	if x.t.OutagePenalty >= 0 {
		out[kube.AnnotationPenalty] = strconv.FormatFloat(x.t.OutagePenalty, 'g', -1, 64)
	}
	if r := x.t.Requests.CPU; x.t.CPUUse > 0 && x.t.CPUUse != kube.CPUUse(x.t, -1, kube.CPUUtilisation) {
		out[kube.AnnotationCPU] = strconv.FormatFloat(float64(x.t.CPUUse)/float64(r), 'g', -1, 64)
	}
	if x.t.OutageCost > 0 {
		out[kube.AnnotationCostPerH] = strconv.FormatFloat(x.t.OutageCost.Float(), 'f', -1, 64)
	}
	return out
}

// podAnnotations returns the annotations of pods that other controllers read. A do-not-disrupt
// annotation applies to a template if more than half of its pods have it.
func podAnnotations(x *load) map[string]string {
	out := map[string]string{}
	if x.t.MigrationTier >= 0 {
		out["spotvortex.io/migration-tier"] = strconv.Itoa(int(x.t.MigrationTier))
	}
	if x.t.Critical {
		out["spotvortex.io/critical"] = "true"
	}
	if x.t.GracefulOnly {
		out["spotvortex.io/migration-strategy"] = "graceful-only"
	}
	if x.t.SafeToEvict || x.t.NotSafeToEvict {
		out["cluster-autoscaler.kubernetes.io/safe-to-evict"] = strconv.FormatBool(x.t.SafeToEvict)
	}
	for value, n := range x.protected {
		if 2*n > x.pods { // true for at most one value
			out[kube.AnnotationDoNotDisrupt] = value
		}
	}
	return out
}
