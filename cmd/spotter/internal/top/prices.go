package top

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/access"
	"github.com/spotter-dev/spotter/live/aws"
	livemarket "github.com/spotter-dev/spotter/live/market"
	"github.com/spotter-dev/spotter/live/rackspace"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

const (
	// pricesLast is the maximum age of prices before they are read again.
	pricesLast = 5 * time.Minute

	// pricesSpan is the interval of the request to AWS. The response starts with the price of each
	// market at the start of the interval.
	pricesSpan = time.Hour

	// typesMax is the maximum number of instance types in one request to AWS.
	typesMax = 200

	// auctionWait is the timeout for the price feed of Rackspace.
	auctionWait = 10 * time.Second
)

// A spotMarket identifies a Spot market.
type spotMarket struct{ provider, region, zone, kind string }

// Prices reads the Spot prices of nodes from their providers and caches them for some minutes. The
// zero value is ready to use.
type Prices struct {
	asked  map[spotMarket]bool // the markets of the last read
	readAt time.Time
	spot   map[spotMarket]policy.Money

	// why maps a provider to the reason why it returned no prices.
	why map[string]string
}

// The names of price sources.
const (
	sourceCatalog  = "catalog"
	sourceModelled = "modelled"
	sourceRecorded = "recorded"
	sourceLive     = "live"
)

// fill sets the prices of the nodes of t, and records their sources.
func (p *Prices) fill(ctx context.Context, t *Table) {
	wanted := map[spotMarket]bool{}
	for i := range t.Nodes {
		if n := &t.Nodes[i]; n.Capacity == policy.Spot.String() && n.Type != "" && n.Region != "" {
			wanted[marketOf(n)] = true
		}
	}
	p.read(ctx, wanted, t.At)
	recorded := map[spotMarket]policy.Money{}
	for m := range wanted {
		if p.spot[m] == 0 {
			recorded = lastRecorded()
			break
		}
	}
	count := map[[2]string]int{} // number of nodes by provider and source
	for i := range t.Nodes {
		n := &t.Nodes[i]
		price, source := p.of(n, recorded)
		if source != "" {
			dollars := price.Float()
			n.Price, n.PriceOf = &dollars, source
		}
		count[[2]string{n.Provider, source}]++
	}
	p.explain(t, count)
}

// marketOf returns the Spot market of a node. Rackspace has no zones.
func marketOf(n *Node) spotMarket {
	m := spotMarket{n.Provider, n.Region, n.Zone, n.Type}
	if n.Provider == catalog.Rackspace {
		m.zone = n.Region
	}
	return m
}

// of returns the price per hour of a node and its source, which is empty if the price is unknown.
func (p *Prices) of(n *Node, recorded map[spotMarket]policy.Money) (policy.Money, string) {
	if n.Capacity == policy.Spot.String() {
		if price := p.spot[marketOf(n)]; price > 0 {
			return price, sourceLive
		}
		for _, zone := range []string{n.zoneID, ""} {
			if price := recorded[spotMarket{n.Provider, n.Region, zone, n.Type}]; price > 0 {
				return price, sourceRecorded
			}
		}
		return 0, ""
	}
	if price, ok := catalog.OnDemand(n.Provider, n.Region, n.Type); ok && price > 0 {
		return price, sourceCatalog
	}
	if price, _, ok := catalog.OnDemandModelled(n.Provider, n.Region, n.Type); ok && price > 0 {
		return price, sourceModelled
	}
	return 0, ""
}

// explain adds to t the sources of its prices, and why some are unknown.
func (p *Prices) explain(t *Table, count map[[2]string]int) {
	spotless := map[string]bool{}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if n.Price == nil && n.Capacity == policy.Spot.String() {
			spotless[n.Provider] = true
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(count), func(a, b [2]string) int {
		return slices.Compare(a[:],
			b[:])
	}) {
		provider := key[0]
		switch key[1] {
		case sourceLive:
			t.Sources = append(t.Sources, fmt.Sprintf("Spot prices: live from %s, read %s ago", nameOfProvider(provider),
				span(t.At.Sub(p.readAt))))
		case sourceRecorded:
			t.Sources = append(t.Sources, fmt.Sprintf("~ Spot prices: recorded until %s; %s", recordedDate(),
				cmp.Or(p.why[provider], "no live price")))
			delete(spotless, provider)
		case sourceCatalog:
			t.Sources = append(t.Sources, fmt.Sprintf("On-demand prices: %s, catalog of %s", nameOfProvider(provider),
				catalog.Date(provider)))
		case sourceModelled:
			t.Sources = append(t.Sources, fmt.Sprintf("~ On-demand prices: derived, since %s publishes none",
				nameOfProvider(provider)))
		}
	}
	for _, provider := range slices.Sorted(maps.Keys(spotless)) {
		if provider != "" {
			t.Notes = append(t.Notes, fmt.Sprintf("Spot prices of %s: %s", nameOfProvider(provider), cmp.Or(p.why[provider],
				"it lists none for some nodes")))
		}
	}
}

// read requests the Spot prices of markets from the providers, unless it did so recently.
func (p *Prices) read(ctx context.Context, wanted map[spotMarket]bool, now time.Time) {
	fresh := now.Sub(p.readAt) < pricesLast
	for m := range wanted {
		fresh = fresh && p.asked[m]
	}
	if fresh {
		return
	}
	*p = Prices{asked: wanted, readAt: now, spot: map[spotMarket]policy.Money{}, why: map[string]string{}}
	regions, types := map[string][]string{}, []string{}
	for m := range wanted {
		regions[m.provider] = append(regions[m.provider], m.region)
		if m.provider == catalog.AWS {
			types = append(types, m.kind)
		}
	}
	for provider, names := range regions {
		names = slices.Compact(slices.Sorted(slices.Values(names)))
		switch provider {
		case catalog.AWS:
			p.why[provider] = p.askAWS(ctx, names, slices.Compact(slices.Sorted(slices.Values(types))), now)
		case catalog.Azure:
			p.why[provider] = p.askAzure(ctx, wanted, names, now)
		case catalog.Rackspace:
			p.why[provider] = p.askRackspace(ctx, names, now)
		default:
			p.why[provider] = "its Spot prices cannot be read without a contract"
		}
	}
}

// nameOfProvider returns the name of a provider in its own spelling.
func nameOfProvider(provider string) string {
	switch provider {
	case policy.AWS:
		return "AWS"
	case policy.Azure:
		return "Azure"
	case policy.Rackspace:
		return "Rackspace"
	}
	return provider
}

// askAWS reads the Spot prices of types in regions. It returns the reason if they cannot be read,
// otherwise an empty string.
func (p *Prices) askAWS(ctx context.Context, regions, types []string, now time.Time) string {
	c := aws.DefaultConfig()
	c.Regions = regions
	if len(types) <= typesMax {
		c.Types = types
	}
	r, err := aws.NewReader(c)
	if err != nil {
		return err.Error()
	}
	wait := access.AWSWait()
	ctx, stop := context.WithTimeout(ctx, wait)
	defer stop()
	latest := map[spotMarket]policy.Time{}
	until := policy.TimeOf(now.Truncate(time.Second))
	for _, region := range regions {
		prices, _, err := r.Prices(ctx, region, until.Add(-pricesSpan), until)
		if err != nil {
			return access.AWSRefusal(err, wait)
		}
		for _, x := range prices {
			for _, zone := range []string{x.ZoneName, x.ZoneID} {
				m := spotMarket{catalog.AWS, region, zone, x.Type}
				if x.Price > 0 && x.At >= latest[m] {
					latest[m], p.spot[m] = x.At, x.Price
				}
			}
		}
	}
	return ""
}

// askAzure reads the Spot prices of the wanted markets of Azure. It returns the reason if they
// cannot be read, otherwise an empty string.
func (p *Prices) askAzure(ctx context.Context, wanted map[spotMarket]bool, regions []string, now time.Time) string {
	reader, err := access.NewAzureReader()
	if err != nil {
		return err.Error()
	}
	ctx, stop := context.WithTimeout(ctx, access.AzureWait)
	defer stop()
	for _, region := range regions {
		var types []string
		zones := map[string][]string{} // by type
		for m := range wanted {
			if m.provider == catalog.Azure && m.region == region {
				types, zones[m.kind] = append(types, m.kind), append(zones[m.kind], m.zone)
			}
		}
		slices.Sort(types)
		l, err := reader.Prices(ctx, region, slices.Compact(types), policy.TimeOf(now))
		if err != nil {
			return access.AzureRefusal(err)
		}
		for _, x := range l.Prices {
			for _, zone := range zones[x.Type] {
				if x.Spot {
					p.spot[spotMarket{catalog.Azure, region, zone, x.Type}] = x.Price
				}
			}
		}
	}
	return ""
}

// askRackspace reads the public price feed. It returns the reason if it cannot be read, otherwise
// an empty string.
func (p *Prices) askRackspace(ctx context.Context, regions []string, now time.Time) string {
	ctx, stop := context.WithTimeout(ctx, auctionWait)
	defer stop()
	feed, err := rackspace.NewFeed(rackspace.DefaultConfig())
	if err != nil {
		return err.Error()
	}
	feed.AddRegions(regions...)
	u, err := feed.Read(ctx, livemarket.Ask{Now: policy.TimeOf(now)})
	if err != nil {
		return "its price feed cannot be reached"
	}
	for i := range u.Spot {
		x := &u.Spot[i]
		p.spot[spotMarket{x.Provider, x.Region, x.Zone, x.Type}] = x.Price
	}
	return ""
}

// lastRecorded returns the last prices in the embedded trace of recorded prices, by zone ID. With
// an empty zone it has the mean price of a region, since the names of zones differ between
// accounts.
func lastRecorded() map[spotMarket]policy.Money {
	last, count := map[spotMarket]policy.Money{}, map[spotMarket]policy.Money{}
	t, err := trace.Default()
	if err != nil {
		return last
	}
	for i := range t.Series {
		s := &t.Series[i]
		m := spotMarket{s.Provider, s.Region, s.Zone, s.Type}
		for _, price := range s.Spot {
			if price > 0 {
				last[m] = price
			}
		}
		if price, sold := last[m]; sold {
			region := spotMarket{s.Provider, s.Region, "", s.Type}
			last[region] += price
			count[region]++
		}
	}
	for region, n := range count {
		last[region] /= n
	}
	return last
}

// recordedDate returns the day on which the embedded trace ends.
func recordedDate() string {
	t, err := trace.Default()
	if err != nil {
		return "an unknown date"
	}
	return t.To.Std().Format(time.DateOnly)
}
