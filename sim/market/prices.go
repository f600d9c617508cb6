package market

import (
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/scenarios"
)

const (
	gridStep    policy.Time = 10 * 60 * 1000 // step of Market.History
	historySize             = 24
)

// Prices are the prices of all markets of a scenario, including price ramps: as steps, as integrals
// of the charged prices, and on the grid of histories. They are not changed after NewPrices, so any
// number of runs may read them at the same time.
type Prices struct {
	scenario *scenarios.BoundScenario
	curves   []scenarios.PriceCurve
	charges  []*billing.Curve

	// grid contains, per market, the prices at gridFrom, gridFrom+gridStep and so on, or only
	// historySize prices if the price is constant.
	grid     [][]policy.Money
	gridFrom policy.Time
}

// NewPrices prepares the prices of w for runs from begin to end. It returns an error if a market
// has no price.
func NewPrices(w *scenarios.BoundScenario, begin, end policy.Time) (*Prices, error) {
	p := &Prices{scenario: w, curves: make([]scenarios.PriceCurve, len(w.Prices)),
		charges: make([]*billing.Curve, len(w.Prices))}
	for i := range w.Prices {
		if len(w.Prices[i].At) == 0 {
			return nil, fmt.Errorf("scenario %s: market %s has no price", w.Name, w.Markets[i].Name)
		}
		p.curves[i] = p.ramped(policy.MarketID(i))
		p.charges[i] = billing.NewCurve(p.curves[i].At, charged(p.curves[i].Price, w.Markets[i].Reserve))
	}
	p.sample(begin, end)
	return p, nil
}

// Listed returns the prices of market m, policy.NoPrice where it is not offered. The result is
// shared and must not be changed.
func (p *Prices) Listed(m policy.MarketID) scenarios.PriceCurve { return p.curves[m] }

// Charged returns the prices that a node of market m is charged, including the reserve price, and
// policy.NoPrice where the market is not offered. The result must not be changed.
func (p *Prices) Charged(m policy.MarketID) scenarios.PriceCurve {
	c := p.curves[m]
	return scenarios.PriceCurve{At: c.At, Price: charged(c.Price, p.scenario.Markets[m].Reserve)}
}

// Charges returns, by market, the integrals of the prices that a node is charged.
func (p *Prices) Charges() []*billing.Curve { return p.charges }

// history returns the last historySize prices of market m on the grid, up to now.
func (p *Prices) history(m policy.MarketID, now policy.Time) []policy.Money {
	row := p.grid[m]
	if len(row) == historySize {
		return row
	}
	k := int((now - p.gridFrom) / gridStep)
	return row[k-historySize+1 : k+1 : k+1]
}

// rampStep is the time between the changes of a ramped price.
const rampStep = 10 * time.Minute

// ramped returns the prices of market m including the price ramps of the scenario. During a ramp,
// the price rises linearly from the original price to Factor times it. At the end, it returns to
// the original price.
func (p *Prices) ramped(m policy.MarketID) scenarios.PriceCurve {
	curve := p.scenario.Prices[m]
	for i := range p.scenario.Faults {
		f := &p.scenario.Faults[i]
		if f.Kind != scenarios.FaultPriceRamp || !p.matches(f, m) {
			continue
		}
		base := billing.NewCurve(curve.At, curve.Price)
		end := f.At.Add(f.Duration)
		var out scenarios.PriceCurve
		add := func(at policy.Time, price policy.Money) {
			out.At, out.Price = append(out.At, at), append(out.Price, price)
		}
		k := 0
		for ; k < len(curve.At) && curve.At[k] < f.At; k++ {
			add(curve.At[k], curve.Price[k])
		}
		for t := f.At; t < end; t = t.Add(rampStep) {
			part := float64(t.Sub(f.At)+rampStep) / float64(f.Duration)
			if !offeredAt(&curve, t) {
				add(t, policy.NoPrice)
				continue
			}
			add(t, base.At(t).Times(1+float64((f.Factor-1)*min(part, 1))))
		}
		if offeredAt(&curve, end) {
			add(end, base.At(end))
		} else {
			add(end, policy.NoPrice)
		}
		for ; k < len(curve.At); k++ {
			if curve.At[k] > end {
				add(curve.At[k], curve.Price[k])
			}
		}
		curve = out
	}
	return curve
}

// offeredAt reports whether c has a price at t.
func offeredAt(c *scenarios.PriceCurve, t policy.Time) bool {
	i, found := slices.BinarySearch(c.At, t)
	if !found {
		i--
	}
	return c.Price[max(i, 0)] != policy.NoPrice
}

// matches reports whether fault f applies to market m.
func (p *Prices) matches(f *scenarios.Fault, m policy.MarketID) bool {
	x := &p.scenario.Markets[m]
	return (f.Zone == "" || f.Zone == p.scenario.Zones[x.Zone]) &&
		(f.Type == "" || f.Type == p.scenario.Types[x.Type].Name) &&
		(f.Capacity == "" || f.Capacity == x.Capacity.String())
}

// sample fills the grid of histories.
func (p *Prices) sample(begin, end policy.Time) {
	p.gridFrom = begin - begin%gridStep - (historySize-1)*gridStep
	n := int((end-p.gridFrom)/gridStep) + 1
	p.grid = make([][]policy.Money, len(p.curves))
	steady := make(map[policy.Money][]policy.Money) // constant prices that are equal share a history
	var flat []policy.Money
	for m := range p.curves {
		c := &p.curves[m]
		if len(c.At) == 1 {
			price := c.Price[0]
			if steady[price] == nil {
				steady[price] = slices.Repeat([]policy.Money{price}, historySize)
			}
			p.grid[m] = steady[price]
			continue
		}
		if cap(flat)-len(flat) < n {
			flat = make([]policy.Money, 0, 64*n)
		}
		row := flat[len(flat) : len(flat)+n : len(flat)+n]
		flat = flat[:len(flat)+n]
		k := 0
		for i := range row {
			t := p.gridFrom + policy.Time(i)*gridStep
			for k+1 < len(c.At) && c.At[k+1] <= t {
				k++
			}
			row[i] = c.Price[k]
		}
		p.grid[m] = row
	}
}
