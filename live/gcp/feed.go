package gcp

import (
	"context"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/live/market"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// A Feed reports the Spot and on-demand prices of regions to the market book.
type Feed struct {
	reader *Reader
	warned string // joined warnings of the last read
}

// NewFeed returns the feed of the regions of c.
func NewFeed(c Config) (*Feed, error) {
	r, err := NewReader(c)
	if err != nil {
		return nil, err
	}
	return &Feed{reader: r}, nil
}

// Name implements [market.Feed].
func (f *Feed) Name() string { return "gcp-prices" }

// Every implements [market.Feed].
func (f *Feed) Every() time.Duration { return f.reader.cfg.Every }

// Prices implements [market.Feed]: the feed provides Spot prices.
func (f *Feed) Prices() bool { return true }

// Read implements [market.Feed]. The list does not state since when a price is in force. Warnings
// are part of the update when they change.
func (f *Feed) Read(ctx context.Context, ask market.Ask) (*market.Update, error) {
	l, err := f.reader.Prices(ctx, f.reader.cfg.Regions)
	if err != nil {
		return nil, err
	}
	u := &market.Update{AsOf: ask.Now}
	for _, p := range l.Prices {
		if !p.Spot {
			u.OnDemand = append(u.OnDemand, market.OnDemandPrice{Provider: catalog.GCP, Region: p.Region, Type: p.Type,
				Price: p.Price})
		}
		for _, zone := range catalog.Zones(catalog.GCP, p.Region) {
			if p.Spot {
				u.Spot = append(u.Spot, market.Price{Provider: catalog.GCP, Region: p.Region, Zone: zone, Type: p.Type,
					Price: p.Price})
			} else {
				u.Offerings = append(u.Offerings, market.Offering{Provider: catalog.GCP, Region: p.Region, Zone: zone,
					Type: p.Type})
			}
		}
	}
	if text := strings.Join(l.Warnings, "\n"); text != f.warned {
		f.warned, u.Warnings = text, l.Warnings
	}
	return u, nil
}
