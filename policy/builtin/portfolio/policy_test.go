package portfolio_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/builtin/portfolio"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// build makes the policy of "key=value,key=value".
func build(spec string) (policy.Policy, error) {
	cfg := portfolio.DefaultConfig()
	for _, part := range strings.Split(spec, ",") {
		if key, value, ok := strings.Cut(part, "="); ok {
			if err := cfg.Set(key, value); err != nil {
				return nil, err
			}
		}
	}
	return portfolio.New(cfg)
}

func TestRules(t *testing.T) {
	for _, spec := range []string{"", "share=0.5"} {
		t.Run("portfolio:"+spec, func(t *testing.T) {
			policytest.Run(t, func() policy.Policy {
				p, err := build(spec)
				if err != nil {
					t.Fatal(err)
				}
				return p
			})
		})
	}
}

func TestDecide(t *testing.T) { policytest.Cases(t, "testdata/decide", build) }

// TestMovesPay says that no drain by choice costs more an hour afterwards, that
// each states both sides, and that each is gentle.
func TestMovesPay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := policytest.Snapshot().Draw(t, "snapshot")
		p, err := build("disturbance=0s")
		if err != nil {
			t.Fatal(err)
		}
		plan, _ := p.Decide(s, policy.Memory{})
		for _, d := range plan.Drains {
			if s.Nodes[d.Node].ReclaimAt != 0 || d.Why.Reason != policy.ReasonCheaper ||
				s.Pools[s.Nodes[d.Node].Pool].Provisioner != policy.ProvisionerKarpenter {
				continue
			}
			if d.Why.After > d.Why.Before || d.Why.Before <= 0 {
				t.Fatalf("%s goes from %v to %v", s.Nodes[d.Node].Name, d.Why.Before, d.Why.After)
			}
			if !d.Gentle {
				t.Fatalf("the drain of %s is not gentle", s.Nodes[d.Node].Name)
			}
		}
	})
}

func TestSet(t *testing.T) {
	for spec, want := range map[string]string{
		"share=0.5":      "portfolio:share=0.5",
		"holding=8h":     "portfolio",
		"disturbance=5h": "portfolio:disturbance=5h0m0s",
		"cores=4":        "portfolio:cores=4",
		"zone_risk=0.75": "portfolio:zone_risk=0.75",
	} {
		p, err := build(spec)
		if err != nil {
			t.Errorf("%s: %v", spec, err)
		} else if p.Name() != want {
			t.Errorf("%s makes %q, not %q", spec, p.Name(), want)
		}
	}
	for spec, want := range map[string]string{
		"share=2":       "share 2 is not in [0, 1]",
		"share=x":       `share "x" is not a number`,
		"holding=0s":    "holding 0s is not positive",
		"edge=1":        "edge 1 is not in [0, 1)",
		"choices=0":     "choices 0 is less than 1",
		"choices=1.5":   `choices "1.5" is not a whole number`,
		"disturbance=-": `disturbance "-" is not a duration such as 6h`,
		"lasting=-1h":   "lasting -1h0m0s is not positive",
		"return=-1s":    "return -1s is negative",
		"margin=1":      "margin 1 is not in [0, 1)",
		"loss_budget=2": "loss_budget 2 is not in [0, 1]",
		"cores=0":       "cores 0 is less than 1",
		"cores=x":       `cores "x" is not a whole number`,
		"type_risk=NaN": "type_risk NaN is not in [0, 100]",
		"zone_risk=-1":  "zone_risk -1 is not in [0, 100]",
		"speed=1":       `unknown parameter "speed": it takes choices, cores, disturbance, edge, holding, interval, lasting, loss_budget, margin, market_risk, return, share, type_risk, width, zone_risk`,
	} {
		if _, err := build(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", spec, err, want)
		}
	}
}

// TestPoolsDecideAlone: what pods are worth is what they cost in the pool in hand. A move
// in the first of two pools does not pay where an eviction counts 8,000 hours of that, be
// its worth in the second one nothing, since no node there would hold it.
func TestPoolsDecideAlone(t *testing.T) {
	s, m, err := policytest.Parse(`
type a.1 1
type b.4 4
market y b.4 spot 0.06
market z a.1 on-demand 0.05
market z b.4 on-demand 0.20
market z b.4 spot 0.06
pool web
pool worker
app api 1 pdb=2 replicas=4
node n1 web z b.4 on-demand
node n2 web z b.4 spot
pod api n1 2
pod api n2 2`)
	if err != nil {
		t.Fatal(err)
	}
	s.Pools[0].Markets, s.Pools[1].Markets = []policy.MarketID{0, 2, 3}, []policy.MarketID{1}
	s.Templates[0].Requests.CPU = 1100
	for spec, want := range map[string]int{"": 1, "disturbance=8000h": 0} {
		p, err := build(spec)
		if err != nil {
			t.Fatal(err)
		}
		if plan, _ := p.Decide(s, m); len(plan.Drains) != want {
			t.Errorf("with %q %d nodes are drained, not %d:\n%s", spec, len(plan.Drains), want, plan.Format(s))
		}
	}
}
