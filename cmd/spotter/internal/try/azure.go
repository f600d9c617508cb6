package try

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/access"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/capture"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/azure"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// azurePrices returns the prices that Azure publishes for the markets of the pools, over the last
// eight days, or nil and the reason. Azure publishes the present prices, each with the date since
// which it applies. The price of a market before a change within these days is not known; the
// market then has its present price on all of them, and the assumptions state the number of such
// markets.
func (t *trial) azurePrices(ctx context.Context, taken *capture.Captured, regions []string) (*trace.Trace, string) {
	types, err := taken.Types(catalog.Azure, typesMax)
	if err != nil {
		return nil, cli.FirstLine(err)
	}
	t.say("asking Azure for the Spot prices of %d sizes in %s", len(types), cli.FirstOf(regions, 3))
	reader, err := access.NewAzureReader()
	if err != nil {
		return nil, cli.FirstLine(err)
	}
	ctx, stop := context.WithTimeout(ctx, access.AzureWait)
	defer stop()
	now := policy.TimeOf(time.Now().Truncate(time.Minute))
	var series []trace.Series
	changed := 0
	for _, region := range regions {
		l, err := reader.Prices(ctx, region, types, now)
		if err != nil {
			return nil, access.AzureRefusal(err)
		}
		some, n := seriesOf(region, l, now.Add(-week-day), now)
		series, changed = append(series, some...), changed+n
	}
	if len(series) == 0 {
		return nil, "Azure lists no Spot price for these sizes"
	}
	tr, err := trace.New(pricesFile, series)
	if err != nil {
		return nil, cli.FirstLine(err)
	}
	tr.About = "the Spot prices that Azure publishes, each since its date"
	if changed > 0 {
		taken.Assumed = append(taken.Assumed, fmt.Sprintf(
			"%d Spot prices changed in the last days, and Azure does not publish the earlier ones: they are as now", changed))
	}
	return tr, ""
}

// seriesOf returns the Spot prices of a region from one time to another in each of its zones, and
// the number of prices that came into force between the two.
func seriesOf(region string, l azure.List, from, to policy.Time) (all []trace.Series, changed int) {
	onDemand := map[string]policy.Money{}
	for _, p := range l.Prices {
		if !p.Spot {
			onDemand[p.Type] = p.Price
		}
	}
	for _, p := range l.Prices {
		if _, known := catalog.Lookup(catalog.Azure, p.Type); !p.Spot || !known {
			continue
		}
		if p.Since > from {
			changed++
		}
		for _, zone := range catalog.Zones(catalog.Azure, region) {
			list := onDemand[p.Type]
			all = append(all, trace.Series{Provider: catalog.Azure, Region: region, Zone: zone, Type: p.Type,
				At: []policy.Time{from, to}, Spot: []policy.Money{p.Price, p.Price}, OnDemand: []policy.Money{list, list}})
		}
	}
	return slices.Clip(all), changed
}
