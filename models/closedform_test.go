package models_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/policy/policytest"
)

var _ driver.Forecaster = (*models.ClosedForm)(nil)

func closedForm(t testing.TB) *models.ClosedForm {
	t.Helper()
	f, err := models.NewClosedForm(models.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// snapshot returns one on-demand and one Spot market of band 1 in each of two zones for each of two
// types.
func snapshot() *policy.Snapshot {
	s := &policy.Snapshot{Now: policytest.Epoch, Zones: []string{"a", "b"}, Types: make([]policy.InstanceType, 2)}
	for z := range 2 {
		for kind := range 2 {
			for _, c := range []policy.CapacityType{policy.OnDemand, policy.Spot} {
				s.Markets = append(s.Markets, policy.Market{
					ID: policy.MarketID(len(s.Markets)), Zone: policy.ZoneID(z), Type: policy.TypeID(kind), Capacity: c, Offered: true, Band: 1,
				})
			}
		}
	}
	return s
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }

// TestWithoutExperience checks the bands: -ln(1-p)/730 per node-hour.
func TestWithoutExperience(t *testing.T) {
	f, s := closedForm(t), snapshot()
	sum := 0.0
	for band, p := range []float64{0.025, 0.075, 0.125, 0.175, 0.30} {
		s.Markets[1].Band = policy.Band(band)
		if err := f.Forecast(s, nil); err != nil {
			t.Fatal(err)
		}
		got, want := s.Markets[1].Forecast, -math.Log(1-p)/730
		sum += want
		if !near(got.Hazard, want) || !near(got.Runtime, 1-math.Exp(-want)) || got.Confidence != 0.6 || got.Source != policy.SourceClosedForm {
			t.Errorf("band %d: %+v, want hazard %v", band, got, want)
		}
	}
	s.Markets[1].Band = policy.BandUnknown
	if err := f.Forecast(s, nil); err != nil {
		t.Fatal(err)
	}
	if got := s.Markets[1].Forecast; !near(got.Hazard, sum/5) || got.Confidence != 0.5 {
		t.Errorf("no band: %+v, want hazard %v", got, sum/5)
	}
	if got := s.Markets[0].Forecast; got.Hazard != 0 || got.Capacity != 0 || got.Runtime != 0 || got.Confidence != 1 {
		t.Errorf("on demand: %+v", got)
	}
}

// TestOwnExperience computes the formula by hand. Band 1 forecasts h = 1.068e-4 an hour, so that
// one reclaim is expected in b = 1/h = 9,363 hours. With two reclaims in 1,000 hours the hazard of
// the market is 3 / 10,363 = 2.895e-4.
func TestOwnExperience(t *testing.T) {
	f, s := closedForm(t), snapshot()
	m := &s.Markets[1]
	m.Experience = policy.Experience{At: s.Now, Launches: 10, Reclaims: 2, NodeHours: 1000}
	if err := f.Forecast(s, nil); err != nil {
		t.Fatal(err)
	}
	h := -math.Log(1-0.075) / 730
	if want := 3 / (1/h + 1000); !near(m.Forecast.Hazard, want) {
		t.Errorf("hazard %v, want %v", m.Forecast.Hazard, want)
	}
	// Ten launches without a refusal, and the band's 2% with the weight of ten more: 0.2/20, of
	// which half reach a running node.
	if !near(m.Forecast.Capacity, 0.005) {
		t.Errorf("capacity %v, want 0.005", m.Forecast.Capacity)
	}
	// 1,000 of 1,500 hours go two thirds of the way from 0.6 to 1.
	if want := 0.6 + 0.4*1000/1500; !near(m.Forecast.Confidence, want) {
		t.Errorf("confidence %v, want %v", m.Forecast.Confidence, want)
	}
	// The other market of the zone and the other one of the type learn from it,
	// each by (4 + 2)/(4 + 1000 h); the fourth does not.
	factor := 6 / (4 + 1000*h)
	for id, want := range map[int]float64{3: h * factor, 5: h * factor, 7: h} {
		if got := s.Markets[id].Forecast.Hazard; !near(got, want) {
			t.Errorf("market %d: hazard %v, want %v", id, got, want)
		}
	}
}

// TestFactorIsBounded puts 1,000 reclaims into one market: its neighbours are
// at most eight times as risky as their band says.
func TestFactorIsBounded(t *testing.T) {
	f, s := closedForm(t), snapshot()
	s.Markets[1].Experience = policy.Experience{At: s.Now, Reclaims: 1000}
	if err := f.Forecast(s, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := s.Markets[3].Forecast.Hazard, 8*-math.Log(1-0.075)/policy.HoursPerMonth; !near(got, want) {
		t.Errorf("hazard %v, want %v", got, want)
	}
}

// TestExperienceFades states the same experience two half-lives ago: a quarter
// of it is left.
func TestExperienceFades(t *testing.T) {
	f, old, fresh := closedForm(t), snapshot(), snapshot()
	old.Markets[1].Experience = policy.Experience{At: old.Now.Add(-28 * 24 * time.Hour), Launches: 8, Reclaims: 4, NodeHours: 400, Refusals: 2}
	fresh.Markets[1].Experience = policy.Experience{At: fresh.Now, Launches: 2, Reclaims: 1, NodeHours: 100, Refusals: 0.5}
	for _, s := range []*policy.Snapshot{old, fresh} {
		if err := f.Forecast(s, nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range old.Markets {
		a, b := old.Markets[i].Forecast, fresh.Markets[i].Forecast
		if !near(a.Hazard, b.Hazard) || !near(a.Capacity, b.Capacity) || !near(a.Confidence, b.Confidence) {
			t.Errorf("market %d: %+v, want %+v", i, a, b)
		}
	}
}

// TestRefusalIsFelt refuses one launch: at once capacity is certain to lack,
// which costs half of the running nodes, and after two hours the chance that
// its cause lasts is 1/e.
func TestRefusalIsFelt(t *testing.T) {
	f, s := closedForm(t), snapshot()
	m := &s.Markets[1]
	m.Experience = policy.Experience{At: s.Now, Refusals: 1, Refused: s.Now}
	if err := f.Forecast(s, nil); err != nil {
		t.Fatal(err)
	}
	if m.Forecast.Capacity != 0.5 {
		t.Errorf("at once: %v, want 0.5", m.Forecast.Capacity)
	}
	m.Experience.Refused = s.Now.Add(-2 * time.Hour)
	if err := f.Forecast(s, nil); err != nil {
		t.Fatal(err)
	}
	rate := (10*0.02 + 1) / (10 + 1.0)
	if want := 0.5 * (1 - (1-rate)*(1-math.Exp(-1))); !near(m.Forecast.Capacity, want) {
		t.Errorf("after two hours: %v, want %v", m.Forecast.Capacity, want)
	}
}

// TestRecordedStays leaves a forecast alone that came with the trace.
func TestRecordedStays(t *testing.T) {
	f, s := closedForm(t), snapshot()
	want := policy.Forecast{Hazard: 0.5, Confidence: 1, Source: policy.SourceRecorded}
	s.Markets[1].Forecast = want
	if err := f.Forecast(s, nil); err != nil {
		t.Fatal(err)
	}
	if got := s.Markets[1].Forecast; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestForecastProperties checks that scores are scores, that more reclaims are
// never forecast as less hazard, and that nothing is left from call to call.
func TestForecastProperties(t *testing.T) {
	f := closedForm(t)
	rapid.Check(t, func(t *rapid.T) {
		s := policytest.Snapshot().Draw(t, "snapshot")
		if err := f.Forecast(s, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		first := slices.Clone(s.Markets)
		if err := f.Forecast(s, nil); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(first, s.Markets) {
			t.Fatal("the second forecast differs from the first")
		}
		m := &s.Markets[rapid.IntRange(0, len(s.Markets)-1).Draw(t, "market")]
		m.Experience.Reclaims++
		if err := f.Forecast(s, nil); err != nil {
			t.Fatal(err)
		}
		for i := range s.Markets {
			if now := s.Markets[i].Forecast.Hazard; now < first[i].Forecast.Hazard {
				t.Fatalf("a reclaim more in %s takes %s from %v to %v", m.Name, s.Markets[i].Name, first[i].Forecast.Hazard, now)
			}
		}
	})
}

func TestConfig(t *testing.T) {
	for field, set := range map[string]func(*models.Config){
		"prior reclaims 0":       func(c *models.Config) { c.PriorReclaims = 0 },
		"pooled reclaims -1":     func(c *models.Config) { c.PooledReclaims = -1 },
		"prior launches NaN":     func(c *models.Config) { c.PriorLaunches = math.NaN() },
		"refusal memory 0":       func(c *models.Config) { c.RefusalMemory = 0 },
		"horizon -1":             func(c *models.Config) { c.Horizon = -time.Hour },
		"factor max 0.5":         func(c *models.Config) { c.FactorMax = 0.5 },
		"confidence published 2": func(c *models.Config) { c.ConfidencePublished = 2 },
		"confidence unknown -1":  func(c *models.Config) { c.ConfidenceUnknown = -1 },
		"confidence hours 0":     func(c *models.Config) { c.ConfidenceHours = 0 },
	} {
		cfg := models.DefaultConfig()
		set(&cfg)
		if _, err := models.NewClosedForm(cfg); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// BenchmarkForecast forecasts 2,000 markets, of which some have experience.
func BenchmarkForecast(b *testing.B) {
	for _, experienced := range []int{0, 50, 1000} {
		b.Run(fmt.Sprint(experienced), func(b *testing.B) {
			f := closedForm(b)
			s := &policy.Snapshot{Now: policytest.Epoch, Zones: make([]string, 6), Types: make([]policy.InstanceType, 200)}
			for i := range 2000 {
				m := policy.Market{ID: policy.MarketID(i), Zone: policy.ZoneID(i % 6), Type: policy.TypeID(i / 2 % 200),
					Capacity: policy.CapacityType(i % 2), Band: policy.Band(i % 5)}
				if i/2 < experienced {
					m.Experience = policy.Experience{At: s.Now.Add(-time.Duration(i) * time.Minute), Launches: 1, NodeHours: 30}
				}
				s.Markets = append(s.Markets, m)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := f.Forecast(s, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
