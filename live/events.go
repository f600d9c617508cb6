package live

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// noteMax bounds the words of an Event; the API server refuses more than a
// kibibyte.
const noteMax = 1000

// event makes an Event of a condition of a pool that is new.
func (r *statusReporter) event(pool *v1alpha1.CapacityPool, v verified) {
	if r.parts.Events == nil {
		return
	}
	kind := corev1.EventTypeNormal
	if bad(v) {
		kind = corev1.EventTypeWarning
	}
	r.parts.Events.Eventf(pool, nil, kind, v.reason, v.action, "%s", clip(v.kind+": "+v.message, noteMax))
}

// clip cuts text that is longer than most bytes, at a letter.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}
