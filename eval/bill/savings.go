package bill

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// A Saving is what the pods of one name cost in a month of UTC, and what the same nodes would
// have cost on demand. What commitments pay is in Cost, so that only Spot saves.
type Saving struct {
	Month, Name    string
	Cost, OnDemand policy.Money
}

// Saved returns what was not paid.
func (s Saving) Saved() policy.Money { return s.OnDemand - s.Cost }

// Savings divides what was saved by month and among pods by what they request, named as by says;
// what no pod requests is [Idle]. Of each month costs add up to the micro-dollar. A node of which
// no price on demand is known saves nothing.
func (u *Usage) Savings(by string) ([]Saving, error) {
	named, err := aggregateBy(by)
	if err != nil {
		return nil, err
	}
	charges, err := u.Meter(allocationStep)
	if err != nil {
		return nil, err
	}
	pods := u.podsByNode()
	var out []Saving
	for charges, window := range u.periods(charges, monthOf) {
		cost := u.allocate(u.priced(charges, false), window, pods, named)
		onDemand := u.allocate(u.priced(charges, true), window, pods, named)
		for _, name := range slices.Sorted(maps.Keys(cost)) {
			out = append(out, Saving{
				Month: window.From.Std().Format("2006-01"), Name: name,
				Cost: policy.Dollars(cost[name].TotalCost), OnDemand: policy.Dollars(onDemand[name].TotalCost),
			})
		}
	}
	u.warnUnlisted()
	return out, nil
}

// priced returns charges with what commitments pay, or at the price on demand.
func (u *Usage) priced(charges []Charge, onDemand bool) []Charge {
	all := slices.Clone(charges)
	for i := range all {
		c := &all[i]
		c.Billed, c.Spared = c.Billed+c.Spared, 0
		if m := &u.Markets[u.Nodes[c.Node].Market]; onDemand && m.Capacity == policy.Spot && m.OnDemand > 0 {
			c.Billed = policy.Money(math.Round(float64(m.OnDemand) * c.Time.Hours()))
		}
	}
	return all
}

// warnUnlisted warns of nodes that count as if they had saved nothing.
func (u *Usage) warnUnlisted() {
	hours := 0.0
	for i := range u.Nodes {
		if m := &u.Markets[u.Nodes[i].Market]; m.Capacity == policy.Spot && m.OnDemand <= 0 {
			hours += u.Nodes[i].life().Clip(u.Window).Length().Hours()
		}
	}
	if hours > 0 {
		u.Warnings = append(u.Warnings,
			fmt.Sprintf("Spot nodes ran for %.1f hours without a known price on demand: they count as saving nothing", hours))
	}
}

// monthOf returns the month of UTC that t is in.
func monthOf(t policy.Time) billing.Span {
	x := t.Std()
	from := time.Date(x.Year(), x.Month(), 1, 0, 0, 0, 0, time.UTC)
	return billing.Span{From: policy.TimeOf(from), To: policy.TimeOf(from.AddDate(0, 1, 0))}
}
