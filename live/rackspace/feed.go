package rackspace

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spotter-dev/spotter/live/market"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// A Feed reports the markets in the regions of Spotter's cloudspaces: sizes, market prices and bids
// from the public price feed, and on-demand prices and minimum bids from the API, if a [Backend]
// has read them.
type Feed struct {
	cfg   Config
	cloud *cloud

	now atomic.Pointer[learned]
}

// A learned is the data of a feed from other sources than the price feed. It is replaced and never
// modified.
type learned struct {
	regions []string // in ascending order
	classes map[string]*serverClass
	floors  map[string]floor
	away    error // why the last requested cloudspace could not be read
}

// change replaces the learned data of f by a copy that do has changed. do must not modify the maps
// and slices of the old data.
func (f *Feed) change(do func(*learned)) {
	for {
		old := f.now.Load()
		next := *old
		if do(&next); f.now.CompareAndSwap(old, &next) {
			return
		}
	}
}

// A floor is the minimum bid in a refusal of the API.
type floor struct {
	price policy.Money
	at    policy.Time
}

// floorSpan is how long a floor overrides the price feed, which lags behind the auction.
const floorSpan = 10 * time.Minute

// NewFeed returns a feed without regions.
func NewFeed(cfg Config) (*Feed, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	f := &Feed{cfg: cfg}
	f.cloud = newCloud(&f.cfg, "")
	f.now.Store(&learned{classes: map[string]*serverClass{}, floors: map[string]floor{}})
	return f, nil
}

// Name returns the name of the feed among the sources of a snapshot.
func (f *Feed) Name() string { return "rackspace-prices" }

// Every returns the time from the end of one read to the start of the next.
func (f *Feed) Every() time.Duration { return f.cfg.Prices }

// Prices reports that the feed provides Spot prices.
func (f *Feed) Prices() bool { return true }

// learn adds server classes and regions of cloudspaces.
func (f *Feed) learn(classes []serverClass, regions []string) {
	f.change(func(x *learned) {
		x.classes = maps.Clone(x.classes)
		for i := range classes {
			x.classes[classes[i].Metadata.Name] = &classes[i]
		}
		x.regions = slices.Compact(slices.Sorted(slices.Values(append(regions, x.regions...))))
	})
}

// AddRegions makes f report the markets of regions, in addition to those of cloudspaces.
func (f *Feed) AddRegions(regions ...string) { f.learn(nil, regions) }

// unplaced records the reason why the region of a cloudspace is unknown, nil if it is known.
func (f *Feed) unplaced(err error) { f.change(func(x *learned) { x.away = err }) }

// placed returns an error if no region of a cloudspace is known.
func (x *learned) placed() error {
	switch {
	case len(x.regions) > 0:
		return nil
	case x.away != nil:
		return fmt.Errorf("%w: no cloudspace can be read: %w", market.ErrNothingWanted, x.away)
	}
	return market.ErrNothingWanted
}

// refused records the minimum bid in a refusal for a class.
func (f *Feed) refused(class string, price policy.Money, at policy.Time) {
	f.change(func(x *learned) {
		x.floors = maps.Clone(x.floors)
		x.floors[class] = floor{price, at}
	})
}

// marketPrice returns the last known auction price of a class.
func (f *Feed) marketPrice(class string) (policy.Money, bool) {
	c := f.now.Load().classes[class]
	if c == nil {
		return 0, false
	}
	m, ok, err := c.Status.SpotPricing.Market.money()
	return m, ok && err == nil
}

// A feedClass is a server class in the public price feed.
type feedClass struct {
	Price    amount `json:"market_price"`
	P20      amount `json:"20_percentile"`
	P50      amount `json:"50_percentile"`
	P80      amount `json:"80_percentile"`
	CPU      amount `json:"cpu"`
	Memory   amount `json:"memory"`
	GPU      amount `json:"gpu"`
	Category string `json:"category"`
}

// Read reads the price feed. It returns [market.ErrNothingWanted] until the region of a cloudspace
// is known. The feed is then read again soon, because the account is read at the same time.
func (f *Feed) Read(ctx context.Context, ask market.Ask) (*market.Update, error) {
	const what = "reading the prices of Rackspace Spot"
	if err := f.now.Load().placed(); err != nil {
		return nil, err
	}
	body, err := f.cloud.attempts(ctx, request{what: what, method: http.MethodGet, url: f.cfg.PricesURL})
	if err != nil {
		return nil, err
	}
	var all struct {
		Regions map[string]struct {
			Classes map[string]json.RawMessage `json:"serverclasses"`
		} `json:"regions"`
	}
	if err := decode(what, body, &all); err != nil {
		return nil, err
	}
	if len(all.Regions) == 0 {
		return nil, fmt.Errorf("%s: the answer names no region", what)
	}
	u, known := &market.Update{AsOf: ask.Now}, f.now.Load()
	for _, region := range known.regions {
		classes := all.Regions[region].Classes
		if len(classes) == 0 {
			u.Warnings = append(u.Warnings, fmt.Sprintf("the feed lists no server class of region %s", region))
		}
		for _, name := range slices.Sorted(maps.Keys(classes)) {
			if err := known.report(u, region, name, classes[name]); err != nil {
				u.Warnings = append(u.Warnings, fmt.Sprintf("server class %s of %s: %v", name, region, err))
			}
		}
	}
	return u, nil
}

// report adds the prices and the description of one class to u.
func (x *learned) report(u *market.Update, region, name string, raw json.RawMessage) error {
	var c feedClass
	if err := json.Unmarshal(raw, &c); err != nil {
		return err
	}
	price, ok, err := c.Price.money()
	if err != nil || !ok {
		return cmp.Or(err, fmt.Errorf("there is no market price"))
	}
	class := x.classes[name]
	t, err := typeOf(name, &c, class)
	if err != nil {
		return err
	}
	p := market.Price{Provider: policy.Rackspace, Region: region, Zone: region, Type: name, Price: price,
		Reserve: policy.BidStep}
	for i, bid := range [...]amount{c.P20, c.P50, c.P80} {
		if p.Bids[i], _, err = bid.money(); err != nil {
			return err
		}
	}
	if class != nil {
		if now, ok, err := class.Status.SpotPricing.Market.money(); err == nil && ok && now > 0 {
			p.Price = now // the API is ahead of the public price feed
		}
		if least, ok, err := class.Spec.MinBid.money(); err == nil && ok && least > 0 {
			p.Reserve = least
		}
	}
	if floor, ok := x.floors[name]; ok && u.AsOf.Sub(floor.at) < floorSpan {
		p.Price = max(p.Price, floor.price)
	}
	u.Types = append(u.Types, t)
	u.Spot = append(u.Spot, p)
	reportOnDemand(u, region, name, class)
	return nil
}

// reportOnDemand adds the on-demand price of a class: the published price, at which it can be
// bought, or a modelled price for comparison.
func reportOnDemand(u *market.Update, region, name string, class *serverClass) {
	od := market.OnDemandPrice{Provider: policy.Rackspace, Region: region, Type: name}
	if class != nil {
		if cost, ok, err := hourly(class); err == nil && ok && cost > 0 {
			od.Price = cost
			u.OnDemand = append(u.OnDemand, od)
			u.Offerings = append(u.Offerings, market.Offering{Provider: policy.Rackspace, Region: region, Zone: region,
				Type: name})
			return
		}
	}
	if cost, _, ok := catalog.OnDemandModelled(policy.Rackspace, region, name); ok {
		od.Price, od.Modelled = cost, true
		u.OnDemand = append(u.OnDemand, od)
	}
}

// hourly returns the on-demand price of a class per hour.
func hourly(c *serverClass) (policy.Money, bool, error) {
	cost, ok, err := c.Spec.OnDemandPricing.Cost.money()
	switch strings.ToLower(c.Spec.OnDemandPricing.Interval) {
	case "", "hour", "hourly", "h", "per hour":
		return cost, ok, err
	case "month", "monthly":
		return cost / policy.HoursPerMonth, ok, err
	}
	return 0, false, nil
}

// typeOf returns the description of a class from the catalog, else one that is derived from the
// feed.
func typeOf(name string, c *feedClass, class *serverClass) (policy.InstanceType, error) {
	if t, ok := catalog.Lookup(policy.Rackspace, name); ok {
		return t, nil
	}
	like, ok := catalog.Lookup(policy.Rackspace, modelClass)
	if !ok {
		return like, fmt.Errorf("the catalog has no description of %s", modelClass)
	}
	vcpu, err := quantity(c.CPU.text, 1)
	if err != nil || vcpu < 1 {
		return like, fmt.Errorf("cpu is %q", c.CPU.text)
	}
	memory, err := quantity(c.Memory.text, gib)
	if err != nil || memory < gib {
		return like, fmt.Errorf("memory is %q", c.Memory.text)
	}
	t := policy.InstanceType{
		Provider: policy.Rackspace, Name: name, Category: v1alpha1.Category(c.Category), Arch: like.Arch, VCPU: int64(vcpu),
		Capacity: like.Capacity, VolumesMax: like.VolumesMax,
	}
	t.Family, _, _ = strings.Cut(name, "-")
	if i := strings.LastIndex(t.Family, "."); strings.Count(t.Family, ".") > 1 {
		t.Family = t.Family[:i]
	}
	// The kernel reports 2% and 64 MiB less memory than the sold size.
	const mib = 1 << 20
	sold := int64(memory) / mib
	t.Capacity.CPU, t.Capacity.Memory, t.Capacity.GPU = int64(vcpu)*1000, (sold-sold/50-64)*mib, gpus(c, class)
	if t.Capacity.GPU > 0 {
		t.GPUResource = "nvidia.com/gpu"
	}
	kept := like.Capacity.Minus(like.Allocatable)
	t.Allocatable = t.Capacity.Minus(policy.Resources{CPU: kept.CPU, Memory: kept.Memory, Storage: kept.Storage})
	t.Labels = []policy.Label{
		{Key: "kubernetes.io/arch", Value: t.Arch}, {Key: "node.kubernetes.io/instance-type", Value: name},
		{Key: classLabel, Value: name},
	}
	return t, nil
}

// modelClass is a class in the catalog. The resources that are reserved for the system are the same
// on every node, so they are taken from this class.
const modelClass = "gp.vs1.medium-iad"

// classLabel is the node label with the server class. The label node.kubernetes.io/instance-type
// contains the name of a flavour instead.
const classLabel = "servers.ngpc.rxt.io/class"

// gpus returns the number of accelerators of a class: the stated number, else 1 if the category is
// "gpu", as for all known classes of this category.
func gpus(c *feedClass, class *serverClass) int64 {
	texts := []string{c.GPU.text}
	if class != nil {
		texts = append(texts, class.Spec.Resources.GPU.text)
	}
	for _, text := range texts {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
			return n
		}
	}
	if v1alpha1.Category(c.Category) == "gpu" {
		return 1
	}
	return 0
}

const gib = 1 << 30

// quantity parses a number with an optional unit of memory, such as "3.75GB". Rackspace's GB are
// 1024³ bytes. A number without a unit is multiplied by unit.
func quantity(text string, unit float64) (float64, error) {
	text = strings.TrimSpace(text)
	i := strings.IndexFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if i >= 0 {
		switch strings.TrimSpace(strings.ToUpper(text[i:])) {
		case "GB", "GIB", "G", "GI":
			unit = gib
		case "MB", "MIB", "M", "MI":
			unit = 1 << 20
		case "TB", "TIB", "T", "TI":
			unit = 1 << 40
		default:
			return 0, fmt.Errorf("the unit of %q is unknown", text)
		}
		text = text[:i]
	}
	x, err := strconv.ParseFloat(text, 64)
	return x * unit, err
}
