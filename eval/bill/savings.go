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

// A Saving is the cost of the pods of one name in a month (UTC), and the cost of the same nodes on
// demand. Cost includes the part that commitments cover, so only Spot contributes to savings.
type Saving struct {
	Month, Name    string
	Cost, OnDemand policy.Money
}

// Saved returns the difference between the on-demand cost and the cost.
func (s Saving) Saved() policy.Money { return s.OnDemand - s.Cost }

// Savings divides savings by month and among pods by their requests. by is one of [Aggregates];
// resources that no pod requests are reported as [Idle]. The costs of a month sum to its total, to
// the micro-dollar. Nodes whose on-demand price is unknown count as saving nothing.
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

// priced returns charges that include the covered part; for Spot nodes at the on-demand price if
// onDemand is true.
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

// warnUnlisted adds a warning about Spot nodes whose on-demand price is unknown.
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

// monthOf returns the month that contains t, in UTC.
func monthOf(t policy.Time) billing.Span {
	x := t.Std()
	from := time.Date(x.Year(), x.Month(), 1, 0, 0, 0, 0, time.UTC)
	return billing.Span{From: policy.TimeOf(from), To: policy.TimeOf(from.AddDate(0, 1, 0))}
}
