package check

import (
	"math"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// A Curve is a distribution function: Y[i] is the share at or below X[i].
type Curve struct{ X, Y []float64 }

// curvePoints bounds the points of a curve. More than that is finer than a
// picture.
const curvePoints = 400

// curve returns the distribution function of w, at some of its values where
// they are many.
func (w *weighted) curve() Curve {
	var c Curve
	sum, next := 0.0, 0.0
	for i, v := range w.value {
		sum += w.hours[i]
		y := sum / w.total
		if i > 0 && y < next && i+1 < len(w.value) {
			continue
		}
		c.X, c.Y = append(c.X, v), append(c.Y, y)
		next = y + 1.0/curvePoints
	}
	return c
}

// RatioCurve is the distribution over time of spot over on-demand.
func (p *Prices) RatioCurve() Curve { return p.ratios.curve() }

// StepCurve is the distribution of the size of a step.
func (p *Prices) StepCurve() Curve { return curveOf(p.steps) }

// GapCurve is the distribution of the hours for which a price held.
func (p *Prices) GapCurve() Curve { return curveOf(p.gaps) }

// UpCurve is the distribution of the hours of whole spells with a node to be
// had.
func (a *Availability) UpCurve() Curve { return curveOf(a.ups) }

// DownCurve is the distribution of the hours of spells without.
func (a *Availability) DownCurve() Curve { return curveOf(a.downs) }

func curveOf(sorted []float64) Curve {
	w := unweighted(sorted)
	return w.curve()
}

// A Spell is a time in which a market had one price, or one state of
// availability.
type Spell struct {
	From, To policy.Time
	Price    policy.Money // NoPrice where not offered
	Ratio    float64      // of Price to that on demand; NaN where unknown
	State    int8         // 1 to be had, 0 not, -1 unknown
}

// PriceSpells returns what s, a series of t, cost.
func PriceSpells(t *trace.Trace, s *trace.Series) []Spell {
	p := pathOf(s, nil, t.To)
	fallback, _ := onDemandOf(s)
	spells := make([]Spell, len(p.at))
	for i, at := range p.at {
		end := p.end
		if i+1 < len(p.at) {
			end = p.at[i+1]
		}
		spells[i] = Spell{From: at, To: end, Price: p.spot[i], Ratio: math.NaN(), State: -1}
		onDemand := fallback
		if p.onDemand != nil && p.onDemand[i] > 0 {
			onDemand = p.onDemand[i]
		}
		if p.spot[i] > 0 && onDemand > 0 {
			spells[i].Ratio = float64(p.spot[i]) / float64(onDemand)
		}
	}
	return spells
}

// StateSpells returns when nodes of s could be had, nil where it does not tell.
func StateSpells(t *trace.Trace, s *trace.Series) []Spell {
	if s.Available == nil {
		return nil
	}
	tr := trackOf(s, t.To)
	spells := make([]Spell, len(tr.at))
	for i, at := range tr.at {
		end := tr.end
		if i+1 < len(tr.at) {
			end = tr.at[i+1]
		}
		spells[i] = Spell{From: at, To: end, Price: policy.NoPrice, Ratio: math.NaN(), State: tr.up[i]}
	}
	return spells
}
