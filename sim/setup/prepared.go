package setup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/weather"
	"github.com/spotter-dev/spotter/sim/market"
)

// A Prepared is the state that all runs of one scenario share: prices, offers and pod values. It is
// not changed after Prepare, so any number of runs may use it at the same time.
type Prepared struct {
	scenario *scenarios.BoundScenario

	// Begin is the start of the warm-up, Window the metered window.
	Begin  policy.Time
	Window billing.Span

	// Market contains the prices of all markets.
	Market *market.Prices

	// Offers are the offers of each pool, in the order of its markets, with the prices at Begin.
	Offers [][]placement.Offer

	// Rules are, by pool, the further requirements of its NodePools: the zones of its markets, and
	// the requirements of a NodePool of the user.
	Rules []placement.Pool

	// Kinds and podValue are indexed by workload. podValue is per hour.
	Kinds    []policy.WorkloadKind
	podValue []policy.Money

	// VolumeZones are, per StatefulSet with zonal volumes, the zones in which one of its pods alone
	// fits an on-demand node, in ascending order.
	VolumeZones [][]policy.ZoneID

	unschedulable []Unschedulable

	// InGPUs reports whether sizes are counted in GPUs, because every pool has them.
	InGPUs bool
}

// Prepare prepares runs of w. It fails if the pods of no workload fit a node that can be launched.
// If only those of some workloads do not fit, they stay pending, and [Prepared.Unschedulable]
// returns these workloads.
func Prepare(w *scenarios.BoundScenario) (*Prepared, error) {
	p := &Prepared{scenario: w, Begin: w.Start.Add(-w.WarmUp), Window: billing.Span{From: w.Start,
		To: w.Start.Add(w.Duration)}}
	if p.Begin <= 0 || w.Duration <= 0 {
		return nil, fmt.Errorf("scenario %s: start %v, warm-up %v and duration %v do not make a run", w.Name, w.Start,
			w.WarmUp, w.Duration)
	}
	var err error
	if p.Market, err = market.NewPrices(w, p.Begin, p.Window.To); err != nil {
		return nil, err
	}
	for i := range w.Workloads {
		p.Kinds = append(p.Kinds, w.Workloads[i].Kind)
	}
	p.listOffers()
	p.listVolumeZones()
	return p, p.valuePods()
}

// Scenario returns the scenario. It must not be changed.
func (p *Prepared) Scenario() *scenarios.BoundScenario { return p.scenario }

// Span returns the start of the warm-up and the metered window.
func (p *Prepared) Span() (begin policy.Time, metered billing.Span) { return p.Begin, p.Window }

// Prices returns the market prices of m over the run, including price ramps, and policy.NoPrice
// where it is not offered. They are shared and must not be changed.
func (p *Prepared) Prices(m policy.MarketID) scenarios.PriceCurve { return p.Market.Listed(m) }

// Charges returns the prices that a node of market m is charged over time, including price ramps
// and the reserve price, and policy.NoPrice where the market is not offered. The result is shared
// and must not be changed.
func (p *Prepared) Charges(m policy.MarketID) scenarios.PriceCurve { return p.Market.Charged(m) }

// PodValue returns the value of one pod of workload w per hour. It is 0 for a DaemonSet, and for
// pods that fit nowhere, which no policy can change.
func (p *Prepared) PodValue(w policy.WorkloadID) policy.Money { return p.podValue[w] }

// DrawWeather draws the weather of a run under seed: everything that no policy can change.
func (p *Prepared) DrawWeather(seed uint64) (*weather.Weather, error) {
	return market.DrawWeather(p.scenario, seed, p.Begin, p.Window.To)
}

// listOffers lists the offers of each pool.
func (p *Prepared) listOffers() {
	w := p.scenario
	p.InGPUs = len(w.Pools) > 0
	p.Offers, p.Rules = make([][]placement.Offer, len(w.Pools)), make([]placement.Pool, len(w.Pools))
	for i := range w.Pools {
		pool := &w.Pools[i]
		zones := policy.Requirement{Key: "topology.kubernetes.io/zone", Op: policy.OpIn}
		for _, m := range pool.Markets {
			if zone := w.Zones[w.Markets[m].Zone]; !slices.Contains(zones.Values, zone) {
				zones.Values = append(zones.Values, zone)
			}
		}
		p.Rules[i] = placement.Pool{Requirements: []policy.Requirement{zones}, Taints: pool.Taints}
		if own := p.Own(policy.PoolID(i)); own != nil {
			p.Rules[i].Requirements = append(p.Rules[i].Requirements, own.Requirements...)
			for _, c := range own.Choices {
				p.Rules[i].Requirements = append(p.Rules[i].Requirements, c.Requirements...)
				if c.Open {
					p.Rules[i].Open = append(p.Rules[i].Open, c.Key)
				}
			}
			for _, x := range own.MinValues {
				p.Rules[i].MinValues = append(p.Rules[i].MinValues, placement.MinValues(x))
			}
		}
		choices := p.choicesOf(policy.PoolID(i))
		for _, m := range w.BoughtBy(policy.PoolID(i)) {
			market, typ := &w.Markets[m], &w.Types[w.Markets[m].Type]
			if typ.Allocatable.GPU == 0 {
				p.InGPUs = false
			}
			for k, labels := range choices {
				chosen := *pool
				chosen.Labels = labels
				p.Offers[i] = append(p.Offers[i], placement.Offer{
					Pool: policy.PoolID(i), Market: m, Price: p.Market.Charges()[m].At(p.Begin),
					Allocatable: w.AllocatableOf(policy.PoolID(i), market.Type), Capacity: typ.Capacity,
					VolumesMax: typ.VolumesMax, GPUResource: typ.GPUResource,
					Labels: placement.NodeLabels(w.Types, w.Zones, &chosen, market), Taints: pool.Taints, Choice: k,
				})
			}
		}
	}
}

// choicesOf returns the labels of a pool's nodes, one list for each combination of the values that
// its NodePool leaves open.
func (p *Prepared) choicesOf(pool policy.PoolID) [][]policy.Label {
	own, fixed := p.Own(pool), p.scenario.Pools[pool].Labels
	if own == nil || len(own.Choices) == 0 {
		return [][]policy.Label{fixed}
	}
	fixed = slices.DeleteFunc(slices.Clone(fixed), func(l policy.Label) bool { return l.Value == policy.AnyValue })
	lists := [][]policy.Label{fixed}
	for _, c := range own.Choices {
		var more [][]policy.Label
		for _, labels := range lists {
			for _, value := range c.Values {
				list := append(slices.Clone(labels), policy.Label{Key: c.Key, Value: value})
				slices.SortFunc(list, func(a, b policy.Label) int { return cmp.Compare(a.Key, b.Key) })
				more = append(more, list)
			}
		}
		lists = more
	}
	return lists
}

// Own returns the user's NodePool of a pool, or nil if the pool does not represent one.
func (p *Prepared) Own(pool policy.PoolID) *scenarios.NodePool {
	if p.scenario.NodePools == nil {
		return nil
	}
	return p.scenario.NodePools[pool]
}

// OnDemand returns the on-demand offers of all pools, with the prices at t.
func (p *Prepared) OnDemand(t policy.Time) []placement.Offer {
	var out []placement.Offer
	for _, offers := range p.Offers {
		for _, o := range offers {
			if p.scenario.Markets[o.Market].Capacity == policy.OnDemand {
				o.Price = p.Market.Charges()[o.Market].At(t)
				out = append(out, o)
			}
		}
	}
	return out
}

// listVolumeZones determines the possible zones of the volumes of StatefulSets.
func (p *Prepared) listVolumeZones() {
	w, offers := p.scenario, p.OnDemand(p.scenario.Start)
	p.VolumeZones = make([][]policy.ZoneID, len(w.Workloads))
	for i := range w.Workloads {
		zonal := slices.ContainsFunc(w.Templates[i].Volumes, func(v policy.Volume) bool { return v.Zonal })
		if w.Workloads[i].Kind != policy.KindStatefulSet || !zonal {
			continue
		}
		alone := slices.Clone(w.Templates)
		alone[i].PodAffinity, alone[i].PodAntiAffinity, alone[i].Spread = nil, nil, nil
		s := search{p: p, space: placement.New(alone, w.Zones), t: &alone[i], left: offers}
		if s.obstacle() != "" {
			continue
		}
		for k := range s.left {
			p.VolumeZones[i] = append(p.VolumeZones[i], w.Markets[s.left[k].Market].Zone)
		}
		slices.Sort(p.VolumeZones[i])
		p.VolumeZones[i] = slices.Compact(p.VolumeZones[i])
	}
}

// valuePods computes the value of each workload's pods: the lowest price at Start of the fraction
// of an on-demand node that one pod occupies.
func (p *Prepared) valuePods() error {
	space := placement.New(p.scenario.Templates, p.scenario.Zones)
	offers := p.OnDemand(p.scenario.Start)
	p.podValue = make([]policy.Money, len(p.scenario.Workloads))
	services := 0
	for i := range p.scenario.Workloads {
		t := &p.scenario.Templates[i]
		if t.DaemonSet {
			continue
		}
		services++
		s := search{p: p, space: space, t: t, left: offers}
		why := s.obstacle()
		if why != "" {
			s = search{p: p, space: space, t: t, left: p.atOnDemandPrice()}
			why = s.obstacle()
		}
		if why != "" {
			id := policy.WorkloadID(i)
			p.unschedulable = append(p.unschedulable, Unschedulable{id, why, p.pending(id, s.tooExpensive)})
			continue
		}
		for k := range s.left {
			value := s.left[k].Price.Times(t.Requests.LargestShare(s.left[k].Allocatable))
			if p.podValue[i] == 0 || value < p.podValue[i] {
				p.podValue[i] = value
			}
		}
	}
	if services == 0 || len(p.unschedulable) < services {
		return nil
	}
	return fmt.Errorf("scenario %s: %s", p.scenario.Name, strings.Join(p.Warnings(), "; "))
}

// atOnDemandPrice returns all offers, with on-demand prices. It is used for pods that need nodes
// that are sold only as Spot, or that need other pods on such nodes.
func (p *Prepared) atOnDemandPrice() (all []placement.Offer) {
	for _, offers := range p.Offers {
		for _, o := range offers {
			o.Price = p.scenario.Markets[o.Market].OnDemand
			all = append(all, o)
		}
	}
	return all
}

// Group returns the Auto Scaling group of a pool, or nil if the pool does not represent one.
func (p *Prepared) Group(pool policy.PoolID) *scenarios.ScalingGroup {
	if p.scenario.ScalingGroups == nil {
		return nil
	}
	return p.scenario.ScalingGroups[pool]
}

// Static returns the NodePool of a static pool, which keeps a fixed number of nodes, or nil for
// other pools.
func (p *Prepared) Static(pool policy.PoolID) *scenarios.NodePool {
	if own := p.Own(pool); own != nil && own.Static {
		return own
	}
	return nil
}

// WithoutStatic drops the offers of static pools, which launch nothing for pods.
func (p *Prepared) WithoutStatic(offers []placement.Offer) []placement.Offer {
	return slices.DeleteFunc(offers, func(o placement.Offer) bool { return p.Static(o.Pool) != nil })
}
