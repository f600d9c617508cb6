package portfolio

import (
	"math"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// A lossStory plays a pool of sixteen pods, each worth $0.05 an hour, of which eight are required.
// On demand they cost $0.80 an hour, on four Spot nodes $0.24.
type lossStory struct {
	t *testing.T
	p *Policy
	s *policy.Snapshot
	m policy.Memory
}

func newLossStory(t *testing.T, budget float64) *lossStory {
	t.Helper()
	s, m, err := policytest.Parse(sixteen)
	if err != nil {
		t.Fatal(err)
	}
	s.Templates[0].OutagePenalty = 24
	s.Pools[0].OnDemandFallback = true
	s.Workloads[0].Ready = 16
	cfg := DefaultConfig()
	cfg.LossBudget = budget
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	x := &lossStory{t, p, s, m}
	x.step(0)
	return x
}

// step lets time pass in steps of ten minutes, and returns what is remembered of the budget.
func (x *lossStory) step(d time.Duration) policy.LossBudget {
	for end := x.s.Now.Add(d); ; {
		_, x.m = x.p.Decide(x.s, x.m)
		x.s.Ended = nil
		if x.s.Now >= end {
			return x.m.Pool("web").Loss
		}
		x.s.Now = x.s.Now.Add(10 * time.Minute)
	}
}

// lose ends all pods with their nodes.
func (x *lossStory) lose() {
	x.s.Workloads[0].Ready = 0
	for range 16 {
		x.s.Ended = append(x.s.Ended, policy.EndedPod{Start: 1, End: x.s.Now, Cause: policy.EndReclaimed})
	}
}

// onDemand has the nodes of the pool on demand, and all pods ready.
func (x *lossStory) onDemand() {
	for i := range x.s.Nodes {
		x.s.Nodes[i].Market = 0
	}
	x.s.Workloads[0].Ready = 16
}

// TestLossBudget: ten hours on Spot earn $5.60 and a budget of $0.40, and the first day has one of
// $0.96. A loss of all pods costs 8 × 24 × $0.05 = $9.60 at once, and 2 × 16 × $0.05 an hour while they are missing. The pool leaves
// Spot, and returns when the budget has paid for what is left.
func TestLossBudget(t *testing.T) {
	x := newLossStory(t, 0.05)
	b := x.step(10 * time.Hour)
	near := func(want float64) {
		t.Helper()
		if math.Abs(b.Left-want) > 0.1 {
			t.Fatalf("left is %v, not %v", b.Left, want)
		}
	}
	near(7)
	if b.Bounded || x.m.Pool("web").Target != 1 {
		t.Fatalf("before any loss the pool is bounded: %+v", b)
	}
	x.lose()
	b = x.step(0)
	near(7 - 9.6)
	if !b.Away || x.m.Pool("web").Target != 0 {
		t.Errorf("after the loss the pool is at %v: %+v", x.m.Pool("web").Target, b)
	}
	x.onDemand()
	x.s.Now = x.s.Now.Add(10 * time.Minute)
	b = x.step(0)
	near(7 - 9.6 - 2*16*0.05/6 + 0.04/6)
	if b = x.step(50 * time.Hour); !b.Away || x.m.Pool("web").Target != 0 || len(b.Outages) != 0 {
		t.Errorf("after fifty hours the pool is at %v: %+v", x.m.Pool("web").Target, b)
	}
	b = x.step(70 * time.Hour)
	if b.Away || !b.Bounded {
		t.Errorf("the budget has paid for the loss, and the pool does not return: %+v", b)
	}
	if got := x.m.Pool("web").Target; got <= 0 || got >= 1 {
		t.Errorf("with little left the share is %v", got)
	}
}

// TestLossBudgetOfNewPool: a pool without pods has no account, and the first day's budget is that of
// its first pods.
func TestLossBudgetOfNewPool(t *testing.T) {
	x := newLossStory(t, 0.05)
	pods, w := x.s.Pods, x.s.Workloads[0]
	x.s.Pods, x.m = nil, policy.Memory{}
	x.s.Workloads[0].Replicas, x.s.Workloads[0].Ready = 0, 0
	if b := x.step(2 * time.Hour); b.At != 0 {
		t.Errorf("the account of an empty pool is open: %+v", b)
	}
	x.s.Pods, x.s.Workloads[0] = pods, w
	if b := x.step(0); math.Abs(b.Left-0.96) > 0.001 {
		t.Errorf("the first pods open an account with %v, not 0.96", b.Left)
	}
}

// TestNoLossBudget: without a budget nothing is remembered of it, and the pool does not leave Spot.
func TestNoLossBudget(t *testing.T) {
	x := newLossStory(t, 0)
	x.step(10 * time.Hour)
	x.lose()
	if b := x.step(0); b.At != 0 || x.m.Pool("web").Target == 0 {
		t.Errorf("without a budget the pool is at %v: %+v", x.m.Pool("web").Target, b)
	}
	x = newLossStory(t, 0.05)
	x.s.Pools[0].HasLossBudget = true // of zero, which means no budget
	x.step(10 * time.Hour)
	x.lose()
	if x.step(0); x.m.Pool("web").Target == 0 {
		t.Error("the pool states no budget, and leaves Spot")
	}
}

// TestProbationDoubles: each time that the budget is used up the pool stays away twice as long, and
// after a calm period half as long again.
func TestProbationDoubles(t *testing.T) {
	x := newLossStory(t, 0.05)
	c := &poolContext{s: x.s}
	b := &lossBudget{poolContext: c, losses: &poolLosses{jobs: &jobs{}}, fraction: 0.05}
	l := &c.memory.Loss
	away := func(left float64) time.Duration {
		l.Left = left
		b.updateAway()
		return l.Until.Sub(x.s.Now)
	}
	for i, want := range []time.Duration{6 * time.Hour, 12 * time.Hour, 24 * time.Hour} {
		if got := away(-1); got != want || !l.Away {
			t.Errorf("the budget is used up for the %dth time: away for %v, not %v", i+1, got, want)
		}
		x.s.Now = l.Until
		if away(1); l.Away {
			t.Errorf("the pool does not return: %+v", l)
		}
	}
	for i, want := range []time.Duration{12 * time.Hour, 6 * time.Hour, 6 * time.Hour} {
		x.s.Now = l.Until
		if got := away(1); l.Exhausted != 2-i || got != want {
			t.Errorf("calm period %d leaves %d times, and the next one takes %v, not %v", i+1, l.Exhausted, got, want)
		}
	}
	for range 20 { // many times at once count as the most that the time doubles
		away(-1)
		x.s.Now = l.Until
		away(1)
	}
	x.s.Now = l.Until
	if got := away(1); got != awayFirst<<(awayDoublings-1) {
		t.Errorf("after one calm period the next one takes %v", got)
	}
}
