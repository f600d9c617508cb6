package azure_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	clocktest "k8s.io/utils/clock/testing"

	"github.com/spotter-dev/spotter/live/azure"
	"github.com/spotter-dev/spotter/live/azure/fake"
	"github.com/spotter-dev/spotter/live/market"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

var _ market.Feed = (*azure.Feed)(nil)

// noon is when the tests begin, and spring the date of the prices.
var (
	noon   = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	spring = time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
)

const (
	d8 = "Standard_D8s_v5"
	e8 = "Standard_E8s_v5"
	f8 = "Standard_F8s_v2"
)

// A fixture is a feed, or a book with it, that reads a server.
type fixture struct {
	*testing.T
	server *fake.Server
	web    *httptest.Server
	feed   *azure.Feed
}

func newFixture(t *testing.T, change func(*azure.Config), meters ...fake.Meter) *fixture {
	t.Helper()
	f := &fixture{T: t, server: fake.New(meters...)}
	f.web = httptest.NewServer(f.server)
	t.Cleanup(f.web.Close)
	c := azure.DefaultConfig()
	c.Endpoint, c.Regions, c.Log = f.web.URL+fake.Path, []string{"westeurope"}, slog.New(slog.DiscardHandler)
	c.BackoffMin, c.BackoffMax = time.Millisecond, 2*time.Millisecond
	if change != nil {
		change(&c)
	}
	var err error
	if f.feed, err = azure.NewFeed(c); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) ask(after time.Duration, types ...string) market.Ask {
	a := market.Ask{Now: policy.TimeOf(noon.Add(after))}
	for _, t := range types {
		a.Wanted = append(a.Wanted, market.TypeInRegion{Provider: catalog.Azure, Region: "westeurope", Type: t})
	}
	return a
}

func (f *fixture) read(after time.Duration, types ...string) *market.Update {
	f.Helper()
	u, err := f.feed.Read(f.Context(), f.ask(after, types...))
	if err != nil {
		f.Fatal(err)
	}
	return u
}

// said returns the prices of an update, a line for each.
func said(u *market.Update) (all []string) {
	for _, p := range u.OnDemand {
		all = append(all, fmt.Sprintf("%s %s %v", p.Region, p.Type, p.Price.Float()))
	}
	for _, p := range u.Spot {
		all = append(all, fmt.Sprintf("%s %s %v since %s", p.Zone, p.Type, p.Price.Float(), p.At.Std().Format(time.DateOnly)))
	}
	slices.Sort(all)
	return all
}

// A region's Spot price holds in each of its zones, named as nodes are. Prices for Windows, of Low
// Priority machines and of Cloud Services are no prices of nodes.
func TestPricesOfARegion(t *testing.T) {
	f := newFixture(t, func(c *azure.Config) { c.Regions = []string{"westeurope", "westus"} },
		slices.Concat(fake.Size("westeurope", d8, 0.46, 0.08, spring), fake.Size("westus", d8, 0.45, 0.07, spring),
			fake.Size("eastus", d8, 0.4, 0.06, spring))...)
	u := f.read(0)
	want := []string{
		"westeurope Standard_D8s_v5 0.46", "westeurope-1 Standard_D8s_v5 0.08 since 2026-04-01",
		"westeurope-2 Standard_D8s_v5 0.08 since 2026-04-01", "westeurope-3 Standard_D8s_v5 0.08 since 2026-04-01",
		"westus Standard_D8s_v5 0.07 since 2026-04-01", "westus Standard_D8s_v5 0.45",
	}
	if got := said(u); !slices.Equal(got, want) || len(u.Warnings) > 0 || u.AsOf != policy.TimeOf(noon) {
		t.Errorf("as of %v, warnings %q:\n%s\nwant:\n%s", u.AsOf, u.Warnings, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(u.Offerings) != 4 {
		t.Errorf("%d offerings on demand, want three zones and a region without zones", len(u.Offerings))
	}
}

// All pages of a region are one list, whatever the page size; a whole region of the catalog is read
// without a loss.
func TestPages(t *testing.T) {
	meters := fake.Region("westeurope", 0.2, spring)
	for _, size := range []int{97, 1000, len(meters)} {
		f := newFixture(t, nil, meters...)
		f.server.PageSize = size
		u := f.read(0)
		if len(u.OnDemand) != len(meters)/6 || len(u.Spot) != 3*len(meters)/6 || len(u.Warnings) > 0 {
			t.Errorf("pages of %d: %d and %d prices of %d sizes; warnings %q", size, len(u.OnDemand), len(u.Spot),
				len(meters)/6, u.Warnings)
		}
		if calls, want := len(f.server.Calls()), (len(meters)+size-1)/size; calls != want {
			t.Errorf("pages of %d: %d requests, want %d", size, calls, want)
		}
	}
}

// Of a region that was read whole, only wanted types are read again while that takes fewer requests,
// and the whole list once a day.
func TestWantedTypes(t *testing.T) {
	f := newFixture(t, nil, fake.Region("westeurope", 0.2, spring)...)
	f.read(0, d8)
	whole := len(f.server.Calls())
	if whole < 3 {
		t.Fatalf("the region takes %d requests", whole)
	}
	u := f.read(time.Hour, d8, "Standard_E8s_v5")
	calls := f.server.Calls()
	if len(calls) != 1 || !strings.HasSuffix(calls[0], "and (armSkuName eq 'Standard_D8s_v5' or armSkuName eq 'Standard_E8s_v5')") {
		t.Errorf("two types take %q", calls)
	}
	if len(u.OnDemand) != 2 || len(u.Spot) != 6 || len(u.Warnings) > 0 {
		t.Errorf("two types have %d and %d prices; warnings %q", len(u.OnDemand), len(u.Spot), u.Warnings)
	}
	types := catalog.Types(catalog.Azure)
	f.read(2*time.Hour, types...)
	if calls := f.server.Calls(); len(calls) != whole {
		t.Errorf("%d types take %d requests, the region %d", len(types), len(calls), whole)
	}
	f.read(26*time.Hour, d8)
	f.server.Calls()
	f.read(50*time.Hour, d8)
	if calls := f.server.Calls(); len(calls) != whole {
		t.Errorf("a day later: %d requests", len(calls))
	}
}

// Rows without a price of a node-hour in dollars in this region are left out and counted, and the
// others are used.
func TestInvalidRows(t *testing.T) {
	spotOf := func(change func(*fake.Meter)) []fake.Meter {
		all := fake.Size("westeurope", d8, 0.46, 0.08, spring)
		change(&all[2])
		return all
	}
	for name, x := range map[string]struct {
		change func(*fake.Meter)
		warn   string
	}{
		"other currency": {func(m *fake.Meter) { m.CurrencyCode = "EUR" }, `in "EUR", not in USD`},
		"other unit":     {func(m *fake.Meter) { m.UnitOfMeasure = "100 Hours" }, `per "100 Hours"`},
		"zero":           {func(m *fake.Meter) { m.RetailPrice = 0.0 }, `is "0"`},
		"negative":       {func(m *fake.Meter) { m.RetailPrice = -0.08 }, `is "-0.08"`},
		"below a money":  {func(m *fake.Meter) { m.RetailPrice = 1e-9 }, `is "1e-9"`},
		"absurd":         {func(m *fake.Meter) { m.RetailPrice = 1e9 }, `is "1000000000"`},
		"missing":        {func(m *fake.Meter) { m.RetailPrice = nil }, `is ""`},
		"a word":         {func(m *fake.Meter) { m.RetailPrice = "cheap" }, "invalid number"},
		"no date":        {func(m *fake.Meter) { m.EffectiveStartDate = "soon" }, `since "soon"`},
		"end date":       {func(m *fake.Meter) { m.EffectiveEndDate = "never" }, `until "never"`},
	} {
		f := newFixture(t, nil, append(spotOf(x.change), fake.Size("westeurope", e8, 0.5, 0.1, spring)...)...)
		u := f.read(0)
		if len(u.Spot) != 3 || u.Spot[0].Type != e8 || len(u.OnDemand) != 2 {
			t.Errorf("%s: %q", name, said(u))
		}
		if len(u.Warnings) != 1 || !strings.Contains(u.Warnings[0], "1 prices of westeurope") ||
			!strings.Contains(u.Warnings[0], x.warn) {
			t.Errorf("%s: warnings %q, want one with %q", name, u.Warnings, x.warn)
		}
	}
}

// Of several prices the newest in force counts. A price of the future or of the past does not, nor
// one of two that differ and came into force together.
func TestPricesOverTime(t *testing.T) {
	meters := slices.Concat(
		fake.Size("westeurope", d8, 0.46, 0.08, spring), fake.Size("westeurope", d8, 0.46, 0.06, noon.Add(-time.Hour)),
		fake.Size("westeurope", d8, 0.46, 0.02, noon.Add(time.Hour)),
		fake.Size("westeurope", e8, 0.5, 0.1, spring), fake.Size("westeurope", e8, 0.5, 0.2, spring),
		fake.Size("westeurope", f8, 0.3, 0.05, spring))
	meters[len(meters)-4].EffectiveEndDate = noon.Add(-time.Minute).Format(time.RFC3339)
	f := newFixture(t, nil, meters...)
	u := f.read(0)
	for _, p := range u.Spot {
		if p.Type != d8 || p.Price != policy.Dollars(0.06) || p.At != policy.TimeOf(noon.Add(-time.Hour)) {
			t.Errorf("Spot price %+v", p)
		}
	}
	if len(u.Spot) != 3 || len(u.OnDemand) != 3 {
		t.Errorf("prices %q", said(u))
	}
	if len(u.Warnings) != 1 || !strings.Contains(u.Warnings[0], "listed twice and differ, the first of "+e8) {
		t.Errorf("warnings %q", u.Warnings)
	}
	if u := f.read(2 * time.Hour); u.Spot[0].Price != policy.Dollars(0.02) {
		t.Errorf("after it came into force the price is %v", u.Spot[0].Price)
	}
}

// Whatever part of the requests fails, a read returns the prices that a good server has, or an error
// and nothing of the region.
func TestFaultyServer(t *testing.T) {
	meters := fake.Region("westeurope", 0.2, spring)[:600]
	f := newFixture(t, func(c *azure.Config) { c.Attempts = 3 }, meters...)
	f.server.PageSize = 60
	want := said(f.read(0))
	read, failed := 0, 0
	for seed := range uint64(30) {
		fresh := newFixture(t, func(c *azure.Config) { c.Attempts = 3 }, meters...)
		fresh.server.PageSize = 60
		fresh.server.SetFaults(fake.Faults{Seed: seed, Throttle: 0.1, Unavailable: 0.1, Reset: 0.1, Truncate: 0.1})
		u, err := fresh.feed.Read(t.Context(), fresh.ask(0))
		switch got := said(u); {
		case err == nil && slices.Equal(got, want):
			read++
		case err != nil && len(got) == 0:
			failed++
		default:
			t.Errorf("seed %d: %d prices, want %d; %v", seed, len(got), len(want), err)
		}
	}
	if read == 0 || failed == 0 {
		t.Errorf("%d reads succeeded and %d failed; want some of both", read, failed)
	}
}

// A region that cannot be read does not delay another.
func TestOneRegionFails(t *testing.T) {
	f := newFixture(t, func(c *azure.Config) { c.Regions = []string{"westus", "westeurope"} },
		append(fake.Size("westeurope", d8, 0.46, 0.08, spring), fake.Size("westus", d8, 0.46, 0.08, spring)...)...)
	f.server.PageSize = 5 // a region takes two pages
	f.server.SetFaults(fake.Faults{Link: "http://example.com/api/retail/prices?$skip=5"})
	u, err := f.feed.Read(t.Context(), f.ask(0))
	if err == nil || !strings.Contains(err.Error(), "leads to") || len(u.Spot) > 0 {
		t.Errorf("links to another host: %v, %q", err, said(u))
	}
	f.server.SetFaults(fake.Faults{Link: f.web.URL + fake.Path + "?%24filter=serviceName+eq+%27Virtual+Machines%27"})
	if _, err := f.feed.Read(t.Context(), f.ask(0)); err == nil || !strings.Contains(err.Error(), "does not end after 2 pages") {
		t.Errorf("links in a circle: %v", err)
	}
	f.server.SetFaults(fake.Faults{})
	f.server.PageSize = 1000
	f.server.Set(fake.Size("westeurope", d8, 0.46, 0.08, spring)...)
	u, err = f.feed.Read(t.Context(), f.ask(0))
	if err != nil || len(u.Spot) != 3 || !slices.Contains(u.Warnings, "Azure lists no Spot price of westus") {
		t.Errorf("%v, %q, warnings %q", err, said(u), u.Warnings)
	}
}

// A wait that the server requests is kept; one above the limit ends the read, so that the book waits
// instead.
func TestRetryAfter(t *testing.T) {
	clock := clocktest.NewFakeClock(noon)
	f := newFixture(t, func(c *azure.Config) {
		c.Clock, c.BackoffMin, c.BackoffMax, c.Attempts = clock, time.Second, 10*time.Second, 3
	}, fake.Size("westeurope", d8, 0.46, 0.08, spring)...)
	f.server.SetFaults(fake.Faults{Throttle: 1, RetryAfter: time.Minute})
	if _, err := f.feed.Read(t.Context(), f.ask(0)); err == nil || !strings.Contains(err.Error(), "429 Too Many Requests") ||
		len(f.server.Calls()) != 1 {
		t.Errorf("a wait of a minute: %v", err)
	}
	f.server.SetFaults(fake.Faults{Throttle: 1, RetryAfter: 7 * time.Second})
	done := make(chan error)
	go func() {
		_, err := f.feed.Read(t.Context(), f.ask(0))
		done <- err
	}()
	for _, wait := range []time.Duration{6 * time.Second, time.Second} {
		for !clock.HasWaiters() {
			time.Sleep(time.Millisecond)
		}
		if n := len(f.server.Calls()); wait > time.Second && n != 1 || wait == time.Second && n != 0 {
			t.Errorf("%d requests before the wait of 7s has ended", n)
		}
		if wait == time.Second {
			f.server.SetFaults(fake.Faults{})
		}
		clock.Step(wait)
	}
	if err := <-done; err != nil || len(f.server.Calls()) != 1 {
		t.Errorf("after the wait: %v", err)
	}
}

// A book with the feed offers the markets, keeps the price of a type after it left the list until
// it is too old, and reads nothing more often than it must.
func TestBook(t *testing.T) {
	f := newFixture(t, nil, slices.Concat(fake.Size("westeurope", d8, 0.46, 0.08, spring),
		fake.Size("westeurope", e8, 0.5, 0.1, spring))...)
	clock := clocktest.NewFakeClock(noon)
	c := market.DefaultConfig()
	c.Feeds, c.Clock, c.Log = []market.Feed{f.feed}, clock, slog.New(slog.DiscardHandler)
	book, err := market.New(c)
	if err != nil {
		t.Fatal(err)
	}
	refresh := func() *policy.Snapshot {
		t.Helper()
		if err := book.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := &policy.Snapshot{Now: policy.TimeOf(clock.Now())}
		book.Fill(s, s.Now)
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		return s
	}
	offered := func(s *policy.Snapshot, name string) (policy.Money, bool) {
		for i := range s.Markets {
			if s.Markets[i].Name == name {
				return s.Markets[i].Price, s.Markets[i].Offered
			}
		}
		return 0, false
	}
	s := refresh()
	if p, ok := offered(s, "azure/westeurope/westeurope-2/Standard_D8s_v5/spot"); !ok || p != policy.Dollars(0.08) {
		t.Errorf("Spot: %v, offered %v", p, ok)
	}
	if p, ok := offered(s, "azure/westeurope/westeurope-2/Standard_D8s_v5/on-demand"); !ok || p != policy.Dollars(0.46) {
		t.Errorf("on demand: %v, offered %v", p, ok)
	}
	f.server.Set(fake.Size("westeurope", e8, 0.5, 0.12, noon)...)
	for range 3 {
		clock.Step(time.Hour)
		s = refresh()
	}
	if p, ok := offered(s, "azure/westeurope/westeurope-2/Standard_D8s_v5/spot"); ok || p != policy.Dollars(0.08) {
		t.Errorf("no longer listed: %v, offered %v", p, ok)
	}
	if p, ok := offered(s, "azure/westeurope/westeurope-1/Standard_E8s_v5/spot"); !ok || p != policy.Dollars(0.12) {
		t.Errorf("after a change: %v, offered %v", p, ok)
	}
}

// Settings that cannot work are refused by name.
func TestConfig(t *testing.T) {
	for field, change := range map[string]func(*azure.Config){
		"Endpoint": func(c *azure.Config) { c.Endpoint = "prices.azure.com" },
		"Regions":  func(c *azure.Config) { c.Regions = []string{"us-east-1"} },
		"Every":    func(c *azure.Config) { c.Every = 0 }, "Whole": func(c *azure.Config) { c.Whole = -1 },
		"Timeout": func(c *azure.Config) { c.Timeout = 0 }, "Attempts": func(c *azure.Config) { c.Attempts = 0 },
		"BackoffMin": func(c *azure.Config) { c.BackoffMin = 0 }, "BackoffMax": func(c *azure.Config) { c.BackoffMax = 0 },
		"Clock": func(c *azure.Config) { c.Clock = nil }, "Log": func(c *azure.Config) { c.Log = nil },
	} {
		c := azure.DefaultConfig()
		change(&c)
		if _, err := azure.NewFeed(c); !errors.Is(err, azure.ErrConfig) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
