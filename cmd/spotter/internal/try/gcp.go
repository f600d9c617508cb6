package try

import (
	"context"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/access"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/capture"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// gcpPrices returns the prices that Google publishes for the markets of the pools, as if they had
// been so in the last eight days, or nil and the reason. Google publishes neither past prices nor
// since when the present ones apply.
func (t *trial) gcpPrices(ctx context.Context, taken *capture.Captured, regions []string) (*trace.Trace, string) {
	types, err := taken.Types(catalog.GCP, typesMax)
	if err != nil {
		return nil, cli.FirstLine(err)
	}
	reader, err := access.NewGCPReader()
	if err != nil {
		return nil, cli.FirstLine(err)
	}
	t.say("asking Google for the Spot prices of %d machine types in %s", len(types), cli.FirstOf(regions, 3))
	ctx, stop := context.WithTimeout(ctx, access.GCPWait)
	defer stop()
	l, err := reader.Prices(ctx, regions)
	if err != nil {
		return nil, access.GCPRefusal(err)
	}
	var prices []presentPrice
	for _, p := range l.Prices {
		if slices.Contains(types, p.Type) {
			prices = append(prices, presentPrice{p.Region, p.Type, p.Spot, p.Price})
		}
	}
	now := policy.TimeOf(time.Now().Truncate(time.Minute))
	series := presentSeries(catalog.GCP, prices, now.Add(-week-day), now)
	if len(series) == 0 {
		return nil, "Google lists no Spot price for these machine types"
	}
	tr, err := trace.New(pricesFile, series)
	if err != nil {
		return nil, cli.FirstLine(err)
	}
	tr.About = "the present Spot prices that Google publishes"
	taken.Assumed = append(taken.Assumed, "Google publishes no past Spot prices: they are as now over the whole time")
	return tr, ""
}
