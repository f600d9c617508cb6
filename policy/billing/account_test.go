package billing

import (
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

const hour = policy.Time(time.Hour / time.Millisecond)

// account meters one market at $0.10 an hour, with commitments.
func account(commitments ...policy.Commitment) *Account {
	types := []policy.InstanceType{{Name: "m5.large", Family: "m5"}}
	markets := []policy.Market{{Name: "m", OnDemand: 100_000, Price: 100_000}}
	curves := []*Curve{NewCurve([]policy.Time{0}, []policy.Money{100_000})}
	return NewAccount(NewCoverage(types, []string{"a"}, markets, commitments), markets, curves, Span{10 * hour, 20 * hour})
}

func stop(t *testing.T, a *Account, node int, at policy.Time, bill, spared policy.Money) {
	t.Helper()
	if got, free := a.Stop(node, 0, at); got != bill || free != spared {
		t.Errorf("node %d is billed %v and spared %v, want %v and %v", node, got, free, bill, spared)
	}
}

// TestAccountPasses: a reserved instance covers the node that came first, and
// passes to the next when that goes. Only the window is billed.
func TestAccountPasses(t *testing.T) {
	a := account(policy.Commitment{Name: "r", Amount: 1})
	a.Start(1, 0, 5*hour)
	a.Start(2, 0, 12*hour)
	stop(t, a, 1, 14*hour, 0, 400_000)
	stop(t, a, 2, 18*hour, 200_000, 400_000) // open from 12 to 14
	a.Start(3, 0, 18*hour)
	stop(t, a, 3, 25*hour, 0, 200_000)
}

// TestAccountPart: a plan for $0.15 an hour covers one node and half of the next, and one for $0.04
// covers that part of a node.
func TestAccountPart(t *testing.T) {
	a := account(policy.Commitment{Name: "p", Unit: policy.CoverDollars, Amount: 150_000})
	a.Start(1, 0, 10*hour)
	a.Start(2, 0, 10*hour)
	a.Start(3, 0, 10*hour)
	stop(t, a, 3, 12*hour, 200_000, 0)
	stop(t, a, 2, 13*hour, 150_000, 150_000)
	stop(t, a, 1, 13*hour, 0, 300_000)
	a = account(policy.Commitment{Name: "p", Unit: policy.CoverDollars, Amount: 40_000})
	a.Start(1, 0, 10*hour)
	stop(t, a, 1, 12*hour, 120_000, 80_000)
}

// TestAccountMinute: a short life is billed to its minute at the part that was
// open, and not at all where nothing was.
func TestAccountMinute(t *testing.T) {
	a := account(policy.Commitment{Name: "r", Amount: 1})
	a.Start(1, 0, 11*hour)
	a.Start(2, 0, 11*hour)
	stop(t, a, 1, 11*hour+1000, 0, 1667)
	// For a second it was open, then covered: $0.10/3600, rounded up.
	stop(t, a, 2, 11*hour+60_000, 28, 1639)
	a = account(policy.Commitment{Name: "r", Amount: 1})
	a.Start(1, 0, 11*hour)
	a.Start(2, 0, 11*hour)
	stop(t, a, 2, 11*hour+1000, 1667, 0)
}

// TestAccountWithoutCommitments bills as the curve does.
func TestAccountWithoutCommitments(t *testing.T) {
	a := account()
	a.Start(1, 0, 5*hour)
	stop(t, a, 1, 12*hour+1, a.curves[0].Bill(Span{5 * hour, 12*hour + 1}, a.window), 0)
}

// TestAccountOwes: the amount that a node owes never falls, also where a commitment covers it from
// its first minute on, and in the end it is what the node is billed.
func TestAccountOwes(t *testing.T) {
	a := account(policy.Commitment{Name: "r", Amount: 1})
	a.Start(1, 0, 11*hour)
	a.Start(2, 0, 11*hour)
	last := policy.Money(0)
	owes := func(at policy.Time) {
		t.Helper()
		now := a.Owes(2, 0, at)
		if now < last {
			t.Errorf("at %v it owes %v after %v", at, now, last)
		}
		last = now
	}
	owes(11 * hour)
	owes(11*hour + 1000)
	stop(t, a, 1, 11*hour+1000, 0, 1667) // from here on it is covered
	owes(11*hour + 1000)
	owes(12 * hour)
	stop(t, a, 2, 12*hour, last, 100_000-last)
}
