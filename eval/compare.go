package eval

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// ErrRefused is wrapped by the error of [Other] for a scenario, policy or flag that the other side
// does not know, so that there is nothing to compare with.
var ErrRefused = errors.New("refused")

// LossMax is the largest acceptable loss of a change, in percentage points of the on-demand bill.
// Chance alone causes such a difference when a decision moves by a minute.
const LossMax = 0.2

// An Other executes runs of the other side of a comparison, usually the target branch of a change.
type Other interface {
	// Runs executes every window of a scenario with the given policies and seeds.
	Runs(ctx context.Context, scenario string, policies []string, seeds []uint64) ([]OtherRun, error)
}

// An Against identifies the other side of a comparison: another program, the same program with
// other files, or both.
type Against struct {
	Other

	// Program is the other program as named by the user, empty if it is this program. Version is
	// the version that it reports.
	Program, Version string

	// Files is the folder of the other side's files, empty if both sides read the same files.
	Files string

	// Judged are the policies that determine the outcome; empty means all policies.
	Judged []string
}

// name describes the other side in words.
func (a *Against) name() string {
	program := a.Program
	if program != "" && a.Version != "" {
		program = a.Version + " (" + a.Program + ")"
	}
	files := a.Files
	if filepath.IsAbs(files) {
		files = filepath.Base(files) // the rest of the path differs between machines
	}
	switch {
	case files == "":
		return program
	case program == "":
		return "the files in " + files
	}
	return program + " on the files in " + files
}

// An OtherRun contains the properties of one run that a comparison requires.
type OtherRun struct {
	Scenario string
	Window   int
	Seed     uint64
	Policy   string

	// Weather and Hash are hexadecimal digests.
	Weather, Hash    string
	Bill, OutageCost policy.Money
	OutageMinutes    int64

	// SpotBill is a part of Bill, JobCost a part of OutageCost. CapacityHours and SpotShare are as
	// in [sim.Result]. Rough reports whether these four are unknown because the program that
	// executed the run does not report them.
	SpotBill, JobCost        policy.Money
	CapacityHours, SpotShare float64
	Rough                    bool

	Evidence

	// Err is the reason why the run is missing, empty if it is not. If set, the numbers are
	// undefined.
	Err string
}

// result returns the known fields of the run's result, without digests.
func (o *OtherRun) result() *sim.Result {
	return &sim.Result{
		Bill: o.Bill, SpotBill: o.SpotBill, OutageCost: o.OutageCost, JobCost: o.JobCost, Outages: sim.Outages{OutageMinutes: o.OutageMinutes},
		CapacityHours: o.CapacityHours, SpotShare: o.SpotShare,
	}
}

// An Outcome is the result of a comparison.
type Outcome string

// The outcomes, from best to worst. Only Worse rejects a change; Undecided and NotComparable are
// warnings.
const (
	Equal         Outcome = "no change"      // every run equals that of the other side
	NoWorse       Outcome = "pass"           // any loss is within the tolerance
	Undecided     Outcome = "undecided"      // four times the seeds are not sufficient for a decision
	NotComparable Outcome = "not comparable" // the weather differs, or there is nothing to compare with
	Worse         Outcome = "fail"           // net savings or outages are worse by more than the tolerance
)

// A Comparison is the difference between this program with its files and another side. Both have
// run the same cells (scenario, window, seed and policy), and the difference is taken cell by cell.
// Net savings of both sides are relative to the on-demand run of the other side, so a change cannot
// look good by making on-demand expensive. Only if the sides differ in their demand is each side
// measured against its own on-demand run, as a share: the cost of more pods, or of fewer, is
// neither a loss nor a gain.
//
// Scenarios are never pooled: each policy is judged separately in each scenario. All tests share an
// error rate of 5%. It is divided equally among scenarios and policies, and then among the looks at
// the seeds ([stats.LookRate]). Over all tests and all looks, the probability that anything is
// falsely reported as worse is therefore at most 5%, and so is the probability that anything worse
// passes. [stats.Test.Paired] defines worse.
type Comparison struct {
	// Description of the other side.
	Other string `json:"other"`
	// The other program, as named by the user.
	Program string `json:"program,omitempty"`
	// Version that the other program reports.
	Version string `json:"version,omitempty"`
	// Folder of the other side's files.
	Files string `json:"files,omitempty"`
	// Seeds that were run: those of config.seeds, and more if these were not sufficient.
	Seeds []uint64 `json:"seeds"`
	// The worst verdict of all changes: no change, pass, undecided, not comparable or fail. Only
	// fail results in exit code 1.
	Outcome Outcome `json:"verdict"`
	// The change of each scenario and policy.
	//
	// They are in the order of the cases and of Config.Policies. Scenarios are never aggregated.
	Changes []Change `json:"changes"`

	// Warnings list what could not be estimated, with reasons.
	Warnings []string `json:"-"`
}

// A Change is the difference of one policy in one scenario. Values per week are means over cells.
type Change struct {
	Scenario string `json:"scenario"`
	Policy   string `json:"policy"`
	// Verdict on this change, as for the comparison.
	Outcome Outcome `json:"verdict"`
	// Number of independent units that the verdict is based on. The value of a unit is the mean
	// over its cells.
	Units int `json:"units"`
	// Kind of units: windows if there are enough of them for an interval at the last look, else
	// seeds. In the latter case the result only applies to these windows.
	Over string `json:"over"`
	// Number of cells that both sides ran.
	Pairs int `json:"pairs"`
	// Number of these cells whose events differ.
	Changed int `json:"changed"`
	// Number of cells that are missing on one side.
	Missing int `json:"missing"`
	// Difference of net savings in percentage points of the other side's on-demand bill, or of each
	// side's own on-demand bill if demand differs; higher is better. It is empty if there are no
	// pairs.
	Savings Difference `json:"net_savings_points"`
	// Difference of the outage cost in the same unit; higher is worse. It is empty if there are no
	// pairs.
	Outage Difference `json:"outage_cost_points"`
	// Mean difference of net savings in dollars per week.
	SavingsWeek float64 `json:"net_savings_usd_per_week"`
	OutageWeek  float64 `json:"outage_minutes_per_week"`
	// Number of cells in which demand differs.
	Demand int `json:"other_demand,omitempty"`
	// Mean difference of the on-demand bill in dollars per week.
	OnDemandWeek float64 `json:"on_demand_usd_per_week"`

	// Before is the spending of the other side in the pairs, After that of this side. Both have no
	// runs if there are no pairs.
	Before Spending `json:"-"`
	After  Spending `json:"-"`
}

// MarshalJSON omits the differences if there are no pairs.
func (x Change) MarshalJSON() ([]byte, error) {
	type change Change
	if x.Pairs > 0 {
		return json.Marshal(change(x))
	}
	return json.Marshal(struct {
		change
		Savings      struct{} `json:"net_savings_points"`
		Outage       struct{} `json:"outage_cost_points"`
		SavingsWeek  struct{} `json:"net_savings_usd_per_week,omitzero"`
		OutageWeek   struct{} `json:"outage_minutes_per_week,omitzero"`
		OnDemandWeek struct{} `json:"on_demand_usd_per_week,omitzero"`
	}{change: change(x)})
}

// A Difference is the difference of one metric over units, in percentage points.
type Difference struct {
	// Mean over units. It includes rare losses.
	Mean float64 `json:"mean"`
	// Median over units, which determines the verdict.
	Median float64 `json:"median"`
	// Exact confidence interval of the median, at the error rate of the last look.
	Interval *stats.Interval `json:"interval,omitempty"`
	// Number of units that an interval requires, if there are fewer.
	Need int `json:"need,omitempty"`
	// Number of units that are worse by more than the tolerance.
	Worse int `json:"worse"`
	// Number of units that are better by more than the tolerance.
	Better int `json:"better"`

	// exceeds reports whether the metric is worse by more than the tolerance, within whether it is
	// not. Both are false if the test does not decide.
	exceeds, within bool
}

// Compare runs the cells of r on the other side and sets r.Comparison. If the result is undecided
// it doubles the number of seeds, at most twice; only the comparison contains the additional runs.
// If ctx ends, Compare sets no comparison and marks r as stopped. It does not compare a report that
// was stopped before.
func (r *Report) Compare(ctx context.Context, a Against, runner Runner) error {
	if r.Stopped {
		return nil
	}
	err := r.compare(ctx, a, runner)
	if ctx.Err() != nil && r.Comparison == nil {
		r.stop()
		return nil
	}
	return err
}

func (r *Report) compare(ctx context.Context, a Against, runner Runner) error {
	p := newPairing(&r.Config, a)
	c := &Comparison{Other: a.name(), Program: a.Program, Version: a.Version, Files: a.Files}
	runs, seeds := r.Runs, r.Config.Seeds
	for look := 0; ; look++ {
		if err := p.add(ctx, runs, seeds); err != nil {
			return err
		}
		c.Changes, c.Seeds = p.changes(look), p.seeds
		c.Warnings = p.warnings()
		c.judge(len(p.strange) > 0 || p.missing)
		next := Following(p.seeds, len(p.seeds))
		if !c.open() || look+1 == stats.LooksMax || next == nil {
			break
		}
		more := r.Config
		more.Seeds = next
		var err error
		if runs, err = Cells(ctx, &more, runner); err == nil {
			err = checkWeather(&more, runs)
		}
		if err != nil {
			return err
		}
		seeds = next
	}
	r.Comparison = c
	return nil
}

// open reports whether more seeds may decide an undecided outcome.
func (c *Comparison) open() bool {
	return c.Outcome != Worse && slices.ContainsFunc(c.Changes, func(x Change) bool { return x.Outcome == Undecided })
}

// judge sets the outcome, which is the worst of all changes. unpaired reports whether only one of
// the sides could run some cells.
func (c *Comparison) judge(unpaired bool) {
	worst := Equal
	order := []Outcome{Equal, NoWorse, Undecided, NotComparable, Worse}
	for i := range c.Changes {
		if v := c.Changes[i].Outcome; slices.Index(order, v) > slices.Index(order, worst) {
			worst = v
		}
	}
	if unpaired && worst != Worse {
		worst = NotComparable
	}
	c.Outcome = worst
}

// BeyondNoise reports whether there is a change that chance does not explain, so that a person must
// review it.
func (c *Comparison) BeyondNoise() bool {
	apart := func(d Difference) bool {
		return d.Interval != nil && (d.Interval.Low > 0 || d.Interval.High < 0)
	}
	return c.Outcome == Worse || slices.ContainsFunc(c.Changes, func(x Change) bool {
		return apart(x.Savings) ||
			apart(x.Outage)
	})
}

// Month returns the change per month: of net savings in dollars, of outage minutes, and of the
// on-demand bill in dollars.
func (x *Change) Month() (savings, outage, onDemand float64) {
	const weeks = float64(month) / float64(week)
	return x.SavingsWeek * weeks, x.OutageWeek * weeks, x.OnDemandWeek * weeks
}

const week = 7 * 24 * time.Hour

// weekly scales x from the length of a window to a week.
func weekly(x float64, window time.Duration) float64 {
	return x * (float64(week) / float64(window))
}
