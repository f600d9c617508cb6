package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/eval/oracle"
	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// A Variant is a scenario with something changed, or with another policy.
type Variant struct {
	// What is changed, in short.
	Name string `json:"name"`
	// What is changed, in full.
	Changes []string `json:"changes,omitempty"`
	// Who decides.
	Policy string `json:"policy"`

	// Cases are the windows of the changed scenario, as those of the unchanged one.
	Cases []Case `json:"-"`
}

// A WhatIf says what changes of one scenario would cost: each variant against the scenario as it
// is, window by window and seed by seed. Dollars are those of a month of 730 hours.
type WhatIf struct {
	// Config has the unchanged windows and, as policies, what runs in them and then the variants
	// by name.
	Config Config

	// Runs are all of them, by case, seed and policy of Config.
	Runs []RunRow

	// AsIs is the scenario as it is, Variants are in the order in which they were given.
	AsIs     WhatIfRow
	Variants []WhatIfRow

	// Level is the confidence level of every interval: all of them share an error rate of 5%.
	Level float64

	// Stopped says that the comparison ended early. What is finished is summed up.
	Stopped bool

	// Judged has the variants as policies, with the scenario as it is as their baseline and the
	// results of Config.Gates; nil without gates. The bill of a variant includes what it pays in
	// advance beyond the scenario as it is.
	Judged *Report

	// Sweep names the setting whose values the variants are, in their order; empty without a sweep.
	Sweep string
}

// Tradeoffs returns what the scenario as it is and each variant save, in dollars a month, at how
// many evictions of a pod-day, medians both, and the places of those for which that is known: −1
// for the scenario as it is.
func (w *WhatIf) Tradeoffs() (points []Tradeoff, places []int) {
	if s := &w.AsIs.Evictions; s.N > 0 {
		points, places = append(points, Tradeoff{Price: s.Median}), append(places, -1)
	}
	for i := range w.Variants {
		if x := &w.Variants[i]; x.Change.N > 0 && x.Evictions.N > 0 {
			points = append(points, Tradeoff{Gain: 0 - x.Change.Median, Price: x.Evictions.Median})
			places = append(places, i)
		}
	}
	return points, places
}

// Knee returns the place of the value of a sweep beyond which more evictions bring little, −1 for
// the scenario as it is, and whether such a value exists: see the function [Knee]. It does not
// exist if chance explains every change.
func (w *WhatIf) Knee() (place int, ok bool) {
	points, places := w.Tradeoffs()
	knee, ok := Knee(points)
	if !ok || w.Sweep == "" || !slices.ContainsFunc(w.Variants, WhatIfRow.differs) {
		return 0, false
	}
	return places[knee], true
}

// differs reports whether chance does not explain what x changes of the cost or the evictions.
// Without intervals that is not known, and it may.
func (x WhatIfRow) differs() bool {
	for _, s := range []*Figure{&x.Change, &x.EvictionChange} {
		if i := s.MedianInterval; s.N > 0 && (i == nil || i.Low > 0 || i.High < 0) {
			return true
		}
	}
	return false
}

// A WhatIfRow is the result of the scenario as it is, or of one variant, over the pairs of runs of
// one window and seed. The scenario as it is has no changes.
type WhatIfRow struct {
	Variant

	// Pairs of runs of which one is missing.
	Missing int `json:"missing,omitempty"`
	// The workloads make other requests, so the bills cannot be compared.
	Demand bool `json:"other_demand,omitempty"`
	// Every run did the same as that of the scenario as it is.
	Equal bool `json:"equal,omitempty"`
	// The bill with what was paid in advance.
	Cost Figure `json:"cost_usd_per_month"`
	// Against the scenario as it is, run by run.
	Change    Figure `json:"change_usd_per_month,omitzero"`
	ChangePct Figure `json:"change_pct,omitzero"`
	// What outages cost, which is not in the bill.
	OutageCost   Figure `json:"outage_cost_usd_per_month"`
	OutageChange Figure `json:"outage_cost_change_usd_per_month,omitzero"`
	// Of a run.
	Incidents     Figure `json:"outage_incidents"`
	OutageMinutes Figure `json:"outage_minutes"`
	// The part that would not be without Spot.
	SpotMinutes Figure `json:"outage_spot_minutes"`
	// For whatever reason.
	Evictions      Figure `json:"evictions_per_pod_day"`
	EvictionChange Figure `json:"evictions_change_per_pod_day,omitzero"`
	// Mean of a run.
	Nodes Figure `json:"nodes"`
	// Of the vCPUs, or GPUs in pools of these.
	SpotShare Figure `json:"spot_share"`

	// Broken is the place in WhatIf.Runs of the first run that broke, or −1.
	Broken int `json:"-"`
}

// A Figure is a summary of which JSON has only what [FigureReport] says; null without a value.
type Figure struct{ Summary }

// A FigureReport is a figure over runs.
type FigureReport struct {
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// That of the median, of changes and where enough was run.
	Interval *stats.Interval `json:"interval,omitempty"`
	// How many windows or seeds an interval needs, where there are too few.
	Need int `json:"need,omitempty"`
}

// IsZero reports whether there is no value.
func (f Figure) IsZero() bool { return f.N == 0 }

// MarshalJSON writes a [FigureReport], or null.
func (f Figure) MarshalJSON() ([]byte, error) {
	if f.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(FigureReport{f.Mean, f.Median, f.Min, f.Max, f.MedianInterval, f.Need})
}

// RunWhatIf runs c.Cases under the one policy that c has, and every variant under the same
// weather: one run of each, the scenario as it is only once. Variants must be as [Alike] says.
// Where c has gates, every variant must meet them, and on-demand is run in the scenario as it is for
// what they measure against it. It ends with ctx as [Run] does.
func RunWhatIf(ctx context.Context, c Config, variants []Variant, runner Runner) (*WhatIf, error) {
	if len(c.Policies) != 1 {
		return nil, fmt.Errorf("%w: policies: %d run in the scenario as it is, want one", ErrConfig, len(c.Policies))
	}
	asIs := Variant{Name: c.Policies[0], Policy: c.Policies[0], Cases: c.Cases}
	c.Baseline, c.Policies, c.Variants = asIs.Name, slices.Clone(c.Policies), variants
	for i := range variants {
		c.Policies = append(c.Policies, variants[i].Name)
	}
	if len(c.Gates) > 0 && !slices.Contains(c.Policies, OnDemand) {
		c.Policies = append(c.Policies, OnDemand)
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	runs, err := Cells(ctx, &c, runner)
	if err != nil {
		keepWhole(&c, runs)
	}
	w := &WhatIf{Config: c, Runs: runs, Stopped: err != nil, Level: 1 - whatIfRate(len(variants))}
	if err != nil && !slices.ContainsFunc(runs, func(r RunRow) bool { return !r.Unfinished() }) {
		return nil, err
	}
	w.AsIs = w.row(&asIs, 0, len(variants))
	for p := range variants {
		w.Variants = append(w.Variants, w.row(&variants[p], 1+p, len(variants)))
	}
	if len(c.Gates) > 0 {
		w.judge()
	}
	return w, nil
}

// judge applies the gates.
func (w *WhatIf) judge() {
	runs := slices.Clone(w.Runs)
	for i := range runs {
		x := &runs[i]
		if x.Err != nil {
			continue
		}
		own := w.Config.job(x)
		if more := own.fees() - x.fees(); more != 0 {
			paid := *x.Result
			paid.Bill += policy.Dollars(more)
			x.Result = &paid
		}
	}
	unbounded := slices.Repeat([]oracle.Bound{{Open: true}}, len(runs)/len(w.Config.Policies))
	w.Judged = newReport(&w.Config, runs, unbounded, unbounded)
	if w.Stopped {
		w.Judged.stop()
	}
}

// whatIfRate is the error rate of one interval: a variant's part of what all of them share.
func whatIfRate(variants int) float64 { return errorRate / float64(max(variants, 1)) }

// Alike reports whether v meets the conditions of cases: the same prices, span and market, and
// the same faults. It says what it does not.
func (v *Variant) Alike(cases []Case) error {
	if len(v.Cases) != len(cases) {
		return fmt.Errorf("it has %d windows where the scenario as it is has %d", len(v.Cases), len(cases))
	}
	for i := range cases {
		if EvidenceOf(v.Cases[i].Bound).Conditions != EvidenceOf(cases[i].Bound).Conditions {
			return errors.New("it changes the weather itself: the span, the prices, spec.market or the faults")
		}
	}
	return nil
}

// row sums up variant p of Config.Policies, which has variants variants; 0 is the scenario as it
// is.
func (w *WhatIf) row(v *Variant, p, variants int) WhatIfRow {
	row := WhatIfRow{Variant: *v, Broken: -1, Equal: p > 0}
	n, seeds := len(w.Config.Policies), len(w.Config.Seeds)
	figures := make([][][]float64, len(whatIfFigures)) // by figure and window
	for k := range w.Config.Cases {
		row.Demand = row.Demand || EvidenceOf(v.Cases[k].Bound).Demand != EvidenceOf(w.Config.Cases[k].Bound).Demand
		for f := range figures {
			figures[f] = append(figures[f], nil)
		}
		for s := range seeds {
			asIs, own := &w.Runs[(k*seeds+s)*n], &w.Runs[(k*seeds+s)*n+p]
			if own.Err != nil && !own.Unfinished() && row.Broken < 0 {
				row.Broken = (k*seeds+s)*n + p
			}
			if asIs.Err != nil || own.Err != nil {
				row.Missing++
				continue
			}
			a := whatIfRun{asIs.Result, w.Config.Cases[k].fees()}
			b := whatIfRun{own.Result, v.Cases[k].fees()}
			row.Equal = row.Equal && a.cost() == b.cost() && sameRun(a.Result, b.Result)
			for f := range whatIfFigures {
				if x, ok := whatIfFigures[f].of(a, b); ok {
					figures[f][k] = append(figures[f][k], x)
				}
			}
		}
	}
	for f := range whatIfFigures {
		rate := 0.0
		if whatIfFigures[f].change {
			if p == 0 {
				continue
			}
			rate = whatIfRate(variants)
		}
		whatIfFigures[f].place(&row).Summary = Summarize(figures[f], rate)
	}
	return row
}

// sameRun reports whether two runs came to the same. Their hashes cover the file of the scenario,
// so they say nothing.
func sameRun(a, b *sim.Result) bool {
	return a.Bill == b.Bill && a.OutageCost == b.OutageCost && a.OutageMinutes == b.OutageMinutes &&
		a.Launches == b.Launches && a.NodeHours == b.NodeHours && a.SpotHours == b.SpotHours &&
		a.VoluntaryEvictions == b.VoluntaryEvictions && a.ReclaimEvictions == b.ReclaimEvictions
}

// fees returns the known amounts that were paid in advance for the window of k, in dollars.
func (k *Case) fees() float64 {
	sum := 0.0
	for i := range k.Bound.Commitments {
		if fee := k.Bound.Commitments[i].Fee; fee != policy.NoPrice {
			sum += fee.Float()
		}
	}
	return sum * k.Bound.Duration.Hours()
}

// A whatIfRun is a run with what was paid in advance for its window.
type whatIfRun struct {
	*sim.Result
	fees float64
}

// monthly scales dollars of the window to a month.
func (r whatIfRun) monthly(x float64) float64 {
	return x * (float64(month) / float64(r.Window.To.Sub(r.Window.From)))
}

func (r whatIfRun) cost() float64       { return r.monthly(r.Bill.Float() + r.fees) }
func (r whatIfRun) outageCost() float64 { return r.monthly(r.OutageCost.Float()) }

// evictions are those of a pod-day, for whatever reason; unknown where no pod ran.
func (r whatIfRun) evictions() (float64, bool) {
	if r.PodDays <= 0 {
		return 0, false
	}
	return float64(r.VoluntaryEvictions+r.ReclaimEvictions) / r.PodDays, true
}

// A whatIfFigure is one figure of a WhatIfRow: of run b, or its change on a, which has an interval.
type whatIfFigure struct {
	place  func(*WhatIfRow) *Figure
	change bool
	of     func(a, b whatIfRun) (float64, bool)
}

// ofRun makes a figure of one run.
func ofRun(place func(*WhatIfRow) *Figure, of func(whatIfRun) float64) whatIfFigure {
	return whatIfFigure{place, false, func(_, b whatIfRun) (float64, bool) { return of(b), true }}
}

// changeOf makes a change of a figure.
func changeOf(place func(*WhatIfRow) *Figure, of func(whatIfRun) float64) whatIfFigure {
	return whatIfFigure{place, true, func(a, b whatIfRun) (float64, bool) { return of(b) - of(a), true }}
}

var whatIfFigures = []whatIfFigure{
	ofRun(func(r *WhatIfRow) *Figure { return &r.Cost }, whatIfRun.cost),
	ofRun(func(r *WhatIfRow) *Figure { return &r.OutageCost }, whatIfRun.outageCost),
	ofRun(func(r *WhatIfRow) *Figure { return &r.Incidents }, func(x whatIfRun) float64 { return float64(x.Incidents) }),
	ofRun(func(r *WhatIfRow) *Figure { return &r.OutageMinutes },
		func(x whatIfRun) float64 { return float64(x.OutageMinutes) }),
	ofRun(func(r *WhatIfRow) *Figure { return &r.SpotMinutes },
		func(x whatIfRun) float64 { return float64(x.SpotMinutes()) }),
	{func(r *WhatIfRow) *Figure { return &r.Evictions }, false,
		func(_, b whatIfRun) (float64, bool) { return b.evictions() }},
	ofRun(func(r *WhatIfRow) *Figure { return &r.Nodes },
		func(x whatIfRun) float64 { return x.NodeHours / x.Window.To.Sub(x.Window.From).Hours() }),
	ofRun(func(r *WhatIfRow) *Figure { return &r.SpotShare }, func(x whatIfRun) float64 { return x.SpotShare }),
	changeOf(func(r *WhatIfRow) *Figure { return &r.Change }, whatIfRun.cost),
	{func(r *WhatIfRow) *Figure { return &r.ChangePct }, true, func(a, b whatIfRun) (float64, bool) {
		if a.cost() <= 0 {
			return 0, false
		}
		return (b.cost() - a.cost()) / a.cost() * 100, true
	}},
	changeOf(func(r *WhatIfRow) *Figure { return &r.OutageChange }, whatIfRun.outageCost),
	{func(r *WhatIfRow) *Figure { return &r.EvictionChange }, true, func(a, b whatIfRun) (float64, bool) {
		x, known := a.evictions()
		y, both := b.evictions()
		return y - x, known && both
	}},
}
