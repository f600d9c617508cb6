package screen

import (
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/scenarios"
)

// The bar calls prices what they are.
func TestOrigin(t *testing.T) {
	for want, trace := range map[string]scenarios.TraceInfo{
		"synthetic prices": {Synthetic: true}, "scripted prices": {Scripted: true},
		"modelled prices": {Modelled: true}, "recorded prices": {},
	} {
		s := show{run: &run{inventory: inventory{about: timeline.About{Trace: trace}}}}
		if got := (&header{playback: &playback{}}).origin(&s); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %s", got, want)
		}
	}
}
