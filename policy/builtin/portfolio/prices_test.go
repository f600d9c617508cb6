package portfolio

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

func planStateOf(t *testing.T, text string) *planState {
	t.Helper()
	s, _, err := policytest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	e.read(s)
	d := newPlanState(e, s, &s.Pools[0], new(policy.Plan), policy.PoolMemory{})
	return d
}

const twoMarkets = `
type a.4 4
market y a.4 on-demand 0.20
market y a.4 spot 0.08 hazard=0.01
market z a.4 on-demand 0.20
market z a.4 spot 0.06
pool web
app api 1 pdb=2 replicas=6
node n1 web z a.4 spot
node n2 web z a.4 spot
pod api n1 3
pod api n2 3`

// TestLoss: a pod is worth $0.05 an hour, and serves again 2.5 minutes after it was lost.
// It is missed at twice its value, as outages are counted, and two hours of that for the rest.
func TestLoss(t *testing.T) {
	d := planStateOf(t, twoMarkets)
	pod := 2*0.05*2.5/60 + 2*0.05
	if got := d.perPod.each[0]; math.Abs(got-pod) > 1e-9 {
		t.Errorf("the loss of a pod costs %v, not %v", got, pod)
	}
	// One pod a core, four cores a node, a hundredth of a reclaim an hour.
	if got, want := d.prices.costs[1], 0.08+0.01*4*pod; math.Abs(got-want) > 1e-9 {
		t.Errorf("a node in the risky market costs %v an hour, not %v", got, want)
	}
	if got := d.prices.costs[3]; math.Abs(got-0.06) > 1e-9 {
		t.Errorf("a node in the safe market costs %v an hour", got)
	}
}

// TestLossOfSpare: a workload pays the penalty of an outage, four hours of the pod's value,
// for a pod that it cannot spare, half of it for the only one that it can, and nothing else.
func TestLossOfSpare(t *testing.T) {
	for budget, part := range map[string]float64{"pdb=0": 1, "pdb=1": 0.5, "pdb=2": 0} {
		d := planStateOf(t, strings.ReplaceAll(twoMarkets, "pdb=2", budget))
		want := d.perPod.missed(0.05, 2.5) + part*4*0.05
		if got := d.perPod.each[0]; math.Abs(got-want) > 1e-9 {
			t.Errorf("with %s the loss of a pod costs %v, not %v", budget, got, want)
		}
	}
}

// TestValueByPool: a pod is worth its part of the cheapest node of the pool in hand,
// whatever it was worth in the pool before.
func TestValueByPool(t *testing.T) {
	d := planStateOf(t, twoMarkets)
	dear := d.s.Pools[0]
	dear.Markets = d.pool.Markets[:2]
	d.s.Markets[0].Price, d.s.Markets[0].OnDemand = 400_000, 400_000
	d.pool = &dear
	if got := readPodLosses(d.poolContext, d.jobs.progress).values[0]; math.Abs(got-0.10) > 1e-9 {
		t.Errorf("in the dear pool a pod is worth %v an hour, not 0.10", got)
	}
}

// TestConcentration: all nodes of the pool are in one market, so one more node there counts as more
// expensive by the three risks together.
func TestConcentration(t *testing.T) {
	d := planStateOf(t, twoMarkets)
	cfg := d.e.cfg
	if got, want := d.concentration.factor(3), 1+cfg.MarketRisk+cfg.TypeRisk+cfg.ZoneRisk; math.Abs(got-want) > 1e-9 {
		t.Errorf("the factor of the market with all nodes is %v, not %v", got, want)
	}
	if got, want := d.concentration.factor(1), 1+cfg.TypeRisk; math.Abs(got-want) > 1e-9 {
		t.Errorf("the factor of the other market is %v, not %v", got, want)
	}
	if got := d.concentration.factor(0); got != 1 {
		t.Errorf("the factor on demand is %v", got)
	}
}

// TestResourceValue: no market sells a node for less than all that it offers is worth, and
// the cheapest sells at that.
func TestResourceValue(t *testing.T) {
	d := planStateOf(t, twoMarkets)
	v := d.prices.evaluate(true)
	for _, m := range []policy.MarketID{1, 3} {
		if got := v.of(d.s.Types[0].Allocatable); got > d.prices.costs[m]+1e-9 {
			t.Errorf("market %d sells for %v what is worth %v", m, d.prices.costs[m], got)
		}
	}
	if got := v.of(d.s.Types[0].Allocatable); math.Abs(got-0.06) > 1e-9 {
		t.Errorf("the cheapest node is worth %v", got)
	}
}

// TestLargest: a node of more than 8 vCPUs is at most half, and one of more than 16 at most a
// quarter, of the requests of all pods that may run in the pool, wherever they run now, and no node
// is larger than configured.
func TestLargest(t *testing.T) {
	of := func(cores string) string { return strings.ReplaceAll(twoMarkets, "app api 1", "app api "+cores) }
	beside := func() string {
		return "type a.4 4\nmarket z a.4 spot 0.06\ntype a.40 40\nmarket z a.40 spot 0.60\npool web\npool x" +
			"\napp api 1 replicas=3\nnode n1 web z a.4 spot\npod api n1 3\napp shop 30 replicas=1\nnode n2 x z a.40 spot\npod shop n2 1"
	}
	for name, c := range map[string]struct {
		world string
		cores int
		want  int64
	}{
		"few":        {twoMarkets, 32, 8},
		"stated":     {twoMarkets, 4, 4},
		"half":       {of("5"), 32, 15},
		"medium":     {of("7"), 32, 16},
		"a quarter":  {of("20"), 32, 30},
		"many":       {of("33"), 32, 32},
		"configured": {of("33"), 8, 8},
		"larger":     {of("33"), 128, 49},
		"of another": {beside(), 32, 16},
	} {
		d := planStateOf(t, c.world)
		d.e.cfg.Cores = c.cores
		if got := d.prices.largest(); got != c.want {
			t.Errorf("%s: of %d cores asked for at most %d are bought in one node with cores=%d, not %d", name,
				d.demand.reach()/1000, got, c.cores, c.want)
		}
	}
	// Pods that may not run in the pool do not count.
	d := planStateOf(t, beside())
	d.pool.Taints = []policy.Taint{{Key: "team", Value: "web", Effect: policy.NoSchedule}}
	if got := d.demand.reach(); got != 3000 {
		t.Errorf("with a taint %d thousandths of a core may come to the pool, not 3000", got)
	}
}

// TestPeak: the peak of requests counts for a day after it was last reached.
func TestPeak(t *testing.T) {
	d := planStateOf(t, strings.ReplaceAll(twoMarkets, "app api 1", "app api 7"))
	most, since := d.demand.reach(), d.s.Now
	d.demand.total.CPU /= 2
	few := d.demand.reach()
	for _, c := range []struct {
		after   time.Duration
		cpu     int64
		at      time.Duration
		largest int64
	}{
		{time.Minute, most, 0, 16},
		{peakMemory - 1, most, 0, 16},
		{peakMemory, few, peakMemory, 10},
		{peakMemory + peakAgain - 1, few, peakMemory, 10},
		{peakMemory + peakAgain, few, peakMemory + peakAgain, 10},
	} {
		d.s.Now = since.Add(c.after)
		d.demand.readPeak()
		if want := (policy.Peak{CPU: c.cpu, At: since.Add(c.at)}); d.memory.Peak != want || d.prices.largest() != c.largest {
			t.Errorf("after %v the peak is %+v and a node has up to %d cores, not %+v and %d", c.after, d.memory.Peak,
				d.prices.largest(), want, c.largest)
		}
	}
}

// TestFullLeftOut: the cheapest market holds the two pods that api can lose, so it is
// left out as long as its zone has three others that cost about the same, and bought in
// again where there are only two.
func TestFullLeftOut(t *testing.T) {
	const full = "aws/region/z/a.4/spot"
	for last, want := range map[string]bool{"0.0603": false, "0.0900": true} {
		d := planStateOf(t, `
type a.4 4
type b.4 4
type c.4 4
type d.4 4
market z a.4 on-demand 0.20
market z a.4 spot 0.06
market z b.4 spot 0.0601
market z c.4 spot 0.0602
market z d.4 spot `+last+`
pool web
app api 1 pdb=2 replicas=6
node n1 web z a.4 spot
node n2 web z a.4 on-demand
pod api n1 2
pod api n2 4`)
		d.e.cfg.MarketRisk, d.e.cfg.TypeRisk, d.e.cfg.ZoneRisk = 0, 0, 0
		d.e.readMoves(d.s)
		got := false
		for _, id := range d.steering.selected() {
			got = got || d.s.Markets[id].Name == full
		}
		if got != want {
			t.Errorf("with the last market at %s the full one is bought in: %v", last, got)
		}
	}
}
