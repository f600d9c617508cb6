package live

import (
	"slices"
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
	r.parts.Events.Eventf(pool, nil, kind, v.reason, v.action, "%s", clip(v.kind+": "+oneLine(v.message), noteMax))
}

// oneLine joins the lines of a text, each once: an error may join several that are equal.
func oneLine(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// clip cuts text that is longer than most bytes, at a letter.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}
