package live

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// noteMax is the maximum length of the note of an Event, in bytes. The API server refuses more than
// 1 KiB.
const noteMax = 1000

// event creates an Event for a new condition of a pool.
func (r *statusReporter) event(pool *v1alpha1.CapacityPool, v verified) {
	if r.parts.Events == nil {
		return
	}
	kind := corev1.EventTypeNormal
	if bad(v) {
		kind = corev1.EventTypeWarning
	}
	r.parts.Events.Eventf(pool, nil, kind, v.reason, v.action, "%s", clip(v.kind+": "+oneLine(v.message), noteMax))
}

// oneLine joins the distinct lines of a text: an error may join several equal ones.
func oneLine(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// clip shortens text to most bytes, without splitting a character.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}
