package trace

import (
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// TestScale says of which days placement scores are, and which scale those of the P family
// are on: other families, providers and rows without a score say nothing of it.
func TestScale(t *testing.T) {
	day := func(month, d int) policy.Time {
		return policy.TimeOf(time.Date(2025, time.Month(month), d, 0, 0, 0, 0, time.UTC))
	}
	one := func(provider, kind string, scores ...int8) trace.Series {
		return trace.Series{Provider: provider, Type: kind, At: []policy.Time{day(9, 20), day(9, 24), day(9, 25), day(10, 2)}, Score: scores}
	}
	for name, c := range map[string]struct {
		all  []trace.Series
		want string
	}{
		"none": {[]trace.Series{one("aws", "p5.48xlarge", -1, -1, -1, -1), {Type: "p5.48xlarge"}}, "none"},
		"m": {[]trace.Series{one("aws", "m5.large", 3, -1, 4, -1), one("gcp", "p9", 1, 1, 1, 1)},
			"recorded for 2 markets from 2025-09-20 to 2025-10-02"},
		"before": {[]trace.Series{one("aws", "p4d.24xlarge", -1, 1, -1, -1)},
			"recorded for 1 markets from 2025-09-24 to 2025-09-24; those of the P family are on the scale before 2025-09-25"},
		"since": {[]trace.Series{one("aws", "p4d.24xlarge", -1, -1, 7, -1), one("aws", "pico.large", 1, -1, -1, -1)},
			"recorded for 2 markets from 2025-09-20 to 2025-09-25; those of the P family are on the scale since 2025-09-25"},
		"both": {[]trace.Series{one("aws", "p4d.24xlarge", -1, 1, 7, -1)},
			"; those of the P family are of two scales, before and since 2025-09-25"},
	} {
		var s scored
		for i := range c.all {
			s.add(&c.all[i])
		}
		if got := s.text(); !strings.HasSuffix(got, c.want) || (s.object() == nil) != (c.want == "none") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
