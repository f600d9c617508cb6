package market

import (
	"context"
	"errors"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// ErrNothingWanted is returned by a feed that asks only for what is wanted while
// nothing is: it is read again soon.
var ErrNothingWanted = errors.New("no market is needed yet")

// A Feed is somewhere that prices, or facts about markets, are read from. It is
// read by one goroutine at a time.
type Feed interface {
	// Name names the feed in the log and among the sources of a snapshot, such as
	// "aws-spot-prices". It is unique in a book.
	Name() string

	// Every is the time from the end of one reading to the start of the next.
	Every() time.Duration

	// Read returns what is known. What was reported before may be reported again. An error
	// with an update says that the update is only a part; it is taken in all the
	// same. Read never makes up a value for one that it did not get.
	Read(context.Context, Ask) (*Update, error)
}

// An Ask is a request to a feed.
type Ask struct {
	// Now is the instant of the asking.
	Now policy.Time

	// Since is the AsOf of the last update that the book took from this feed, also
	// before a restart where the book has a cache; zero if there was none.
	Since policy.Time

	// Wanted are the types that pools may buy or nodes run on, ascending. A feed with a quota
	// requests these first, or only these.
	Wanted []TypeInRegion
}

// A TypeInRegion is an instance type as a region sells it.
type TypeInRegion struct{ Provider, Region, Type string }

// An Update is what a feed reported. A market that it gives a price of is known up to
// AsOf; one that it does not name stays known up to where it was.
type Update struct {
	// AsOf is the instant up to which prices are reported, at most Ask.Now.
	AsOf policy.Time

	// Zones name zones that have an ID and a name.
	Zones []Zone

	// Types describes instance types. For a type in the catalog, the catalog's description is used.
	Types []policy.InstanceType

	// Offerings are types that zones sell on demand, with or without a price for
	// spot.
	Offerings []Offering

	// Spot are the prices of Spot markets in any order, OnDemand those on demand.
	Spot     []Price
	OnDemand []OnDemandPrice

	// Bands are interruption bands, Scores placement scores.
	Bands  []PublishedBand
	Scores []PublishedScore

	// Warnings say what was left out, in words for the log.
	Warnings []string
}

// A Zone is an availability zone, which AWS gives another name in each account.
// Nodes carry the name.
type Zone struct{ Provider, Region, Name, ID string }

// An Offering is an instance type that a zone sells.
type Offering struct{ Provider, Region, Zone, Type string }

// A Price is what a Spot market costs from an instant on.
type Price struct {
	// Zone is the name of the zone, or its ID where the feed knows no other. It
	// is the region itself for a provider without zones.
	Provider, Region, Zone, Type string

	// At is when the price came into force. Zero is an unknown time, which means AsOf if the price
	// is a new one.
	At policy.Time

	// KnownTo is the instant up to which the market is known; zero means AsOf.
	KnownTo policy.Time

	// Price is that of one node-hour; policy.NoPrice means that the market sells
	// nothing. A price of 0 is taken for a fault of the feed and left out.
	Price policy.Money

	// Reserve is the least that a node of an auction is charged per hour, and Bids
	// the bids at the 20th, 50th and 80th percentile; 0 where not published.
	Reserve policy.Money
	Bids    [3]policy.Money
}

// An OnDemandPrice is the price of one node-hour on demand in a region.
type OnDemandPrice struct {
	Provider, Region, Type string
	Price                  policy.Money

	// Modelled says that the price was derived and not published.
	Modelled bool
}

// A PublishedBand is the interruption band of a type in a region.
type PublishedBand struct {
	Provider, Region, Type string
	Band                   policy.Band
}

// A PublishedScore is the placement score of a type in a zone, 1…10; -1 when the
// provider was asked and named none.
type PublishedScore struct {
	Provider, Region, Zone, Type string
	Score                        int8
}
