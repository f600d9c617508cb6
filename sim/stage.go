package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/place"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

const (
	gridStep    policy.Time = 10 * 60 * 1000 // of Market.History
	historySize             = 24
)

// A Stage is what all runs of one world share: prices as integrals and on the
// grid of histories, offers, pod values. It is never written after NewStage, so
// any number of runs may use it at once.
type Stage struct {
	world *scenarios.World

	// begin is when warm-up begins; window is what is metered.
	begin  policy.Time
	window billing.Span

	// prices are the market prices, ramps in them; curves what is charged.
	curves []*billing.Curve
	prices []scenarios.PriceCurve

	// grid holds, per market, the prices at gridFrom, gridFrom+gridStep, …
	grid     [][]policy.Money
	gridFrom policy.Time

	// offers are those of each pool, in the order of its markets, with the
	// price at begin.
	offers [][]place.Offer

	// requirements are what the NodePools of each pool ask of zones.
	requirements [][]policy.Requirement

	// podValue is per workload and hour; pools whose types all have
	// accelerators are counted in GPUs.
	podValue []policy.Money
	gpuWorld bool
}

// NewStage prepares w. It fails when a workload fits no on-demand market, since
// such a workload has no value to weigh an outage by.
func NewStage(w *scenarios.World) (*Stage, error) {
	s := &Stage{world: w, begin: w.Start.Add(-w.WarmUp), window: billing.Span{From: w.Start, To: w.Start.Add(w.Duration)}}
	if s.begin <= 0 || w.Duration <= 0 {
		return nil, fmt.Errorf("world %s: start %v, warm-up %v and duration %v do not make a run", w.Name, w.Start, w.WarmUp, w.Duration)
	}
	s.prices = make([]scenarios.PriceCurve, len(w.Prices))
	s.curves = make([]*billing.Curve, len(w.Prices))
	for i := range w.Prices {
		if len(w.Prices[i].At) == 0 {
			return nil, fmt.Errorf("world %s: market %s has no price", w.Name, w.Markets[i].Name)
		}
		s.prices[i] = s.ramped(policy.MarketID(i))
		s.curves[i] = billing.NewCurve(s.prices[i].At, charged(s.prices[i].Price, w.Markets[i].Reserve))
	}
	s.makeGrid()
	s.makeOffers()
	return s, s.valuePods()
}

// Price returns the price of market m over the run, its price ramps in it. It is
// shared and not to be written.
func (s *Stage) Price(m policy.MarketID) scenarios.PriceCurve { return s.prices[m] }

// Window returns what is metered of the run.
func (s *Stage) Window() billing.Span { return s.window }

// rampStep is how often a ramped price moves.
const rampStep = 10 * time.Minute

// ramped returns the prices of market m with the world's price ramps in them:
// over a ramp the price rises linearly from itself to Factor times itself, and
// falls back at the end.
func (s *Stage) ramped(m policy.MarketID) scenarios.PriceCurve {
	curve := s.world.Prices[m]
	for i := range s.world.Faults {
		f := &s.world.Faults[i]
		if f.Kind != scenarios.FaultPriceRamp || !s.matches(f, m) {
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

// matches reports whether fault f concerns market m.
func (s *Stage) matches(f *scenarios.Fault, m policy.MarketID) bool {
	x := &s.world.Markets[m]
	return (f.Zone == "" || f.Zone == s.world.Zones[x.Zone]) &&
		(f.Type == "" || f.Type == s.world.Types[x.Type].Name) &&
		(f.Capacity == "" || f.Capacity == x.Capacity.String())
}

func (s *Stage) makeGrid() {
	s.gridFrom = s.begin - s.begin%gridStep - (historySize-1)*gridStep
	n := int((s.window.To-s.gridFrom)/gridStep) + 1
	s.grid = make([][]policy.Money, len(s.prices))
	flat := make([]policy.Money, 0)
	for m := range s.prices {
		c := &s.prices[m]
		if len(c.At) == 1 {
			// A price that never moves needs no more than one window of it,
			// and equal ones share it.
			s.grid[m] = nil
			continue
		}
		if cap(flat)-len(flat) < n {
			flat = make([]policy.Money, 0, 64*n)
		}
		row := flat[len(flat) : len(flat)+n : len(flat)+n]
		flat = flat[:len(flat)+n]
		k := 0
		for i := range row {
			t := s.gridFrom + policy.Time(i)*gridStep
			for k+1 < len(c.At) && c.At[k+1] <= t {
				k++
			}
			row[i] = c.Price[k]
		}
		s.grid[m] = row
	}
}

// makeOffers lists what each pool can buy.
func (s *Stage) makeOffers() {
	w := s.world
	s.gpuWorld = len(w.Pools) > 0
	s.offers, s.requirements = make([][]place.Offer, len(w.Pools)), make([][]policy.Requirement, len(w.Pools))
	for p := range w.Pools {
		pool := &w.Pools[p]
		zones := policy.Requirement{Key: "topology.kubernetes.io/zone", Op: policy.OpIn}
		for _, m := range pool.Markets {
			if zone := w.Zones[w.Markets[m].Zone]; !slices.Contains(zones.Values, zone) {
				zones.Values = append(zones.Values, zone)
			}
		}
		s.requirements[p] = []policy.Requirement{zones}
		for _, m := range pool.Markets {
			market, typ := &w.Markets[m], &w.Types[w.Markets[m].Type]
			if typ.Allocatable.GPU == 0 {
				s.gpuWorld = false
			}
			s.offers[p] = append(s.offers[p], place.Offer{
				Pool: policy.PoolID(p), Market: m, Price: s.curves[m].At(s.begin),
				Allocatable: typ.Allocatable, Capacity: typ.Capacity, VolumesMax: typ.VolumesMax, GPUResource: typ.GPUResource,
				Labels: place.NodeLabels(w.Types, w.Zones, pool, market), Taints: pool.Taints,
			})
		}
	}
}

// onDemand returns the on-demand offers of all pools at the prices at t.
func (s *Stage) onDemand(t policy.Time) []place.Offer {
	var out []place.Offer
	for p := range s.offers {
		for _, o := range s.offers[p] {
			if s.world.Markets[o.Market].Capacity == policy.OnDemand {
				o.Price = s.curves[o.Market].At(t)
				out = append(out, o)
			}
		}
	}
	return out
}

// valuePods finds for each workload the least price at Start of the part of an
// on-demand node that one of its pods takes.
func (s *Stage) valuePods() error {
	space := place.New(s.world.Templates, s.world.Zones)
	offers := s.onDemand(s.world.Start)
	s.podValue = make([]policy.Money, len(s.world.Workloads))
	for i := range s.world.Workloads {
		t := &s.world.Templates[i]
		if t.DaemonSet {
			continue
		}
		pod := policy.Pod{Template: policy.TemplateID(i), Phase: policy.PodPending, Node: policy.None, Nominated: policy.None, VolumeZone: policy.None}
		bins, _ := space.Provision([]policy.Pod{pod}, offers)
		if len(bins) == 0 {
			return fmt.Errorf("world %s: a pod of %s (%d m CPU, %d MiB, %d GPU) fits no on-demand market of any pool",
				s.world.Name, t.Name, t.Requests.CPU, t.Requests.Memory>>20, t.Requests.GPU)
		}
		for _, o := range bins[0].Offers {
			value := offers[o].Price.Times(t.Requests.LargestShare(offers[o].Allocatable))
			if s.podValue[i] == 0 || value < s.podValue[i] {
				s.podValue[i] = value
			}
		}
	}
	return nil
}

// NewWeather draws everything exogenous of a run of the world under seed.
func (s *Stage) NewWeather(seed uint64) (*weather.Weather, error) {
	w := s.world
	cfg := weather.Config{Seed: seed, Trace: w.TraceDigest, From: s.begin, To: s.window.To, Intensity: w.Intensity, Slots: w.Slots,
		OnDemandShortages: w.OnDemandShortages, Truth: w.Truth, Params: weather.DefaultParams()}
	for i := range w.Faults {
		f := &w.Faults[i]
		squeeze := weather.Squeeze{At: f.At, Duration: f.Duration, Depth: f.Share, Zone: f.Zone, Type: f.Type, Capacity: f.Capacity}
		switch f.Kind {
		case scenarios.FaultZoneOutage:
			squeeze.Depth, squeeze.Capacity, squeeze.NoNotice = 1, "", true
			cfg.Squeezes = append(cfg.Squeezes, squeeze)
		case scenarios.FaultSqueeze:
			squeeze.Capacity = policy.Spot.String()
			cfg.Squeezes = append(cfg.Squeezes, squeeze)
		case scenarios.FaultOnDemandRefused:
			squeeze.Depth, squeeze.Capacity = 0, policy.OnDemand.String()
			cfg.Squeezes = append(cfg.Squeezes, squeeze)
		case scenarios.FaultAPIThrottle:
			cfg.APIFaults = append(cfg.APIFaults, weather.APIFault{At: f.At, Duration: f.Duration, Share: f.Share})
		case scenarios.FaultAPIError:
			cfg.APIFaults = append(cfg.APIFaults, weather.APIFault{At: f.At, Duration: f.Duration, Share: 1})
		case scenarios.FaultLateNotice:
			cfg.LateNotices = append(cfg.LateNotices, weather.LateSpell{At: f.At, Duration: f.Duration, Share: f.Share, Delay: f.Delay})
		}
	}
	markets := make([]weather.Market, len(w.Markets))
	for i := range w.Markets {
		m, typ := &w.Markets[i], &w.Types[w.Markets[i].Type]
		markets[i] = weather.Market{Name: m.Name, Provider: m.Provider, Region: m.Region, Zone: w.Zones[m.Zone], Type: typ.Name,
			Family: typ.Family, Spot: m.Capacity == policy.Spot, Auction: m.Auction(), GPU: typ.Allocatable.GPU > 0, Band: m.Band}
		if w.Available != nil && len(w.Available[i].At) > 0 {
			markets[i].Available = &weather.Availability{At: w.Available[i].At, Up: w.Available[i].Available, Gap: w.Available[i].Gap, Nodes: w.Available[i].Nodes}
		}
	}
	pairWeather(w, markets)
	return weather.New(cfg, markets)
}

// pairWeather gives each market on demand the band and the recorded availability
// of the spot market of its type and zone.
func pairWeather(w *scenarios.World, markets []weather.Market) {
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
