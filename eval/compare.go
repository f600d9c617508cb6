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

// ErrRefused is wrapped by what [Other] returns when the other side does not
// know a scenario, a policy or a flag, and so has nothing to compare with.
var ErrRefused = errors.New("refused")

// LossMax is how many points of the on-demand bill a change may cost. It is what
// is lost to chance alone when a decision moves by a minute.
const LossMax = 0.2

// An Other does the runs of the other side of a comparison, which is the target branch of a change.
type Other interface {
	// Runs does every window of a scenario under the given policies and seeds.
	Runs(ctx context.Context, scenario string, policies []string, seeds []uint64) ([]OtherRun, error)
}

// An Against says what this program and its files are compared with: another
// program, the same program on other files, or both.
type Against struct {
	Other

	// Program is the other program as the user named it and Version what it
	// calls itself. Program is empty where it is this one.
	Program, Version string

	// Files is the folder of the other files, empty where both sides read the
	// same.
	Files string

	// Judged are the policies whose change counts; none means all that are run.
	Judged []string
}

// name says in words what the other side is.
func (a *Against) name() string {
	program := a.Program
	if program != "" && a.Version != "" {
		program = a.Version + " (" + a.Program + ")"
	}
	files := a.Files
	if filepath.IsAbs(files) {
		files = filepath.Base(files) // the rest is of one machine
	}
	switch {
	case files == "":
		return program
	case program == "":
		return "the files in " + files
	}
	return program + " on the files in " + files
}

// An OtherRun is what a comparison needs to know of one run.
type OtherRun struct {
	Scenario string
	Window   int
	Seed     uint64
	Policy   string

	// Weather and Hash are in hexadecimal.
	Weather, Hash    string
	Bill, OutageCost policy.Money
	OutageMinutes    int64

	// SpotBill is a part of Bill, JobCost one of OutageCost. CapacityHours and
	// SpotShare are as in [sim.Result]. Rough says that the program that did the
	// run reports none of these four.
	SpotBill, JobCost        policy.Money
	CapacityHours, SpotShare float64
	Rough                    bool

	Evidence

	// Err is why the run is missing; the figures are then not to be read.
	Err string
}

// result returns what is known of the result of o, without its digests.
func (o *OtherRun) result() *sim.Result {
	return &sim.Result{
		Bill: o.Bill, SpotBill: o.SpotBill, OutageCost: o.OutageCost, JobCost: o.JobCost, Outages: sim.Outages{OutageMinutes: o.OutageMinutes},
		CapacityHours: o.CapacityHours, SpotShare: o.SpotShare,
	}
}

// An Outcome is the result of a comparison.
type Outcome string

// The outcomes, from good to bad. All but the last let a change through; those
// in the middle are warnings.
const (
	Equal         Outcome = "no change"      // every run is equal to the other side's
	NoWorse       Outcome = "pass"           // what may be lost is within the tolerance
	Undecided     Outcome = "undecided"      // four times the seeds do not decide
	NotComparable Outcome = "not comparable" // other weather, or nothing to compare with
	Worse         Outcome = "fail"           // net savings or outages are worse beyond the tolerance
)

// A Comparison is the difference between this program with its files and another side. Both have
// run the same cells (scenario, window, seed and policy), and the difference is taken cell by cell.
// Net savings of both sides are relative to the on-demand run of the other side, so a change cannot
// look good by making on-demand expensive. Only if the sides differ in their demand is each side
// measured against its own on-demand run, as a share: the cost of more pods, or of fewer, is
// neither a loss nor a gain.
//
// Scenarios are never pooled: each policy is judged in each scenario by itself. All outcomes share
// one error rate of 5%. Each scenario and policy has an equal part of it, which is divided among
// the looks at the seeds ([stats.LookRate]). Over all that is judged and all looks, the probability
// that anything is wrongly called worse is therefore at most 5%, and so is the probability that
// anything worse passes. What worse means is defined at [stats.Test.Paired].
type Comparison struct {
	// What was compared with, in words.
	Other string `json:"other"`
	// The other program as named.
	Program string `json:"program,omitempty"`
	// What it calls its version.
	Version string `json:"version,omitempty"`
	// Folder of the other side's files.
	Files string `json:"files,omitempty"`
	// Seeds that were run in the end: those of config.seeds, and more where these did not decide.
	Seeds []uint64 `json:"seeds"`
	// The worst of all changes: no change, pass, undecided, not comparable or fail, which alone ends
	// with exit code 1.
	Outcome Outcome `json:"verdict"`
	// A change for each scenario and policy.
	//
	// They are in the order of the cases and of Config.Policies. Scenarios are never summed up together.
	Changes []Change `json:"changes"`

	// Warnings say what could not be estimated, and why.
	Warnings []string `json:"-"`
}

// A Change is the difference to one policy in one scenario. Changes a week are means.
type Change struct {
	Scenario string `json:"scenario"`
	Policy   string `json:"policy"`
	// As that of the comparison.
	Outcome Outcome `json:"verdict"`
	// Independent units that the verdict rests on; the value of one is the mean over its cells.
	Units int `json:"units"`
	// What they are: windows where there are enough for an interval at the last look, else seeds, and
	// then the result holds for these windows only.
	Over string `json:"over"`
	// Cells that both sides ran.
	Pairs int `json:"pairs"`
	// Of them, those in which something else happened.
	Changed int `json:"changed"`
	// Cells that one of the sides lacks.
	Missing int `json:"missing"`
	// Net savings in points of the other side's on-demand bill, or under another demand of each side's
	// own; more is better. It is empty without pairs.
	Savings Difference `json:"net_savings_points"`
	// Outage cost in such points; more is worse. It is empty without pairs.
	Outage Difference `json:"outage_cost_points"`
	// Net savings.
	SavingsWeek float64 `json:"net_savings_usd_per_week"`
	OutageWeek  float64 `json:"outage_minutes_per_week"`
	// In how many cells another demand was met.
	Demand int `json:"other_demand,omitempty"`
	// The on-demand bill.
	OnDemandWeek float64 `json:"on_demand_usd_per_week"`

	// Before is what the other side spends in the pairs and After what this one
	// does, both without runs where there are no pairs.
	Before Spending `json:"-"`
	After  Spending `json:"-"`
}

// MarshalJSON leaves out the figures where there is no pair that has any.
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

// A Difference is a difference of one figure over units, in points.
type Difference struct {
	// Over units; rare losses show here.
	Mean float64 `json:"mean"`
	// Over units; the verdict is about it.
	Median float64 `json:"median"`
	// Both ends of the exact interval of the median, at the error rate of the last look.
	Interval *stats.Interval `json:"interval,omitempty"`
	// How many units an interval needs, where there are fewer.
	Need int `json:"need,omitempty"`
	// In how many units it is worse by more than the tolerance.
	Worse int `json:"worse"`
	// In how many it is better by more than that.
	Better int `json:"better"`

	// exceeds says that the figure is worse beyond the tolerance, within that it
	// is not.
	exceeds, within bool
}

// Compare runs the cells of r on the other side and writes the difference into r.Comparison. If the
// result is undecided it doubles the seeds, at most twice. The runs of these further seeds are only
// in the comparison. When ctx ends there is no comparison, and r is stopped. A report that was
// stopped before is not compared.
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

// open reports whether more seeds may decide what these do not.
func (c *Comparison) open() bool {
	return c.Outcome != Worse && slices.ContainsFunc(c.Changes, func(x Change) bool { return x.Outcome == Undecided })
}

// judge sets the outcome, the worst of all. Unpaired says that there are cells
// which only one of the sides could run.
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

// BeyondNoise reports whether something changed that chance does not explain, so that a person has
// to look at it.
func (c *Comparison) BeyondNoise() bool {
	apart := func(d Difference) bool {
		return d.Interval != nil && (d.Interval.Low > 0 || d.Interval.High < 0)
	}
	return c.Outcome == Worse || slices.ContainsFunc(c.Changes, func(x Change) bool {
		return apart(x.Savings) ||
			apart(x.Outage)
	})
}

// Month returns what x is in a month: the change of net savings in dollars, of outage
// minutes, and of the on-demand bill in dollars.
func (x *Change) Month() (savings, outage, onDemand float64) {
	const weeks = float64(month) / float64(week)
	return x.SavingsWeek * weeks, x.OutageWeek * weeks, x.OnDemandWeek * weeks
}

const week = 7 * 24 * time.Hour

// weekly scales what happens in a window to a week.
func weekly(x float64, window time.Duration) float64 {
	return x * (float64(week) / float64(window))
}
