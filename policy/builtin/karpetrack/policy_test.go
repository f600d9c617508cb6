package karpetrack_test

import (
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/builtin/karpetrack"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// build makes the policy of a scripted case.
var build = policytest.Builder(karpetrack.DefaultConfig, karpetrack.New)

func TestRules(t *testing.T) {
	policytest.Rules(t, build, "", "threshold=0;underutilized=1;removal_delay=0s;batch_window=0s;max_price=0.3")
}

func TestDecide(t *testing.T) { policytest.Cases(t, "testdata/decide", build) }

func TestParameters(t *testing.T) {
	for _, c := range []struct{ spec, name, says string }{
		{"", "karpetrack", ""},
		{"batch_window=10s;threshold=0.2;periodic=true;percentile=50;max_price=0", "karpetrack", ""},
		{"batch_window=30s;bid_over=0.2;empty_grace=1m;max_price=0.05",
			"karpetrack:batch_window=30s:bid_over=0.2:empty_grace=1m0s:max_price=0.05", ""},
		{"underutilized=0.5;threshold=0.1;removal_delay=5m", "karpetrack:removal_delay=5m0s:threshold=0.1:underutilized=0.5", ""},
		{"periodic=false;periodic_interval=1h;percentile=80", "karpetrack:percentile=80:periodic=false:periodic_interval=1h0m0s", ""},
		{"batch_window=-1s", "", "batch_window -1s is negative"},
		{"batch_window=soon", "", `batch_window "soon" is not a duration`},
		{"bid_over=-0.1", "", "bid_over -0.1 is not in [0, 10]"},
		{"empty_grace=-1m", "", "empty_grace -1m0s is negative"},
		{"max_price=dear", "", `max_price "dear" is not a number`},
		{"max_price=-1", "", "max_price -1 is not a price"},
		{"percentile=60", "", "percentile 60 is not 20, 50 or 80"},
		{"percentile=half", "", `percentile "half" is not a whole number`},
		{"periodic=often", "", `periodic "often" is not true or false`},
		{"periodic_interval=1s", "", "periodic_interval 1s is less than 1m"},
		{"removal_delay=-1s", "", "removal_delay -1s is negative"},
		{"threshold=1", "", "threshold 1 is not in [0, 1)"},
		{"threshold=NaN", "", "threshold NaN is not in [0, 1)"},
		{"underutilized=1.5", "", "underutilized 1.5 is not in [0, 1]"},
		{"speed=1", "", `unknown parameter "speed"`},
	} {
		p, err := build(c.spec)
		switch {
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v does not say %s", c.spec, err, c.says)
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", c.spec, err)
		case c.says == "" && p.Name() != c.name:
			t.Errorf("%s is called %s, want %s", c.spec, p.Name(), c.name)
		}
	}
	for _, cfg := range []karpetrack.Config{{}, {PeriodicInterval: time.Hour, Percentile: 50, MaxPrice: -1}} {
		if _, err := karpetrack.New(cfg); err == nil {
			t.Errorf("%+v was taken", cfg)
		}
	}
}

// auction is one pool on an auction of $0.01, with a pod that waits, and bids at
// $0.012, $0.031 and $0.08; a node is worth $1.
const auction = `
type b.4 4
market z b.4 spot 0.01 auction bids=0.012/0.031/0.08
pool web none steer=1
app one 1
pod one pending 3
`

// TestFaultBidsFromAStaticTable names the bid after the published percentiles and
// what our own nodes met, on the grid of half a cent.
func TestFaultBidsFromAStaticTable(t *testing.T) {
	lost := func(ago time.Duration, losses, hours float64) func(*policy.Market, policy.Time) {
		return func(m *policy.Market, now policy.Time) {
			m.Experience = policy.Experience{At: now, Reclaims: losses, NodeHours: hours}
			if losses > 0 {
				m.Experience.Reclaimed = now.Add(-ago)
			}
		}
	}
	for _, c := range []struct {
		about, spec string
		change      func(*policy.Market, policy.Time)
		want        policy.Money
	}{
		{"0.031 x 1.10 = 0.0341", "", nil, 35_000},
		{"0.08 x 1.10 = 0.088", "percentile=80", nil, 90_000},
		{"0.012 x 1.10 = 0.0132", "percentile=20", nil, 15_000},
		{"0.031 x 1.50 = 0.0465", "bid_over=0.5", nil, 50_000},
		{"a node was lost: one percentile higher", "", lost(time.Hour, 1, 10), 90_000},
		{"two were lost: what it is worth", "", lost(time.Hour, 2, 10), 1_000_000},
		{"the loss was two days ago", "", lost(48*time.Hour, 2, 100), 35_000},
		{"three days of nodes and no loss: one lower", "", lost(0, 0, 72), 15_000},
		{"less than three days", "", lost(0, 0, 71), 35_000},
		{"no percentile is published", "", func(m *policy.Market, _ policy.Time) { m.BidPercentiles = [3]policy.Money{} }, 1_000_000},
		{"the market is above the percentile: 0.05 x 1.10 = 0.055", "", func(m *policy.Market, _ policy.Time) { m.Price = 50_000 }, 55_000},
		{"the reserve is what is charged", "", func(m *policy.Market, _ policy.Time) { m.Reserve = 100_000 }, 110_000},
		{"no more than on demand", "", func(m *policy.Market, _ policy.Time) { m.OnDemand = 32_000 }, 35_000},
		{"no more than the user's limit, on the grid", "max_price=0.032", nil, 30_000},
		{"but what is accepted, if anything is", "max_price=0.012", nil, 10_000},
	} {
		s, m, err := policytest.Parse(auction)
		if err != nil {
			t.Fatal(err)
		}
		if c.change != nil {
			c.change(&s.Markets[0], s.Now)
		}
		p, err := build(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		plan, _ := p.Decide(s, m)
		if len(plan.Launches) != 1 || plan.Launches[0].Bid != c.want {
			t.Errorf("%s: %+v, want a bid of %v", c.about, plan.Launches, c.want)
		}
	}
}

// TestFaultCapacityTakenAsAllocatable packs by what a node leaves to pods: three
// of four CPUs here.
func TestFaultCapacityTakenAsAllocatable(t *testing.T) {
	s, m, err := policytest.Parse(strings.Replace(auction, "pending 3", "pending 4", 1))
	if err != nil {
		t.Fatal(err)
	}
	s.Types[0].Allocatable.CPU = 3500
	p, err := build("")
	if err != nil {
		t.Fatal(err)
	}
	if plan, _ := p.Decide(s, m); len(plan.Launches) != 2 {
		t.Errorf("%d machines for four pods of one CPU with 3.5 each:\n%s", len(plan.Launches), plan.Format(s))
	}
}

// TestFaultLimitPassedByABatch buys no machine that would pass the pool's limit,
// in one batch either.
func TestFaultLimitPassedByABatch(t *testing.T) {
	s, m, err := policytest.Parse(strings.Replace(auction, "pending 3", "pending 12", 1))
	if err != nil {
		t.Fatal(err)
	}
	s.Pools[0].Limits.CPU = 8000
	p, err := build("")
	if err != nil {
		t.Fatal(err)
	}
	if plan, _ := p.Decide(s, m); len(plan.Launches) != 2 {
		t.Errorf("%d machines of four CPUs under a limit of eight:\n%s", len(plan.Launches), plan.Format(s))
	}
}

// TestAccounts has every entry state the dollars on both sides and how good the
// packing is known to be.
func TestAccounts(t *testing.T) {
	s, m, err := policytest.Parse(`
type b.4 4
type c.4 4
market z b.4 on-demand 0.20
market z b.4 spot 0.06
market z c.4 spot 0.07
pool web none steer=1
app one 1
node n1 web z b.4 on-demand
pod one n1 3
`)
	if err != nil {
		t.Fatal(err)
	}
	p, err := build("")
	if err != nil {
		t.Fatal(err)
	}
	plan, _ := p.Decide(s, m)
	if len(plan.Launches) != 1 || len(plan.Drains) != 1 {
		t.Fatal(plan.Format(s))
	}
	for _, w := range []policy.Why{plan.Launches[0].Why, plan.Drains[0].Why} {
		if w.Before != 200_000 || w.After != 60_000 || !strings.Contains(w.Text, "no packing costs less") {
			t.Errorf("%+v", w)
		}
	}
	if up := plan.Launches[0].Why.RunnerUp; up != "aws/region/z/c.4/spot" {
		t.Errorf("the runner-up is %q", up)
	}
}

// TestLimitsOfReplacements buys no replacement for which the pool's limit or the
// provider's quota has no room.
func TestLimitsOfReplacements(t *testing.T) {
	for _, c := range []struct {
		about    string
		change   func(*policy.Snapshot)
		launches int
	}{
		{"no limit", func(*policy.Snapshot) {}, 2},
		{"room for one", func(s *policy.Snapshot) { s.Pools[0].Limits.CPU = 12_000 }, 1},
		{"no room", func(s *policy.Snapshot) { s.Pools[0].Limits.CPU = 11_000 }, 0},
		{"quota for one", func(s *policy.Snapshot) {
			s.Quotas = []policy.Quota{{Name: "spot", Region: "region", Capacity: policy.Spot, VCPU: 7}}
		}, 1},
		{"a quota of on-demand", func(s *policy.Snapshot) {
			s.Quotas = []policy.Quota{{Name: "fixed", Region: "region", Capacity: policy.OnDemand}}
		}, 2},
	} {
		s, m, err := policytest.Parse(`
type b.4 4
market z b.4 on-demand 0.20
market z b.4 spot 0.06
pool web none steer=1
app one 1
node n1 web z b.4 on-demand
node n2 web z b.4 on-demand
pod one n1 3
pod one n2 3
`)
		if err != nil {
			t.Fatal(err)
		}
		s.Pools[0].Used = policy.Resources{CPU: 8000}
		c.change(s)
		p, err := build("")
		if err != nil {
			t.Fatal(err)
		}
		if plan, _ := p.Decide(s, m); len(plan.Launches) != c.launches || len(plan.Drains) != c.launches {
			t.Errorf("%s: want %d replacements:\n%s", c.about, c.launches, plan.Format(s))
		}
	}
}

// TestWaveOver forgets a wave that cannot end, and lets the pool rest after it; one
// whose nodes are gone is over without.
func TestWaveOver(t *testing.T) {
	for _, c := range []struct {
		about, nodes, wave string
		over               bool
		rests              time.Duration // until the pool is repacked
	}{
		{"its machine was lost", "node n1 web z b.4 spot\npod one n1 3", "21m/n1+n2/t0", true, 6 * time.Hour},
		{"its nodes are gone", "node new web z b.4 spot token=t0\npod one new 3", "21m/n1+n2/t0", true, 9 * time.Minute},
		{"it waits", "node n1 web z b.4 spot\npod one n1 3\nnode new web z b.4 spot token=t0 age=10m", "19m/n1+n2/t0", false, 9 * time.Minute},
		{"two hours were not enough", "node n1 web z b.4 spot\npod one n1 3\nnode new web z b.4 spot token=t0 age=10m",
			"140m/n1+n2/t0", true, 6 * time.Hour},
	} {
		s, m, err := policytest.Parse("type b.4 4\nmarket z b.4 spot 0.06\npool web none steer=1\napp one 1\n" + c.nodes +
			"\nmemory web packed=21m wave=" + c.wave)
		if err != nil {
			t.Fatal(err)
		}
		p, err := build("")
		if err != nil {
			t.Fatal(err)
		}
		_, next := p.Decide(s, m)
		pool := next.Pool("web")
		if over := pool.Wave.Since == 0; over != c.over {
			t.Errorf("%s: over is %v, want %v", c.about, over, c.over)
		}
		if rests := pool.Packed.Add(30 * time.Minute).Sub(s.Now); rests != c.rests {
			t.Errorf("%s: the pool is packed anew in %v, want %v", c.about, rests, c.rests)
		}
	}
}
