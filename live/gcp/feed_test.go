package gcp_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	clocktest "k8s.io/utils/clock/testing"

	"github.com/spotter-dev/spotter/live/gcp"
	"github.com/spotter-dev/spotter/live/gcp/fake"
	"github.com/spotter-dev/spotter/live/market"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

var _ market.Feed = (*gcp.Feed)(nil)

var noon = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

const (
	iowa    = "us-central1"
	belgium = "europe-west1"
)

// A fixture is a feed that reads a server.
type fixture struct {
	*testing.T
	server *fake.Server
	web    *httptest.Server
	feed   *gcp.Feed
}

func newFixture(t *testing.T, change func(*gcp.Config), skus ...fake.SKU) *fixture {
	t.Helper()
	f := &fixture{T: t, server: fake.New(skus...)}
	f.web = httptest.NewServer(f.server)
	t.Cleanup(f.web.Close)
	c := gcp.DefaultConfig()
	c.Endpoint, c.Regions, c.Key = f.web.URL+fake.Path, []string{iowa}, keyOf(fake.Key, nil)
	c.BackoffMin, c.BackoffMax = time.Millisecond, 2*time.Millisecond
	if change != nil {
		change(&c)
	}
	var err error
	if f.feed, err = gcp.NewFeed(c); err != nil {
		t.Fatal(err)
	}
	return f
}

func keyOf(key string, err error) func() (string, error) {
	return func() (string, error) { return key, err }
}

func (f *fixture) read() *market.Update {
	f.Helper()
	u, err := f.feed.Read(f.Context(), market.Ask{Now: policy.TimeOf(noon)})
	if err != nil {
		f.Fatal(err)
	}
	return u
}

// n2 returns the SKUs of N2 in Iowa at the prices of September 2024.
func n2() []fake.SKU {
	return append(fake.Part(iowa, "N2 Instance", "Core", 0.031611, 0.007653),
		fake.Part(iowa, "N2 Instance", "Ram", 0.004237, 0.001026)...)
}

// An n2-standard-8 has 8 cores and 32 GiB: 8 × 0.031611 + 32 × 0.004237 = $0.388472 on demand, and
// 8 × 0.007653 + 32 × 0.001026 = $0.094056 as Spot, in each zone of its region. Commitments, sole
// tenancy and custom machines are other products.
func TestPricesOfAMachine(t *testing.T) {
	u := newFixture(t, func(c *gcp.Config) { c.Regions = []string{iowa, belgium} },
		append(n2(), fake.Part(belgium, "N2 Instance", "Core", 0.03, 0.01)...)...).read()
	var got []string
	for _, p := range u.OnDemand {
		if p.Type == "n2-standard-8" {
			got = append(got, fmt.Sprint(p.Region, " ", p.Price.Float()))
		}
	}
	for _, p := range u.Spot {
		if p.Type == "n2-standard-8" {
			got = append(got, fmt.Sprint(p.Zone, " ", p.Price.Float()))
		}
	}
	want := []string{iowa + " 0.388472", iowa + "-a 0.094056", iowa + "-b 0.094056", iowa + "-c 0.094056", iowa + "-f 0.094056"}
	if !slices.Equal(got, want) || u.AsOf != policy.TimeOf(noon) {
		t.Errorf("as of %v: %q, want %q", u.AsOf, got, want)
	}
	if n := len(catalog.Zones(catalog.GCP, iowa)); len(u.OnDemand) != 29 || len(u.Spot) != 29*n || len(u.Offerings) != 29*n {
		t.Errorf("%d, %d and %d prices of the 29 types of N2", len(u.OnDemand), len(u.Spot), len(u.Offerings))
	}
	said := strings.Join(u.Warnings, "\n")
	if !strings.Contains(said, "no Spot price of "+belgium) || !strings.Contains(said, "a2-ultragpu, a3, c3-*-lssd") {
		t.Errorf("warnings:\n%s", said)
	}
}

// The prices that two machine types of a family determine give the published on-demand price of
// every other machine type of it, in every region: the sum of parts is how Google prices machines.
func TestCatalogIsSumOfParts(t *testing.T) {
	regions := catalog.Regions(catalog.GCP)
	var skus []fake.SKU
	for _, r := range regions {
		skus = append(skus, fake.Region(r, 0.25)...)
	}
	u := newFixture(t, func(c *gcp.Config) { c.Regions = regions }, skus...).read()
	checked := map[string]int{}
	for _, p := range u.OnDemand {
		published, sold := catalog.OnDemand(catalog.GCP, p.Region, p.Type)
		if !sold {
			continue
		}
		if d := math.Abs(p.Price.Float() - published.Float()); d > 2e-5 && d > 1e-4*published.Float() {
			t.Errorf("%s in %s: %v, published %v", p.Type, p.Region, p.Price.Float(), published.Float())
		}
		family, _, _ := strings.Cut(p.Type, "-")
		checked[family]++
	}
	for _, family := range []string{"e2", "n1", "n2", "n2d", "t2d", "t2a", "c2", "c2d", "c3", "m1", "m3", "g2", "a2"} {
		if checked[family] < 10 {
			t.Errorf("%d prices of %s are compared", checked[family], family)
		}
	}
	t.Logf("prices compared: %v", checked)
}

// All pages are one list, and the key is sent with each of their requests but is part of no address.
func TestPages(t *testing.T) {
	skus := fake.Region(iowa, 0.25)
	want := len(newFixture(t, nil, skus...).read().Spot)
	for _, size := range []int{7, len(skus), len(skus) - 1} {
		f := newFixture(t, func(c *gcp.Config) { c.PageSize = size }, skus...)
		if u := f.read(); len(u.Spot) != want || want == 0 {
			t.Errorf("pages of %d: %d Spot prices, want %d", size, len(u.Spot), want)
		}
		calls := f.server.Calls()
		if len(calls) != (len(skus)+size-1)/size || strings.Contains(strings.Join(calls, "\n"), fake.Key) {
			t.Errorf("pages of %d: requests %q", size, calls)
		}
	}
}

// A refused key is an error that does not contain the key, and is not tried again.
func TestKey(t *testing.T) {
	f := newFixture(t, func(c *gcp.Config) { c.Key = keyOf("AIza-secret", nil) }, n2()...)
	_, err := f.feed.Read(t.Context(), market.Ask{Now: policy.TimeOf(noon)})
	if err == nil || !strings.Contains(err.Error(), "400") || strings.Contains(err.Error(), "secret") || len(f.server.Calls()) != 1 {
		t.Errorf("a wrong key: %v", err)
	}
	none := newFixture(t, func(c *gcp.Config) { c.Key = keyOf("", errors.New("no file")) }, n2()...)
	if _, err = none.feed.Read(t.Context(), market.Ask{}); err == nil || !strings.Contains(err.Error(), "no file") ||
		len(none.server.Calls()) != 0 {
		t.Errorf("a key that cannot be read: %v", err)
	}
	f.web.Close()
	if _, err = f.feed.Read(t.Context(), market.Ask{}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("no server: %v", err)
	}
}

// SKUs without a price of an hour in dollars are left out and counted; a machine of which a part has
// no price has none.
func TestInvalidSKUs(t *testing.T) {
	for name, x := range map[string]struct {
		change func(*fake.SKU)
		warn   string
	}{
		"other currency": {func(s *fake.SKU) { rate(s).UnitPrice.CurrencyCode = "EUR" }, `in "EUR", not in USD`},
		"other unit":     {func(s *fake.SKU) { s.PricingInfo[0].Expression.UsageUnit = "mo" }, `per "mo"`},
		"no price":       {func(s *fake.SKU) { s.PricingInfo = nil }, "has no price"},
		"two rates": {func(s *fake.SKU) {
			e := &s.PricingInfo[0].Expression
			e.TieredRates = append(e.TieredRates, fake.Rate{StartUsageAmount: 100})
		}, "has 2 prices by usage"},
		"zero":     {func(s *fake.SKU) { rate(s).UnitPrice.Nanos = 0 }, `"0" and "0" billionths`},
		"negative": {func(s *fake.SKU) { rate(s).UnitPrice.Nanos = -5 }, `"-5" billionths`},
		"absurd":   {func(s *fake.SKU) { rate(s).UnitPrice.Units = "100000" }, `"100000" and`},
		"a word":   {func(s *fake.SKU) { rate(s).UnitPrice.Nanos = "cheap" }, "invalid number"},
	} {
		skus := n2()
		x.change(&skus[1]) // a core as Spot
		u := newFixture(t, nil, append(skus, append(fake.Part(iowa, "E2 Instance", "Core", 0.02, 0.01),
			fake.Part(iowa, "E2 Instance", "Ram", 0.002, 0.001)...)...)...).read()
		spot := 0
		for _, p := range u.Spot {
			if strings.HasPrefix(p.Type, "n2-") {
				spot++
			}
		}
		if said := strings.Join(u.Warnings, "\n"); spot > 0 || len(u.Spot) == 0 || len(u.OnDemand) != 29+17 ||
			!strings.Contains(said, "1 prices of Google are not valid") || !strings.Contains(said, x.warn) {
			t.Errorf("%s: %d Spot prices of N2, %d in all, %d on demand, warnings %q, want one with %q", name, spot, len(u.Spot),
				len(u.OnDemand), u.Warnings, x.warn)
		}
	}
}

func rate(s *fake.SKU) *fake.Rate { return &s.PricingInfo[0].Expression.TieredRates[0] }

// Memory that is priced by the gigabyte costs 1.0737 times as much by the GiB; a part with two prices
// that differ has none, one that is listed twice at one price has it.
func TestUnitsAndOverlaps(t *testing.T) {
	skus := n2()
	skus[5].PricingInfo[0].Expression.UsageUnit = "GBy.h" // memory on demand
	u := newFixture(t, nil, append(skus, n2()[0])...).read()
	for _, p := range u.OnDemand {
		if want := policy.Dollars(8*0.031611 + 32*0.004237*1.073741824); p.Type == "n2-standard-8" && p.Price != want {
			t.Errorf("by the gigabyte: %v, want %v", p.Price.Float(), want.Float())
		}
	}
	u = newFixture(t, nil, append(n2(), fake.Part(iowa, "N2 Instance", "Core", 0.05, 0.007653)...)...).read()
	if said := strings.Join(u.Warnings, "\n"); len(u.OnDemand) > 0 || len(u.Spot) == 0 ||
		!strings.Contains(said, "several prices that differ, none of which is used, of: n2 in "+iowa) {
		t.Errorf("two prices: %d on demand, %d Spot, %q", len(u.OnDemand), len(u.Spot), said)
	}
}

// Whatever part of the requests fails, a read returns the prices that a good server has, or an error.
func TestFaultyServer(t *testing.T) {
	skus := fake.Region(iowa, 0.25)
	small := func(c *gcp.Config) { c.Attempts, c.PageSize = 3, 20 }
	want := newFixture(t, small, skus...).read()
	read, failed := 0, 0
	for seed := range uint64(30) {
		f := newFixture(t, small, skus...)
		f.server.SetFaults(fake.Faults{Seed: seed, Throttle: 0.1, Unavailable: 0.1, Reset: 0.1, Truncate: 0.1})
		u, err := f.feed.Read(t.Context(), market.Ask{Now: policy.TimeOf(noon)})
		switch {
		case err == nil && slices.Equal(u.Spot, want.Spot) && slices.Equal(u.OnDemand, want.OnDemand):
			read++
		case err != nil && u == nil:
			failed++
		default:
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	if read == 0 || failed == 0 {
		t.Errorf("%d reads succeeded and %d failed; want some of both", read, failed)
	}
	f := newFixture(t, small, skus...)
	f.server.SetFaults(fake.Faults{Link: "from-0"})
	if _, err := f.feed.Read(t.Context(), market.Ask{}); err == nil || !strings.Contains(err.Error(), "does not end") {
		t.Errorf("tokens in a circle: %v", err)
	}
	if _, err := newFixture(t, nil).feed.Read(t.Context(), market.Ask{}); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("an empty list: %v", err)
	}
}

// A book with the feed offers the markets, and no longer when the list could not be read for long.
// What is warned of once is not warned of again.
func TestBook(t *testing.T) {
	f := newFixture(t, nil, n2()...)
	clock := clocktest.NewFakeClock(noon)
	c := market.DefaultConfig()
	c.Feeds, c.Clock, c.Log = []market.Feed{f.feed}, clock, slog.New(slog.DiscardHandler)
	book, err := market.New(c)
	if err != nil {
		t.Fatal(err)
	}
	offered := func() bool {
		s := &policy.Snapshot{Now: policy.TimeOf(clock.Now())}
		book.Fill(s, s.Now)
		i := slices.IndexFunc(s.Markets, func(m policy.Market) bool { return m.Name == "gcp/us-central1/us-central1-b/n2-standard-8/spot" })
		return i >= 0 && s.Markets[i].Offered && s.Markets[i].Price == policy.Dollars(0.094056)
	}
	if err := book.Refresh(t.Context()); err != nil || !offered() {
		t.Errorf("after a read: %v", err)
	}
	f.server.SetFaults(fake.Faults{Unavailable: 1})
	clock.Step(3 * time.Hour)
	if err := book.Refresh(t.Context()); err == nil || offered() {
		t.Errorf("three hours without a list: %v", err)
	}
	f.server.SetFaults(fake.Faults{})
	if u := f.read(); len(u.Warnings) > 0 {
		t.Errorf("warned again of %q", u.Warnings)
	}
}

// Settings that cannot work are refused by name.
func TestConfig(t *testing.T) {
	for field, change := range map[string]func(*gcp.Config){
		"Endpoint": func(c *gcp.Config) { c.Endpoint = "cloudbilling.googleapis.com" },
		"Regions":  func(c *gcp.Config) { c.Regions = []string{"us-east-2"} }, "Key": func(c *gcp.Config) { c.Key = nil },
		"PageSize": func(c *gcp.Config) { c.PageSize = 5001 }, "Attempts": func(c *gcp.Config) { c.Attempts = 0 },
	} {
		c := gcp.DefaultConfig()
		c.Key = keyOf("x", nil)
		change(&c)
		if _, err := gcp.NewFeed(c); !errors.Is(err, gcp.ErrConfig) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
