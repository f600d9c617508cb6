package eval

import (
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim"
)

// An unaware policy gets whole snapshots, without what changed since the last one.
type unaware struct{ policy.Policy }

func (u unaware) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	whole := s.Whole()
	return u.Policy.Decide(&whole, m)
}

// TestReadingChanges: every policy does the same whether it reads of a snapshot what changed
// or everything, as it does in live mode and in replay.
func TestReadingChanges(t *testing.T) {
	for _, w := range []*scenarios.BoundScenario{largeScenario(t, 40, 60, 14*time.Hour), evaltest.Embedded(t, "zone-outage")} {
		for _, spec := range decided() {
			t.Run(w.Name+"/"+strings.ReplaceAll(spec, ":", "/"), func(t *testing.T) {
				aware, all := evaltest.Config(t, w, spec, 1), evaltest.Config(t, w, spec, 1)
				all.Policy = unaware{all.Policy}
				if a, b := hashOf(t, aware), hashOf(t, all); a != b {
					t.Errorf("reading what changed gives %x, reading everything %x", a, b)
				}
			})
		}
	}
}

func hashOf(t *testing.T, cfg sim.Config) [32]byte {
	t.Helper()
	r, err := sim.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r.Hash
}
