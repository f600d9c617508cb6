package models

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// The builders of features. A change of a builder's result requires a new version, because a graph
// must receive the features that it was trained on.
const (
	// MarketFeaturesV1 are the features of the SpotVortex agent's forecaster: prices of one market
	// over twelve steps.
	MarketFeaturesV1 = "spotvortex-market/1"

	// PoolFeaturesV1 are the features of the agent's action values: prices, scores and workload of
	// one pool.
	PoolFeaturesV1 = "spotvortex-pool/1"
)

// The outputs of graphs.
const (
	outputCapacity = "capacity"
	outputRuntime  = "runtime"
	outputValues   = "values"

	// Optional scores for six hours, which no decision uses.
	outputCapacity6 = "capacity_6h"
	outputRuntime6  = "runtime_6h"
)

// ActionCount is the number of valued actions: hold, 10 and 30 percentage points less Spot, 10 and
// 30 more, and no Spot.
const ActionCount = 6

// The shapes of rows.
const (
	steps        = 12
	stepFeatures = 10
	poolFeatures = 13
	longHistory  = 2 * steps
)

var (
	// rowShapes are the shapes of one row, by builder.
	rowShapes = map[string][]int64{
		MarketFeaturesV1: {steps, stepFeatures},
		MarketFeaturesV2: {marketFeatures},
		PoolFeaturesV1:   {poolFeatures},
		PoolFeaturesQ:    {poolFeaturesQ},
	}

	// marketNames and poolNames are the names of the features, by builder.
	marketNames = map[string][]string{MarketFeaturesV1: {
		"spot_price", "on_demand_price", "lag_1", "lag_3", "rolling_std", "hour", "weekday", "weekend", "step_from_end", "steps",
	}, MarketFeaturesV2: marketNamesV2}
	poolNames = map[string][]string{PoolFeaturesV1: {
		"spot_price", "on_demand_price", "volatility", "capacity_score", "runtime_score", "startup", "migration_cost",
		"utilization", "steps_since_migration", "outage_penalty", "is_spot", "share", "target_share",
	}, PoolFeaturesQ: poolNamesQ}
)

// A MarketState is the input of the features of a market. Prices are in dollars per node-hour.
type MarketState struct {
	Spot, OnDemand float64

	// History contains past prices, the oldest first.
	History []float64

	Now policy.Time
}

// window returns twelve past prices: every second of the last 24 if there are 24, otherwise the
// last ones that exist, preceded by copies of the current price.
func (m *MarketState) window() [steps]float64 {
	var w [steps]float64
	h := m.History
	switch {
	case len(h) >= longHistory:
		h = h[len(h)-longHistory:]
		for i := range w {
			w[i] = h[2*i+1]
		}
	default:
		h = h[max(0, len(h)-steps):]
		for i := range w {
			w[i] = m.Spot
		}
		copy(w[steps-len(h):], h)
	}
	return w
}

// Row writes the features of m to row, step by step. row must be long enough.
func (m *MarketState) Row(row []float32) {
	w := m.window()
	now := m.Now.Std().UTC()
	hour, weekday := float64(now.Hour())/24, float64(now.Weekday())/7
	weekend := 0.0
	if d := now.Weekday(); d == 0 || d == 6 {
		weekend = 1
	}
	for t := range steps {
		at := row[t*stepFeatures : (t+1)*stepFeatures]
		lag1, lag3 := w[t], w[t]
		if t >= 1 {
			lag1 = w[t-1]
		}
		if t >= 3 {
			lag3 = w[t-3]
		}
		for i, x := range [stepFeatures]float64{
			w[t], m.OnDemand, lag1, lag3, deviation(w[:t+1]), hour, weekday, weekend, float64(t - steps + 1), steps,
		} {
			at[i] = float32(x)
		}
	}
}

// deviation returns the sample standard deviation of x, 0 for fewer than two values.
func deviation(x []float64) float64 {
	if len(x) < 2 {
		return 0
	}
	mean := 0.0
	for _, v := range x {
		mean += v
	}
	mean /= float64(len(x))
	sum := 0.0
	for _, v := range x {
		sum += float64((v - mean) * (v - mean))
	}
	return math.Sqrt(sum / float64(len(x)-1))
}

// A PoolState is the input of the features of a pool.
type PoolState struct {
	// Market is the market that represents the pool, and Capacity and Runtime are its scores.
	Market            MarketState
	Capacity, Runtime float64

	// Startup is in seconds, MigrationCost in dollars per node moved, Penalty in hours. Steps is
	// the time since the last move, in steps of ten minutes.
	Startup, MigrationCost, Penalty, Steps float64

	Utilization float64

	// Spot reports whether most nodes of the pool are on Spot.
	Spot bool

	Share, Target float64
}

// Row writes the features of p to row, each limited to [0, 1]. row must be long enough.
func (p *PoolState) Row(row []float32) {
	spot := 0.0
	if p.Spot {
		spot = 1
	}
	h := p.Market.History
	for i, x := range [poolFeatures]float64{
		p.Market.Spot / 100, p.Market.OnDemand / 100, deviation(h[max(0, len(h)-steps):]), p.Capacity, p.Runtime,
		p.Startup / 300, p.MigrationCost / 10, p.Utilization, p.Steps / 100, p.Penalty / 10, spot, p.Share, p.Target,
	} {
		row[i] = float32(max(0, min(1, x)))
	}
}

// normalise applies n to consecutive rows. It does nothing if n is nil.
func (n *Normalisation) normalise(rows []float32) {
	if n == nil {
		return
	}
	for i := range rows {
		f := i % len(n.Mean)
		rows[i] = float32((float64(rows[i]) - n.Mean[f]) / n.Scale[f])
	}
}

// sixth is the index of the step that is read of an output with several steps.
const sixth = 5

// score returns one number from a row of an output: the middle quantile, and of several steps the
// sixth, or the last if there are fewer.
func score(t Tensor, row []float32) float64 {
	switch len(t.Shape) {
	case 2:
		return float64(row[len(row)/2])
	case 3:
		quantiles := int(t.Shape[2])
		step := min(sixth, int(t.Shape[1])-1)
		return float64(row[step*quantiles+quantiles/2])
	}
	return float64(row[0])
}

// prices returns the known prices of a history in dollars. It reuses buf.
func prices(buf []float64, history []policy.Money) []float64 {
	buf = slices.Grow(buf[:0], len(history))
	for _, p := range history {
		if p != policy.NoPrice {
			buf = append(buf, p.Float())
		}
	}
	return buf
}

// FeatureNames returns the names of a builder's features in order; for [MarketFeaturesV1] those of
// each step.
func FeatureNames(builder string) []string {
	if names, ok := marketNames[builder]; ok {
		return slices.Clone(names)
	}
	return slices.Clone(poolNames[builder])
}
