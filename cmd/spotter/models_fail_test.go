package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/record"
)

// While a scenario has the model fail, in whichever way, every forecast is the closed
// form's and no action is valued, though the bundle answered before and remembers what
// it said; before and after it is the bundle's. What was not answered is counted, and
// no invariant breaks.
func TestModelFailsByOrder(t *testing.T) {
	withONNX(t)
	for how, policies := range map[string][]string{
		"gone": {"model:bundle=builtin-actions"}, "late": {"portfolio:bundle=builtin"},
		"nan": {"portfolio:bundle=builtin", "model:bundle=builtin-actions"},
	} {
		scenario := file(t, "tiny.yaml", strings.Replace(tiny, "spec:\n",
			"spec:\n  faults: [{kind: model-fails, how: "+how+", at: 1h, duration: 1h}]\n", 1))
		for _, spec := range policies {
			dir := filepath.Join(t.TempDir(), "steps")
			code, _, stderr := call(t, "sim", scenario, "--policy", spec, "--seed", "5", "--check", "--record", dir)
			if code != cli.ExitOK {
				t.Fatalf("%s, %s: exit code %d\n%s", how, spec, code, stderr)
			}
			actions := strings.HasPrefix(spec, "model")
			if actions && !strings.Contains(stderr, "it valued the actions of pools") ||
				!actions && (!strings.Contains(stderr, "the bundle scored") || strings.Contains(stderr, " and 0 failed")) {
				t.Errorf("%s, %s: what was not answered is not counted:\n%s", how, spec, stderr)
			}
			answered, failed := modelSteps(t, dir, actions)
			if answered == 0 || failed == 0 {
				t.Errorf("%s, %s: %d steps with answers, %d without", how, spec, answered, failed)
			}
		}
	}
	wrongCallIs(t, `field "spec.faults[0].how": "slow" is not gone, late or nan`, "sim",
		file(t, "a.yaml", strings.Replace(tiny, "spec:\n", "spec:\n  faults: [{kind: model-fails, how: slow, at: 1h, duration: 1h}]\n", 1)))
	wrongCallIs(t, "fails in one way only", "sim",
		file(t, "b.yaml", strings.Replace(tiny, "spec:\n", "spec:\n  faults: [{kind: controller-down, how: nan, at: 1h, duration: 1h}]\n", 1)))
}

// modelSteps counts the steps of a recording of the tiny scenario in which the bundle
// answered and those in which it did not, and holds that these are the ones between one
// hour and two after the start.
func modelSteps(t *testing.T, dir string, actions bool) (answered, failed int) {
	t.Helper()
	r, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var start policy.Time
	for s, err := range r.Steps() {
		if err != nil {
			t.Fatal(err)
		}
		if start == 0 {
			start = s.Snapshot.Now.Add(24 * time.Hour) // the warm-up
		}
		model := false
		for i := range s.Snapshot.Markets {
			model = model || s.Snapshot.Markets[i].Forecast.Source == policy.SourceModel
		}
		if actions {
			model = len(s.Snapshot.Pools[0].Actions) > 0
		}
		since := s.Snapshot.Now.Sub(start)
		if since == time.Hour || since == 2*time.Hour {
			continue // the fault and the step are of one instant
		}
		if down := since > time.Hour && since < 2*time.Hour; down == model {
			t.Fatalf("%v after the start: the model fails: %v, and answers: %v", since, down, model)
		}
		if model {
			answered++
		} else {
			failed++
		}
	}
	return answered, failed
}
