package market

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/live/aws"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

const (
	// awsScores is the interval between two reads of placement scores, which take one request for
	// each type in each region. awsLists is the interval for on-demand prices, interruption bands,
	// zones, types and offerings, which change rarely.
	awsScores = time.Hour
	awsLists  = 24 * time.Hour

	// awsOverlap is how far back before the last read prices are requested again, because AWS
	// publishes some prices late.
	awsOverlap = time.Hour

	// awsPrices is the name of the feed of Spot prices.
	awsPrices = "aws-spot-prices"
)

// NewAWS returns the feeds from the EC2 API, the price list and the Spot Instance Advisor. They are
// read independently, so that the failure of one does not delay the others. interval is the time
// between two reads of Spot prices. AWS publishes a change within minutes and changes a price a few
// times a day; each read takes one request per thousand markets.
func NewAWS(r *aws.Reader, interval time.Duration) []Feed {
	return []Feed{
		awsFeed{awsPrices, interval, awsReader{r}.readPrices},
		awsFeed{"aws-offerings", awsLists, awsReader{r}.readOfferings},
		awsFeed{"aws-on-demand-prices", awsLists, awsReader{r}.readOnDemand},
		awsFeed{"aws-interruption-bands", awsLists, awsReader{r}.readBands},
		awsFeed{"aws-placement-scores", awsScores, awsReader{r}.readScores},
	}
}

// An awsFeed is a [Feed] of one kind of data.
type awsFeed struct {
	name  string
	every time.Duration
	read  func(context.Context, Ask) (*Update, error)
}

// Name implements [Feed].
func (f awsFeed) Name() string { return f.name }

// Every implements [Feed].
func (f awsFeed) Every() time.Duration { return f.every }

// Prices implements [Feed].
func (f awsFeed) Prices() bool { return f.name == awsPrices }

// Read implements [Feed].
func (f awsFeed) Read(ctx context.Context, ask Ask) (*Update, error) { return f.read(ctx, ask) }

// An awsReader reads the data of all regions.
type awsReader struct{ *aws.Reader }

// readPrices requests the prices since the last read, and the whole history of a snapshot at the
// first read. AWS lists every market in each response, at least with the price in force at the
// start of the requested time: a market that is missing in the response is not known to be sold.
func (p awsReader) readPrices(ctx context.Context, ask Ask) (*Update, error) {
	const second = policy.Time(time.Second / time.Millisecond)
	u := &Update{AsOf: ask.Now - ask.Now%second} // the precision of a request
	from := u.AsOf - (historySize+1)*gridStep
	if ask.Since > 0 {
		from = max(from, ask.Since.Add(-awsOverlap))
	}
	var errs []error
	for _, region := range p.Regions() {
		prices, unreadable, err := p.Prices(ctx, region, from-from%second, u.AsOf)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if unreadable > 0 {
			u.Warnings = append(u.Warnings, fmt.Sprintf("unreadable prices of %[2]s: %[1]d", unreadable, region))
		}
		if len(prices) == 0 {
			u.Warnings = append(u.Warnings, fmt.Sprintf("AWS lists no Spot price of %s", region))
		}
		zones := map[string]string{}
		for _, x := range prices {
			zone := x.ZoneName
			switch {
			case zone == "":
				zone = x.ZoneID
			case x.ZoneID != "":
				zones[x.ZoneName] = x.ZoneID
			}
			u.Spot = append(u.Spot, Price{Provider: catalog.AWS, Region: region, Zone: zone, Type: x.Type, At: x.At,
				Price: x.Price})
		}
		u.Zones = append(u.Zones, named(region, zones)...)
	}
	return u, errors.Join(errs...)
}

// named returns the zones with these IDs by name, sorted by name.
func named(region string, ids map[string]string) []Zone {
	var all []Zone
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		all = append(all, Zone{catalog.AWS, region, name, ids[name]})
	}
	return all
}

// readOfferings reads the zones, their offerings, and the types that the catalog does not contain.
func (p awsReader) readOfferings(ctx context.Context, ask Ask) (*Update, error) {
	u := &Update{AsOf: ask.Now}
	var errs []error
	for _, region := range p.Regions() {
		ids, err := p.Zones(ctx, region)
		errs = append(errs, err)
		u.Zones = append(u.Zones, named(region, ids)...)
		kinds, err := p.Types(ctx, region)
		errs = append(errs, err)
		for i := range kinds {
			if _, known := catalog.Lookup(catalog.AWS, kinds[i].Name); !known {
				u.Types = append(u.Types, described(&kinds[i]))
			}
		}
		zones, err := p.Offerings(ctx, region)
		errs = append(errs, err)
		for _, zone := range slices.Sorted(maps.Keys(zones)) {
			for _, kind := range zones[zone] {
				u.Offerings = append(u.Offerings, Offering{catalog.AWS, region, zone, kind})
			}
		}
	}
	return u, errors.Join(errs...)
}

// makers maps EC2's names of accelerator manufacturers to the kinds of accelerators in the catalog.
var makers = map[string]string{"NVIDIA": "nvidia", "AMD": "amd", "Habana": "gaudi", "AWS": "neuron"}

// described returns a type in the form of the catalog. It writes the model of the accelerators as
// Karpenter's labels do: "T4" is "t4".
func described(x *aws.InstanceType) policy.InstanceType {
	return catalog.FromAWS(catalog.Description{
		Name: x.Name, VCPU: x.VCPU, MemoryMiB: x.MemoryMiB,
		GPUs: x.GPUs, GPUName: strings.ReplaceAll(strings.ToLower(x.GPUName), " ", "-"), GPUKind: makers[x.GPUMaker],
		ENIs: x.ENIs, IPv4: x.IPv4, Mbps: x.Mbps, CPUMaker: strings.ToLower(x.CPUMaker), ClockMHz: x.ClockMHz,
		EBSMbps: x.EBSMbps, NVMeGB: x.NVMeGB, GPUMiB: x.GPUMiB, Encrypted: x.Encrypted,
	})
}

// readOnDemand reads on-demand prices from the price list.
func (p awsReader) readOnDemand(ctx context.Context, ask Ask) (*Update, error) {
	u := &Update{AsOf: ask.Now}
	var errs []error
	for _, region := range p.Regions() {
		prices, err := p.OnDemand(ctx, region)
		errs = append(errs, err)
		if err == nil && len(prices) == 0 {
			u.Warnings = append(u.Warnings,
				fmt.Sprintf("the price list has no on-demand price for %s; the catalog's prices are used", region))
		}
		for _, kind := range slices.Sorted(maps.Keys(prices)) {
			u.OnDemand = append(u.OnDemand, OnDemandPrice{Provider: catalog.AWS, Region: region, Type: kind,
				Price: prices[kind]})
		}
	}
	return u, errors.Join(errs...)
}

// readBands reads interruption bands from the Spot Instance Advisor.
func (p awsReader) readBands(ctx context.Context, ask Ask) (*Update, error) {
	bands, err := p.Bands(ctx)
	if err != nil {
		return nil, err
	}
	u := &Update{AsOf: ask.Now}
	for _, region := range p.Regions() {
		if len(bands[region]) == 0 {
			u.Warnings = append(u.Warnings, fmt.Sprintf("the Spot Instance Advisor lists no instance type of %s", region))
		}
		for _, kind := range slices.Sorted(maps.Keys(bands[region])) {
			u.Bands = append(u.Bands, PublishedBand{catalog.AWS, region, kind, policy.Band(bands[region][kind])})
		}
	}
	return u, nil
}

// readScores reads the placement scores of the wanted types. The zones in the result are zone IDs.
func (p awsReader) readScores(ctx context.Context, ask Ask) (*Update, error) {
	if len(ask.Wanted) == 0 {
		return nil, ErrNothingWanted
	}
	u := &Update{AsOf: ask.Now}
	var errs []error
	for _, region := range p.Regions() {
		var kinds []string
		for _, w := range ask.Wanted {
			if w.Provider == catalog.AWS && w.Region == region {
				kinds = append(kinds, w.Type)
			}
		}
		if len(kinds) == 0 {
			continue
		}
		ids, err := p.Zones(ctx, region)
		errs = append(errs, err)
		u.Zones = append(u.Zones, named(region, ids)...)
		scores, left, err := p.Scores(ctx, region, kinds)
		errs = append(errs, err)
		if left > 0 {
			u.Warnings = append(u.Warnings,
				fmt.Sprintf("%d of %d types of %s have no placement score: the daily quota of configurations is used up", left,
					len(kinds), region))
		}
		for _, kind := range kinds {
			for _, zone := range slices.Sorted(maps.Keys(scores[kind])) {
				u.Scores = append(u.Scores, PublishedScore{catalog.AWS, region, zone, kind, scores[kind][zone]})
			}
		}
	}
	return u, errors.Join(errs...)
}
