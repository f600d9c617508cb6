package record

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A marketRow is a market, starting at a step.
type marketRow struct {
	Step             int64   `parquet:"step,delta"`
	Slot             int32   `parquet:"slot"`
	ID               int32   `parquet:"id"`
	Name             string  `parquet:"name,dict"`
	Provider         string  `parquet:"provider,dict"`
	Region           string  `parquet:"region,dict"`
	Zone             int32   `parquet:"zone"`
	Type             int32   `parquet:"type"`
	Capacity         string  `parquet:"capacity_type,dict"`
	Offered          bool    `parquet:"offered"`
	Price            int64   `parquet:"price,decimal(6:18)"`
	Reserve          int64   `parquet:"reserve_price,decimal(6:18)"`
	OnDemand         int64   `parquet:"on_demand_price,decimal(6:18)"`
	OnDemandModelled bool    `parquet:"on_demand_modelled"`
	History          []int64 `parquet:"history_micro_usd,list"`
	Band             int32   `parquet:"interruption_band"`
	BandModelled     bool    `parquet:"band_modelled"`
	PlacementScore   int32   `parquet:"placement_score"`
	BidP20           int64   `parquet:"bid_p20,decimal(6:18)"`
	BidP50           int64   `parquet:"bid_p50,decimal(6:18)"`
	BidP80           int64   `parquet:"bid_p80,decimal(6:18)"`
	ExperienceAt     int64   `parquet:"experience_at,optional,timestamp(millisecond)"`
	Launches         float64 `parquet:"launches"`
	Refusals         float64 `parquet:"refusals"`
	Reclaims         float64 `parquet:"reclaims"`
	NodeHours        float64 `parquet:"node_hours"`
	Refused          int64   `parquet:"refused_at,optional,timestamp(millisecond)"`
	Reclaimed        int64   `parquet:"reclaimed_at,optional,timestamp(millisecond)"`
	Hazard           float64 `parquet:"hazard"`
	CapacityRisk     float64 `parquet:"capacity_risk"`
	RuntimeRisk      float64 `parquet:"runtime_risk"`
	Confidence       float64 `parquet:"confidence"`
	Source           string  `parquet:"forecast_source,dict"`
	PricedAt         int64   `parquet:"priced_at,optional,timestamp(millisecond)"`
}

func toMarketRow(step int64, slot int, m *policy.Market) marketRow {
	history := make([]int64, len(m.History))
	for i, p := range m.History {
		history[i] = int64(p)
	}
	e, f := &m.Experience, &m.Forecast
	return marketRow{
		Step: step, Slot: int32(slot), ID: int32(m.ID), Name: m.Name,
		Provider: m.Provider, Region: m.Region, Zone: int32(m.Zone), Type: int32(m.Type),
		Capacity: m.Capacity.String(), Offered: m.Offered,
		Price: int64(m.Price), Reserve: int64(m.Reserve),
		OnDemand: int64(m.OnDemand), OnDemandModelled: m.OnDemandModelled, History: history,
		Band: int32(m.Band), BandModelled: m.BandModelled, PlacementScore: int32(m.PlacementScore),
		BidP20: int64(m.BidPercentiles[0]), BidP50: int64(m.BidPercentiles[1]), BidP80: int64(m.BidPercentiles[2]),
		ExperienceAt: int64(e.At), Launches: e.Launches, Refusals: e.Refusals, Reclaims: e.Reclaims,
		NodeHours: e.NodeHours, Refused: int64(e.Refused), Reclaimed: int64(e.Reclaimed),
		Hazard: f.Hazard, CapacityRisk: f.Capacity, RuntimeRisk: f.Runtime,
		Confidence: f.Confidence, Source: f.Source.String(), PricedAt: int64(m.PricedAt),
	}
}

func (r *marketRow) market() (policy.Market, error) {
	capacity, err := parse(r.Capacity, policy.Reserved)
	if err != nil {
		return policy.Market{}, err
	}
	source, err := parse(r.Source, policy.SourceRecorded)
	if err != nil {
		return policy.Market{}, err
	}
	var history []policy.Money
	for _, p := range r.History {
		history = append(history, policy.Money(p))
	}
	return policy.Market{
		ID: policy.MarketID(r.ID), Name: r.Name, Provider: r.Provider, Region: r.Region,
		Zone: policy.ZoneID(r.Zone), Type: policy.TypeID(r.Type), Capacity: capacity, Offered: r.Offered,
		Price: policy.Money(r.Price), Reserve: policy.Money(r.Reserve),
		OnDemand: policy.Money(r.OnDemand), OnDemandModelled: r.OnDemandModelled, History: history,
		Band: policy.Band(r.Band), BandModelled: r.BandModelled, PlacementScore: int8(r.PlacementScore),
		BidPercentiles: [3]policy.Money{policy.Money(r.BidP20), policy.Money(r.BidP50), policy.Money(r.BidP80)},
		Experience: policy.Experience{
			At: policy.Time(r.ExperienceAt), Launches: r.Launches, Refusals: r.Refusals, Reclaims: r.Reclaims,
			NodeHours: r.NodeHours, Refused: policy.Time(r.Refused), Reclaimed: policy.Time(r.Reclaimed),
		},
		Forecast: policy.Forecast{
			Hazard: r.Hazard, Capacity: r.CapacityRisk, Runtime: r.RuntimeRisk,
			Confidence: r.Confidence, Source: source,
		},
		PricedAt: policy.Time(r.PricedAt),
	}, nil
}

func sameMarket(a, b *policy.Market) bool {
	return slices.Equal(a.History, b.History) &&
		a.ID == b.ID && a.Name == b.Name && a.Provider == b.Provider && a.Region == b.Region &&
		a.Zone == b.Zone && a.Type == b.Type && a.Capacity == b.Capacity && a.Offered == b.Offered &&
		a.Price == b.Price && a.Reserve == b.Reserve && a.OnDemand == b.OnDemand &&
		a.OnDemandModelled == b.OnDemandModelled && a.Band == b.Band && a.BandModelled == b.BandModelled &&
		a.PlacementScore == b.PlacementScore && a.BidPercentiles == b.BidPercentiles &&
		a.Experience == b.Experience && a.Forecast == b.Forecast && a.PricedAt == b.PricedAt
}

// keepMarket returns a copy of m that does not share memory with lists that an observer may modify.
func keepMarket(m *policy.Market) policy.Market {
	k := *m
	k.History = slices.Clone(m.History)
	return k
}

// historyGrid, in milliseconds, and historyMax describe Market.History.
const (
	historyGrid policy.Time = 10 * 60 * 1000
	historyMax              = 24
)

// advance updates the history of each market from one time to another, assuming that nothing else
// changed: it appends the current price for each point of the grid. The writer and the reader do
// the same, so that a market whose price does not change, which is the common case, needs no row
// although its history changes.
func advance(markets []policy.Market, from, to policy.Time) {
	first := from - from%historyGrid + historyGrid
	if to < first {
		return
	}
	steps := int(min((to-first)/historyGrid+1, historyMax))
	for i := range markets {
		m := &markets[i]
		if len(m.History) == 0 {
			continue
		}
		price := m.Price
		if !m.Offered {
			price = policy.NoPrice
		}
		h := m.History
		drop := max(0, len(h)+steps-historyMax)
		if drop < len(h) {
			h = append(make([]policy.Money, 0, historyMax), h[drop:]...)
		} else {
			h = make([]policy.Money, 0, historyMax)
		}
		for range steps {
			h = append(h, price)
		}
		m.History = h
	}
}
