package eval

import (
	"bytes"
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
					Bill: r.Bill, OutageCost: r.OutageCost, OutageMinutes: r.OutageMinutes}
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

// TestCompare holds the verdicts: what the other build does otherwise, and what
// that is.
func TestCompare(t *testing.T) {
	dearOutage := func(x *OtherRun) {
		if x.Policy == "spot" { // ours has an outage more in every fourth run, of 8 % of the bill
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
		want   Verdict
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
		if r.Comparison.Verdict != c.want || len(o.asked) != c.looks {
			t.Errorf("%s: %s after %d looks, want %s after %d: %+v", c.name, r.Comparison.Verdict, len(o.asked), c.want, c.looks, r.Comparison.Changes)
		}
		if failed := r.ExitCode() == 1; failed != (c.want == Worse) {
			t.Errorf("%s: exit code %d", c.name, r.ExitCode())
		}
		if warned := len(r.Warnings()) > 0; warned != (c.want == Undecided || c.want == NotComparable) {
			t.Errorf("%s: warnings %q", c.name, r.Warnings())
		}
	}
}

// TestCompareByHand: ten pairs that all lose 1 % of their on-demand bill lose
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
	want := "this change: net savings −$" + money(7*sum/10) + "/week, outages +14 min/week (static)"
	if got := r.Comparison.Headline(); got != want {
		t.Errorf("%s, want %s", got, want)
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
	if n := len(r.Comparison.Changes); n != 8*4 || r.Comparison.Verdict != Worse || !strings.Contains(r.Comparison.Headline(), "(spot in c") {
		t.Errorf("%d changes, verdict %s, %s", n, r.Comparison.Verdict, r.Comparison.Headline())
	}
	for _, x := range r.Comparison.Changes {
		want := Equal
		if x.Scenario == "c" && x.Policy == "spot" {
			want = Worse
		}
		if x.Verdict != want || x.Pairs != 20 {
			t.Errorf("%s in %q: %s of %d pairs, want %s of 20", x.Policy, x.Scenario, x.Verdict, x.Pairs, want)
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
		if got.Units != x.units || got.Over != x.over || got.Pairs != x.windows*x.seeds || got.Savings.Worse != x.units || got.Verdict != Worse || math.Abs(got.Savings.Median+2) > 0.3 {
			t.Errorf("%d windows of %d seeds: %+v", x.windows, x.seeds, got)
		}
	}
}

// TestCompareWorstWorld: the verdict of the whole is the worst of all worlds, and
// one that seeds do not tell is no pass. What two worlds lose is not added up.
func TestCompareWorstWorld(t *testing.T) {
	c := shown()
	c.Cases, c.Seeds, c.Gates = cases(1, "a", "b"), DefaultSeeds(10), nil
	noise := cheaper("spot", func(x *OtherRun) float64 { return 8 * luck(x) })
	r := setAgainst(t, c, &fakeOther{change: func(x *OtherRun) {
		if x.Scenario == "b" {
			noise(x)
		}
	}})
	if x := r.Comparison; x.Verdict != Undecided || len(x.Seeds) != 40 || !strings.Contains(strings.Join(x.Warnings, "\n"), "whether spot in b lost") {
		t.Errorf("%s after %d seeds: %q", x.Verdict, len(x.Seeds), x.Warnings)
	}
	r = setAgainst(t, c, &fakeOther{change: func(x *OtherRun) {
		cheaper("spot", constant(map[string]float64{"a": 3, "b": 1}[x.Scenario]))(x)
	}})
	if want := "this change: net savings −$0.95/week, outages +0 (spot in a, of 2 pairs of a policy and a scenario that changed)"; r.Comparison.Headline() != want {
		t.Errorf("%s, want %s", r.Comparison.Headline(), want)
	}
	var out bytes.Buffer
	if err := r.WriteTable(&out, 200); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nspot in a ", "\nspot in b ", "6 of 8 pairs of a policy and a scenario did the same in every run and are left out."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, out.String())
		}
	}
}

// TestCompareDearOnDemand: a build that makes on-demand dear has not saved more.
func TestCompareDearOnDemand(t *testing.T) {
	c := shown()
	c.Gates = nil
	r := setAgainst(t, c, &fakeOther{change: cheaper(OnDemand, constant(5))})
	if v := r.Comparison.Changes[0]; v.Verdict != Worse || v.Savings.Mean > -4 {
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
	if x.Verdict != NotComparable || len(x.Warnings) != 2 || !strings.Contains(x.Warnings[0], "new: ") || !strings.Contains(x.Warnings[1], "static in old") {
		t.Errorf("%s: %q", x.Verdict, x.Warnings)
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
	if r = setAgainst(t, c, failing); r.Comparison.Verdict != Worse {
		t.Errorf("what is worse is %s where something is not comparable", r.Comparison.Verdict)
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
	if x := r.Comparison; x.Verdict != NotComparable || !strings.Contains(strings.Join(x.Warnings, "\n"), "the cloud fell down") {
		t.Errorf("%s: %q", x.Verdict, x.Warnings)
	}
}

// TestCompareFewPairs: too few units tell nothing, however clear they look, and
// it is said how many are needed.
func TestCompareFewPairs(t *testing.T) {
	c := shown()
	c.Cases, c.Seeds, c.Gates = cases(1, "web-week"), DefaultSeeds(2), nil
	o := &fakeOther{change: cheaper("spot", constant(5))}
	r := setAgainst(t, c, o)
	if r.Comparison.Verdict != Undecided || len(r.Comparison.Seeds) != 8 {
		t.Errorf("%s after seeds %v", r.Comparison.Verdict, r.Comparison.Seeds)
	}
	// A quarter of 5 % over four policies is left for the third look, half of
	// that for each figure: 2·2^−11 is less than it.
	var table bytes.Buffer
	if err := r.WriteTable(&table, 200); err != nil || !strings.Contains(table.String(), "(need ≥ 11 seeds)") {
		t.Errorf("%v: the table does not say what is needed:\n%s", err, table.String())
	}
	two := c
	two.Cases = cases(1, "web-week", "batch-night") // each has half of that
	for i, x := range setAgainst(t, two, &fakeOther{change: o.change}).Comparison.Changes {
		if x.Savings.Need != 12 || x.Units != 8 {
			t.Errorf("change %d of two scenarios needs %d units and has %d, want 12 and 8", i, x.Savings.Need, x.Units)
		}
	}
	c.Seeds = DefaultSeeds(3)
	if r := setAgainst(t, c, o); r.Comparison.Verdict != Worse || len(r.Comparison.Seeds) != 12 {
		t.Errorf("%s after seeds %v", r.Comparison.Verdict, r.Comparison.Seeds)
	}
	c.Seeds = []uint64{1<<64 - 1}
	if r := setAgainst(t, c, o); r.Comparison.Verdict != Undecided || len(r.Comparison.Seeds) != 1 {
		t.Errorf("seeds beyond the last: %v", r.Comparison.Seeds)
	}
}

// TestReadRuns: what one build writes another reads, to the micro-dollar, and
// what is no report is refused.
func TestReadRuns(t *testing.T) {
	c := shown()
	r, err := Run(t.Context(), c, fake{fail: func(j Job) bool { return j.Policy == "spot" && j.Seed == 3 }}.run)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	runs, err := ReadRuns(strings.NewReader(text))
	if err != nil || len(runs) != len(r.Runs) {
		t.Fatalf("%d of %d runs: %v", len(runs), len(r.Runs), err)
	}
	for i := range runs {
		a, b := &runs[i], &r.Runs[i]
		if a.Scenario != b.Scenario || a.Window != b.Window || a.Seed != b.Seed || a.Policy != b.Policy || (a.Err != "") != (b.Err != nil) {
			t.Fatalf("run %d is %+v", i, a)
		}
		if b.Err == nil && (a.Bill != b.Result.Bill || a.OutageCost != b.Result.OutageCost || a.OutageMinutes != b.Result.OutageMinutes ||
			a.Hash != hex.EncodeToString(b.Result.Hash[:]) || a.Weather != hex.EncodeToString(b.Result.Weather[:])) {
			t.Errorf("run %d is %+v, want bill %v", i, a, b.Result.Bill)
		}
	}
	for _, bad := range []struct{ text, want string }{
		{"usage: spotter", "invalid character"},
		{"", "EOF"},
		{text[:len(text)/2], "unexpected EOF"},
		{"{}", "schema_version"},
		{strings.Replace(text, `"schema_version": 2`, `"schema_version": 1`, 1), "that of spotter v0.1.0 is 1, and this one reads 2"},
		{strings.Replace(text, `"bill_usd"`, `"bill_eur"`, 40), "lacks one of bill_usd"},
	} {
		if _, err := ReadRuns(strings.NewReader(bad.text)); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%.20q: %v, want %q", bad.text, err, bad.want)
		}
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
