package timeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
)

// TestDecisions holds that every plan that is not empty is there, with its words.
func TestDecisions(t *testing.T) {
	cfg := config(t, embedded(t, "squeeze", caseLength), "portfolio")
	var want []int
	var ranks, ranked []string
	launches := map[string]int{}
	cfg.Observed = func(s *policy.Snapshot, p *policy.Plan) {
		if n := len(p.Steers) + len(p.Launches) + len(p.Drains) + len(p.DeletionCosts) + len(p.Gates) + len(p.Pauses) +
			len(p.Evicts) + len(p.Holds); n > 0 {
			want = append(want, n)
		}
		for i := range p.DeletionCosts {
			x := &p.DeletionCosts[i]
			ranks = append(ranks, fmt.Sprintf("%v %s %d %s", s.Now, s.Nodes[x.Node].Name, x.Cost, x.Why.Text))
		}
		for i := range p.Drains {
			launches[s.Nodes[p.Drains[i].Node].Name+string(p.Drains[i].Why.Reason)+p.Drains[i].Why.Text]++
		}
	}
	tl, _ := observed(t, cfg, "portfolio")
	var got []int
	for i := range tl.Decisions() {
		d := tl.Decision(i)
		got = append(got, len(d.Entries))
		for k, e := range d.Entries {
			if e.Verb == Rank {
				cost, _, _ := strings.Cut(strings.TrimPrefix(e.Detail, "deletion cost "), ",")
				ranked = append(ranked, fmt.Sprintf("%v %s %s %s", d.At, e.Subject, cost, e.Why.Text))
			}
			if e.Verb == Drain {
				launches[e.Subject+string(e.Why.Reason)+e.Why.Text]--
				if n, at, ok := tl.DecisionAbout(e.Subject, d.At); !ok || n != i || tl.Decision(n).Entries[at].Subject != e.Subject || at > k {
					t.Errorf("the last decision about %s at %v is %d, want %d", e.Subject, d.At, n, i)
				}
			}
		}
	}
	if !slices.Equal(got, want) || len(got) == 0 {
		t.Errorf("decisions have %v entries, the plans %v", got, want)
	}
	if !slices.Equal(ranked, ranks) || len(ranks) == 0 {
		t.Errorf("decisions rank %q, the plans %q", ranked, ranks)
	}
	for name, n := range launches {
		if n != 0 {
			t.Errorf("the drain %q is there %d times too few", name, n)
		}
	}
}

// TestRank gives nodes a deletion cost: each is named with its figure, and a node
// that is drained too is found by either verb.
func TestRank(t *testing.T) {
	s := &policy.Snapshot{Nodes: []policy.Node{{Name: "n1", Pool: policy.None}, {Name: "n2"}, {Name: "n3"}},
		Pools: []policy.Pool{{Name: "web"}}}
	p := &policy.Plan{DeletionCosts: []policy.DeletionCost{{Node: 0, Cost: -7,
		Why: policy.Why{Reason: policy.ReasonNotice}}, {Node: 1, Cost: 0}, {Node: 2, Cost: 3}},
		Drains: []policy.Drain{{Node: 1}}, Holds: []policy.Hold{{Pool: 0, Node: policy.None}}}
	tl := newTimeline(About{})
	tl.addDecision(s, p)
	var got []string
	for _, e := range tl.Decision(0).Entries {
		got = append(got, fmt.Sprintf("%s %s [%s] %s %s", e.Verb, e.Subject, e.Pool, e.Detail, e.Why.Reason))
	}
	want := []string{"drain n2 [web]  ", "rank n1 [] deletion cost -7, of which the lowest leaves first notice",
		"rank n2 [web] deletion cost 0, of which the lowest leaves first ",
		"rank n3 [web] deletion cost 3, of which the lowest leaves first ", "hold web [web]  "}
	if !slices.Equal(got, want) {
		t.Errorf("it says %q, not %q", got, want)
	}
	for verb, place := range map[Verb]int{Drain: 0, Rank: 2} {
		if _, k, ok := tl.DecisionAbout("n2", 0, verb); !ok || k != place {
			t.Errorf("the %s of n2 is at %d, %v, not at %d", verb, k, ok, place)
		}
	}
	if _, _, ok := tl.DecisionAbout("n3", 0, Drain, Hold); ok {
		t.Error("n3 was neither drained nor held")
	}
}

// TestDecisionsOf steps through the decisions with some verbs, forth and back.
func TestDecisionsOf(t *testing.T) {
	tl, _ := observed(t, config(t, embedded(t, "squeeze", caseLength), "portfolio"), "portfolio")
	for _, verbs := range [][]Verb{nil, {Hold}, {Rank}, {Launch, Drain}} {
		var forth, back, want []int
		for i, ok := tl.NextDecision(0, verbs...); ok; i, ok = tl.NextDecision(tl.Decision(i).At, verbs...) {
			forth = append(forth, i)
		}
		for i, ok := tl.PreviousDecision(tl.Until()+1, verbs...); ok; i, ok = tl.PreviousDecision(tl.Decision(i).At, verbs...) {
			back = append(back, i)
		}
		slices.Reverse(back)
		for i := range tl.Decisions() {
			if slices.ContainsFunc(tl.Decision(i).Entries, func(e Entry) bool { return verbs == nil || slices.Contains(verbs, e.Verb) }) {
				want = append(want, i)
			}
		}
		if !slices.Equal(forth, want) || !slices.Equal(back, want) || len(want) == 0 {
			t.Errorf("%v: forth %v, back %v, want %v", verbs, forth, back, want)
		}
	}
}
