package try

import (
	"context"
	"fmt"
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
	var prices []presentPrice
	changed := 0
	for _, region := range regions {
		l, err := reader.Prices(ctx, region, types, now)
		if err != nil {
			return nil, access.AzureRefusal(err)
		}
		some, n := ofAzure(region, l, now.Add(-week-day))
		prices, changed = append(prices, some...), changed+n
	}
	series := presentSeries(catalog.Azure, prices, now.Add(-week-day), now)
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

// ofAzure returns the prices of a region, and the number of Spot prices that came into force after
// from.
func ofAzure(region string, l azure.List, from policy.Time) (all []presentPrice, changed int) {
	for _, p := range l.Prices {
		if _, known := catalog.Lookup(catalog.Azure, p.Type); known && p.Spot && p.Since > from {
			changed++
		}
		all = append(all, presentPrice{region, p.Type, p.Spot, p.Price})
	}
	return all, changed
}
