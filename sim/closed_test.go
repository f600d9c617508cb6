package sim

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
)

// TestClosed: nodes are drained by choice, whether by the policy or by Karpenter, only while
// a maintenance window is open and in no freeze. Nodes under notice are at any time.
func TestClosed(t *testing.T) {
	data, err := os.ReadFile("../scenarios/library/no-pdb.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		stated    string
		voluntary bool // some node is drained by choice
	}{
		{"", true},
		{`windows: [{schedule: "0 2 * * *", duration: 4h}, {schedule: "30 12 * * *", duration: 30m}],`, true},
		{`windows: [{schedule: "0 2 * * *", duration: 4h}], freezes: [{from: "2023-01-01T00:00:00Z", to: "2033-01-01T00:00:00Z", reason: audit}],`, false},
	} {
		text := strings.NewReplacer("disruption: {", "disruption: {"+x.stated, "intensity: 5", "intensity: 60").Replace(string(data))
		w := boundText(t, text)
		for _, spec := range []string{"portfolio", "karpenter", "as-is"} {
			_, log := runScenario(t, w, spec)
			noticed, voluntary, urgent := map[string]bool{}, 0, 0
			for _, line := range log {
				f := strings.Fields(line)
				if f[1] == "notice" {
					noticed[f[2]] = true
				}
				if f[1] != "draining" {
					continue
				}
				at, err := time.Parse("2006-01-02T15:04:05.000Z", f[0])
				if err != nil {
					t.Fatal(err)
				}
				closed := false
				for _, b := range w.Pools[0].Budgets {
					closed = closed || b.Closed != "" && kube.InForce(&b, policy.TimeOf(at))
				}
				switch {
				case noticed[f[2]]:
					urgent++
				case closed:
					t.Errorf("%s, %s: %s is drained by choice at %v", spec, x.stated, f[2], at)
				default:
					voluntary++
				}
			}
			if spec != "as-is" && urgent == 0 || spec == "portfolio" && (voluntary > 0) != x.voluntary {
				t.Errorf("%s, %s: %d nodes are drained by choice and %d under notice", spec, x.stated, voluntary, urgent)
			}
		}
	}
}
