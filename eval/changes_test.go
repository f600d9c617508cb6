package eval

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// An unaware policy is not told what changed since the last snapshot.
type unaware struct{ policy.Policy }

func (u unaware) Decide(s *policy.Snapshot, m policy.Memory) (policy.Plan, policy.Memory) {
	whole := s.Whole()
	return u.Policy.Decide(&whole, m)
}

// TestReadingChanges: every policy does the same whether it reads of a snapshot what changed
// or everything, as it does in live mode and in replay.
func TestReadingChanges(t *testing.T) {
	w := largeScenario(t, 40, 60, 14*time.Hour)
	for _, spec := range decided() {
		t.Run(strings.ReplaceAll(spec, ":", "/"), func(t *testing.T) {
			var hashes [2][32]byte
			for i := range hashes {
				cfg := evaltest.Config(t, w, spec, 1)
				if i == 1 {
					cfg.Policy = unaware{cfg.Policy}
				}
				r, err := sim.Run(context.Background(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				hashes[i] = r.Hash
			}
			if hashes[0] != hashes[1] {
				t.Errorf("reading what changed gives %x, reading everything %x", hashes[0], hashes[1])
			}
		})
	}
}
