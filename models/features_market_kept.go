package models

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
)

// A keptMarket holds what of a market's last row costs the most to make, with
// all that it was made of: it holds as long as that is the same. Prices change a
// few times a day and a forecast is made every few minutes.
type keptMarket struct {
	charge, reserve, onDemand policy.Money
	history                   []policy.Money
	prices                    [featurePriceSpread + 1]float64
	priced                    bool

	hazard, log float64
}

// pricesInto writes the features of the price of m.
func (k *keptMarket) pricesInto(f *[marketFeatures]float64, m *policy.Market) {
	same := k.priced && k.charge == m.Charge() && k.reserve == m.Reserve && k.onDemand == m.OnDemand &&
		slices.Equal(k.history, m.History)
	if !same {
		pricesInto(f, m)
		k.charge, k.reserve, k.onDemand, k.priced = m.Charge(), m.Reserve, m.OnDemand, true
		k.history = append(k.history[:0], m.History...)
		k.prices = [featurePriceSpread + 1]float64(f[:featurePriceSpread+1])
	}
	copy(f[:], k.prices[:])
}

// logOf returns the feature of the closed form's hazard.
func (k *keptMarket) logOf(hazard float64) float64 {
	if hazard != k.hazard || k.log == 0 { // 0 where nothing is kept yet
		k.hazard, k.log = hazard, grid(portable.Log(max(hazard, 1e-7)), sixteenths)
	}
	return k.log
}
