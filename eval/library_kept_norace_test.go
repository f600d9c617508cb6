//go:build !race

package eval

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/test/nightly"
)

// TestManifestsKept runs mixed-pool, in which one pool may have up to 80% on Spot and the other
// must hold an exact ratio. Policies that follow the manifest keep both, the baselines that know
// no share do not, and on-demand has less on Spot than required.
func TestManifestsKept(t *testing.T) {
	const most = "pool general holds more on Spot than the 80% that spotShare.max allows"
	w, l := evaltest.Embedded(t, "mixed-pool"), newLibrary(false)
	for policy, says := range map[string]string{
		"spot": most, "karpenter": most, "as-is": most, OnDemand: "spotShare.min",
		"static": "", "spotvortex": "", "portfolio": "", "manifest": "",
	} {
		for seed := uint64(1); seed <= uint64(nightly.Count(1, 2)); seed++ {
			r, err := l.run(context.Background(), Job{Case: Case{Scenario: w.Name, Bound: w}, Policy: policy, Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(r.Violations); (len(r.Violations) > 0) != (says != "") || !strings.Contains(got, says) {
				t.Errorf("%s, seed %d: %q, want what says %q", policy, seed, r.Violations, says)
			}
		}
	}
}
