package sim

import (
	"fmt"
	"github.com/spotter-dev/spotter/policy"
	"testing"
)

func TestDbg2(t *testing.T) {
	st := mustStage(t, stormy(50))
	for _, p := range []string{"static", "spotvortex"} {
		k := 0
		mustRun(t, Config{Stage: st, Policy: mustPolicy(t, p), Forecaster: mustForecaster(t), Seed: 7, Check: true, Observed: func(s *policy.Snapshot, pl *policy.Plan) {
			if k < 4 {
				fmt.Print(s.Now, " ", pl.Format(s))
				for _, h := range pl.Holds {
					fmt.Println("   ", h.Why.Text)
				}
				for i := range s.Nodes {
					n := &s.Nodes[i]
					fmt.Println("   node", n.Name, n.Phase, s.Markets[n.Market].Name)
				}
			}
			k++
		}})
	}
}
