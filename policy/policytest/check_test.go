package policytest_test

import (
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

const story = `type b.4 4
market z b.4 on-demand 0.20
market z b.4 spot 0.06
pool off off
pool web
app one 1
node n0 web z b.4 on-demand
node n1 web z b.4 spot
node n2 web z b.4 spot draining
node n3 web z b.4 spot by=nth
node n4 off z b.4 spot
pod one n0
`

// TestCheck spoils a sound plan in one way at a time.
func TestCheck(t *testing.T) {
	why := policy.Why{Reason: policy.ReasonShare, Text: "a test"}
	for says, spoil := range map[string]func(*policy.Snapshot, *policy.Plan){
		"":                   func(*policy.Snapshot, *policy.Plan) {},
		"is not after now":   func(s *policy.Snapshot, p *policy.Plan) { p.Wake = s.Now },
		"steer web: planned": func(_ *policy.Snapshot, p *policy.Plan) { p.Steers = append(p.Steers, p.Steers[0]) },
		"is not in [0, 1]":   func(_ *policy.Snapshot, p *policy.Plan) { p.Steers[0].Share = 1.1 },
		"steer web: market": func(s *policy.Snapshot, p *policy.Plan) {
			s.Pools[1].Markets = s.Pools[1].Markets[1:]
			p.Launches = nil
			p.Drains = nil
		},
		"steer web: the acc": func(_ *policy.Snapshot, p *policy.Plan) { p.Steers[0].Why.Text = "" },
		"is empty or there":  func(_ *policy.Snapshot, p *policy.Plan) { p.Launches = append(p.Launches, p.Launches[0]) },
		"no markets":         func(_ *policy.Snapshot, p *policy.Plan) { p.Launches[0].Markets = nil },
		"is not offered":     func(s *policy.Snapshot, _ *policy.Plan) { s.Markets[1].Offered = false },
		"two capacity types": func(_ *policy.Snapshot, p *policy.Plan) { p.Launches[0].Markets = []policy.MarketID{0, 1} },
		"replaces slot": func(s *policy.Snapshot, p *policy.Plan) {
			s.Nodes[1] = policy.Node{ID: 1}
			p.Launches[0].Replaces = 1
			p.Drains = nil
		},
		"launch in web: the":      func(_ *policy.Snapshot, p *policy.Plan) { p.Launches[0].Why.Reason = "" },
		"which is empty":          func(s *policy.Snapshot, p *policy.Plan) { s.Nodes[0] = policy.Node{}; p.Launches = nil },
		"drain n0: planned":       func(_ *policy.Snapshot, p *policy.Plan) { p.Drains = append(p.Drains, p.Drains[0]) },
		"belongs to no pool":      func(s *policy.Snapshot, _ *policy.Plan) { s.Nodes[0].Pool = policy.None },
		"draining already":        func(_ *policy.Snapshot, p *policy.Plan) { p.Drains[0].Node = 2 },
		"nth is at it":            func(_ *policy.Snapshot, p *policy.Plan) { p.Drains[0].Node = 3 },
		"pool off is off":         func(_ *policy.Snapshot, p *policy.Plan) { p.Drains[0].Node = 4 },
		"plan does not launch":    func(_ *policy.Snapshot, p *policy.Plan) { p.Drains[0].After = []string{"other"} },
		"drain n0: the":           func(_ *policy.Snapshot, p *policy.Plan) { p.Drains[0].Why = policy.Why{} },
		"there is no such budget": func(_ *policy.Snapshot, p *policy.Plan) { p.Gates = []policy.Gate{{Budget: "b", Why: why}} },
		"it is not a job":         func(_ *policy.Snapshot, p *policy.Plan) { p.Pauses = []policy.Pause{{Why: why}} },
		"evict default/one-0: it is": func(_ *policy.Snapshot, p *policy.Plan) {
			p.Evicts = []policy.Evict{{Pod: 0, Why: why}, {Pod: 0, Why: why}}
		},
		"evict default/one-0: the": func(_ *policy.Snapshot, p *policy.Plan) { p.Evicts = []policy.Evict{{Pod: 0}} },
		"hold: the":                func(_ *policy.Snapshot, p *policy.Plan) { p.Holds = []policy.Hold{{}} },
	} {
		s, _, err := policytest.Parse(story)
		if err != nil {
			t.Fatal(err)
		}
		p := &policy.Plan{
			Steers:   []policy.Steer{{Pool: 1, Share: 0.5, Markets: []policy.MarketID{0, 1}, Why: why}},
			Launches: []policy.Launch{{Token: "a", Pool: 1, Markets: []policy.MarketID{1}, Replaces: 0, Why: why}},
			Drains:   []policy.Drain{{Node: 0, After: []string{"a"}, Why: why}},
			Wake:     s.Now + 1,
		}
		spoil(s, p)
		switch err := policytest.Check(s, p); {
		case says == "" && err != nil:
			t.Errorf("a sound plan: %v", err)
		case says != "" && (err == nil || !strings.Contains(err.Error(), says)):
			t.Errorf("%v does not say %q", err, says)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, says := range map[string]string{
		"tpye a 2":                          `line 1, "tpye a 2": unknown word "tpye"`,
		"type a":                            "too few words",
		"type a two":                        "invalid syntax",
		"market z a spot 0.1":               `there is no type "a"`,
		"pool web mim=1":                    `unknown option "mim"`,
		"pool web budget=x%":                "invalid syntax",
		"pod one pending":                   `there is no app "one"`,
		"node n1 web z a spot":              "there is no market",
		"memory web moved=soon":             "invalid duration",
		"type b 2\ntype a 2":                `type "a" is not after "b"`,
		"type a 2\nmarket z a spot 1 bend=": `line 2`,
	} {
		if _, _, err := policytest.Parse(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v does not say %q", text, err, says)
		}
	}
}
