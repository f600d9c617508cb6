package measure

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// spikeRatio is the share of the on-demand price above which Spot no longer pays for its risk.
const spikeRatio = 0.9

// A tally accumulates the data of all markets for the statistics of prices.
type tally struct {
	Prices

	rates, spikes []float64
	weights       []weight

	products, firsts, seconds float64 // Σ xy, Σ x², Σ y² over pairs of successive steps
	same                      int
	sum, squares              float64 // sums over steps
	moved, priced             int     // numbers of markets
	known, offered            float64 // in hours
	entries                   int
	spikeYears                float64
}

func measurePrices(t *trace.Trace, sampling *Sampling) Prices {
	x := &tally{}
	x.Modelled = modelled(t)
	var looks []policy.Time
	if sampling != nil && sampling.Interval > 0 {
		x.Sampling = *sampling
		looks = sampling.instants(t.From, t.To)
	} else {
		x.Sampling = SamplingOf(t)
	}
	paths := make([]path, len(t.Series))
	for i := range t.Series {
		s := &t.Series[i]
		if !EverOffered(s) {
			continue
		}
		paths[i] = pathOf(s, looks, t.To)
		x.changes(&paths[i])
		x.ratio(s, &paths[i])
	}
	x.finish()
	x.ZoneCorrelation, x.ZonePairs = zoneCorrelation(t, paths)
	return x.Prices
}

// changes adds the price changes of one market.
func (x *tally) changes(p *path) {
	x.priced++
	changes, hours := 0, 0.0
	previous, since, chained := 0.0, policy.Time(0), false
	for j, at := range p.at {
		end := p.end
		if j+1 < len(p.at) {
			end = p.at[j+1]
		}
		x.known += hoursOf(at, end)
		if p.spot[j] <= 0 {
			chained = false
			continue
		}
		hours += hoursOf(at, end)
		if j == 0 || p.spot[j-1] <= 0 {
			since = at
			continue
		}
		if p.spot[j] == p.spot[j-1] {
			continue
		}
		step := portable.Log(float64(p.spot[j]) / float64(p.spot[j-1]))
		changes++
		x.Steps = append(x.Steps, math.Abs(step))
		x.sum, x.squares = x.sum+step, x.squares+float64(step*step)
		x.Gaps = append(x.Gaps, hoursOf(since, at))
		since = at
		if chained {
			x.products += float64(previous * step)
			x.firsts, x.seconds = x.firsts+float64(previous*previous), x.seconds+float64(step*step)
			x.StepPairs++
			if (previous > 0) == (step > 0) {
				x.same++
			}
		}
		previous, chained = step, true
	}
	x.offered += hours
	x.Changes += changes
	if changes > 0 {
		x.moved++
	}
	if hours >= 24 {
		x.rates = append(x.rates, float64(changes)/hours*24)
	}
}

// ratio adds the ratios of Spot to on-demand prices of one market.
func (x *tally) ratio(s *trace.Series, p *path) {
	fallback, _ := OnDemand(s)
	known, spike := false, -1.0 // hours of the current spike, -1 outside of a spike
	for j, at := range p.at {
		end := p.end
		if j+1 < len(p.at) {
			end = p.at[j+1]
		}
		onDemand := fallback
		if p.onDemand != nil && p.onDemand[j] > 0 {
			onDemand = p.onDemand[j]
		}
		if p.spot[j] <= 0 || onDemand <= 0 {
			spike = x.endSpike(spike)
			continue
		}
		known = true
		ratio, hours := float64(p.spot[j])/float64(onDemand), hoursOf(at, end)
		x.weights = append(x.weights, weight{ratio, hours})
		x.spikeYears += hours / (24 * 365.25)
		switch {
		case ratio <= spikeRatio:
			spike = x.endSpike(spike)
			continue
		case spike < 0:
			spike = 0
			// The spike of a market that is above the ratio from its first price on has no entry.
			if j > 0 && p.spot[j-1] > 0 {
				x.entries++
			}
		}
		spike += hours
	}
	x.endSpike(spike)
	if !known {
		x.Unpriced = append(x.Unpriced, s.Name())
	}
}

func (x *tally) endSpike(hours float64) float64 {
	if hours >= 0 {
		x.spikes = append(x.spikes, hours)
	}
	return -1
}

// finish computes the statistics from the sums.
func (x *tally) finish() {
	for _, list := range [...][]float64{x.Gaps, x.Steps, x.rates, x.spikes} {
		slices.Sort(list)
	}
	x.MarketDays = x.offered / 24
	x.Offered = x.offered / x.known
	x.Rate = quantiles3(x.rates)
	x.RateMean = mean(x.rates)
	x.Unmoved = float64(x.priced-x.moved) / float64(x.priced)
	x.GapHours = [4]float64{portable.Quantile(x.Gaps, 0.05), portable.Quantile(x.Gaps, 0.5),
		portable.Quantile(x.Gaps, 0.95), portable.Quantile(x.Gaps, 0.99)}
	x.StepMedian, x.StepP95 = portable.Quantile(x.Steps, 0.5), portable.Quantile(x.Steps, 0.95)
	x.StepP99, x.StepMax = portable.Quantile(x.Steps, 0.99), portable.Quantile(x.Steps, 1)
	n := float64(len(x.Steps))
	x.StepStd = math.Sqrt(max(0, x.squares/n-float64(x.sum/n*(x.sum/n))))
	if n == 0 {
		x.StepStd = math.NaN()
	}
	x.Autocorrelation = x.products / math.Sqrt(float64(x.firsts*x.seconds))
	x.SameSign = float64(x.same) / float64(x.StepPairs)
	x.Ratios = newSample(x.weights)
	above := 0.0
	for i, r := range x.Ratios.Value {
		if r > spikeRatio {
			above += x.Ratios.Hours[i]
		}
	}
	x.Above90 = above / x.Ratios.Total
	for i, q := range ratioPercentiles {
		x.Ratio[i] = x.Ratios.quantile(q)
	}
	x.Spikes, x.SpikeHours = len(x.spikes), quantiles3(x.spikes)
	x.SpikeEntries = float64(x.entries) / x.spikeYears
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// modelled reports whether the prices of t were modelled by an importer.
func modelled(t *trace.Trace) bool { return t.Meta[trace.MetaModelled] != "" }
