package eval

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// A pairing collects the cells of two builds, seeds after seeds.
type pairing struct {
	config *Config
	seeds  []uint64
	pairs  []cellPair // of all seeds, by seed, then case, then policy

	// known are the policies of a scenario that the other build has, and
	// strange the scenarios that met other weather there.
	known   map[string][]string
	strange map[string]bool

	// refused says of scenarios and policies why the other build has none of
	// them, in the order in which that was found out.
	refused []string

	// missing says that a run failed on one of the sides, lacks is why the
	// first of them did.
	missing bool
	lacks   string
}

// A cellPair is one cell. It holds nothing unless both builds ran it.
type cellPair struct {
	both            bool
	changed         bool
	savings, outage float64 // points of the other build's on-demand bill
	savingsWeek     float64 // dollars
	outageWeek      float64 // minutes
}

type cellKey struct {
	scenario string
	window   int
	seed     uint64
	policy   string
}

// add lets the other build run seeds and pairs what it did with runs, which are
// ours of the same seeds.
func (p *pairing) add(ctx context.Context, other Other, runs []RunRow, seeds []uint64) error {
	theirs := map[cellKey]*OtherRun{}
	for _, scenario := range p.scenarios() {
		rows, err := p.ask(ctx, other, scenario, seeds)
		if err != nil {
			return err
		}
		for i := range rows {
			r := &rows[i]
			theirs[cellKey{r.Scenario, r.Window, r.Seed, r.Policy}] = r
		}
	}
	p.strangers(runs, theirs)
	pairs := make([]cellPair, len(runs))
	for i := range runs {
		pairs[i] = p.pair(&runs[i], theirs)
	}
	// Runs are ordered by case, seed and policy; the pairs of all looks by seed
	// first, so that those of the next look follow.
	n, s := len(p.config.Policies), len(seeds)
	for k := range seeds {
		for c := range p.config.Cases {
			p.pairs = append(p.pairs, pairs[(c*s+k)*n:(c*s+k+1)*n]...)
		}
	}
	p.seeds = append(slices.Clone(p.seeds), seeds...)
	return nil
}

// scenarios returns each once, in the order of the cases.
func (p *pairing) scenarios() []string {
	var names []string
	for i := range p.config.Cases {
		if n := p.config.Cases[i].Scenario; !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// ask lets the other build run a scenario. One that refuses the whole is asked
// about each policy by itself: a change that adds a policy leaves the others to
// be compared.
func (p *pairing) ask(ctx context.Context, other Other, scenario string, seeds []uint64) ([]OtherRun, error) {
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
		return nil, fmt.Errorf("%s: the other build takes each policy and not all of them: %w", scenario, err)
	}
	return other.Runs(ctx, scenario, first, seeds)
}

// strangers notes the scenarios that met other weather.
func (p *pairing) strangers(runs []RunRow, theirs map[cellKey]*OtherRun) {
	for i := range runs {
		r := &runs[i]
		o := theirs[cellKey{r.Scenario, r.Window, r.Seed, r.Policy}]
		if o != nil && o.Err == "" && r.Err == nil && o.Weather != hex.EncodeToString(r.Result.Weather[:]) {
			p.strange[r.Scenario] = true
		}
	}
}

// pair returns the cell of r.
func (p *pairing) pair(r *RunRow, theirs map[cellKey]*OtherRun) cellPair {
	key := cellKey{r.Scenario, r.Window, r.Seed, r.Policy}
	if p.strange[r.Scenario] || !slices.Contains(p.known[r.Scenario], r.Policy) {
		return cellPair{}
	}
	o := theirs[key]
	key.policy = OnDemand
	od := theirs[key]
	switch {
	case r.Err != nil:
		p.lack(r, "ours: "+firstLine(r.Err.Error()))
	case o == nil:
		p.lack(r, "the other build does not report it")
	case o.Err != "":
		p.lack(r, "the other build's: "+firstLine(o.Err))
	case od == nil || od.Err != "" || od.Bill <= 0:
		p.lack(r, "the other build has no on-demand bill")
	default:
		saved := o.Bill + o.OutageCost - r.Result.Bill - r.Result.OutageCost
		outage := r.Result.OutageCost - o.OutageCost
		return cellPair{
			both: true, changed: o.Hash != hex.EncodeToString(r.Result.Hash[:]),
			savings: float64(saved) / float64(od.Bill) * 100, outage: float64(outage) / float64(od.Bill) * 100,
			savingsWeek: weekly(saved.Float(), r.World.Duration),
			outageWeek:  weekly(float64(r.Result.OutageMinutes-o.OutageMinutes), r.World.Duration),
		}
	}
	return cellPair{}
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

// changes sums the pairs up: by policy, and where there are several scenarios
// by scenario and policy too.
func (p *pairing) changes() []Change {
	c := p.config
	var clusters []cluster
	for i := range c.Cases {
		clusters = append(clusters, cluster{c.Cases[i].Scenario, i * len(p.seeds)})
	}
	draws := newBootstrap(clusters, len(p.seeds))
	names := p.scenarios()
	level := 1 - errorRate/float64(len(c.Policies))
	var out []Change
	for i := range c.Policies {
		out = append(out, p.change(draws, "", i, level))
	}
	if len(names) < 2 {
		return out
	}
	level = 1 - errorRate/float64(len(c.Policies)*len(names))
	for _, name := range names {
		for i := range c.Policies {
			out = append(out, p.change(draws, name, i, level))
		}
	}
	return out
}

// change sums up one policy, in one scenario or in all.
func (p *pairing) change(draws *bootstrap, scenario string, policy int, level float64) Change {
	c := p.config
	out := Change{Scenario: scenario, Policy: c.Policies[policy]}
	var cells []int
	var savings, outage []float64
	for k := range c.Cases {
		if scenario != "" && c.Cases[k].Scenario != scenario {
			continue
		}
		for s := range p.seeds {
			x := &p.pairs[(s*len(c.Cases)+k)*len(c.Policies)+policy]
			if !x.both {
				out.Missing++
				continue
			}
			out.Pairs++
			if x.changed {
				out.Changed++
			}
			cells = append(cells, k*len(p.seeds)+s)
			savings, outage = append(savings, x.savings), append(outage, x.outage)
			out.SavingsWeek += x.savingsWeek
			out.OutageWeek += x.outageWeek
		}
	}
	if out.Pairs > 0 {
		out.SavingsWeek /= float64(out.Pairs)
		out.OutageWeek /= float64(out.Pairs)
		out.Savings, out.Outage = difference(draws, cells, savings, level), difference(draws, cells, outage, level)
	}
	out.Verdict = out.judge()
	return out
}

func difference(draws *bootstrap, cells []int, values []float64, level float64) Difference {
	d := Difference{Mean: summarize(values).Mean}
	if len(values) >= pairsMin {
		_, d.Interval = draws.intervals(cells, values, level)
	}
	return d
}

// judge returns what the intervals tell.
func (x *Change) judge() Verdict {
	s, o := x.Savings.Interval, x.Outage.Interval
	switch {
	case x.Pairs == 0:
		return NotComparable
	case x.Changed == 0:
		return Equal
	case s == nil || o == nil:
		return Undecided
	case s.High < -lossMax || o.Low > lossMax:
		return Worse
	case s.Low >= -lossMax && o.High <= lossMax:
		return NoWorse
	}
	return Undecided
}

// more returns as many seeds as there are, behind the greatest of them; none
// where no numbers are left.
func (p *pairing) more() []uint64 {
	last := slices.Max(p.seeds)
	n := uint64(len(p.seeds))
	if last > math.MaxUint64-n {
		return nil
	}
	next := make([]uint64, n)
	for i := range next {
		next[i] = last + 1 + uint64(i)
	}
	return next
}

// warnings say what could not be paired.
func (p *pairing) warnings() []string {
	var out []string
	for _, name := range p.scenarios() {
		if p.strange[name] {
			out = append(out, name+" is not comparable: the two builds met different weather there")
		}
	}
	for _, why := range p.refused {
		out = append(out, "not in the other build: "+why)
	}
	if p.missing {
		out = append(out, "runs are missing from the comparison; the first: "+p.lacks)
	}
	return out
}
