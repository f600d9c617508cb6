package market

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/live/packed"
	"github.com/spotter-dev/spotter/policy"
)

const (
	// cacheVersion is the version of the cache format. Caches of other versions are not read.
	cacheVersion = 1

	// cacheEvery is the maximum time for which a killed process loses reported data, which must
	// then be requested again.
	cacheEvery = 5 * time.Minute

	// cacheReadMax is the maximum size of an unpacked cache, in bytes.
	cacheReadMax = 1 << 30
)

// A cached is the content of a cache. Its lists are sorted, so that the same data results in the
// same bytes.
type cached struct {
	Version int                   `json:"version"`
	Saved   policy.Time           `json:"saved"`
	Feeds   []cachedFeed          `json:"feeds"`
	Zones   []Zone                `json:"zones"`
	Types   []policy.InstanceType `json:"types"`
	Offers  []cachedOffer         `json:"offers"`
	Listed  []cachedListed        `json:"onDemand"`
	Bands   []cachedBand          `json:"bands"`
}

type cachedFeed struct {
	Name   string      `json:"name"`
	AsOf   policy.Time `json:"asOf"`
	ReadAt policy.Time `json:"readAt"`
}

type cachedOffer struct {
	Offering
	Points   []point         `json:"points,omitempty"`
	Reported policy.Time     `json:"told,omitempty"`
	Reserve  policy.Money    `json:"reserve,omitempty"`
	Bids     [3]policy.Money `json:"bids"`
	Score    int8            `json:"score"`
	ScoredAt policy.Time     `json:"scoredAt,omitempty"`
}

type cachedListed struct {
	TypeInRegion
	Points   []point `json:"points"`
	Modelled bool    `json:"modelled,omitempty"`
}

type cachedBand struct {
	TypeInRegion
	Band policy.Band `json:"band"`
	At   policy.Time `json:"at"`
}

// load reads the cache. If it cannot be read, load logs the reason, and all data is requested from
// the feeds. It returns an error only if the folder of the cache does not exist.
func (b *Book) load() error {
	if b.config.Cache == "" {
		return nil
	}
	if info, err := os.Stat(filepath.Dir(b.config.Cache)); err != nil || !info.IsDir() {
		return fmt.Errorf("%w: Cache %q: its folder does not exist: %w", ErrConfig, b.config.Cache,
			cmp.Or(err, fs.ErrInvalid))
	}
	body, err := os.ReadFile(b.config.Cache)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var c cached
	if err == nil {
		err = packed.Unpack(body, cacheReadMax, &c)
	}
	if err == nil && c.Version != cacheVersion {
		err = fmt.Errorf("its version is %d, not %d", c.Version, cacheVersion)
	}
	if now := policy.TimeOf(b.config.Clock.Now()); err == nil && c.Saved > now.Add(skewMax) {
		err = fmt.Errorf("it is from %v, after now, %v", c.Saved, now)
	}
	if err == nil {
		err = b.known.adopt(&c)
	}
	if err == nil {
		b.feeds.adopt(&c)
	} else {
		b.known = newKnowledge()
		b.config.Log.Warn("the cache of markets is not used", "file", b.config.Cache, "error", err)
	}
	return nil
}

// adopt restores the data of a cache.
func (k *knowledge) adopt(c *cached) error {
	for _, z := range c.Zones {
		k.nameZone(place{z.Provider, z.Region}, z.ID, z.Name)
	}
	for _, t := range c.Types {
		k.described[typeKey{t.Provider, t.Name}] = t
	}
	for i := range c.Offers {
		x := &c.Offers[i]
		o, _ := k.offerOf(offerKey{place{x.Provider, x.Region}, x.Zone, x.Type})
		o.reported, o.reserve, o.bids, o.score, o.scoredAt = x.Reported, x.Reserve, x.Bids, x.Score, x.ScoredAt
		if err := o.spot.adopt(x.Points); err != nil {
			return fmt.Errorf("%s: %w", o.key.market(policy.Spot), err)
		}
	}
	for i := range c.Listed {
		x := &c.Listed[i]
		l := &listed{modelled: x.Modelled, curve: curve{always: true}}
		if err := l.curve.adopt(x.Points); err != nil || len(x.Points) == 0 {
			return fmt.Errorf("on-demand price of %s in %s: %w", x.Type, x.Region, cmp.Or(err, io.ErrUnexpectedEOF))
		}
		k.onDemand[typeAt{place{x.Provider, x.Region}, x.Type}] = l
	}
	for _, x := range c.Bands {
		k.bands[typeAt{place{x.Provider, x.Region}, x.Type}] = &banded{x.Band, x.At}
	}
	return nil
}

// adopt restores the times up to which the feeds of a cache were read.
func (r *feedReader) adopt(c *cached) {
	for i, f := range r.config.Feeds {
		for _, s := range c.Feeds {
			if s.Name == f.Name() {
				r.states[i].asOf, r.states[i].readAt = s.AsOf, s.ReadAt
			}
		}
	}
}

// adopt restores the points of a cache. It returns an error if they are not valid.
func (c *curve) adopt(points []point) error {
	for i, p := range points {
		if p.Price != policy.NoPrice && (p.Price <= 0 || p.Price > priceMax) || i > 0 && p.At <= points[i-1].At {
			return fmt.Errorf("price %v at %v", p.Price, p.At)
		}
	}
	c.points = points
	return nil
}

// saveSometimes writes the cache if the last write was at least cacheEvery ago.
func (b *Book) saveSometimes(now policy.Time) error {
	b.mu.Lock()
	due := b.savedAt == 0 || now.Sub(b.savedAt) >= cacheEvery
	if due {
		b.savedAt = now // no other goroutine writes it meanwhile
	}
	b.mu.Unlock()
	if !due {
		return nil
	}
	return b.save()
}

// save writes the cache to a new file and then renames it.
func (b *Book) save() error {
	if b.config.Cache == "" {
		return nil
	}
	b.mu.Lock()
	c := b.known.cached(policy.TimeOf(b.config.Clock.Now()))
	c.Feeds = b.feeds.cached()
	b.savedAt = c.Saved
	b.mu.Unlock()
	next := b.config.Cache + ".new"
	data, err := packed.Pack(c)
	if err == nil {
		err = os.WriteFile(next, data, 0o600)
	}
	if err == nil {
		err = os.Rename(next, b.config.Cache)
	}
	if err != nil {
		return fmt.Errorf("saving the market cache: %w", errors.Join(err, os.RemoveAll(next)))
	}
	return nil
}

// cached returns the data to store: reports of feeds, but not data from the catalog.
func (k *knowledge) cached(now policy.Time) *cached {
	c := &cached{Version: cacheVersion, Saved: now}
	for at, names := range k.zones {
		for id, name := range names {
			c.Zones = append(c.Zones, Zone{at.provider, at.region, name, id})
		}
	}
	slices.SortFunc(c.Zones, func(x, y Zone) int {
		return cmp.Or(cmp.Compare(x.Provider, y.Provider), cmp.Compare(x.Region, y.Region), cmp.Compare(x.ID, y.ID))
	})
	for _, t := range k.described {
		c.Types = append(c.Types, t)
	}
	slices.SortFunc(c.Types, func(x, y policy.InstanceType) int {
		return cmp.Or(strings.Compare(x.Provider, y.Provider), strings.Compare(x.Name, y.Name))
	})
	for key, o := range k.offers {
		c.Offers = append(c.Offers, cachedOffer{Offering{key.provider, key.region, key.zone, key.kind},
			slices.Clone(o.spot.points), o.reported, o.reserve, o.bids, o.score, o.scoredAt})
	}
	slices.SortFunc(c.Offers, func(x, y cachedOffer) int {
		return cmp.Or(strings.Compare(x.Provider, y.Provider), strings.Compare(x.Region, y.Region),
			strings.Compare(x.Zone, y.Zone), strings.Compare(x.Type, y.Type))
	})
	for at, l := range k.onDemand {
		if !l.catalog {
			c.Listed = append(c.Listed, cachedListed{TypeInRegion{at.provider, at.region, at.kind},
				slices.Clone(l.curve.points), l.modelled})
		}
	}
	slices.SortFunc(c.Listed, func(x, y cachedListed) int { return x.compare(&y.TypeInRegion) })
	for at, x := range k.bands {
		c.Bands = append(c.Bands, cachedBand{TypeInRegion{at.provider, at.region, at.kind}, x.band, x.at})
	}
	slices.SortFunc(c.Bands, func(x, y cachedBand) int { return x.compare(&y.TypeInRegion) })
	return c
}

// cached returns the times up to which the feeds were read.
func (r *feedReader) cached() (all []cachedFeed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, f := range r.config.Feeds {
		all = append(all, cachedFeed{f.Name(), r.states[i].asOf, r.states[i].readAt})
	}
	return all
}

func (t *TypeInRegion) compare(u *TypeInRegion) int {
	return cmp.Or(strings.Compare(t.Provider, u.Provider), strings.Compare(t.Region, u.Region),
		strings.Compare(t.Type, u.Type))
}
