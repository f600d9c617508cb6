package v1alpha1

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// AnnotationPause on a CapacityPool, a node or a namespace keeps all of it from being
// disrupted by choice: "true", or the time until which it does, in RFC 3339.
const AnnotationPause = "spotter.dev/pause"

// A Pause is what AnnotationPause says. Until is zero for one without an end.
type Pause struct {
	On    bool
	Until policy.Time
}

// PauseOf reads the value of [AnnotationPause]. One that is neither of those pauses without an
// end, which is what was meant.
func PauseOf(annotations map[string]string) Pause {
	switch value := annotations[AnnotationPause]; value {
	case "false", "":
		return Pause{}
	default:
		until, err := time.Parse(time.RFC3339, value)
		if err != nil {
			return Pause{On: true}
		}
		return Pause{On: true, Until: policy.TimeOf(until)}
	}
}

// At reports whether p holds at t.
func (p Pause) At(t policy.Time) bool { return p.On && (p.Until == 0 || t < p.Until) }

// budget returns the disruption budget that allows no node while p holds.
func (p Pause) budget() policy.DisruptionBudget {
	b := policy.DisruptionBudget{Nodes: policy.Quantity{Set: true}, Active: p.Until == 0, To: p.Until,
		Closed: "paused by " + AnnotationPause}
	if p.Until != 0 {
		b.Closed += " until " + p.Until.Std().Format("2006-01-02 15:04 UTC")
	}
	return b
}
