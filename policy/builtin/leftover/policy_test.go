package leftover_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/builtin/leftover"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// build makes the policy of a scripted case.
var build = policytest.Builder(leftover.DefaultConfig, leftover.New)

func must(t interface{ Fatal(...any) }, spec string) policy.Policy {
	p, err := build(spec)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRules(t *testing.T) {
	policytest.Rules(t, build, "", "max_instance_types=1;max_zones=1;price_margin=0")
}

// TestDecide runs the scripted cases. The answer is the plan, and below each steer what
// may be bought with its account; a star marks what was chosen, the others are
// there for the nodes that live in them.
func TestDecide(t *testing.T) {
	datadriven.Walk(t, "testdata/decide", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			spec := ""
			d.MaybeScanArgs(t, "policy", &spec)
			p, err := build(spec)
			if err != nil {
				return fmt.Sprintf("error: %v\n", err)
			}
			s, m, err := policytest.Parse(d.Input)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			plan, next := p.Decide(s, m)
			if err := policytest.Check(s, &plan); err != nil {
				d.Fatalf(t, "%v", err)
			}
			return account(s, &plan, &next)
		})
	})
}

func account(s *policy.Snapshot, plan *policy.Plan, next *policy.Memory) string {
	var b strings.Builder
	b.WriteString(plan.Format(s))
	for _, x := range plan.Steers {
		chosen := next.Pool(s.Pools[x.Pool].Name).Selected
		for _, m := range x.Markets {
			star := " "
			if slices.Contains(chosen, s.Markets[m].Name) {
				star = "*"
			}
			fmt.Fprintf(&b, "  %s %s\n", star, strings.TrimPrefix(s.Markets[m].Name, "aws/region/"))
		}
		fmt.Fprintf(&b, "  %s: %s an hour, was %s", x.Why.Text, x.Why.After.Short(), x.Why.Before.Short())
		if x.Why.RunnerUp != "" {
			fmt.Fprintf(&b, "; next %s", strings.TrimPrefix(x.Why.RunnerUp, "aws/region/"))
		}
		b.WriteString("\n")
		if s.Pools[x.Pool].OnDemandFallback && !x.Fallback {
			b.WriteString("  what spot refuses does not go on demand\n")
		}
	}
	for _, h := range plan.Holds {
		fmt.Fprintf(&b, "  %s\n", h.Why.Text)
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

func TestParameters(t *testing.T) {
	for spec, want := range map[string]string{
		"":                       "leftover",
		"min_placement_score=5":  "leftover",
		"min_placement_score=0":  "leftover:min_placement_score=0",
		"families=g5+g4dn":       "leftover:families=g4dn+g5",
		"max_zones=3;min_gpus=2": "leftover:max_zones=3:min_gpus=2",
		"price_margin=0.25":      "leftover:price_margin=0.25",
		"price_window=1h":        "leftover:price_window=1h0m0s",
		"score_margin=0":         "leftover:score_margin=0",
		"max_instance_types=1":   "leftover:max_instance_types=1",
		"max_instance_types=0":   "",
		"max_zones=0":            "",
		"max_zones=two":          "",
		"min_gpus=-1":            "",
		"min_placement_score=11": "",
		"score_margin=-1":        "",
		"price_margin=1":         "",
		"price_margin=NaN":       "",
		"price_margin=much":      "",
		"price_window=-1s":       "",
		"price_window=30":        "",
		"families=g5+":           "",
		"top=5":                  "",
	} {
		p, err := build(spec)
		switch {
		case want == "" && err == nil:
			t.Errorf("%s was taken", spec)
		case want != "" && err != nil:
			t.Errorf("%s: %v", spec, err)
		case want != "" && p.Name() != want:
			t.Errorf("%s is called %s, want %s", spec, p.Name(), want)
		case want == "":
			key, value, _ := strings.Cut(spec, "=")
			if !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), value) && key != "top" {
				t.Errorf("%s: %q names not both key and value", spec, err)
			}
		}
	}
}

// TestNeverLeavesLiveMarketsOut holds that no steer leaves a market out in which
// a node of the pool lives: a provisioner would take that node for drifted.
func TestNeverLeavesLiveMarketsOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := policytest.Snapshot().Draw(t, "snapshot")
		m := policytest.Memory(s).Draw(t, "memory")
		plan, _ := must(t, "max_instance_types=1;max_zones=1").Decide(s, m)
		for _, x := range plan.Steers {
			for i := range s.Nodes {
				n := &s.Nodes[i]
				if n.Live() && n.Pool == x.Pool && n.Market != policy.None && !slices.Contains(x.Markets, n.Market) {
					t.Fatalf("%s lives in %s, which the steer of %s leaves out", n.Name, s.Markets[n.Market].Name, s.Pools[x.Pool].Name)
				}
			}
		}
	})
}

// TestPublishesOnce holds that what was published is not published again while nothing changes
// but the time. A refusal would be forgotten meanwhile.
func TestPublishesOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := policytest.Snapshot().Draw(t, "snapshot")
		for i := range s.Markets {
			s.Markets[i].Experience.Refused = 0
		}
		p := must(t, "")
		plan, m := p.Decide(s, policy.Memory{})
		for _, x := range plan.Steers {
			s.Pools[x.Pool].Steer = x.State(s.Now)
		}
		for range 3 {
			var again policy.Plan
			s.Now += policy.DefaultStep
			for i := range s.Sources {
				s.Sources[i].At = s.Now
			}
			if again, m = p.Decide(s, m); len(again.Steers) > 0 {
				t.Fatalf("told again:\n%safter\n%s%+v", again.Format(s), plan.Format(s), again.Steers)
			}
		}
	})
}
