package sim

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

// A Prepared is what all runs of one scenario share: prices, offers and pod values. It
// is never written after Prepare, so any number of runs may use it at once.
type Prepared struct {
	scenario *scenarios.BoundScenario

	// begin is when warm-up begins; window is what is metered.
	begin  policy.Time
	window billing.Span

	prices *market.Prices

	// offers are those of each pool, in the order of its markets, with the
	// price at begin.
	offers [][]placement.Offer

	// rules are, by pool, what its NodePools ask for besides: of the zones of its markets,
	// and what a NodePool of the user says.
	rules []placement.Pool

	// kinds and podValue are per workload, the value per hour.
	kinds    []policy.WorkloadKind
	podValue []policy.Money

	// volumeZones are, per StatefulSet with zonal volumes, the zones in which one of its pods
	// alone fits on demand, ascending.
	volumeZones [][]policy.ZoneID

	unschedulable []Unschedulable

	// inGPUs says that sizes are counted in GPUs, since every pool has them.
	inGPUs bool
}

// Prepare prepares runs of w. It fails when no workload's pods fit any node that can be bought;
// where those of some do not, these stay pending, and [Prepared.Unschedulable] has them.
func Prepare(w *scenarios.BoundScenario) (*Prepared, error) {
	p := &Prepared{scenario: w, begin: w.Start.Add(-w.WarmUp), window: billing.Span{From: w.Start, To: w.Start.Add(w.Duration)}}
	if p.begin <= 0 || w.Duration <= 0 {
		return nil, fmt.Errorf("scenario %s: start %v, warm-up %v and duration %v do not make a run", w.Name, w.Start, w.WarmUp, w.Duration)
	}
	var err error
	if p.prices, err = market.NewPrices(w, p.begin, p.window.To); err != nil {
		return nil, err
	}
	for i := range w.Workloads {
		p.kinds = append(p.kinds, w.Workloads[i].Kind)
	}
	p.listOffers()
	p.listVolumeZones()
	return p, p.valuePods()
}

// Scenario returns what was prepared. It is not to be written.
func (p *Prepared) Scenario() *scenarios.BoundScenario { return p.scenario }

// Span returns when warm-up begins, and what is metered.
func (p *Prepared) Span() (begin policy.Time, metered billing.Span) { return p.begin, p.window }

// Prices returns the market prices of m over the run, price ramps in them and
// policy.NoPrice where it is not offered. They are shared and not to be written.
func (p *Prepared) Prices(m policy.MarketID) scenarios.PriceCurve { return p.prices.Listed(m) }

// Charges returns what a node of market m is charged over time, price ramps and
// reserve price in it, and policy.NoPrice where nothing is offered. It is shared
// and not to be written.
func (p *Prepared) Charges(m policy.MarketID) scenarios.PriceCurve { return p.prices.Charged(m) }

// PodValue returns what one pod of workload w is worth per hour; 0 for a
// DaemonSet, and where its pods fit nowhere, which no policy can change.
func (p *Prepared) PodValue(w policy.WorkloadID) policy.Money { return p.podValue[w] }

// DrawWeather draws everything exogenous of a run under seed.
func (p *Prepared) DrawWeather(seed uint64) (*weather.Weather, error) {
	return market.DrawWeather(p.scenario, seed, p.begin, p.window.To)
}

// listOffers lists what each pool can buy.
func (p *Prepared) listOffers() {
	w := p.scenario
	p.inGPUs = len(w.Pools) > 0
	p.offers, p.rules = make([][]placement.Offer, len(w.Pools)), make([]placement.Pool, len(w.Pools))
	for i := range w.Pools {
		pool := &w.Pools[i]
		zones := policy.Requirement{Key: "topology.kubernetes.io/zone", Op: policy.OpIn}
		for _, m := range pool.Markets {
			if zone := w.Zones[w.Markets[m].Zone]; !slices.Contains(zones.Values, zone) {
				zones.Values = append(zones.Values, zone)
			}
		}
		p.rules[i] = placement.Pool{Requirements: []policy.Requirement{zones}, Taints: pool.Taints}
		if own := p.own(policy.PoolID(i)); own != nil {
			p.rules[i].Requirements = append(p.rules[i].Requirements, own.Requirements...)
			for _, c := range own.Choices {
				p.rules[i].Requirements = append(p.rules[i].Requirements, c.Requirements...)
				if c.Open {
					p.rules[i].Open = append(p.rules[i].Open, c.Key)
				}
			}
			for _, x := range own.MinValues {
				p.rules[i].MinValues = append(p.rules[i].MinValues, placement.MinValues(x))
			}
		}
		choices := p.choicesOf(policy.PoolID(i))
		for _, m := range w.BoughtBy(policy.PoolID(i)) {
			market, typ := &w.Markets[m], &w.Types[w.Markets[m].Type]
			if typ.Allocatable.GPU == 0 {
				p.inGPUs = false
			}
			for k, labels := range choices {
				chosen := *pool
				chosen.Labels = labels
				p.offers[i] = append(p.offers[i], placement.Offer{
					Pool: policy.PoolID(i), Market: m, Price: p.prices.Charges()[m].At(p.begin),
					Allocatable: w.AllocatableOf(policy.PoolID(i), market.Type), Capacity: typ.Capacity, VolumesMax: typ.VolumesMax, GPUResource: typ.GPUResource,
					Labels: placement.NodeLabels(w.Types, w.Zones, &chosen, market), Taints: pool.Taints, Choice: k,
				})
			}
		}
	}
}

// choicesOf returns the labels that a pool gives to its nodes, one list for each combination of
// the values that its NodePool leaves open.
func (p *Prepared) choicesOf(pool policy.PoolID) [][]policy.Label {
	own, fixed := p.own(pool), p.scenario.Pools[pool].Labels
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

// own returns what a NodePool of the user asks for, nil for a pool that is none.
func (p *Prepared) own(pool policy.PoolID) *scenarios.NodePool {
	if p.scenario.NodePools == nil {
		return nil
	}
	return p.scenario.NodePools[pool]
}

// onDemand returns the on-demand offers of all pools at the prices at t.
func (p *Prepared) onDemand(t policy.Time) []placement.Offer {
	var out []placement.Offer
	for _, offers := range p.offers {
		for _, o := range offers {
			if p.scenario.Markets[o.Market].Capacity == policy.OnDemand {
				o.Price = p.prices.Charges()[o.Market].At(t)
				out = append(out, o)
			}
		}
	}
	return out
}

// listVolumeZones finds where volumes of StatefulSets may be.
func (p *Prepared) listVolumeZones() {
	w, offers := p.scenario, p.onDemand(p.scenario.Start)
	p.volumeZones = make([][]policy.ZoneID, len(w.Workloads))
	for i := range w.Workloads {
		if w.Workloads[i].Kind != policy.KindStatefulSet || !slices.ContainsFunc(w.Templates[i].Volumes, func(v policy.Volume) bool { return v.Zonal }) {
			continue
		}
		alone := slices.Clone(w.Templates)
		alone[i].PodAffinity, alone[i].PodAntiAffinity, alone[i].Spread = nil, nil, nil
		pod := policy.Pod{Template: policy.TemplateID(i), Phase: policy.PodPending, Node: policy.None, Nominated: policy.None, VolumeZone: policy.None}
		bins, _ := placement.Provision(placement.New(alone, w.Zones), []policy.Pod{pod}, offers)
		if len(bins) == 0 {
			continue
		}
		for _, o := range bins[0].Offers {
			p.volumeZones[i] = append(p.volumeZones[i], w.Markets[offers[o].Market].Zone)
		}
		slices.Sort(p.volumeZones[i])
		p.volumeZones[i] = slices.Compact(p.volumeZones[i])
	}
}

// valuePods finds for each workload the least price at Start of the part of an on-demand node that
// one of its pods takes.
func (p *Prepared) valuePods() error {
	space := placement.New(p.scenario.Templates, p.scenario.Zones)
	offers := p.onDemand(p.scenario.Start)
	p.podValue = make([]policy.Money, len(p.scenario.Workloads))
	services := 0
	for i := range p.scenario.Workloads {
		t := &p.scenario.Templates[i]
		if t.DaemonSet {
			continue
		}
		services++
		pod := policy.Pod{Template: policy.TemplateID(i), Phase: policy.PodPending, Node: policy.None, Nominated: policy.None, VolumeZone: policy.None}
		var fit []placement.Offer
		if bins, _ := placement.Provision(space, []policy.Pod{pod}, offers); len(bins) > 0 {
			for _, o := range bins[0].Offers {
				fit = append(fit, offers[o])
			}
		} else {
			s := search{p: p, space: space, t: t, left: p.atOnDemandPrice()}
			if why := s.obstacle(); why != "" {
				id := policy.WorkloadID(i)
				p.unschedulable = append(p.unschedulable, Unschedulable{id, why, p.pending(id, s.tooExpensive)})
				continue
			}
			fit = s.left
		}
		for k := range fit {
			value := fit[k].Price.Times(t.Requests.LargestShare(fit[k].Allocatable))
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

// atOnDemandPrice returns all offers, at what a node costs on demand: pods may want nodes that are
// sold as spot alone, or pods of others there.
func (p *Prepared) atOnDemandPrice() (all []placement.Offer) {
	for _, offers := range p.offers {
		for _, o := range offers {
			o.Price = p.scenario.Markets[o.Market].OnDemand
			all = append(all, o)
		}
	}
	return all
}
