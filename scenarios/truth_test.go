package scenarios

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// truthOf returns the truth of a name.
func truthOf(t *testing.T, name string) weather.Truth {
	t.Helper()
	truth, err := weather.TruthNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	return truth
}

// meanOf is the mean of f over the offered time of a scenario, looked at every minute.
func meanOf(w *BoundScenario, c PriceCurve, f func(policy.Money) float64) float64 {
	sum, n := 0.0, 0.0
	for at := w.Start.Add(-w.WarmUp); at < w.Start.Add(w.Duration); at = at.Add(time.Minute) {
		i, found := slices.BinarySearch(c.At, at)
		if !found {
			i--
		}
		if p := c.Price[i]; p > 0 {
			sum, n = sum+f(p), n+1
		}
	}
	return sum / n
}

func logOf(p policy.Money) float64 { return math.Log(p.Float()) }

// priced returns a scenario of one on-demand market at $1 and of Spot markets whose prices change
// every seven minutes from a day before it. One Spot market is not offered at times, and one costs
// more than on-demand.
func priced(seed uint64) *BoundScenario {
	start := policy.TimeOf(time.Date(2026, 1, 8, 0, 0, 0, 0, time.UTC))
	w := &BoundScenario{Settings: Settings{Start: start, Duration: 48 * time.Hour, WarmUp: 24 * time.Hour},
		Markets: []policy.Market{{Name: "od", Price: policy.Dollar, OnDemand: policy.Dollar}},
		Prices:  []PriceCurve{{At: []policy.Time{start.Add(-24 * time.Hour)}, Price: []policy.Money{policy.Dollar}}}}
	for i := range 4 {
		c := PriceCurve{}
		x, k := -1.0, chance.New(seed, "priced", "").At1(uint64(i))
		for at := start.Add(-48 * time.Hour); at < start.Add(48*time.Hour); at = at.Add(7 * time.Minute) {
			x = max(-2.5, min(-0.02, x+0.1*k.At1(uint64(at)).Normal()))
			p := policy.Dollars(math.Exp(x))
			if i == 2 && at > start && at < start.Add(5*time.Hour) {
				p = policy.NoPrice
			}
			if i == 3 {
				p *= 3
			}
			c.At, c.Price = append(c.At, at), append(c.Price, p)
		}
		w.Markets = append(w.Markets, policy.Market{Name: "spot", Capacity: policy.Spot, Price: c.Price[0], OnDemand: policy.Dollar})
		w.Prices = append(w.Prices, c)
	}
	return w
}

// With flat prices, each Spot price is its mean while it is offered, and nothing else changes.
func TestFlatPrices(t *testing.T) {
	w := priced(1)
	under := w.Under(truthOf(t, "prices-flat"))
	for i, c := range under.Prices {
		want := policy.Dollars(meanOf(w, w.Prices[i], policy.Money.Float))
		for _, p := range c.Price {
			if p != policy.NoPrice && absolute(p-want) > 200 {
				t.Errorf("market %d costs %v, its mean is %v", i, p, want)
			}
		}
		if closed := slices.Contains(c.Price, policy.NoPrice); closed != slices.Contains(w.Prices[i].Price,
			policy.NoPrice) || !closed && len(c.Price) != 1 {
			t.Errorf("market %d has %d prices, not offered at times: %v", i, len(c.Price), closed)
		}
		if m := under.Markets[i]; m.Price != c.Price[0] {
			t.Errorf("market %d begins at %v, its first price is %v", i, m.Price, c.Price[0])
		}
	}
}

func absolute(m policy.Money) policy.Money { return max(m, -m) }

// At twice the volatility, the logarithm of a price is twice as far from its mean, and a price
// above on-demand is capped at on-demand unless the market was more expensive anyway.
func TestVolatilePrices(t *testing.T) {
	w := priced(2)
	under := w.Under(truthOf(t, "prices-2"))
	capped, other := 0, 0
	for i, c := range under.Prices[1:] {
		old := w.Prices[i+1]
		mean := meanOf(w, old, logOf)
		most := max(policy.Dollar, slices.Max(old.Price))
		at := map[policy.Time]policy.Money{}
		for k := range c.At {
			at[c.At[k]] = c.Price[k]
		}
		last := policy.Money(0)
		for k, p := range old.Price {
			got, changed := at[old.At[k]]
			if !changed {
				got = last
			}
			last = got
			if p == policy.NoPrice {
				if got != p {
					t.Fatalf("market %d is offered at %v", i+1, old.At[k])
				}
				continue
			}
			want := mean + 2*(logOf(p)-mean)
			if want >= logOf(most) {
				capped++
				if got != most {
					t.Fatalf("market %d costs %v, at most %v", i+1, got, most)
				}
				continue
			}
			if other++; math.Abs(logOf(got)-want) > 2e-3 {
				t.Fatalf("market %d costs %v where it cost %v, want %v", i+1, got, p, policy.Dollars(math.Exp(want)))
			}
		}
	}
	if capped == 0 || other < 1000 {
		t.Errorf("%d prices are at the bound and %d are not", capped, other)
	}
	if got := under.Prices[0]; got.Price[0] != policy.Dollar || under.Markets[0].Price != policy.Dollar {
		t.Error("a price on demand has moved")
	}
}

// A scenario under a truth differs only in that truth, and the scenario itself is not changed.
// Published data and the nodes at the start do not depend on the truth.
func TestUnderATruth(t *testing.T) {
	tr, err := trace.Synthetic()
	if err != nil {
		t.Fatal(err)
	}
	sc, err := Load("web-week")
	if err != nil {
		t.Fatal(err)
	}
	w, err := Bind(sc, tr, BindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	before := slices.Clone(w.Markets)
	for _, truth := range weather.Truths() {
		under := w.Under(truth)
		if under.Truth != truth {
			t.Errorf("the scenario under %v has truth %v", truth, under.Truth)
		}
		if (under == w) != truth.Modelled() {
			t.Errorf("the scenario under %v is itself: %v", truth, under == w)
		}
		if under.Intensity != w.Intensity || under.Slots != w.Slots || under.TraceDigest != w.TraceDigest ||
			!reflect.DeepEqual(under.Seeds, w.Seeds) {
			t.Errorf("%v changes more than it says", truth)
		}
		moved := 0
		for i := range w.Markets {
			is, was := under.Markets[i], w.Markets[i]
			if is.Price != was.Price {
				moved++
			}
			is.Price = was.Price
			if is.Band != was.Band || is.PlacementScore != was.PlacementScore || is.OnDemand != was.OnDemand ||
				is.BidPercentiles != was.BidPercentiles || is.Name != was.Name {
				t.Errorf("%v changes what is published of %s", truth, was.Name)
			}
		}
		if prices := truth.Flat || truth.Volatility != 0; (moved > 0) != prices {
			t.Errorf("under %v %d first prices are others", truth, moved)
		}
	}
	for i := range before {
		if before[i].Price != w.Markets[i].Price {
			t.Fatalf("the price of %s in the scenario itself has moved", before[i].Name)
		}
	}
}
