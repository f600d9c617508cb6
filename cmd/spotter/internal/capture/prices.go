package capture

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/record"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/generate"
)

// Prices returns a trace of the prices in a recording. It starts with the price history of the
// first step, at most four hours before that step, and ends with the last step.
func Prices(name string, steps iter.Seq2[*record.Step, error]) (*trace.Trace, error) {
	all := map[string]*trace.Series{}
	var last policy.Time
	for st, err := range steps {
		if err != nil {
			return nil, err
		}
		s := st.Snapshot
		last = s.Now
		for i := range s.Markets {
			m := &s.Markets[i]
			if m.Capacity != policy.Spot {
				continue
			}
			key := strings.TrimSuffix(m.Name, "/"+m.Capacity.String())
			x := all[key]
			if x == nil {
				x = &trace.Series{Provider: m.Provider, Region: m.Region, Zone: s.Zones[m.Zone], Type: s.Types[m.Type].Name}
				all[key] = x
				priorPrices(x, m, s.Now)
			}
			price := policy.NoPrice
			if m.Offered {
				price = m.Price
			}
			see(x, s.Now, price, m)
		}
	}
	series := make([]trace.Series, 0, len(all))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		series = append(series, *all[key])
	}
	t, err := trace.New(name, series)
	if err != nil {
		return nil, err
	}
	t.To = max(t.To, last)
	t.WholeTo = t.To
	t.About = "prices as a recording of decisions saw them"
	return t, nil
}

// gridStep is the step of the price history of a snapshot, in milliseconds.
const gridStep = policy.Time(10 * 60 * 1000)

// priorPrices adds the price history of the first snapshot.
func priorPrices(x *trace.Series, m *policy.Market, now policy.Time) {
	newest := now - now%gridStep
	for i, price := range m.History {
		if at := newest - policy.Time(len(m.History)-1-i)*gridStep; at < now && at > 0 {
			see(x, at, price, m)
		}
	}
}

// see adds an observation of a market. It ignores one that is not later than the last.
func see(x *trace.Series, at policy.Time, price policy.Money, m *policy.Market) {
	if n := len(x.At); n > 0 && x.At[n-1] >= at {
		return
	}
	band := int8(-1)
	if !m.BandModelled {
		band = int8(m.Band)
	}
	x.At, x.Spot = append(x.At, at), append(x.Spot, price)
	x.OnDemand = append(x.OnDemand, onDemand(m))
	x.Band, x.Score = append(x.Band, band), append(x.Score, m.PlacementScore)
	for k := range x.Bids {
		x.Bids[k] = append(x.Bids[k], m.BidPercentiles[k])
	}
}

// onDemand returns the published on-demand price, or 0 if it was derived: readers of the trace
// derive it again and mark it as derived.
func onDemand(m *policy.Market) policy.Money {
	if m.OnDemandModelled {
		return 0
	}
	return m.OnDemand
}

// drawnMax is the maximum number of markets for which a capture draws prices. A pool may buy any of
// thousands, and a run reads all of them.
const drawnMax = 1200

// laws maps a provider to the preset for drawing its prices.
var laws = map[string]string{
	catalog.AWS: "aws-2024-classes", catalog.GCP: "gcp-2024", catalog.Azure: "azure-2024", catalog.Rackspace: "rackspace-2026",
}

// Draw returns synthetic prices for at most most markets in which the pools of a captured cluster
// may buy: those of its nodes first, then those with the lowest price for their size.
func (c *Captured) Draw(seed uint64, most int, from, to policy.Time) (*trace.Trace, error) {
	markets, err := c.markets(most)
	if err != nil {
		return nil, err
	}
	preset, err := generate.FindPreset(laws[markets[0].Provider])
	if err != nil {
		return nil, err
	}
	t, err := generate.Generate(generate.Config{Seed: seed, From: from, To: to, Markets: markets, Law: preset.Law})
	if err != nil {
		return nil, err
	}
	c.Assumed = append(c.Assumed,
		fmt.Sprintf("the prices are synthetic: on-demand prices are those of the catalog, Spot prices are drawn as those of %s are, with seed %d", preset.Law.Name, seed))
	return t, nil
}

// A candidate is a market in which pools may buy. held reports whether a node is in it.
type candidate struct {
	generate.Market
	held bool

	// unit is the price in dollars per vCPU, byte of memory and accelerator, per hour. It is +Inf
	// for a resource that the type does not have.
	unit [3]float64

	// expense is the lowest of the three ratios between unit and the lowest unit price of all
	// markets. A market that is cheap for any of the three resources is kept before one that is
	// cheap for none.
	expense float64
}

// markets returns at most most markets to draw prices for, ascending by name.
func (c *Captured) markets(most int) ([]generate.Market, error) {
	list, err := c.candidates()
	if err != nil {
		return nil, err
	}
	if len(list) > most {
		c.Left = append(c.Left,
			fmt.Sprintf("%d of %d markets that pools may buy in, those that cost most for their size: prices are drawn for no more than %d", len(list)-most, len(list), most))
		list = list[:most]
	}
	out := make([]generate.Market, len(list))
	for i := range list {
		out[i] = list[i].Market
	}
	slices.SortFunc(out, func(a, b generate.Market) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Region, b.Region), cmp.Compare(a.Zone, b.Zone),
			cmp.Compare(a.Type, b.Type))
	})
	return out, nil
}

// Types returns at most most instance types of a provider that pools may buy: those of its nodes
// first, then those with the lowest price for their size.
func (c *Captured) Types(provider string, most int) ([]string, error) {
	list, err := c.candidates()
	if err != nil {
		return nil, err
	}
	var out []string
	for i := range list {
		if list[i].Provider == provider && len(out) < most {
			out = add(out, list[i].Type)
		}
	}
	return out, nil
}

// Regions returns the regions of a provider in which there are nodes, sorted.
func (c *Captured) Regions(provider string) (out []string) {
	for _, s := range c.seen {
		if s.provider == provider {
			out = add(out, s.region)
		}
	}
	slices.Sort(out)
	return out
}

// candidates returns the markets in which pools may buy: those of the nodes first, then ascending
// by their cost for their size.
func (c *Captured) candidates() ([]candidate, error) {
	found := map[string]candidate{}
	least := [3]float64{math.Inf(1), math.Inf(1), math.Inf(1)}
	put := func(m generate.Market, held bool, t *policy.InstanceType) {
		key := m.Provider + "/" + m.Region + "/" + m.Zone + "/" + m.Type
		w := candidate{Market: m, held: held || found[key].held, expense: math.Inf(1)}
		for k, amount := range [3]int64{t.VCPU, t.Capacity.Memory, t.Capacity.GPU} {
			w.unit[k] = m.OnDemand.Float() / float64(amount) // +Inf where it has none
			least[k] = min(least[k], w.unit[k])
		}
		found[key] = w
	}
	for _, s := range c.seen {
		price, t, ok := priced(s.provider, s.region, s.InstanceType)
		if !ok {
			return nil, fmt.Errorf("the on-demand price of %s in %s %s is unknown: give a trace that has it", s.InstanceType,
				s.provider, s.region)
		}
		put(generate.Market{Provider: s.provider, Region: s.region, Zone: s.Zone, Type: s.InstanceType, OnDemand: price},
			true, &t)
	}
	for _, at := range c.regions() {
		for _, name := range catalog.Types(at.provider) {
			price, t, ok := priced(at.provider, at.region, name)
			if !ok {
				continue
			}
			for _, zone := range at.zones {
				if c.buys(at.provider, at.region, zone, &t) {
					put(generate.Market{Provider: at.provider, Region: at.region, Zone: zone, Type: name, OnDemand: price}, false, &t)
				}
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the catalog has nothing that a pool may buy: give a trace")
	}
	list := slices.Collect(maps.Values(found))
	for i := range list {
		for k, unit := range list[i].unit {
			if !math.IsInf(unit, 1) {
				list[i].expense = min(list[i].expense, unit/least[k])
			}
		}
	}
	slices.SortFunc(list, func(a, b candidate) int {
		if a.held != b.held {
			return map[bool]int{true: -1, false: 1}[a.held]
		}
		return cmp.Or(cmp.Compare(a.expense, b.expense), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Region, b.Region),
			cmp.Compare(a.Zone, b.Zone))
	})
	return list, nil
}

// priced returns a type of the catalog and its on-demand price per hour, which is derived if it is
// not published.
func priced(provider, region, name string) (policy.Money, policy.InstanceType, bool) {
	t, ok := catalog.Lookup(provider, name)
	if !ok {
		return 0, t, false
	}
	price, ok := catalog.OnDemand(provider, region, name)
	if !ok || price <= 0 {
		price, _, ok = catalog.OnDemandModelled(provider, region, name)
	}
	return price, t, ok && price > 0
}

// A region is a region in which pools buy, with its zones: those that have nodes or that a pool
// names, or all of the catalog if the region has no node.
type region struct {
	provider, region string
	zones            []string
}

func (c *Captured) regions() (out []region) {
	for _, s := range c.seen {
		i := slices.IndexFunc(out, func(r region) bool { return r.provider == s.provider && r.region == s.region })
		if i < 0 {
			i = len(out)
			out = append(out, region{provider: s.provider, region: s.region})
		}
		out[i].zones = add(out[i].zones, s.Zone)
	}
	for i := range c.pools {
		for _, name := range c.pools[i].Spec.Markets.Regions {
			for _, provider := range catalog.Providers() {
				known := slices.ContainsFunc(out, func(r region) bool { return r.provider == provider && r.region == name })
				if !known && c.pools[i].BuysFrom(provider) && slices.Contains(catalog.Regions(provider), name) {
					out = append(out, region{provider, name, catalog.Zones(provider, name)})
				}
			}
		}
		for _, zone := range c.pools[i].Spec.Markets.Zones {
			for k := range out {
				if slices.Contains(catalog.Zones(out[k].provider, out[k].region), zone) {
					out[k].zones = add(out[k].zones, zone)
				}
			}
		}
	}
	return out
}

// buys reports whether any pool may buy a type in a zone.
func (c *Captured) buys(provider, region, zone string, t *policy.InstanceType) bool {
	return slices.ContainsFunc(c.pools, func(p v1alpha1.CapacityPool) bool {
		return p.BuysFrom(provider) && p.Spec.Markets.Take(region, zone, t)
	}) || slices.ContainsFunc(c.own, func(x *ownPool) bool { return x.buys(provider, region, zone, t.Name) })
}
