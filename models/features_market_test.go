package models_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// region returns a type in three zones and another in the first of them, on a
// Friday at 18:00 UTC.
func region() *policy.Snapshot {
	s := &policy.Snapshot{
		Now: policy.TimeOf(time.Date(2026, 1, 2, 18, 0, 0, 0, time.UTC)), Zones: []string{"a", "b", "c"},
		Types: []policy.InstanceType{{Name: "p3.2xlarge", VCPU: 8, Capacity: policy.Resources{GPU: 1}},
			{ID: 1, Name: "g5.xlarge", VCPU: 4, Capacity: policy.Resources{GPU: 1}}},
	}
	for i := range 4 {
		m := policy.Market{
			ID: policy.MarketID(i), Name: string(rune('p' +
				i)), Region: "r", Zone: policy.ZoneID(i % 3), Type: policy.TypeID(i / 3), Capacity: policy.Spot,
			Offered: true, Band: policy.BandUnknown, Price: policy.Dollars(1.5), OnDemand: policy.Dollars(3),
			Forecast: policy.Forecast{Hazard: math.Exp(-4), Capacity: 0.25},
		}
		m.History = slices.Repeat([]policy.Money{policy.Dollars(1.5)}, 24)
		s.Markets = append(s.Markets, m)
	}
	return s
}

// rowOf returns the features of market m by name.
func rowOf(s *policy.Snapshot, m policy.MarketID) map[string]float64 {
	names := models.FeatureNames(models.MarketFeaturesV2)
	row := make([]float32, len(names))
	var rows models.MarketRows
	rows.Collect(s)
	rows.Row(s, m, row)
	out := map[string]float64{}
	for i, name := range names {
		out[name] = float64(row[i])
	}
	return out
}

func features(t *testing.T, what string, got, want map[string]float64) {
	t.Helper()
	for name, x := range want {
		if y, ok := got[name]; !ok || math.Abs(y-x) > 1e-6 {
			t.Errorf("%s: %s is %v, want %v", what, name, y, x)
		}
	}
}

// TestMarketFeatures holds features to what can be counted by hand. A price that
// rose from a half to two thirds of that on demand within the hour; refused 70
// minutes ago, which is three doublings of ten minutes; a node that runs for 150
// minutes, which is four.
func TestMarketFeatures(t *testing.T) {
	s := region()
	plain := rowOf(s, 0)
	features(t, "nothing met", plain, map[string]float64{
		"price_ratio": 0.5, "price_change_1h": 0, "price_spread": 0, "hour_from_noon": 0.5, "hour_from_evening": 1, "weekend": 0, "gpu": 1, "vcpu": 3,
		"band": 0.5, "band_unknown": 1, "held": 0, "since_last_launch": 12, "since_refusal": 12, "reclaim_rate": -6.9375, "refusal_share": 0.046875,
		"others_since_trouble": 12, "zone_trouble": 0, "region_trouble": 0, "closed_form_hazard": -4, "closed_form_capacity": 0.25,
	})
	m := &s.Markets[0]
	m.Band, m.Price = 4, policy.Dollars(2)
	m.History[23] = m.Price
	m.Experience = policy.Experience{At: s.Now, Launches: 3, Refusals: 1, Reclaims: 1, NodeHours: 15,
		Refused: s.Now.Add(-70 * time.Minute), Reclaimed: s.Now.Add(-70 * time.Minute)}
	s.Nodes = []policy.Node{
		{ID: 0, Market: 0, Phase: policy.NodeInitialized, Launched: s.Now.Add(-150 * time.Minute)},
		{ID: 1, Market: 0, Phase: policy.NodeInitialized, Launched: s.Now.Add(-time.Minute), ReclaimAt: s.Now},
		{ID: 2, Phase: policy.NodeGone, Market: 0, Launched: s.Now},
		{ID: 3, Market: 1, Phase: policy.NodeInitialized, Launched: s.Now.Add(-10 * time.Minute)},
	}
	features(t, "itself", rowOf(s, 0), map[string]float64{
		"price_ratio": 2. / 3, "price_change_1h": 1. / 6, "price_change_4h": 1. / 6, "band": 1, "band_unknown": 0, "held": 1, "since_last_launch": 4, "since_first_launch": 4,
		"since_refusal": 3, "since_reclaim": 3, "node_hours": 4, "refusal_share": 0.2109375, "others_held": 1, "others_since_last_launch": 1, "others_since_trouble": 12,
	})
	features(t, "the same type elsewhere", rowOf(s, 2), map[string]float64{
		"held": 0, "since_refusal": 12, "others_held": math.Log2(3), "others_since_first_launch": 4, "others_since_last_launch": 1, "others_since_trouble": 3,
	})
	features(t, "another type beside", rowOf(s, 3), map[string]float64{"others_held": 0, "others_since_trouble": 12, "zone_trouble": 0})

	m.Experience.Refused = s.Now.Add(-20 * time.Minute)
	s.Nodes[0].Phase = policy.NodeGone
	features(t, "beside one in trouble", rowOf(s, 3), map[string]float64{"zone_trouble": 0.3125, "region_trouble": 0.25})
	features(t, "the one in trouble", rowOf(s, 0), map[string]float64{"zone_trouble": 0, "region_trouble": 0})
}

// TestMarketFeaturesOrder builds equal rows whatever other markets are in the
// tables, and after a change of the markets.
func TestMarketFeaturesOrder(t *testing.T) {
	s := region()
	s.Markets[1].Experience = policy.Experience{At: s.Now, Refusals: 2, Refused: s.Now.Add(-time.Hour)}
	names := models.FeatureNames(models.MarketFeaturesV2)
	want, got := make([]float32, len(names)), make([]float32, len(names))
	var rows models.MarketRows
	rows.Collect(s)
	rows.Row(s, 0, want)
	turned := region()
	turned.Markets = []policy.Market{s.Markets[2], s.Markets[1], s.Markets[3], s.Markets[0]}
	for i := range turned.Markets {
		turned.Markets[i].ID = policy.MarketID(i)
	}
	rows.Collect(turned)
	rows.Row(turned, 3, got)
	if !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
}

// TestMarketFeaturesKept builds rows of one snapshot after another with one
// builder, which keeps what has not changed, and holds each to that of a builder
// which keeps nothing.
func TestMarketFeaturesKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := region()
		names := models.FeatureNames(models.MarketFeaturesV2)
		got, want := make([]float32, len(names)), make([]float32, len(names))
		var kept models.MarketRows
		for range rapid.IntRange(2, 12).Draw(t, "snapshots") {
			m := &s.Markets[rapid.IntRange(0, len(s.Markets)-1).Draw(t, "market")]
			money := policy.Money(rapid.IntRange(1, 4).Draw(t, "dollars")) * policy.Dollars(1)
			switch rapid.IntRange(0, 7).Draw(t, "change") {
			case 0:
				m.Price = money
			case 1:
				m.Reserve = money
			case 2:
				m.OnDemand = money
			case 3:
				m.History[rapid.IntRange(0, len(m.History)-1).Draw(t, "step")] = money
			case 4:
				m.History = m.History[1:]
			case 5:
				m.Forecast.Hazard = rapid.SampledFrom([]float64{0, 0.25, 1, 2}).Draw(t, "hazard")
			case 6:
				m.Experience = policy.Experience{At: s.Now, NodeHours: float64(money.Float()), Reclaims: 1, Reclaimed: s.Now}
			case 7:
				s.Now = s.Now.Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "hours")) * time.Hour)
			}
			var fresh models.MarketRows
			kept.Collect(s)
			fresh.Collect(s)
			for i := range s.Markets {
				kept.Row(s, policy.MarketID(i), got)
				fresh.Row(s, policy.MarketID(i), want)
				if !slices.Equal(got, want) {
					t.Fatalf("market %d: %v\nwant %v", i, got, want)
				}
			}
		}
	})
}

// secondVersion returns a forecaster fed with the features of the second version,
// and the session that it asks.
func secondVersion(t *testing.T) (*models.Trained, *fake) {
	files, names := second(), models.FeatureNames(models.MarketFeaturesV2)
	files["f.onnx"].Data = net{"x", []int64{-1, int64(len(names))}, map[string][]int64{"c": {-1, 1}, "r": {-1, 1}}, "f.bin", "4", "8"}.onnx()
	change(files, func(m map[string]any) {
		f := m["forecaster"].(map[string]any)
		f["features"], f["feature_names"] = models.MarketFeaturesV2, names
		delete(f, "normalisation")
	})
	sign(files)
	b, err := models.Open(files, "aws")
	if err != nil {
		t.Fatal(err)
	}
	session := &fake{width: len(names), answer: []func(float32) []float32{
		func(x float32) []float32 { return []float32{x / 2} }, func(x float32) []float32 { return []float32{x} },
	}}
	f, err := models.NewTrained(b, closedForm(t), session, nil, models.TrainedConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return f, session
}

// TestSecondVersion feeds a forecaster with the features of the second version,
// and asks again only for rows that changed.
func TestSecondVersion(t *testing.T) {
	f, session := secondVersion(t)
	s := shop()
	for i := range s.Markets {
		s.Markets[i].History = slices.Repeat([]policy.Money{s.Markets[i].Price}, 24)
	}
	for range 2 {
		if err := f.Forecast(s, &policy.Memory{}); err != nil {
			t.Fatal(err)
		}
		if got := s.Markets[1].Forecast; !close32(got.Runtime, 0.3) || !close32(got.Capacity, 0.15) || got.Source != policy.SourceModel {
			t.Errorf("%+v", got)
		}
	}
	if !slices.Equal(session.rows, []int{2}) {
		t.Errorf("asked for %v rows, want 2 once", session.rows)
	}
	s.Now = policytest.Epoch.Add(time.Second)
	s.Markets[0].Price = policy.Dollars(0.25)
	if err := f.Forecast(s, &policy.Memory{}); err != nil || !slices.Equal(session.rows, []int{2, 1}) {
		t.Errorf("%v, asked for %v rows, want one more for one that changed", err, session.rows)
	}
}

// TestBuiltin opens the bundle of the program: its files are as its manifest
// says, it is fed what this program builds, and it is small.
func TestBuiltin(t *testing.T) {
	b, err := models.Open(models.Builtin(), "aws")
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, f := range b.Files {
		size += f.Bytes
	}
	m := b.Manifest
	if b.Forecaster == nil || m.Forecaster.Features != models.MarketFeaturesV2 || m.Forecaster.HorizonHours != 1 || size > 1<<20 {
		t.Errorf("%+v, %d bytes", m.Forecaster, size)
	}
	for _, name := range []string{"gpu_recorded.runtime.brier", "gpu_recorded.runtime.log_loss_skill.closed_form",
		"cpu_generated.runtime.log_loss"} {
		if _, ok := m.Metrics[name]; !ok {
			t.Errorf("metric %s is missing", name)
		}
	}
	if len(m.Calibration["runtime"]) == 0 || m.Forecaster.Labels["runtime_6h"] == "" {
		t.Error("calibration or labels are missing")
	}
}
