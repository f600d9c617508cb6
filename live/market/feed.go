package market

import (
	"context"
	"errors"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// ErrNothingWanted is returned by a feed that requests only wanted markets when the list of these
// is empty. The feed is read again soon.
var ErrNothingWanted = errors.New("no market is needed yet")

// A Feed is a source of prices or other data about markets. Only one goroutine at a time reads it.
type Feed interface {
	// Name returns the name of the feed in the log and among the sources of a snapshot, such as
	// "aws-spot-prices". It is unique in a book.
	Name() string

	// Every returns the time from the end of one read to the start of the next.
	Every() time.Duration

	// Prices reports whether the feed provides Spot prices.
	Prices() bool

	// Read returns the known data, which may repeat data of earlier reads. If it returns both an
	// update and an error, the update is incomplete but still used. Read never substitutes a value
	// that it did not receive.
	Read(context.Context, Ask) (*Update, error)
}

// An Ask contains the parameters of a read of a feed.
type Ask struct {
	// Now is the time of the read.
	Now policy.Time

	// Since is the AsOf of the last update that the book used from this feed, also before a restart
	// if the book has a cache. Zero means that there was none.
	Since policy.Time

	// Wanted are the types that pools may buy or nodes run on, in ascending order. A feed with a
	// quota requests these first, or only these.
	Wanted []TypeInRegion
}

// A TypeInRegion is an instance type in a region.
type TypeInRegion struct{ Provider, Region, Type string }

// An Update is the data that a feed reports. The price of a market in the update is known up to
// AsOf; the price of any other market remains known up to its last report.
type Update struct {
	// AsOf is the time up to which prices are reported, at most Ask.Now.
	AsOf policy.Time

	// Zones contains the names and IDs of zones.
	Zones []Zone

	// Types describes instance types. The catalog's description of a type takes precedence.
	Types []policy.InstanceType

	// Offerings are the types that zones sell on demand, whether or not they have a Spot price.
	Offerings []Offering

	// Spot contains Spot prices in any order, and OnDemand on-demand prices.
	Spot     []Price
	OnDemand []OnDemandPrice

	// Bands contains interruption bands, and Scores placement scores.
	Bands  []PublishedBand
	Scores []PublishedScore

	// Warnings describe omitted data, for the log.
	Warnings []string
}

// A Zone is an availability zone, whose name differs between AWS accounts. Nodes are labelled with
// the name.
type Zone struct{ Provider, Region, Name, ID string }

// An Offering is an instance type that is sold in a zone.
type Offering struct{ Provider, Region, Zone, Type string }

// A Price is the price of a Spot market from a time on.
type Price struct {
	// Zone is the name of the zone, or its ID if the feed does not know the name. For a provider
	// without zones it is the region.
	Provider, Region, Zone, Type string

	// At is when the price came into force. If it is zero, the time is unknown, and a changed price
	// applies from AsOf on.
	At policy.Time

	// KnownTo is the time up to which the price is known; zero means AsOf.
	KnownTo policy.Time

	// Price is the price per node-hour; policy.NoPrice means that the market sells nothing. A price
	// of 0 is treated as a fault of the feed and ignored.
	Price policy.Money

	// Reserve is the minimum price per node-hour in an auction, and Bids the bids at the 20th, 50th
	// and 80th percentile. Each is 0 if it is not published.
	Reserve policy.Money
	Bids    [3]policy.Money
}

// An OnDemandPrice is the on-demand price of an instance type in a region, per node-hour.
type OnDemandPrice struct {
	Provider, Region, Type string
	Price                  policy.Money

	// Modelled reports whether the price was derived and not published.
	Modelled bool
}

// A PublishedBand is the interruption band of a type in a region.
type PublishedBand struct {
	Provider, Region, Type string
	Band                   policy.Band
}

// A PublishedScore is the placement score of a type in a zone, from 1 to 10, or -1 if the provider
// returned none.
type PublishedScore struct {
	Provider, Region, Zone, Type string
	Score                        int8
}
