package spotvortex_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/builtin/spotvortex"
	"github.com/spotter-dev/spotter/policy/guard"
)

// TestDecide runs the decisions written in testdata/decide. After a wanted change of behaviour run
// "go test ./policy/builtin/spotvortex -rewrite" and read the diff. `world` sets what the decisions
// after it have in common; each adds lines of its own. Arguments of `decide` are parameters of the
// policy, except `dollars`, which shows what is at stake, and `guarded`, which puts the guardrails
// around the policy and shows their accounts.
func TestDecide(t *testing.T) {
	datadriven.Walk(t, "testdata/decide", func(t *testing.T, path string) {
		base := ""
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "world":
				base = d.Input
				return ""
			case "decide":
			default:
				d.Fatalf(t, "unknown command %q", d.Cmd)
			}
			cfg := spotvortex.Shipped()
			dollars, guarded := false, false
			for _, a := range d.CmdArgs {
				if a.Key == "dollars" || a.Key == "guarded" {
					dollars, guarded = dollars || a.Key == "dollars", guarded || a.Key == "guarded"
					continue
				}
				value := "true"
				if len(a.Vals) > 0 {
					value = a.Vals[0]
				}
				if err := cfg.Set(a.Key, value); err != nil {
					return fmt.Sprintf("error: %v\n", err)
				}
			}
			w := parseFixture(t, base+"\n"+d.Input)
			var p policy.Policy = spotvortex.New(cfg)
			if guarded {
				p = guard.Around(p, guard.DefaultConfig())
			}
			plan, next := p.Decide(&w.s, w.m)
			text := format(&w.s, &plan, &next, dollars)
			for _, h := range plan.Holds {
				if guarded {
					text += fmt.Sprintf("  %s\n", h.Why.Text)
				}
			}
			return text
		})
	})
}

func format(s *policy.Snapshot, plan *policy.Plan, m *policy.Memory, dollars bool) string {
	var b strings.Builder
	b.WriteString(plan.Format(s))
	if dollars {
		for _, x := range plan.Steers {
			fmt.Fprintf(&b, "steer %s: %s; second: %s\n", s.Pools[x.Pool].Name, x.Why.Text, x.Why.RunnerUp)
		}
		for _, x := range plan.Holds {
			if x.Node == policy.None {
				fmt.Fprintf(&b, "hold %s: %s; second: %s\n", s.Pools[x.Pool].Name, x.Why.Text, x.Why.RunnerUp)
			}
		}
		for _, x := range plan.Drains {
			fmt.Fprintf(&b, "drain %s: %s\n", s.Nodes[x.Node].Name, x.Why.Text)
		}
	}
	for i := range m.Pools {
		p := &m.Pools[i]
		fmt.Fprintf(&b, "target %s %.3f", p.Name, p.Target)
		if p.Below == 0 {
			b.WriteString(" not calm")
		}
		b.WriteString("\n")
	}
	return b.String()
}
