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

// A Variant is a changed scenario, or the scenario with another policy.
type Variant struct {
	// Short description of the change.
	Name string `json:"name"`
	// Full description of the change.
	Changes []string `json:"changes,omitempty"`
	// Policy of the variant.
	Policy string `json:"policy"`

	// Cases are the windows of the changed scenario, in the order of the unchanged one.
	Cases []Case `json:"-"`
}

// A WhatIf is the effect of changes to one scenario: each variant compared with the unchanged
// scenario in the same window and with the same seed. Amounts are in dollars per month of 730
// hours.
type WhatIf struct {
	// Config contains the unchanged windows. Its policies are the policy of the unchanged scenario,
	// then the names of the variants.
	Config Config

	// Runs are ordered by case, seed and policy of Config.
	Runs []RunRow

	// AsIs is the result of the unchanged scenario. Variants are in the given order.
	AsIs     WhatIfRow
	Variants []WhatIfRow

	// Level is the confidence level of every interval: all of them share an error rate of 5%.
	Level float64

	// Stopped reports whether the comparison was stopped early. Results then only cover finished
	// runs.
	Stopped bool

	// Judged is the report with the variants as policies, the unchanged scenario as baseline, and
	// the results of Config.Gates; nil without gates. The bill of a variant includes what it pays
	// in advance in excess of the unchanged scenario.
	Judged *Report

	// Sweep names the setting whose values the variants are, in order; empty if they are not a
	// sweep.
	Sweep string
}

// Tradeoffs returns the median savings in dollars per month and the median evictions per pod-day of
// the unchanged scenario and of each variant. places are the indexes of those for which both are
// known, −1 for the unchanged scenario.
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

// Knee returns the index of the value of a sweep beyond which more evictions save little, −1 for
// the unchanged scenario, and whether there is one; see the function [Knee]. There is no knee if
// chance explains every change.
func (w *WhatIf) Knee() (place int, ok bool) {
	points, places := w.Tradeoffs()
	knee, ok := Knee(points)
	if !ok || w.Sweep == "" || !slices.ContainsFunc(w.Variants, WhatIfRow.differs) {
		return 0, false
	}
	return places[knee], true
}

// differs reports whether x changes cost or evictions by more than chance explains. It returns true
// if there is no interval.
func (x WhatIfRow) differs() bool {
	for _, s := range []*Figure{&x.Change, &x.EvictionChange} {
		if i := s.MedianInterval; s.N > 0 && (i == nil || i.Low > 0 || i.High < 0) {
			return true
		}
	}
	return false
}

// A WhatIfRow is the result of the unchanged scenario, or of one variant, over pairs of runs with
// the same window and seed. The unchanged scenario has no changes.
type WhatIfRow struct {
	Variant

	// Number of pairs of which a run is missing.
	Missing int `json:"missing,omitempty"`
	// Whether the requests of workloads differ, so that bills are not comparable.
	Demand bool `json:"other_demand,omitempty"`
	// Whether every run equals that of the unchanged scenario.
	Equal bool `json:"equal,omitempty"`
	// Bill, including what was paid in advance.
	Cost Figure `json:"cost_usd_per_month"`
	// Difference to the unchanged scenario, run by run.
	Change    Figure `json:"change_usd_per_month,omitzero"`
	ChangePct Figure `json:"change_pct,omitzero"`
	// Cost of outages, which the bill does not include.
	OutageCost   Figure `json:"outage_cost_usd_per_month"`
	OutageChange Figure `json:"outage_cost_change_usd_per_month,omitzero"`
	// Per run.
	Incidents     Figure `json:"outage_incidents"`
	OutageMinutes Figure `json:"outage_minutes"`
	// The part that would not have occurred without Spot.
	SpotMinutes Figure `json:"outage_spot_minutes"`
	// Evictions for any reason.
	Evictions      Figure `json:"evictions_per_pod_day"`
	EvictionChange Figure `json:"evictions_change_per_pod_day,omitzero"`
	// Mean over a run.
	Nodes Figure `json:"nodes"`
	// Fraction of vCPUs, or of GPUs in pools with GPUs, on Spot.
	SpotShare Figure `json:"spot_share"`

	// Broken is the index in WhatIf.Runs of the first failed run, or −1.
	Broken int `json:"-"`
}

// A Figure is a summary that is encoded as a [FigureReport], or null without a value.
type Figure struct{ Summary }

// A FigureReport is the JSON form of a Figure.
type FigureReport struct {
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// Interval of the median, for changes with a sufficient number of units.
	Interval *stats.Interval `json:"interval,omitempty"`
	// Number of windows or seeds that an interval requires, if there are fewer.
	Need int `json:"need,omitempty"`
}

// IsZero reports whether f has no value.
func (f Figure) IsZero() bool { return f.N == 0 }

// MarshalJSON encodes a [FigureReport], or null.
func (f Figure) MarshalJSON() ([]byte, error) {
	if f.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(FigureReport{f.Mean, f.Median, f.Min, f.Max, f.MedianInterval, f.Need})
}

// RunWhatIf runs c.Cases with the only policy of c, and every variant in the same weather. The
// unchanged scenario runs once for all variants. Variants must satisfy [Variant.Alike]. If c has
// gates, every variant must satisfy them, and on-demand runs in the unchanged scenario for metrics
// that are relative to it. RunWhatIf ends with ctx as [Run] does.
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

// whatIfRate returns the error rate of one interval: all variants have equal parts.
func whatIfRate(variants int) float64 { return errorRate / float64(max(variants, 1)) }

// Alike returns an error unless v has the same conditions as cases: prices, interval, market
// settings and faults.
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

// row summarizes element p of Config.Policies, where 0 is the unchanged scenario. variants is the
// number of variants.
func (w *WhatIf) row(v *Variant, p, variants int) WhatIfRow {
	row := WhatIfRow{Variant: *v, Broken: -1, Equal: p > 0}
	n, seeds := len(w.Config.Policies), len(w.Config.Seeds)
	figures := make([][][]float64, len(whatIfFigures)) // by metric and window
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

// sameRun reports whether two runs have the same result. Their hashes cannot be compared, because
// they cover the scenario file.
func sameRun(a, b *sim.Result) bool {
	return a.Bill == b.Bill && a.OutageCost == b.OutageCost && a.OutageMinutes == b.OutageMinutes &&
		a.Launches == b.Launches && a.NodeHours == b.NodeHours && a.SpotHours == b.SpotHours &&
		a.VoluntaryEvictions == b.VoluntaryEvictions && a.ReclaimEvictions == b.ReclaimEvictions
}

// fees returns the known payments in advance for the window of k, in dollars.
func (k *Case) fees() float64 {
	sum := 0.0
	for i := range k.Bound.Commitments {
		if fee := k.Bound.Commitments[i].Fee; fee != policy.NoPrice {
			sum += fee.Float()
		}
	}
	return sum * k.Bound.Duration.Hours()
}

// A whatIfRun is a run and the payments in advance for its window.
type whatIfRun struct {
	*sim.Result
	fees float64
}

// monthly scales an amount from the window to a month.
func (r whatIfRun) monthly(x float64) float64 {
	return x * (float64(month) / float64(r.Window.To.Sub(r.Window.From)))
}

func (r whatIfRun) cost() float64       { return r.monthly(r.Bill.Float() + r.fees) }
func (r whatIfRun) outageCost() float64 { return r.monthly(r.OutageCost.Float()) }

// evictions returns the evictions per pod-day for any reason. It returns false if no pod ran.
func (r whatIfRun) evictions() (float64, bool) {
	if r.PodDays <= 0 {
		return 0, false
	}
	return float64(r.VoluntaryEvictions+r.ReclaimEvictions) / r.PodDays, true
}

// A whatIfFigure defines one metric of a WhatIfRow: of run b, or its change relative to a. Only
// changes have intervals.
type whatIfFigure struct {
	place  func(*WhatIfRow) *Figure
	change bool
	of     func(a, b whatIfRun) (float64, bool)
}

// ofRun returns a metric of one run.
func ofRun(place func(*WhatIfRow) *Figure, of func(whatIfRun) float64) whatIfFigure {
	return whatIfFigure{place, false, func(_, b whatIfRun) (float64, bool) { return of(b), true }}
}

// changeOf returns the change of a metric.
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
