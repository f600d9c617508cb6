package market

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clocktest "k8s.io/utils/clock/testing"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// noon is when the tests of books begin.
var noon = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

// A script is a feed that reports what a test wants.
type script struct {
	name  string
	every time.Duration
	read  func(Ask) (*Update, error)
}

func (s *script) Name() string         { return s.name }
func (s *script) Every() time.Duration { return s.every }
func (s *script) Prices() bool         { return s.name == "prices" }
func (s *script) Read(ctx context.Context, a Ask) (*Update, error) {
	return s.read(a)
}

// spot is a price of AWS in Ireland.
func spot(zone, kind string, at time.Time, dollars float64) Price {
	return Price{Provider: "aws", Region: "eu-west-1", Zone: zone, Type: kind, At: policy.TimeOf(at), Price: policy.Dollars(dollars)}
}

// A bookFixture is a book with a clock and one feed that reports u.
type bookFixture struct {
	*Book
	clock *clocktest.FakeClock
	u     *Update
	err   error
	asked []Ask
}

func newBookFixture(t testing.TB, change func(*Config)) *bookFixture {
	t.Helper()
	d := &bookFixture{clock: clocktest.NewFakeClock(noon)}
	c := DefaultConfig()
	c.Clock, c.Log = d.clock, slog.New(slog.DiscardHandler)
	c.Feeds = []Feed{&script{"prices", 5 * time.Minute, func(a Ask) (*Update, error) {
		d.asked = append(d.asked, a)
		if d.u != nil && d.u.AsOf == 0 {
			d.u.AsOf = a.Now
		}
		u := d.u
		d.u = nil
		return u, d.err
	}}}
	if change != nil {
		change(&c)
	}
	b, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	d.Book = b
	return d
}

// report has the book read u.
func (d *bookFixture) report(t testing.TB, u Update) {
	t.Helper()
	d.u, d.err = &u, nil
	if err := d.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (d *bookFixture) now() policy.Time { return policy.TimeOf(d.clock.Now()) }

// running counts as many nodes in each market as it is asked to.
func (d *bookFixture) running(nodes func(policy.MarketID) int) {
	d.mu.Lock()
	s := &policy.Snapshot{Now: d.now(), Markets: slices.Clone(d.table.markets)}
	d.mu.Unlock()
	for i := range s.Markets {
		for range nodes(policy.MarketID(i)) {
			s.Nodes = append(s.Nodes, policy.Node{Phase: policy.NodeInitialized, Market: policy.MarketID(i)})
		}
	}
	d.Settle(s)
}

// fill returns a snapshot that keeps the rules.
func (d *bookFixture) fill(t testing.TB) *policy.Snapshot {
	t.Helper()
	s := &policy.Snapshot{Now: d.now()}
	d.Fill(s, s.Now)
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	return s
}

// marketOf returns a market of s by its name.
func marketOf(t testing.TB, s *policy.Snapshot, name string) *policy.Market {
	t.Helper()
	for i := range s.Markets {
		if s.Markets[i].Name == name {
			return &s.Markets[i]
		}
	}
	t.Fatalf("no market %s among %d", name, len(s.Markets))
	return nil
}

const (
	m5a = "aws/eu-west-1/eu-west-1a/m5.large/spot"
	m5d = "aws/eu-west-1/eu-west-1a/m5.large/on-demand"
)

// A reported price is in the snapshot with its history and with the on-demand price. A market whose
// price was reported too long ago is offered no more and keeps its last price.
func TestAPriceAndItsAge(t *testing.T) {
	d := newBookFixture(t, nil)
	d.report(t, Update{Spot: []Price{
		spot("eu-west-1a", "m5.large", noon.Add(-2*time.Hour), 0.04),
		spot("eu-west-1a", "m5.large", noon.Add(-15*time.Minute), 0.05),
	}})
	s := d.fill(t)
	m := marketOf(t, s, m5a)
	if !m.Offered || m.Price != policy.Dollars(0.05) || m.PricedAt != policy.TimeOf(noon.Add(-15*time.Minute)) {
		t.Errorf("%+v", m)
	}
	// From 10:00 on each ten minutes: 11 times 4 cents, from 11:50 on 5 cents.
	want := append(slices.Repeat([]policy.Money{policy.Dollars(0.04)}, 11), policy.Dollars(0.05), policy.Dollars(0.05))
	if !slices.Equal(m.History, want) {
		t.Errorf("history %v, want %v", m.History, want)
	}
	od := marketOf(t, s, m5d)
	if list, _ := catalog.OnDemand("aws", "eu-west-1", "m5.large"); od.Price != list || m.OnDemand != list || len(od.History) != historySize {
		t.Errorf("on demand %+v, want %v of the catalog", od, list)
	}
	for _, c := range []struct {
		pass    time.Duration
		offered bool
	}{{119 * time.Minute, true}, {2 * time.Minute, false}, {100 * time.Hour, false}} {
		d.clock.Step(c.pass)
		s = d.fill(t)
		if m := marketOf(t, s, m5a); m.Offered != c.offered || m.Price != policy.Dollars(0.05) {
			t.Errorf("after %v: offered %v at %v", d.clock.Since(noon), m.Offered, m.Price)
		}
		if m := marketOf(t, s, m5d); !m.Offered {
			t.Errorf("on demand is no longer offered")
		}
		if s.Sources[0] != (policy.Source{Name: "prices", Prices: true, At: policy.TimeOf(noon)}) {
			t.Errorf("source %+v", s.Sources[0])
		}
	}
	d.report(t, Update{Spot: []Price{spot("eu-west-1a", "m5.large", d.clock.Now(), 0.06)}})
	if m := marketOf(t, d.fill(t), m5a); !m.Offered || m.Price != policy.Dollars(0.06) {
		t.Errorf("reported again: %+v", m)
	}
	p := spot("eu-west-1a", "m5.large", d.clock.Now().Add(time.Second), 0)
	p.Price = policy.NoPrice
	d.clock.Step(time.Minute)
	d.report(t, Update{Spot: []Price{p}})
	if m := marketOf(t, d.fill(t), m5a); m.Offered || m.Price != policy.Dollars(0.06) {
		t.Errorf("sold no more: %+v", m)
	}
}

// What cannot be is left out, counted and said; the rest of the update stands, and a
// price that was known before stands, too.
func TestLiesAreLeftOut(t *testing.T) {
	d := newBookFixture(t, nil)
	d.report(t, Update{Spot: []Price{spot("eu-west-1a", "m5.large", noon.Add(-time.Hour), 0.04)}})
	d.clock.Step(time.Hour)
	lie := func(change func(*Price)) Price {
		p := spot("eu-west-1a", "m5.large", noon, 0.05)
		change(&p)
		return p
	}
	d.report(t, Update{
		Spot: []Price{
			lie(func(p *Price) { p.Price = 0 }),
			lie(func(p *Price) { p.Price = -5 }),
			lie(func(p *Price) { p.Price = policy.Dollars(5) }), // on demand it is 0.107
			lie(func(p *Price) { p.Price = math.MaxInt64 }),
			lie(func(p *Price) { p.At = d.now().Add(time.Hour) }),
			lie(func(p *Price) { p.At = -1 }),
			lie(func(p *Price) { p.Zone = "" }),
			lie(func(p *Price) { p.Type = "" }),
			spot("eu-west-1b", "m5.large", noon, 0.05),
		},
		OnDemand: []OnDemandPrice{{Provider: "aws", Region: "eu-west-1", Type: "m5.large"},
			{Provider: "aws", Region: "eu-west-1", Type: "m5.large", Price: -1}},
		Bands:  []PublishedBand{{"aws", "eu-west-1", "m5.large", 9}},
		Scores: []PublishedScore{{"aws", "eu-west-1", "eu-west-1a", "m5.large", 11}, {"aws", "eu-west-1", "eu-west-1a", "m5.large", 0}},
		Types:  []policy.InstanceType{{Provider: "aws", Name: "zz9.large"}},
		Zones:  []Zone{{Provider: "aws"}},
	})
	s := d.fill(t)
	m := marketOf(t, s, m5a)
	if m.Price != policy.Dollars(0.04) || m.Band != policy.BandUnknown || m.PlacementScore != -1 || m.OnDemand <= 0 {
		t.Errorf("%+v", m)
	}
	if m := marketOf(t, s, strings.Replace(m5a, "1a", "1b", 1)); m.Price != policy.Dollars(0.05) {
		t.Errorf("the truth among the lies: %+v", m)
	}
	if h := d.Health()[0]; h.Err == nil || !strings.Contains(h.Err.Error(), "14 more") || h.Failed != 0 {
		t.Errorf("health %+v, want the first of 15 faults", h)
	}
	// The invalid rows confirmed nothing: the price of zone a is as old as it was.
	d.clock.Step(61 * time.Minute)
	if m := marketOf(t, d.fill(t), m5a); m.Offered {
		t.Error("a market of which only lies were reported counts as known")
	}
}

// A feed that fails or reports nothing leaves all as it was, with its age.
func TestAFeedThatFails(t *testing.T) {
	d := newBookFixture(t, nil)
	d.report(t, Update{Spot: []Price{spot("eu-west-1a", "m5.large", noon, 0.04)}})
	d.clock.Step(30 * time.Minute)
	for name, fail := range map[string]func(){
		"error":        func() { d.u, d.err = nil, errors.New("throttled") },
		"nothing":      func() { d.u, d.err = nil, nil },
		"without time": func() { d.u, d.err = &Update{AsOf: -1}, nil },
	} {
		fail()
		before := d.Health()[0].Failed
		_ = d.Refresh(t.Context())
		if h := d.Health()[0]; h.Failed != before+1 || h.Err == nil || h.AsOf != policy.TimeOf(noon) {
			t.Errorf("%s: health %+v", name, h)
		}
		s := d.fill(t)
		if m := marketOf(t, s, m5a); m.Price != policy.Dollars(0.04) || !m.Offered || s.Sources[0].At != policy.TimeOf(noon) {
			t.Errorf("%s: %+v, source %v", name, m, s.Sources[0])
		}
	}
	// A part that came with an error is taken, and requested again.
	d.u, d.err = &Update{Spot: []Price{spot("eu-west-1a", "m5.large", noon.Add(time.Minute), 0.05)}}, errors.New("one region failed")
	if err := d.Refresh(t.Context()); err == nil {
		t.Error("the error is lost")
	}
	if m := marketOf(t, d.fill(t), m5a); m.Price != policy.Dollars(0.05) {
		t.Errorf("the part is lost: %+v", m)
	}
	if h := d.Health()[0]; h.AsOf != policy.TimeOf(noon) {
		t.Errorf("the next reading would ask from %v on and miss what failed", h.AsOf)
	}
	empty := Update{}
	d.report(t, empty)
	d.clock.Step(2*time.Hour + time.Second)
	if m := marketOf(t, d.fill(t), m5a); m.Offered || m.Price == 0 {
		t.Errorf("an answer without a price counts as one: %+v", m)
	}
}

// Identifiers stay while prices move; a new market makes a new generation, at a Fill
// and not before.
func TestGenerations(t *testing.T) {
	d := newBookFixture(t, nil)
	d.report(t, Update{Spot: []Price{spot("eu-west-1b", "m5.large", noon, 0.04)}})
	d.fill(t)
	first, id := d.Generation(), d.Find("aws", "eu-west-1", "eu-west-1b", "m5.large", policy.Spot)
	if id == policy.None {
		t.Fatal("the market is not found")
	}
	for k := range 20 {
		d.report(t, Update{Spot: []Price{spot("eu-west-1b", "m5.large", noon, 0.04+float64(k)/1000)}})
		d.fill(t)
		d.clock.Step(7 * time.Minute)
	}
	if d.Generation() != first || d.Find("aws", "eu-west-1", "eu-west-1b", "m5.large", policy.Spot) != id {
		t.Error("prices have moved identifiers")
	}
	d.report(t, Update{OnDemand: []OnDemandPrice{{Provider: "aws", Region: "eu-west-1", Type: "m5.large", Price: policy.Dollars(0.2)}}})
	if m := d.fill(t).Markets[id]; m.OnDemand != policy.Dollars(0.2) || d.Generation() != first {
		t.Errorf("tables that are made anew with the same identifiers are another generation, or %v", m.OnDemand)
	}
	d.report(t, Update{Spot: []Price{spot("eu-west-1a", "c5.large", noon, 0.04)}})
	if d.Generation() != first || d.Find("aws", "eu-west-1", "eu-west-1b", "m5.large", policy.Spot) != id {
		t.Error("identifiers have moved before Fill")
	}
	d.fill(t)
	if d.Generation() == first || d.Find("aws", "eu-west-1", "eu-west-1b", "m5.large", policy.Spot) == id {
		t.Error("a market that comes first has moved nothing")
	}
	// A node of a type and in a zone that no feed reported.
	second := d.Generation()
	if got := d.Find("aws", "eu-west-1", "eu-west-1c", "r5.large", policy.OnDemand); got != policy.None || d.Generation() != second {
		t.Errorf("found %d in generation %d", got, d.Generation())
	}
	s := d.fill(t)
	if got := d.Find("aws", "eu-west-1", "eu-west-1c", "r5.large", policy.OnDemand); got == policy.None ||
		s.Markets[got].Name != "aws/eu-west-1/eu-west-1c/r5.large/on-demand" {
		t.Errorf("found %d after it was asked for", got)
	}
	if got := d.Find("aws", "eu-west-1", "eu-west-1c", "r5.large", policy.Spot); got != policy.None {
		t.Error("a spot market without a price is a market")
	}
	for range 3 {
		if got := d.Find("aws", "eu-west-1", "eu-west-1c", "zz9.large", policy.Spot); got != policy.None {
			t.Error("a type that nobody knows is found")
		}
		d.fill(t)
	}
	if d.Generation() != second+1 {
		t.Errorf("generation %d, want %d", d.Generation(), second+1)
	}
}

// Zones that a feed names by their IDs are those of the same name once it is known.
func TestZoneIDsBecomeNames(t *testing.T) {
	d := newBookFixture(t, nil)
	d.report(t, Update{Spot: []Price{spot("euw1-az3", "m5.large", noon.Add(-3*time.Hour), 0.03), spot("eu-west-1a", "m5.large", noon, 0.04)}})
	d.report(t, Update{Zones: []Zone{{"aws", "eu-west-1", "eu-west-1a", "euw1-az3"}}})
	s := d.fill(t)
	if !slices.Equal(s.Zones, []string{"eu-west-1a"}) || len(s.Markets) != 2 {
		t.Fatalf("zones %v, %d markets", s.Zones, len(s.Markets))
	}
	if m := marketOf(t, s, m5a); m.Price != policy.Dollars(0.04) || len(m.History) != 19 {
		t.Errorf("the two are not joined: %+v", m)
	}
	if d.Find("aws", "eu-west-1", "euw1-az3", "m5.large", policy.Spot) != d.Find("aws", "eu-west-1", "eu-west-1a", "m5.large", policy.Spot) {
		t.Error("a zone has two markets")
	}
	d.report(t, Update{Scores: []PublishedScore{{"aws", "eu-west-1", "euw1-az3", "m5.large", 7}},
		Bands: []PublishedBand{{"aws", "eu-west-1", "m5.large", 2}}})
	if m := marketOf(t, d.fill(t), m5a); m.PlacementScore != 7 || m.Band != 2 {
		t.Errorf("score %d, band %d", m.PlacementScore, m.Band)
	}
	d.clock.Step(7 * time.Hour)
	if m := marketOf(t, d.fill(t), m5a); m.PlacementScore != -1 || m.Band != 2 {
		t.Errorf("after 7 hours score %d, band %d", m.PlacementScore, m.Band)
	}
	d.clock.Step(31 * 24 * time.Hour)
	if m := marketOf(t, d.fill(t), m5a); m.Band != policy.BandUnknown {
		t.Errorf("after a month band %d", m.Band)
	}
}

// All of a book may be called at once. This says something under -race only.
func TestAllAtOnce(t *testing.T) {
	d := newBookFixture(t, func(c *Config) {
		c.Feeds = []Feed{&script{"prices", time.Minute, func(a Ask) (*Update, error) {
			return &Update{AsOf: a.Now, Spot: []Price{spot("eu-west-1a", "m5.large", noon, 0.04),
				spot("eu-west-1b", "c5.large", a.Now.Std(), 0.03)}}, nil
		}}}
	})
	if err := d.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.fill(t)
	var all sync.WaitGroup
	for _, f := range []func(){
		func() { _ = d.Refresh(t.Context()) },
		func() {
			s := &policy.Snapshot{}
			d.Fill(s, d.now())
			for i := range s.Markets {
				_ = slices.Max(s.Markets[i].History)
			}
		},
		func() { d.Meet(backend.Event{Kind: backend.MetRefusal, Market: m5a, At: d.now()}) },
		func() { d.running(func(policy.MarketID) int { return 2 }) },
		func() { d.Find("aws", "eu-west-1", "eu-west-1a", "m5.large", policy.Spot) },
		func() { d.Choose(pool(func(*v1alpha1.CapacityPool) {})) },
		func() { _ = d.Import(d.Export()) },
		func() { d.Health(); d.Generation(); d.Use(nil) },
		func() { d.clock.Step(11 * time.Minute) },
	} {
		all.Go(func() {
			for range 200 {
				f()
			}
		})
	}
	all.Wait()
}

// A cache whose folder does not exist is refused.
func TestCacheIsChecked(t *testing.T) {
	c := DefaultConfig()
	c.Cache = "/no/such/f"
	if _, err := New(c); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), `Cache "/no/such/f"`) {
		t.Errorf("error %v", err)
	}
}
