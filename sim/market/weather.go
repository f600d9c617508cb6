package market

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// DrawWeather draws the weather of a run of w under seed, from begin to end: everything that no
// policy can change.
func DrawWeather(w *scenarios.BoundScenario, seed uint64, begin, end policy.Time) (*weather.Weather, error) {
	cfg := weather.Config{Seed: seed, Trace: w.TraceDigest, From: begin, To: end, Intensity: w.Intensity, Slots: w.Slots,
		OnDemandShortages: w.OnDemandShortages, GoogleNotice: w.GoogleNotice, Truth: w.Truth, Params: weather.DefaultParams()}
	for i := range w.Faults {
		f := &w.Faults[i]
		shortage := weather.OrderedShortage{At: f.At, Duration: f.Duration, Depth: f.Share, Zone: f.Zone, Type: f.Type,
			Capacity: f.Capacity}
		switch f.Kind {
		case scenarios.FaultZoneOutage:
			shortage.Depth, shortage.Capacity, shortage.NoNotice = 1, "", true
			cfg.Shortages = append(cfg.Shortages, shortage)
		case scenarios.FaultCapacityShortage:
			shortage.Capacity = policy.Spot.String()
			cfg.Shortages = append(cfg.Shortages, shortage)
		case scenarios.FaultOnDemandRefused:
			shortage.Depth, shortage.Capacity = 0, policy.OnDemand.String()
			cfg.Shortages = append(cfg.Shortages, shortage)
		case scenarios.FaultAPIThrottle:
			cfg.APIFaults = append(cfg.APIFaults, weather.APIFault{At: f.At, Duration: f.Duration, Share: f.Share})
		case scenarios.FaultAPIError:
			cfg.APIFaults = append(cfg.APIFaults, weather.APIFault{At: f.At, Duration: f.Duration, Share: 1})
		case scenarios.FaultLateNotice:
			cfg.NoticeFaults = append(cfg.NoticeFaults, weather.NoticeFault{At: f.At, Duration: f.Duration, Share: f.Share,
				Delay: f.Delay})
		}
	}
	markets := make([]weather.Market, len(w.Markets))
	for i := range w.Markets {
		m, typ := &w.Markets[i], &w.Types[w.Markets[i].Type]
		markets[i] = weather.Market{Name: m.Name, Provider: m.Provider, Region: m.Region, Zone: w.Zones[m.Zone],
			Type:   typ.Name,
			Family: typ.Family, Spot: m.Capacity == policy.Spot, Auction: m.Auction(), GPU: typ.Allocatable.GPU > 0, Band: m.Band}
		if w.Available != nil && len(w.Available[i].At) > 0 {
			markets[i].Available = &weather.Availability{At: w.Available[i].At, Up: w.Available[i].Available,
				Gap: w.Available[i].Gap, Nodes: w.Available[i].Nodes}
		}
	}
	pairWeather(w, markets)
	return weather.New(cfg, markets)
}

// pairWeather gives each on-demand market the band and the recorded availability of the Spot market
// of its type and zone.
func pairWeather(w *scenarios.BoundScenario, markets []weather.Market) {
	type place struct {
		zone policy.ZoneID
		kind policy.TypeID
	}
	spot := make(map[place]int)
	for i := range w.Markets {
		if m := &w.Markets[i]; m.Capacity == policy.Spot {
			spot[place{m.Zone, m.Type}] = i
		}
	}
	for i := range w.Markets {
		m := &w.Markets[i]
		if twin, ok := spot[place{m.Zone, m.Type}]; ok && m.Capacity != policy.Spot {
			markets[i].Twin, markets[i].Band, markets[i].Available = markets[twin].Name, markets[twin].Band, markets[twin].Available
		}
	}
}
