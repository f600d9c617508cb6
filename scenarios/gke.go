package scenarios

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/policy"
)

// A gceNodeClass contains the field of a GCENodeClass of Karpenter's provider for Google Cloud that
// is simulated.
type gceNodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              gceNodeClassSpec `json:"spec"`
}

type gceNodeClassSpec struct {
	// PreemptionNoticeDuration is in seconds.
	PreemptionNoticeDuration *int64 `json:"preemptionNoticeDuration"`
}

func (*gceNodeClassSpec) openEnded() {}

// googleNotices are the times from a notice of Google Cloud to the reclaim that can be configured
// (Compute Engine and GKE documentation, "Spot VMs": 30 seconds, or 120 if requested). With 0, no
// notice reaches the cluster.
var googleNotices = []time.Duration{0, 30 * time.Second, 120 * time.Second}

// readGCENodeClass reads a GCENodeClass. Of several, the one with the shortest notice determines it:
// nodes of all of them may be in the same market.
func (sc *Scenario) readGCENodeClass(doc *document, o *gceNodeClass) []error {
	var seconds int64
	if s := o.Spec.PreemptionNoticeDuration; s != nil {
		seconds = *s
	}
	lead, ok := policy.GoogleNotice(seconds)
	if !ok {
		return []error{doc.problem([]string{"spec", "preemptionNoticeDuration"}, "%d is not 0 or 120", seconds)}
	}
	if known := sc.GoogleNotice; known != nil && *known != lead {
		sc.warn("GCENodeClasses differ in preemptionNoticeDuration: all nodes of Google Cloud have the shorter notice of %v",
			min(*known, lead))
		lead = min(*known, lead)
	}
	sc.GoogleNotice = &lead
	simulated := 0
	if o.Spec.PreemptionNoticeDuration != nil {
		simulated = 1
	}
	if spec := doc.at([]string{"spec"}); spec != nil && len(spec.Content) > 2*simulated {
		sc.warn("GCENodeClass %s: its settings are not simulated, except preemptionNoticeDuration: nodes have the disk and "+
			"the pod limit that GKE has by default", o.Name)
	}
	return nil
}

// readGoogleNotice reads the notice that the scenario states, which takes precedence over those of
// GCENodeClasses.
func (sc *Scenario) readGoogleNotice(d *metav1.Duration, fail func(format string, value any, field string)) {
	if d == nil {
		return
	}
	if !slices.Contains(googleNotices, d.Duration) {
		fail("%v is not 0s, 30s or 120s", d.Duration, "googleNotice")
		return
	}
	sc.GoogleNotice = &d.Duration
}
