package portfolio_test

import (
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// TestRecommendationIsWeighed: a pod takes two minutes to start, so that a move
// leaves its service short for 140 seconds and a sudden loss for 240, of which a
// quarter counts. The node is kept, and the plan says what each would cost.
func TestRecommendationIsWeighed(t *testing.T) {
	s, m, err := policytest.Parse(`
type a.4 4
market y a.4 spot 0.06
market z a.4 on-demand 0.20
market z a.4 spot 0.06
pool web steer=1
app api 1 pdb=4 replicas=8
node n1 web z a.4 spot recommended
node n2 web z a.4 spot
pod api n1 4
pod api n2 4`)
	if err != nil {
		t.Fatal(err)
	}
	s.Templates[0].Startup = 2 * time.Minute
	s.Nodes[0].Recommended = s.Now.Add(-time.Minute)
	p, err := build("")
	if err != nil {
		t.Fatal(err)
	}
	plan, _ := p.Decide(s, m)
	if len(plan.Drains) > 0 {
		t.Fatalf("the node is left:\n%s", plan.Format(s))
	}
	for _, h := range plan.Holds {
		if h.Node == 0 && h.Why.Reason == policy.ReasonNoEdge && strings.Contains(h.Why.Text, "recommends") {
			if h.Why.Before <= 0 || h.Why.After <= h.Why.Before || h.Why.RunnerUp == "" {
				t.Fatalf("the account does not hold up: %+v", h.Why)
			}
			return
		}
	}
	t.Fatalf("nothing says why the node is kept:\n%s", plan.Format(s))
}
