package eval

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// A fakeOther is another build that does what the fake runner does, but for
// what change makes of it.
type fakeOther struct {
	config *Config
	change func(*OtherRun) // what the other build does otherwise
	refuse func(scenario, policy string) bool
	asked  []int // seeds of each call
}

func (o *fakeOther) Runs(ctx context.Context, scenario string, policies []string, seeds []uint64) ([]OtherRun, error) {
	o.asked = append(o.asked, len(seeds))
	var out []OtherRun
	for _, p := range policies {
		if o.refuse != nil && o.refuse(scenario, p) {
			return nil, fmt.Errorf("%w: unknown policy %q", ErrRefused, p)
		}
	}
	names := slices.Clone(policies)
	for _, name := range []string{OnDemand, o.config.Baseline} {
		if !slices.Contains(names, name) {
			names = append(names, name) // they are always run
		}
	}
	for _, k := range o.config.Cases {
		if k.Scenario != scenario {
			continue
		}
		for _, s := range seeds {
			for _, p := range names {
				r, err := fake{}.run(ctx, Job{Case: k, Policy: p, Seed: s})
				if err != nil {
					return nil, err
				}
				x := OtherRun{Scenario: k.Scenario, Window: k.Window, Seed: s, Policy: p,
					Weather: hex.EncodeToString(r.Weather[:]), Hash: hex.EncodeToString(r.Hash[:]),
					Bill: r.Bill, OutageCost: r.OutageCost, OutageMinutes: r.OutageMinutes,
					SpotBill: r.SpotBill, JobCost: r.JobCost, CapacityHours: r.CapacityHours, SpotShare: r.SpotShare}
				if o.change != nil {
					o.change(&x)
				}
				out = append(out, x)
			}
		}
	}
	return out, nil
}

// against is o as another program.
func (o *fakeOther) against() Against {
	return Against{Other: o, Program: "./base", Version: "v0.0.9"}
}

// setAgainst returns a report that was compared with other.
func setAgainst(t *testing.T, c Config, o *fakeOther) *Report {
	t.Helper()
	r, err := Run(t.Context(), c, fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	o.config = &r.Config
	if err := r.Compare(t.Context(), o.against(), fake{}.run); err != nil {
		t.Fatal(err)
	}
	return r
}

// luck is a number in [-1, 1) of one run.
func luck(x *OtherRun) float64 {
	return 2*chance.New(x.Seed, "luck", x.Scenario).At1(uint64(x.Window)).Float() - 1
}

// cheaper changes the other build's run of a policy so that ours is worse by
// points of the on-demand bill, of $4.80 at most.
func cheaper(name string, points func(*OtherRun) float64) func(*OtherRun) {
	return func(x *OtherRun) {
		if x.Policy == name {
			x.Bill -= policy.Dollars(4.5 * points(x) / 100)
			x.Hash = "00" + x.Hash[2:]
		}
	}
}

func constant(points float64) func(*OtherRun) float64 {
	return func(*OtherRun) float64 { return points }
}

// TestCompare holds the outcomes: what the other build does otherwise, and what
// that is.
func TestCompare(t *testing.T) {
	dearOutage := func(x *OtherRun) {
		if x.Policy == "spot" { // ours has an outage more in every fourth run, of 8% of the bill
			x.Hash = "00" + x.Hash[2:]
			if x.Seed%4 == 0 {
				x.OutageCost -= policy.Dollars(0.4)
				x.Bill += policy.Dollars(0.4)
			}
		}
	}
	for _, c := range []struct {
		name   string
		change func(*OtherRun)
		want   Outcome
		looks  int
	}{
		{"nothing", nil, Equal, 1},
		{"a hash alone", cheaper("spot", constant(0)), NoWorse, 1},
		{"less than the tolerance", cheaper("spot", constant(0.15)), NoWorse, 1},
		{"more than the tolerance", cheaper("spot", constant(0.3)), Worse, 1},
		{"better", cheaper("spot", constant(-3)), NoWorse, 1},
		{"noise within the tolerance", cheaper("spot", func(x *OtherRun) float64 { return 0.3 * luck(x) }), NoWorse, 2},
		{"noise far beyond it", cheaper("spot", func(x *OtherRun) float64 { return 8 * luck(x) }), Undecided, 3},
		{"a loss within much noise", cheaper("spot", func(x *OtherRun) float64 { return 6 + 8*luck(x) }), Worse, 1},
		{"outages that a bill makes up for", dearOutage, Worse, 3},
		{"other weather", func(x *OtherRun) { x.Weather = "00" }, NotComparable, 1},
	} {
		o := &fakeOther{change: c.change}
		cfg := shown()
		cfg.Cases, cfg.Seeds, cfg.Gates = cases(1, "web-week"), DefaultSeeds(20), nil
		r := setAgainst(t, cfg, o)
		if r.Comparison.Outcome != c.want || len(o.asked) != c.looks {
			t.Errorf("%s: %s after %d looks, want %s after %d: %+v", c.name, r.Comparison.Outcome, len(o.asked), c.want,
				c.looks, r.Comparison.Changes)
		}
		if failed := r.ExitCode() == 1; failed != (c.want == Worse) {
			t.Errorf("%s: exit code %d", c.name, r.ExitCode())
		}
		if warned := len(r.Comparison.Warnings) > 0; warned != (c.want == NotComparable) {
			t.Errorf("%s: warnings %q", c.name, r.Comparison.Warnings)
		}
	}
}

// TestCompareByHand: ten pairs that all lose 1% of their on-demand bill lose
// one point, and what that is in dollars of a week.
func TestCompareByHand(t *testing.T) {
	c := shown()
	c.Cases, c.Seeds = cases(1, "web-week"), DefaultSeeds(10)
	bills := map[uint64]policy.Money{}
	o := &fakeOther{change: func(x *OtherRun) {
		switch x.Policy {
		case OnDemand:
			bills[x.Seed] = x.Bill
		case "static": // on-demand is run before it
			x.Bill -= bills[x.Seed] / 100
			x.OutageMinutes -= 2
			x.Hash = "00" + x.Hash[2:]
		}
	}}
	r := setAgainst(t, c, o)
	x := r.Comparison.Changes[slices.Index(r.Config.Policies, "static")]
	sum := 0.0
	for _, b := range bills {
		sum += (b / 100).Float()
	}
	near := func(a, b float64) bool { return a-b < 1e-4 && b-a < 1e-4 }
	if !near(x.Savings.Mean, -1) || !near(x.Savings.Interval.Low, -1) || !near(x.Savings.Interval.High, -1) || x.Outage.Mean != 0 ||
		!near(x.SavingsWeek, -7*sum/10) || x.OutageWeek != 14 || x.Pairs != 10 || x.Changed != 10 {
		t.Errorf("%+v, interval %v", x, x.Savings.Interval)
	}
}

// TestCompareOneScenario: what a change does to one of many scenarios is judged
// there, and nowhere together with the others.
func TestCompareOneScenario(t *testing.T) {
	c := shown()
	c.Cases = cases(1, "a", "b", "c", "d", "e", "f", "g", "h")
	c.Seeds, c.Gates = DefaultSeeds(20), nil
	r := setAgainst(t, c, &fakeOther{change: func(x *OtherRun) {
		if x.Scenario == "c" {
			cheaper("spot", constant(1))(x)
		}
	}})
	if n := len(r.Comparison.Changes); n != 8*4 || r.Comparison.Outcome != Worse {
		t.Errorf("%d changes, outcome %s", n, r.Comparison.Outcome)
	}
	for _, x := range r.Comparison.Changes {
		want := Equal
		if x.Scenario == "c" && x.Policy == "spot" {
			want = Worse
		}
		if x.Outcome != want || x.Pairs != 20 {
			t.Errorf("%s in %q: %s of %d pairs, want %s of 20", x.Policy, x.Scenario, x.Outcome, x.Pairs, want)
		}
	}
}

// TestCompareOver: the units are windows where there are enough of them, else the
// seeds, over all windows of which a unit has the mean.
func TestCompareOver(t *testing.T) {
	for _, x := range []struct {
		windows, seeds, units int
		over                  string
	}{{2, 20, 20, "seeds"}, {10, 12, 12, "seeds"}, {11, 12, 11, "windows"}} {
		c := shown()
		c.Cases, c.Seeds, c.Gates = cases(x.windows, "web-week"), DefaultSeeds(x.seeds), nil
		r := setAgainst(t, c, &fakeOther{change: cheaper("spot", func(o *OtherRun) float64 {
			if x.windows == 2 {
				return float64(4 * o.Window) // half of it in the mean of both
			}
			return 2
		})})
		got := r.Comparison.Changes[slices.Index(r.Config.Policies, "spot")]
		if got.Units != x.units || got.Over != x.over || got.Pairs != x.windows*x.seeds || got.Savings.Worse != x.units ||
			got.Outcome != Worse || math.Abs(got.Savings.Median+2) > 0.3 {
			t.Errorf("%d windows of %d seeds: %+v", x.windows, x.seeds, got)
		}
	}
}

// TestCompareWorstScenario: the outcome of the whole is the worst of all scenarios, and
// an undecided one is no pass.
func TestCompareWorstScenario(t *testing.T) {
	c := shown()
	c.Cases, c.Seeds, c.Gates = cases(1, "a", "b"), DefaultSeeds(10), nil
	noise := cheaper("spot", func(x *OtherRun) float64 { return 8 * luck(x) })
	r := setAgainst(t, c, &fakeOther{change: func(x *OtherRun) {
		if x.Scenario == "b" {
			noise(x)
		}
	}})
	if x := r.Comparison; x.Outcome != Undecided || len(x.Seeds) != 40 {
		t.Errorf("%s after %d seeds", x.Outcome, len(x.Seeds))
	}
}

// TestCompareDearOnDemand: a build that makes on-demand more expensive has not saved more.
func TestCompareDearOnDemand(t *testing.T) {
	c := shown()
	c.Gates = nil
	r := setAgainst(t, c, &fakeOther{change: cheaper(OnDemand, constant(5))})
	if v := r.Comparison.Changes[0]; v.Outcome != Worse || v.Savings.Mean > -4 {
		t.Errorf("on-demand: %+v", v)
	}
	if v := r.Comparison.Changes[slices.Index(r.Config.Policies, "spot")]; v.Savings.Mean != 0 {
		t.Errorf("spot gains %v by a dear on-demand", v.Savings.Mean)
	}
}

// TestCompareNew: policies and scenarios that the other build does not know are
// named, and the others compared.
func TestCompareNew(t *testing.T) {
	c := shown()
	c.Cases, c.Gates = cases(1, "new", "old"), nil
	o := &fakeOther{refuse: func(scenario, name string) bool { return scenario == "new" || name == "static" }}
	r := setAgainst(t, c, o)
	x := r.Comparison
	if x.Outcome != NotComparable || len(x.Warnings) != 2 || !strings.Contains(x.Warnings[0], "new: ") ||
		!strings.Contains(x.Warnings[1], "static in old") {
		t.Errorf("%s: %q", x.Outcome, x.Warnings)
	}
	for i := range x.Changes {
		want := len(c.Seeds)
		if x.Changes[i].Policy == "static" || x.Changes[i].Scenario == "new" {
			want = 0
		}
		if got := x.Changes[i].Pairs; got != want {
			t.Errorf("%s in %s has %d pairs, want %d", x.Changes[i].Policy, x.Changes[i].Scenario, got, want)
		}
	}
	failing := &fakeOther{refuse: o.refuse, change: cheaper("spot", constant(1))}
	c.Seeds = DefaultSeeds(20)
	if r = setAgainst(t, c, failing); r.Comparison.Outcome != Worse {
		t.Errorf("what is worse is %s where something is not comparable", r.Comparison.Outcome)
	}
}

// TestCompareMissing: runs that broke on one of the sides are no pass.
func TestCompareMissing(t *testing.T) {
	c := shown()
	c.Gates = nil
	r := setAgainst(t, c, &fakeOther{change: func(x *OtherRun) {
		if x.Policy == "spot" && x.Seed == 2 {
			x.Err = "the cloud fell down"
		}
	}})
	if x := r.Comparison; x.Outcome != NotComparable || !strings.Contains(strings.Join(x.Warnings, "\n"), "the cloud fell down") {
		t.Errorf("%s: %q", x.Outcome, x.Warnings)
	}
}

// TestCompareFewPairs: too few units show nothing, however clear they look, and
// it is said how many are needed.
func TestCompareFewPairs(t *testing.T) {
	c := shown()
	c.Cases, c.Seeds, c.Gates = cases(1, "web-week"), DefaultSeeds(2), nil
	o := &fakeOther{change: cheaper("spot", constant(5))}
	r := setAgainst(t, c, o)
	if r.Comparison.Outcome != Undecided || len(r.Comparison.Seeds) != 8 {
		t.Errorf("%s after seeds %v", r.Comparison.Outcome, r.Comparison.Seeds)
	}
	// A quarter of 5% over four policies is left for the third look, half of
	// that for each figure: 2·2^−11 is less than it.
	if x := r.Comparison.Changes[slices.Index(r.Config.Policies, "spot")]; x.Savings.Need != 11 || x.Over != OverSeeds {
		t.Errorf("it needs %d %s, want 11 seeds", x.Savings.Need, x.Over)
	}
	two := c
	two.Cases = cases(1, "web-week", "batch-night") // each has half of that
	for i, x := range setAgainst(t, two, &fakeOther{change: o.change}).Comparison.Changes {
		if x.Savings.Need != 12 || x.Units != 8 {
			t.Errorf("change %d of two scenarios needs %d units and has %d, want 12 and 8", i, x.Savings.Need, x.Units)
		}
	}
	c.Seeds = DefaultSeeds(3)
	if r := setAgainst(t, c, o); r.Comparison.Outcome != Worse || len(r.Comparison.Seeds) != 12 {
		t.Errorf("%s after seeds %v", r.Comparison.Outcome, r.Comparison.Seeds)
	}
	c.Seeds = []uint64{1<<64 - 1}
	if r := setAgainst(t, c, o); r.Comparison.Outcome != Undecided || len(r.Comparison.Seeds) != 1 {
		t.Errorf("seeds beyond the last: %v", r.Comparison.Seeds)
	}
}

// TestCompareStops: what the other build cannot do at all ends the comparison.
func TestCompareStops(t *testing.T) {
	r, err := Run(t.Context(), shown(), fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Compare(t.Context(), Against{Other: crashing{}}, fake{}.run); !errors.Is(err, errCloud) || r.Comparison != nil {
		t.Errorf("%v, %+v", err, r.Comparison)
	}
}

type crashing struct{}

func (crashing) Runs(context.Context, string, []string, []uint64) ([]OtherRun, error) {
	return nil, errCloud
}
