package policy_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
)

func TestPlanFormat(t *testing.T) {
	s := &policy.Snapshot{
		Markets: []policy.Market{{Name: "m0"}, {Name: "m1"}},
		Pools:   []policy.Pool{{Name: "web"}},
		Nodes:   []policy.Node{{Name: "n0"}, {Name: "n1"}},
		Pods:    []policy.Pod{{Name: "default/p0"}},
	}
	why := policy.Why{Reason: policy.ReasonCheaper}
	p := policy.Plan{
		Steers: []policy.Steer{{Share: 0.5, Exact: true, Markets: []policy.MarketID{1}, Why: why}},
		Launches: []policy.Launch{{Markets: []policy.MarketID{0, 1}, Replaces: 1, Why: why},
			{Markets: []policy.MarketID{0}, Replaces: policy.None, Why: why}},
		Drains: []policy.Drain{{Node: 1, After: []string{"x"}, Why: why}, {Why: why}},
		Evicts: []policy.Evict{{Why: why}},
		Gates:  []policy.Gate{{Budget: "team", Closed: true, Why: why}, {Budget: "team", Why: why}},
		Holds:  []policy.Hold{{Node: policy.None, Why: why}, {Pool: policy.None, Node: 1, Why: why}},
	}
	const want = `steer web share=0.500 exact markets=1 (cheaper)
launch web m0 m1 for=n1 (cheaper)
launch web m0 (cheaper)
drain n1 after=1 (cheaper)
drain n0 (cheaper)
gate team closed (cheaper)
gate team open (cheaper)
evict default/p0 (cheaper)
hold web (cheaper)
hold n1 (cheaper)
`
	if got := p.Format(s); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

// TestToken pins one token: a controller that restarts with a newer program
// must not buy a second node. Any other content gives another.
func TestToken(t *testing.T) {
	const want = "3e8-0f7a9bebc71746d8-2"
	if got := policy.Token(1000, "web", "aws/r/z/t/spot", 2); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	seen := make(map[string]bool)
	for _, token := range []string{
		policy.Token(1, "ab", "c", 0), policy.Token(1, "a", "bc", 0), policy.Token(2, "ab", "c", 0), policy.Token(1, "ab", "c", 1),
	} {
		if seen[token] {
			t.Errorf("%s comes from two contents", token)
		}
		seen[token] = true
	}
}

func TestNextStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := policy.Time(rapid.Int64Range(1, 1e13).Draw(t, "now"))
		step := policy.Time(rapid.Int64Range(1, 1e8).Draw(t, "step"))
		next := policy.NextStep(now, step)
		if next <= now || next-step > now || next%step != 0 {
			t.Fatalf("after %d on the grid of %d comes %d", now, step, next)
		}
	})
}

func TestTime(t *testing.T) {
	at := time.Date(2026, 3, 29, 1, 59, 59, 999_999_999, time.UTC)
	x := policy.TimeOf(at)
	if got := x.String(); got != "2026-03-29T01:59:59.999Z" {
		t.Errorf("got %s", got)
	}
	if got := x.Add(time.Minute + 999*time.Microsecond).Sub(x); got != time.Minute {
		t.Errorf("a minute and 999 µs later is %v later", got)
	}
	if got := policy.Time(0).String(); got != "-" {
		t.Errorf("not set is %q", got)
	}
}
