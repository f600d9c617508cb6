package market

import (
	"errors"
	"fmt"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

const (
	// priceMax is higher than any price of a node-hour.
	priceMax = 100_000 * policy.Dollar

	// dearMax is the maximum of a valid Spot price, as a multiple of the published on-demand price.
	// AWS charges no more than the on-demand price. When Spot was an auction, it charged at most
	// ten times as much.
	dearMax = 10

	// skewMax is how far a provider's clock may be ahead of the controller's.
	skewMax = 5 * time.Minute
)

// faults collects the invalid values of an update.
type faults struct {
	count int
	first error
}

func (f *faults) add(format string, args ...any) {
	f.count++
	if f.first == nil {
		f.first = fmt.Errorf(format, args...)
	}
}

// err returns an error that describes the invalid values, or nil if there were none.
func (f *faults) err() error {
	switch f.count {
	case 0:
		return nil
	case 1:
		return f.first
	}
	return fmt.Errorf("%w (and %d more like it)", f.first, f.count-1)
}

// errNoAsOf is returned for an update without AsOf.
var errNoAsOf = errors.New("the update has no time")

// take stores the data of an update and returns an error that describes its invalid values. The
// other values are used.
func (b *Book) take(u *Update, ask Ask) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known.take(u, ask)
}

func (k *knowledge) take(u *Update, ask Ask) error {
	if u.AsOf <= 0 {
		return errNoAsOf
	}
	u.AsOf = min(u.AsOf, ask.Now)
	var f faults
	k.takeFacts(u, &f)
	for i := range u.OnDemand {
		k.takeOnDemand(&u.OnDemand[i], u.AsOf, &f)
	}
	for i := range u.Spot {
		k.takeSpot(&u.Spot[i], u.AsOf, ask.Now, &f)
	}
	k.takeSignals(u, &f)
	for _, o := range k.offers {
		o.spot.prune(ask.Now)
	}
	return f.err()
}

// takeFacts stores zones, types and offerings.
func (k *knowledge) takeFacts(u *Update, f *faults) {
	for _, z := range u.Zones {
		if z.Provider == "" || z.Region == "" || z.Name == "" || z.ID == "" {
			f.add("zone %+v: a part of it is missing", z)
			continue
		}
		if k.nameZone(place{z.Provider, z.Region}, z.ID, z.Name) {
			k.changed = true
		}
	}
	for _, t := range u.Types {
		key := typeKey{t.Provider, t.Name}
		if t.Provider == "" || t.Name == "" || t.VCPU <= 0 || t.Allocatable.CPU <= 0 || t.Allocatable.Memory <= 0 ||
			t.Allocatable.Pods <= 0 {
			f.add("type %s %s: nothing of it is left for pods: %+v", t.Provider, t.Name, t.Allocatable)
			continue
		}
		if _, known := k.described[key]; !known {
			k.changed = true
		}
		k.described[key] = t
		if k.types[key] == nil {
			delete(k.types, key) // it was looked up before
		}
	}
	for _, o := range u.Offerings {
		at := place{o.Provider, o.Region}
		if o.Provider == "" || o.Region == "" || o.Zone == "" || o.Type == "" {
			f.add("offering %+v: a part of it is missing", o)
			continue
		}
		if _, isNew := k.offerOf(offerKey{at, k.zoneName(at, o.Zone), o.Type}); isNew {
			k.changed = true
		}
	}
}

// takeOnDemand stores an on-demand price. It applies from the time of the report on, since its
// start is not reported.
func (k *knowledge) takeOnDemand(p *OnDemandPrice, asOf policy.Time, f *faults) {
	at := typeAt{place{p.Provider, p.Region}, p.Type}
	if p.Provider == "" || p.Region == "" || p.Type == "" || p.Price <= 0 || p.Price > priceMax {
		f.add("on-demand price of %s in %s %s: %v is not a valid price", p.Type, p.Provider, p.Region, p.Price)
		return
	}
	l := k.onDemand[at]
	switch {
	case l == nil || l.catalog:
		k.onDemand[at] = &listed{modelled: p.Modelled, curve: curve{always: true}}
		k.onDemand[at].curve.put(asOf, p.Price)
		k.changed = true
	case p.Modelled && !l.modelled: // a published price is kept
	default:
		l.modelled = p.Modelled
		if now, _, _ := l.curve.at(asOf); now != p.Price {
			l.curve.put(asOf, p.Price)
		}
	}
}

// takeSpot stores a Spot price.
func (k *knowledge) takeSpot(p *Price, asOf, now policy.Time, f *faults) {
	at := place{p.Provider, p.Region}
	key := offerKey{at, k.zoneName(at, p.Zone), p.Type}
	switch list := k.listedFor(typeAt{at, p.Type}); {
	case p.Provider == "" || p.Region == "" || p.Zone == "" || p.Type == "":
		f.add("Spot price %+v: a part of its market's name is missing", *p)
		return
	case p.Price != policy.NoPrice && (p.Price <= 0 || p.Price > priceMax):
		f.add("Spot price of %s: %v is not a valid price", key.market(policy.Spot), p.Price)
		return
	case p.At < 0 || p.At > now.Add(skewMax):
		f.add("Spot price of %s: it is from %v, after now, %v", key.market(policy.Spot), p.At, now)
		return
	case p.Provider != policy.Rackspace && list.published() && p.Price/dearMax > list.curve.newest():
		f.add("Spot price of %s: %v is more than %d times the on-demand price", key.market(policy.Spot), p.Price, dearMax)
		return
	}
	o, isNew := k.offerOf(key)
	if isNew || len(o.spot.points) == 0 {
		k.changed = true
	}
	since := p.At
	if since == 0 {
		if price, _, ok := o.spot.at(asOf); !ok || price != p.Price {
			o.spot.put(asOf, p.Price)
		}
	} else {
		o.spot.put(since, p.Price)
	}
	reported := asOf
	if p.KnownTo > 0 {
		reported = min(p.KnownTo, asOf)
	}
	o.reported = max(o.reported, reported)
	o.reserve, o.bids = max(0, p.Reserve), p.Bids
}

// takeSignals stores interruption bands and placement scores.
func (k *knowledge) takeSignals(u *Update, f *faults) {
	for _, p := range u.Bands {
		at := typeAt{place{p.Provider, p.Region}, p.Type}
		if p.Band < 0 || p.Band > 4 {
			f.add("interruption band of %s in %s: %d is not in 0…4", p.Type, p.Region, p.Band)
			continue
		}
		x := k.bands[at]
		if x == nil {
			x = &banded{}
			k.bands[at], k.changed = x, true
		}
		if u.AsOf >= x.at {
			x.band, x.at = p.Band, u.AsOf
		}
	}
	for _, p := range u.Scores {
		at := place{p.Provider, p.Region}
		if p.Score != -1 && (p.Score < 1 || p.Score > 10) {
			f.add("placement score of %s in %s: %d is not in 1…10", p.Type, p.Zone, p.Score)
			continue
		}
		if o := k.offers[offerKey{at, k.zoneName(at, p.Zone), p.Type}]; o != nil && u.AsOf >= o.scoredAt {
			o.score, o.scoredAt = p.Score, u.AsOf
		}
	}
}

// newest returns the latest price, 0 for an empty curve.
func (c *curve) newest() policy.Money {
	if len(c.points) == 0 {
		return 0
	}
	return c.points[len(c.points)-1].Price
}

// nameZone sets the name of a zone and renames the offers that were stored under its ID. It reports
// whether the name is new.
func (k *knowledge) nameZone(at place, id, name string) bool {
	if k.zones[at] == nil {
		k.zones[at] = map[string]string{}
	}
	if k.zones[at][id] == name {
		return false
	}
	k.zones[at][id] = name
	for key, o := range k.offers {
		if key.place != at || key.zone != id || id == name {
			continue
		}
		delete(k.offers, key)
		key.zone = name
		o.key = key
		if other := k.offers[key]; other != nil {
			other.merge(o)
		} else {
			k.offers[key] = o
		}
	}
	return true
}

// merge adds the data of the same offer that was stored under another name of its zone.
func (o *offer) merge(p *offer) {
	for _, x := range p.spot.points {
		o.spot.put(x.At, x.Price)
	}
	if p.reported > o.reported {
		o.reported, o.reserve, o.bids = p.reported, p.reserve, p.bids
	}
	if p.scoredAt > o.scoredAt {
		o.score, o.scoredAt = p.score, p.scoredAt
	}
}
