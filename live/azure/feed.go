package azure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/live/market"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// A Feed reports the Spot and on-demand prices of regions to the market book.
//
// It reads either the whole list of a region, which takes about six requests, or the prices of the
// wanted types, at 20 types in a request, whichever takes fewer requests. The whole list is read
// first, since only it shows which types a region sells, and again once a day.
type Feed struct {
	reader *Reader
	lists  map[string]*regionState
}

// A regionState is the last whole list of a region that was read.
type regionState struct {
	at    policy.Time
	pages int
}

// NewFeed returns the feed of the regions of c.
func NewFeed(c Config) (*Feed, error) {
	r, err := NewReader(c)
	if err != nil {
		return nil, err
	}
	return &Feed{reader: r, lists: map[string]*regionState{}}, nil
}

// Name implements [market.Feed].
func (f *Feed) Name() string { return "azure-prices" }

// Every implements [market.Feed].
func (f *Feed) Every() time.Duration { return f.reader.cfg.Every }

// Prices implements [market.Feed]: the feed provides Spot prices.
func (f *Feed) Prices() bool { return true }

// Read implements [market.Feed]. A region whose list is incomplete is left out of the update and in
// the error.
func (f *Feed) Read(ctx context.Context, ask market.Ask) (*market.Update, error) {
	u := &market.Update{AsOf: ask.Now}
	var errs []error
	for _, region := range f.reader.cfg.Regions {
		types := f.types(region, ask)
		l, err := f.reader.Prices(ctx, region, types, ask.Now)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if types == nil {
			f.lists[region] = &regionState{ask.Now, l.pages}
		}
		report(u, region, l, types == nil)
	}
	return u, errors.Join(errs...)
}

// types returns the wanted types of a region, or nil if the whole list must be read: it was not
// read for a day, or it takes no more requests.
func (f *Feed) types(region string, ask market.Ask) (types []string) {
	whole := f.lists[region]
	if whole == nil || ask.Now.Sub(whole.at) >= f.reader.cfg.Whole {
		return nil
	}
	for _, w := range ask.Wanted {
		if w.Provider == catalog.Azure && w.Region == region {
			types = append(types, w.Type)
		}
	}
	if len(types) == 0 || requestsFor(len(types)) >= whole.pages {
		return nil
	}
	return types
}

// report adds the prices of a region to u: for each type of the catalog in each zone.
func report(u *market.Update, region string, l List, whole bool) {
	zones := catalog.Zones(catalog.Azure, region)
	known := catalog.Types(catalog.Azure)
	unknown, spot := 0, 0
	for _, p := range l.Prices {
		if _, is := slices.BinarySearch(known, p.Type); !is {
			unknown++
			continue
		}
		if !p.Spot {
			u.OnDemand = append(u.OnDemand, market.OnDemandPrice{Provider: catalog.Azure, Region: region, Type: p.Type,
				Price: p.Price})
		} else {
			spot++
		}
		for _, zone := range zones {
			if p.Spot {
				u.Spot = append(u.Spot, market.Price{Provider: catalog.Azure, Region: region, Zone: zone, Type: p.Type,
					At: p.Since, Price: p.Price})
			} else {
				u.Offerings = append(u.Offerings, market.Offering{Provider: catalog.Azure, Region: region, Zone: zone,
					Type: p.Type})
			}
		}
	}
	u.Warnings = append(u.Warnings, l.Warnings...)
	if whole && spot == 0 {
		u.Warnings = append(u.Warnings, fmt.Sprintf("Azure lists no Spot price of %s", region))
	}
	if unknown > 0 && whole {
		u.Warnings = append(u.Warnings, fmt.Sprintf("%d prices of %s are of types that the catalog of %s does not have",
			unknown, region, catalog.Date(catalog.Azure)))
	}
}
