package generate

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/measure"
)

// byPreset returns the configuration of a preset.
func byPreset(t testing.TB, name string, seed uint64, markets, days int) Config {
	t.Helper()
	p, err := FindPreset(name)
	if err != nil {
		t.Fatal(err)
	}
	list, err := p.Take(markets)
	if err != nil {
		t.Fatal(err)
	}
	return Config{Seed: seed, From: p.Begin(), To: p.Begin() + policy.Time(days)*day, Markets: list, Law: p.Law}
}

func generated(t testing.TB, c Config) *trace.Trace {
	t.Helper()
	tr, err := Generate(c)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// Changing the draws by accident would change every figure that was published,
// and drawing otherwise on another machine every figure there.
func TestPinned(t *testing.T) {
	for name, want := range map[string]string{
		"aws-2024": "3e9dadf4edb3dfa4", "aws-2024-classes": "7c5f2ef2d4260440", "aws-quiet-2020": "35d29415fc170aeb", "aws-auction-2016": "fb54106880c8626f", "gcp-2024": "a1cad91b51cf8a50", "rackspace-2026": "ef8f129baa2eb9ed",
	} {
		tr := generated(t, byPreset(t, name, 7, 12, 40))
		if got := fmt.Sprintf("%x", tr.Digest[:8]); got != want {
			t.Errorf("%q: %q,", name, got)
		}
	}
}

// A longer trace starts as a shorter one does, an additional market changes no other, and another
// seed results in another trace.
func TestPrefixes(t *testing.T) {
	for _, p := range Presets() {
		short := byPreset(t, p.Law.Name, 3, 20, 12)
		long := short
		long.To += 25 * day
		more := byPreset(t, p.Law.Name, 3, 47, 12)
		base := generated(t, short)
		for what, other := range map[string]*trace.Trace{"longer": generated(t, long), "more": generated(t, more)} {
			found := 0
			for i := range base.Series {
				s := &base.Series[i]
				for k := range other.Series {
					o := &other.Series[k]
					if s.Name() != o.Name() {
						continue
					}
					found++
					n := 0
					for n < len(o.At) && o.At[n] < base.To {
						n++
					}
					if !reflect.DeepEqual(s.At, o.At[:n]) || !reflect.DeepEqual(s.Spot, o.Spot[:n]) {
						t.Errorf("%s, %s: %s differs", p.Law.Name, what, s.Name())
					}
				}
			}
			if found != len(base.Series) {
				t.Errorf("%s, %s: %d of %d markets", p.Law.Name, what, found, len(base.Series))
			}
		}
		short.Seed = 4
		if generated(t, short).Digest == base.Digest && p.Law.Kind != List {
			t.Errorf("%s: another seed gives the same", p.Law.Name)
		}
	}
}

// Prices stay within the bounds of their law and are multiples of its unit.
func TestBounds(t *testing.T) {
	for _, p := range Presets() {
		c := byPreset(t, p.Law.Name, 5, 30, 60)
		if w := c.Law.Walk; w != nil {
			// Nothing holds it back.
			c.Law.Pull, c.Law.StepMost, c.Law.Size = 0, 0.3, constant(0.1)
		}
		for i, s := range generated(t, c).Series {
			for j := range s.At {
				if s.Spot[j]%c.Law.Unit != 0 || s.Spot[j] <= 0 {
					t.Fatalf("%s: %s: %v is no multiple of %v", p.Law.Name, s.Name(), s.Spot[j], c.Law.Unit)
				}
				ratio, unit := float64(s.Spot[j])/float64(s.OnDemand[j]), float64(c.Law.Unit)/float64(s.OnDemand[j])
				if ratio < c.Law.Least-unit || ratio > max(c.Law.Most, unit)+unit {
					t.Fatalf("%s: market %d: ratio %v is not in %v…%v", p.Law.Name, i, ratio, c.Law.Least, c.Law.Most)
				}
				if s.At[j]%1000 != 0 {
					t.Fatalf("%v is no whole second", s.At[j])
				}
			}
		}
	}
}

// A price at on-demand is not rounded above it.
func TestNotAboveOnDemand(t *testing.T) {
	c := byPreset(t, "aws-2021", 1, 1, 20)
	c.Law.Level, c.Law.Still = constant(0), [5]float64{}
	c.Markets[0].OnDemand = 5_260 // no whole number of units of 100
	for _, price := range generated(t, c).Series[0].Spot {
		if price > c.Markets[0].OnDemand {
			t.Fatalf("%v is above %v", price, c.Markets[0].OnDemand)
		}
	}
}

// A market whose moves are small against the unit of prices changes as often as
// its activity says, or more seldom by what the unit hides.
func TestHidden(t *testing.T) {
	c := byPreset(t, "aws-2021", 1, 40, 60)
	w := *c.Law.Walk
	c.Law.Walk, c.Law.Still = &w, [5]float64{}
	c.Law.Level, c.Law.Activity, c.Law.Size = constant(-1), constant(1), constant(0.003)
	rate := func(onDemand policy.Money, hidden float64) float64 {
		for i := range c.Markets {
			c.Markets[i].OnDemand = onDemand
		}
		w.Hidden = hidden
		return measure.Measure(generated(t, c), nil).Prices.RateMean
	}
	for _, x := range []struct {
		onDemand            policy.Money
		hidden, least, most float64
	}{
		{10_000_000, 0, 0.9, 1.1}, {10_000_000, 1, 0.9, 1.1},
		{150_000, 0, 0.7, 1.1}, {150_000, 1, 0.3, 0.6},
	} {
		if got := rate(x.onDemand, x.hidden); !(got >= x.least && got <= x.most) {
			t.Errorf("on-demand %v, hidden %v: %.3f changes a day, not in %v…%v", x.onDemand, x.hidden, got, x.least, x.most)
		}
	}
}

// Each preset has the figures that its recording has, over several seeds. The
// ranges are those of the recordings, wider where few markets make a figure
// unsteady.
func TestPresetFigures(t *testing.T) {
	type figures struct{ rate, unmoved, p5, p50, p95, momentum, zones [2]float64 }
	any := [2]float64{-2, 1000}
	const seeds = uint64(3)
	for name, want := range map[string]figures{
		// Every change, where the recording has what four looks a day show. Of its markets more
		// have accelerators, which have the least ratios.
		"aws-2024-classes": {rate: [2]float64{2.8, 3.9}, unmoved: [2]float64{0, 0.02}, p5: [2]float64{0.18, 0.25},
			p50: [2]float64{0.33, 0.41}, p95: [2]float64{0.43, 0.58}, momentum: [2]float64{0.35, 0.75}, zones: [2]float64{0.06, 0.27}},
		"aws-2024": {rate: [2]float64{2.8, 3.9}, unmoved: [2]float64{0, 0.02}, p5: [2]float64{0.10, 0.16},
			p50: [2]float64{0.33, 0.41}, p95: [2]float64{0.43, 0.58}, momentum: [2]float64{0.35, 0.75}, zones: [2]float64{0.06, 0.27}},
		"aws-2023": {rate: [2]float64{2.6, 3.9}, unmoved: [2]float64{0, 0.05}, p5: [2]float64{0.27, 0.34},
			p50: [2]float64{0.47, 0.65}, p95: [2]float64{0.80, 1}, momentum: [2]float64{0.2, 0.7}, zones: [2]float64{0.26, 0.5}},
		"aws-2021": {rate: [2]float64{1.2, 2.2}, unmoved: [2]float64{0.26, 0.37}, p5: [2]float64{0.18, 0.27},
			p50: [2]float64{0.29, 0.35}, p95: [2]float64{0.43, 0.6}, momentum: [2]float64{0.45, 0.72}, zones: [2]float64{0.03, 0.24}},
		"aws-quiet-2020": {rate: [2]float64{0, 0.3}, unmoved: [2]float64{0.43, 0.62}, p5: [2]float64{0.09, 0.16},
			p50: [2]float64{0.22, 0.3}, p95: [2]float64{0.6, 1.2}, momentum: [2]float64{0.6, 0.9}, zones: [2]float64{0.7, 1}},
		"aws-auction-2016": {rate: [2]float64{80, 170}, unmoved: [2]float64{0, 0.05}, p5: [2]float64{0.06, 0.13},
			p50: [2]float64{0.11, 0.17}, p95: any, momentum: [2]float64{-0.6, -0.25}, zones: any},
	} {
		for seed := uint64(1); seed <= seeds; seed++ {
			p, err := FindPreset(name)
			if err != nil {
				t.Fatal(err)
			}
			markets := p.Markets
			if name != "aws-auction-2016" {
				markets = 240
			}
			s := measure.Measure(generated(t, byPreset(t, name, seed, markets, min(p.Days, 60))), nil).Prices
			for _, f := range []struct {
				name string
				got  float64
				want [2]float64
			}{
				{"changes a day", s.Rate[1], want.rate}, {"unmoved", s.Unmoved, want.unmoved},
				{"ratio p5", s.Ratio[1], want.p5}, {"ratio p50", s.Ratio[3], want.p50}, {"ratio p95", s.Ratio[5], want.p95},
				{"autocorrelation", s.Autocorrelation, want.momentum}, {"zones", s.ZoneCorrelation, want.zones},
			} {
				if !(f.got >= f.want[0] && f.got <= f.want[1]) {
					t.Errorf("%s, seed %d: %s is %.3f, not in %v", name, seed, f.name, f.got, f.want)
				}
			}
			if name == "aws-2021" && !(s.GapHours[0] > 4.5 && s.GapHours[1] < 6.6 && s.GapHours[2] > 11 && s.GapHours[2] < 20) {
				t.Errorf("%s, seed %d: hours between changes %v, recorded are 4.8, 6.2 and 14.0", name, seed, s.GapHours)
			}
		}
	}
}

// Types without accelerators have the spread of those that were recorded, whose least ratio
// but one is 0.19, however many are drawn; types with accelerators go lower. Sizes of a family
// have much in common.
func TestClasses(t *testing.T) {
	p, err := FindPreset("aws-2024-classes")
	if err != nil {
		t.Fatal(err)
	}
	all, err := CatalogMarkets(catalog.AWS, []string{"us-east-1"})
	if err != nil {
		t.Fatal(err)
	}
	of := func(categories ...string) []Market {
		return slices.DeleteFunc(slices.Clone(all), func(m Market) bool {
			x, _ := catalog.Lookup(m.Provider, m.Type)
			return m.Region != "us-east-1" || !slices.Contains(categories, x.Category)
		})
	}
	for seed := range uint64(3) {
		draw := func(markets []Market) []float64 {
			c := Config{Seed: seed, From: p.Begin(), To: p.Begin() + 9*day, Markets: markets, Law: p.Law}
			return slices.Collect(func(yield func(float64) bool) {
				for _, x := range c.profiles() {
					yield(x.level)
				}
			})
		}
		markets := of("c", "m", "r")
		plain, accelerated := draw(markets), draw(of("g", "p", "inf", "trn"))
		if least := math.Exp(slices.Min(plain)); len(plain) < 600 || least < 0.17 || least > 0.20 {
			t.Errorf("seed %d: the least of %d markets without accelerators keeps to %.3f", seed, len(plain), least)
		}
		if least := math.Exp(slices.Min(accelerated)); least > 0.13 {
			t.Errorf("seed %d: the least of %d markets with accelerators keeps to %.3f", seed, len(accelerated), least)
		}
		families := map[string][]float64{}
		for i, m := range markets {
			families[Family(m.Type)] = append(families[Family(m.Type)], plain[i])
		}
		within := 0.0
		for _, name := range slices.Sorted(maps.Keys(families)) {
			within += float64(len(families[name])) * variance(families[name])
		}
		if share := 1 - within/float64(len(plain))/variance(plain); share < 0.3 || share > 0.6 {
			t.Errorf("seed %d: families explain %.2f of the variance of levels", seed, share)
		}
	}
}

func variance(v []float64) float64 {
	mean, sum := 0.0, 0.0
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		sum += (x - mean) * (x - mean)
	}
	return sum / float64(len(v))
}

// A list is changed at few instants, for many markets at once, and seldom.
func TestListDates(t *testing.T) {
	tr := generated(t, byPreset(t, "gcp-2024", 2, 200, 730))
	instants := map[policy.Time]int{}
	for i := range tr.Series {
		for _, at := range tr.Series[i].At[1:] {
			instants[at]++
		}
	}
	if n := len(instants); n < 5 || n > 14 {
		t.Errorf("%d dates in two years", n)
	}
	for at, n := range instants {
		if at%day != 0 || n < 20 {
			t.Errorf("%d markets changed at %v", n, at)
		}
	}
}

// Prices of the quiet auction rest, are lifted at a whole hour, and come back
// to where they were.
func TestJumps(t *testing.T) {
	c := byPreset(t, "rackspace-2026", 2, 80, 200)
	lifts := 0
	for _, s := range generated(t, c).Series {
		for j := 1; j < len(s.At); j++ {
			if (s.At[j]-c.From)%hour != 0 {
				t.Fatalf("%s changes at %v", s.Name(), s.At[j])
			}
			if j >= 2 && s.Spot[j-1] > s.Spot[j-2] {
				lifts++
				if s.Spot[j] != s.Spot[j-2] {
					t.Errorf("%s goes from %v to %v and %v", s.Name(), s.Spot[j-2], s.Spot[j-1], s.Spot[j])
				}
			}
		}
	}
	if lifts < 30 {
		t.Errorf("%d lifts", lifts)
	}
}

func TestMarketsRunOut(t *testing.T) {
	p, err := FindPreset("aws-2024")
	if err != nil {
		t.Fatal(err)
	}
	all := catalogSize("aws")
	list, err := p.Take(all)
	if err != nil || len(list) != all {
		t.Fatalf("%d of %d, %v", len(list), all, err)
	}
	regions, seen := map[string]bool{}, map[string]bool{}
	for i := range list {
		regions[list[i].Region], seen[list[i].Name()] = true, true
	}
	if len(regions) < 20 || len(seen) != all || list[0].Region != "us-east-1" {
		t.Errorf("%d regions, %d names, first %+v", len(regions), len(seen), list[0])
	}
	if _, err = p.Take(all + 1); !errors.Is(err, ErrMarkets) || !strings.Contains(err.Error(), fmt.Sprint(all)) {
		t.Error(err)
	}
	if _, err = p.Take(0); !errors.Is(err, ErrMarkets) {
		t.Error(err)
	}
	if _, err = FindPreset("aws-1999"); !errors.Is(err, ErrPreset) || !strings.Contains(err.Error(), "aws-2024") {
		t.Error(err)
	}
}

func TestRefuses(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"From":                   func(c *Config) { c.From = 0 },
		"To":                     func(c *Config) { c.To = c.From },
		"Markets":                func(c *Config) { c.Markets = nil },
		"on-demand":              func(c *Config) { c.Markets[0].OnDemand = 0 },
		"twice":                  func(c *Config) { c.Markets[1] = c.Markets[0] },
		"kind":                   func(c *Config) { c.Law.Kind = "prophecy" },
		"unit":                   func(c *Config) { c.Law.Unit = 0 },
		"least":                  func(c *Config) { c.Law.Least = 2 },
		"still":                  func(c *Config) { c.Law.Still[3] = 1.5 },
		"pull":                   func(c *Config) { c.Law.Pull = math.NaN() },
		"walk.momentum":          func(c *Config) { c.Law.Walk.Momentum = 1 },
		"walk.cycle_days":        func(c *Config) { c.Law.Walk.Cycle = 0 },
		"activity.quantiles":     func(c *Config) { c.Law.Activity.Quantiles = c.Law.Activity.Quantiles[:3] },
		"size.quantiles":         func(c *Config) { c.Law.Size.Quantiles[4] = -1 },
		"it must not descend":    func(c *Config) { c.Law.Level.Quantiles[0] = 0 },
		"walk.tick_least_hours":  func(c *Config) { c.Law.Walk.TickLeast = 0 },
		"with the parameters of": func(c *Config) { c.Law.Walk = nil },
	} {
		c := byPreset(t, "aws-2024", 1, 4, 3)
		w := *c.Law.Walk
		c.Law.Walk = &w
		for _, s := range []*Spread{&c.Law.Level, &c.Law.Activity, &c.Law.Size} {
			s.Quantiles = slices.Clone(s.Quantiles)
		}
		change(&c)
		if _, err := Generate(c); !errors.Is(err, trace.ErrValue) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The metadata say everything that a trace was drawn with.
func TestMetadata(t *testing.T) {
	tr := generated(t, byPreset(t, "aws-2021", 9, 5, 4))
	for key, want := range map[string]string{
		"generator": "version " + version, "preset": "aws-2021", "seed": "9", "law": `"momentum"`,
	} {
		if !strings.Contains(tr.Meta[key], want) {
			t.Errorf("%s is %q, without %q", key, tr.Meta[key], want)
		}
	}
	if !tr.Synthetic {
		t.Error("not marked synthetic")
	}
}

// BenchmarkGenerate draws 90 days of a whole region, 3 million rows, and
// reports rows for each second of processor time.
func BenchmarkGenerate(b *testing.B) {
	c := byPreset(b, "aws-2024", 1, 9000, 90)
	begin, rows := cpu(b), 0
	for b.Loop() {
		rows += rowsOf(generated(b, c))
	}
	b.ReportMetric(float64(rows)/(cpu(b)-begin).Seconds()/1e6, "Mrows/CPU-s")
}

// BenchmarkGenerateWrite writes them to files, too.
func BenchmarkGenerateWrite(b *testing.B) {
	c := byPreset(b, "aws-2024", 1, 9000, 90)
	dir := b.TempDir()
	begin, rows := cpu(b), 0
	for b.Loop() {
		tr := generated(b, c)
		rows += rowsOf(tr)
		if err := trace.Write(dir+"/trace", tr); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rows)/(cpu(b)-begin).Seconds()/1e6, "Mrows/CPU-s")
}

func rowsOf(t *trace.Trace) int {
	n := 0
	for i := range t.Series {
		n += len(t.Series[i].At)
	}
	return n
}

// constant returns the spread of a property that is the same everywhere.
func constant(v float64) Spread {
	return Spread{Quantiles: slices.Repeat([]float64{v}, len(Nodes))}
}
