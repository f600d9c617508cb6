package eval

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval/stats"
)

// A pairing collects the cells of both sides, one set of seeds after the other.
type pairing struct {
	config   *Config
	against  Against
	evidence []Evidence // of this side, by case
	judged   []int      // indices of Config.Policies
	seeds    []uint64
	pairs    []cellPair // of all seeds, by seed, then case, then policy

	// known maps a scenario to the policies that the other side can run. strange contains the
	// scenarios in which the conditions of the sides differ.
	known   map[string][]string
	strange map[string]bool

	// refused describes the scenarios and policies that the other side cannot run, with reasons, in
	// the order in which they were found.
	refused []string

	// missing reports whether a run failed on one of the sides. lacks is the reason of the first
	// failure.
	missing bool
	lacks   string
}

// A cellPair is one cell of both sides. It is empty unless both sides ran the cell.
type cellPair struct {
	both            bool
	changed         bool
	demand          bool    // demand differs between the sides
	savings, outage float64 // percentage points of the other side's on-demand bill, or of each side's own
	savingsWeek     float64 // dollars
	outageWeek      float64 // minutes
	onDemandWeek    float64 // dollars
	before, after   Spending
}

type cellKey struct {
	scenario string
	window   int
	seed     uint64
	policy   string
}

func newPairing(c *Config, a Against) *pairing {
	p := &pairing{config: c, against: a, known: map[string][]string{}, strange: map[string]bool{}}
	for i := range c.Cases {
		p.evidence = append(p.evidence, EvidenceOf(c.Cases[i].Bound))
	}
	for i, name := range c.Policies {
		if len(a.Judged) == 0 || slices.Contains(a.Judged, name) {
			p.judged = append(p.judged, i)
		}
	}
	return p
}

// add runs seeds on the other side and pairs its runs with runs, the runs of this side with the
// same seeds.
func (p *pairing) add(ctx context.Context, runs []RunRow, seeds []uint64) error {
	theirs := map[cellKey]*OtherRun{}
	for _, scenario := range p.scenarios() {
		rows, err := p.ask(ctx, scenario, seeds)
		if err != nil {
			return err
		}
		for i := range rows {
			r := &rows[i]
			theirs[cellKey{r.Scenario, r.Window, r.Seed, r.Policy}] = r
		}
	}
	p.strangers(runs, len(seeds), theirs)
	pairs := make([]cellPair, len(runs))
	for i := range runs {
		pairs[i] = p.pair(runs, i, len(seeds), theirs)
	}
	// runs is ordered by case, seed and policy. The pairs of all looks are ordered by seed first,
	// so that those of the next look can be appended.
	n, s := len(p.config.Policies), len(seeds)
	for k := range seeds {
		for c := range p.config.Cases {
			p.pairs = append(p.pairs, pairs[(c*s+k)*n:(c*s+k+1)*n]...)
		}
	}
	p.seeds = append(slices.Clone(p.seeds), seeds...)
	return nil
}

// scenarios returns the distinct scenarios in the order of the cases.
func (p *pairing) scenarios() []string {
	var names []string
	for i := range p.config.Cases {
		if n := p.config.Cases[i].Scenario; !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// ask runs a scenario on the other side. If the other side refuses it with all policies, ask tries
// each policy separately, so that the other policies are still compared when a change adds one.
func (p *pairing) ask(ctx context.Context, scenario string, seeds []uint64) ([]OtherRun, error) {
	other := p.against.Other
	policies, asked := p.known[scenario]
	if asked && len(policies) == 0 {
		return nil, nil
	}
	if !asked {
		policies = p.config.Policies
	}
	rows, err := other.Runs(ctx, scenario, policies, seeds)
	if asked || !errors.Is(err, ErrRefused) {
		p.known[scenario] = policies
		return rows, err
	}
	first, why := []string{}, []string{}
	for _, name := range policies {
		_, err := other.Runs(ctx, scenario, []string{name}, seeds[:1])
		switch {
		case errors.Is(err, ErrRefused):
			why = append(why, fmt.Sprintf("%s in %s: %v", name, scenario, err))
		case err != nil:
			return nil, err
		default:
			first = append(first, name)
		}
	}
	p.known[scenario] = first
	if len(first) == 0 {
		p.refused = append(p.refused, fmt.Sprintf("%s: %v", scenario, err))
		return nil, nil
	}
	p.refused = append(p.refused, why...)
	if len(why) == 0 {
		return nil, fmt.Errorf("%s: the other side takes each policy and not all of them: %w", scenario, err)
	}
	return other.Runs(ctx, scenario, first, seeds)
}

// caseOf returns the index of the case of runs[i], where each case has seeds seeds.
func (p *pairing) caseOf(i, seeds int) int { return i / (seeds * len(p.config.Policies)) }

// strangers records the scenarios in which the conditions of the sides differ.
func (p *pairing) strangers(runs []RunRow, seeds int, theirs map[cellKey]*OtherRun) {
	for i := range runs {
		r := &runs[i]
		o := theirs[cellKey{r.Scenario, r.Window, r.Seed, r.Policy}]
		if o != nil && o.Err == "" && r.Err == nil && !p.alike(r, o, &p.evidence[p.caseOf(i, seeds)]) {
			p.strange[r.Scenario] = true
		}
	}
}

// alike reports whether r and o had the same conditions. If the same program executed both, the
// weather of a market does not depend on the other markets, so scenarios with different markets are
// also alike.
func (p *pairing) alike(r *RunRow, o *OtherRun, own *Evidence) bool {
	switch {
	case o.Conditions != "" && o.Conditions != own.Conditions:
		return false
	case o.Weather == hex.EncodeToString(r.Result.Weather[:]):
		return true
	}
	return p.against.Program == "" && o.Conditions != ""
}

// pair returns the pair of cell runs[i].
func (p *pairing) pair(runs []RunRow, i, seeds int, theirs map[cellKey]*OtherRun) cellPair {
	r := &runs[i]
	key := cellKey{r.Scenario, r.Window, r.Seed, r.Policy}
	if p.strange[r.Scenario] || !slices.Contains(p.known[r.Scenario], r.Policy) {
		return cellPair{}
	}
	o := theirs[key]
	key.policy = OnDemand
	od := theirs[key]
	n := len(p.config.Policies)
	ownOD := &runs[i-i%n+slices.Index(p.config.Policies, OnDemand)]
	own := &p.evidence[p.caseOf(i, seeds)]
	switch {
	case r.Err != nil:
		p.lack(r, "ours: "+firstLine(r.Err.Error()))
	case o == nil:
		p.lack(r, "the other side does not report it")
	case o.Err != "":
		p.lack(r, "the other side's: "+firstLine(o.Err))
	case od == nil || od.Err != "" || od.Bill <= 0:
		p.lack(r, "the other side has no on-demand bill")
	case ownOD.Err != nil || ownOD.Result.Bill <= 0:
		p.lack(r, "ours has no on-demand bill")
	default:
		return differ(r, ownOD, o, od, own)
	}
	return cellPair{}
}

// differ returns the difference between r and o. ownOD and od are their on-demand runs.
func differ(r, ownOD *RunRow, o, od *OtherRun, own *Evidence) cellPair {
	mine := r.Result
	x := cellPair{both: true, changed: o.Hash != hex.EncodeToString(mine.Hash[:])}
	if o.File != "" && o.File != own.File {
		// The hash covers the scenario file, so it always differs.
		x.changed = o.Bill != mine.Bill || o.OutageCost != mine.OutageCost || o.OutageMinutes != mine.OutageMinutes
	}
	saved := o.Bill + o.OutageCost - mine.Bill - mine.OutageCost
	basis := float64(od.Bill)
	x.savings, x.outage = float64(saved)/basis*100, float64(mine.OutageCost-o.OutageCost)/basis*100
	base := ownOD.Result
	if x.demand = o.Demand != "" && o.Demand != own.Demand; x.demand {
		saved += base.Bill + base.OutageCost - od.Bill - od.OutageCost
		ownBasis := float64(base.Bill)
		x.savings = 100 * (float64(base.Bill+base.OutageCost-mine.Bill-mine.OutageCost)/ownBasis -
			float64(od.Bill+od.OutageCost-o.Bill-o.OutageCost)/basis)
		x.outage = 100 * (float64(mine.OutageCost)/ownBasis - float64(o.OutageCost)/basis)
	}
	window := r.Bound.Duration
	x.savingsWeek = weekly(saved.Float(), window)
	x.outageWeek = weekly(float64(mine.OutageMinutes-o.OutageMinutes), window)
	x.onDemandWeek = weekly((base.Bill - od.Bill).Float(), window)
	x.before, x.after = spendingOf(o.result(), od.result(), window), spendingOf(mine, base, window)
	x.before.Rough = o.Rough
	return x
}

func (p *pairing) lack(r *RunRow, why string) {
	if !p.missing {
		p.missing, p.lacks = true, fmt.Sprintf("%s, seed %d under %s: %s", r.Scenario, r.Seed, r.Policy, why)
	}
}

func firstLine(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	return first
}

// changes aggregates the pairs at a look; looks count from 0.
func (p *pairing) changes(look int) []Change {
	names := p.scenarios()
	rate := errorRate / float64(len(names)*len(p.judged))
	var out []Change
	for _, name := range names {
		for _, i := range p.judged {
			x := Change{Scenario: name, Policy: p.config.Policies[i], Over: p.over(name, rate)}
			p.change(&x, i, stats.LookRate(rate, look))
			out = append(out, x)
		}
	}
	return out
}

// over returns the kind of units of a scenario, which is the same at every look: windows if there
// are enough of them, else seeds.
func (p *pairing) over(scenario string, rate float64) string {
	windows := 0
	for i := range p.config.Cases {
		if p.config.Cases[i].Scenario == scenario {
			windows++
		}
	}
	if windows < stats.UnitsMin(stats.LookRate(rate, stats.LooksMax-1)/2) {
		return OverSeeds
	}
	return OverWindows
}

// change aggregates the pairs of x and tests them at an error rate. policy is an index of
// Config.Policies.
func (p *pairing) change(x *Change, policy int, rate float64) {
	c := p.config
	units := make([]unit, max(len(c.Cases), len(p.seeds)))
	for k := range c.Cases {
		if c.Cases[k].Scenario != x.Scenario {
			continue
		}
		for s := range p.seeds {
			cell := &p.pairs[(s*len(c.Cases)+k)*len(c.Policies)+policy]
			at := s
			if x.Over == OverWindows {
				at = k
			}
			if cell.both {
				x.count(cell)
				units[at].add(cell)
			} else {
				x.Missing++
			}
		}
	}
	if x.Pairs > 0 {
		n := float64(x.Pairs)
		x.SavingsWeek, x.OutageWeek, x.OnDemandWeek = x.SavingsWeek/n, x.OutageWeek/n, x.OnDemandWeek/n
		x.Before.average()
		x.After.average()
	}
	var lost, cost []float64
	for i := range units {
		if n := float64(units[i].cells); n > 0 {
			lost, cost = append(lost, -units[i].savings/n), append(cost, units[i].outage/n)
		}
	}
	x.test(lost, cost, rate)
}

// test sets the outcome from lost, the loss of net savings of each unit, and cost, the increase of
// its outage cost, both in percentage points. The change fails if one of the two is worse, so each
// is tested for that at half of the error rate. It passes only if neither is worse. If few units
// have an outage, outage cost does not pass easily; net savings include the cost of outages.
func (x *Change) test(lost, cost []float64, rate float64) {
	test := stats.Test{Tolerance: LossMax, ExceedsRate: rate / 2, WithinRate: rate}
	x.Units = len(lost)
	x.Savings = newDifference(test.Paired(lost)).reversed()
	test.Rarely = true
	x.Outage = newDifference(test.Paired(cost))
	x.Outcome = x.judge()
}

// count adds a pair to the totals of x.
func (x *Change) count(cell *cellPair) {
	x.Pairs++
	if cell.changed {
		x.Changed++
	}
	if cell.demand {
		x.Demand++
	}
	x.SavingsWeek += cell.savingsWeek
	x.OutageWeek += cell.outageWeek
	x.OnDemandWeek += cell.onDemandWeek
	x.Before.add(&cell.before)
	x.After.add(&cell.after)
}

// A unit contains the totals of its pairs, in percentage points.
type unit struct {
	cells           int
	savings, outage float64
}

func (u *unit) add(cell *cellPair) {
	u.cells++
	u.savings += cell.savings
	u.outage += cell.outage
}

// newDifference returns the Difference of a metric for which higher is worse.
func newDifference(p stats.Paired) Difference {
	return Difference{Mean: p.Mean, Median: p.Median, Interval: p.Interval, Need: p.Need, Worse: p.Worse,
		Better: p.Better, exceeds: p.Exceeds, within: p.Within}
}

// reversed returns d with the opposite sign, for a metric for which higher is better.
func (d Difference) reversed() Difference {
	d.Mean, d.Median = 0-d.Mean, 0-d.Median // avoids −0
	if i := d.Interval; i != nil {
		d.Interval = &stats.Interval{Low: 0 - i.High, High: 0 - i.Low}
	}
	return d
}

// judge returns the outcome of the tests.
func (x *Change) judge() Outcome {
	switch {
	case x.Pairs == 0:
		return NotComparable
	case x.Changed == 0:
		return Equal
	case x.Savings.exceeds || x.Outage.exceeds:
		return Worse
	case x.Savings.within && x.Outage.within:
		return NoWorse
	}
	return Undecided
}

// warnings describes the cells that could not be paired.
func (p *pairing) warnings() []string {
	var out []string
	for _, name := range p.scenarios() {
		if p.strange[name] {
			out = append(out, name+" is not comparable: the two sides had different weather, prices or faults there")
		}
	}
	for _, why := range p.refused {
		out = append(out, "the other side cannot run "+why)
	}
	if p.missing {
		out = append(out, "runs are missing from the comparison; the first: "+p.lacks)
	}
	return out
}
