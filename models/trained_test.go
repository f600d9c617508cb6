package models_test

import (
	"errors"
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

var _ driver.Forecaster = (*models.Trained)(nil)

// A fake is a session that answers with a function of the first number of each
// row.
type fake struct {
	width  int
	answer []func(first float32) []float32 // by output
	rows   []int                           // of each call
	err    error
}

func (f *fake) Run(rows int, in []float32, out [][]float32) error {
	f.rows = append(f.rows, rows)
	if f.err != nil {
		return f.err
	}
	for r := range rows {
		for i, answer := range f.answer {
			x := answer(in[r*f.width])
			copy(out[i][r*len(x):], x)
		}
	}
	return nil
}

func (f *fake) Close() error { return nil }

// A fataler is a test, or a case of one.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// fakes returns a forecaster whose capacity score is the price and whose
// runtime score is half of it, and values of actions that rise with the price.
func fakes(t fataler, cfg models.TrainedConfig, edit func(map[string]any)) (f *models.Trained, scores, values *fake) {
	t.Helper()
	files := second()
	if edit != nil {
		change(files, edit)
	}
	b, err := models.Open(files, "aws")
	if err != nil {
		t.Fatal(err)
	}
	closed, err := models.NewClosedForm(models.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	scores = &fake{width: 120, answer: []func(float32) []float32{
		func(x float32) []float32 { return []float32{x} },
		func(x float32) []float32 { return []float32{x / 2} },
	}}
	values = &fake{width: 13, answer: []func(float32) []float32{func(x float32) []float32 { return []float32{0, 1, 2, 3, 4, x} }}}
	f, err = models.NewTrained(b, closed, scores, values, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f, scores, values
}

// shop returns a snapshot with a pool of three Spot markets, one of them out of scope, and a fourth
// that no pool uses; the pool has two nodes in the second.
func shop() *policy.Snapshot {
	s := &policy.Snapshot{Now: policytest.Epoch, Zones: []string{"a"}}
	for i, name := range []string{"c6i.large", "m5.large", "p3.2xlarge", "m5.xlarge"} {
		family, _, _ := strings.Cut(name, ".")
		s.Types = append(s.Types, policy.InstanceType{ID: policy.TypeID(i), Provider: "aws", Family: family, Name: name, VCPU: 2})
		s.Markets = append(s.Markets, policy.Market{
			ID: policy.MarketID(i), Name: name, Provider: "aws", Type: policy.TypeID(i), Capacity: policy.Spot, Offered: true, Band: 1,
			Price: policy.Dollars(0.2 + 0.1*float64(i)), OnDemand: policy.Dollars(1),
		})
	}
	s.Pools = []policy.Pool{{Name: "web", Markets: []policy.MarketID{0, 1, 2}, Mode: policy.ModeActive}}
	for i := range 2 {
		s.Nodes = append(s.Nodes, policy.Node{ID: policy.NodeID(i), Market: 1, Phase: policy.NodeInitialized,
			Allocatable: policy.Resources{CPU: 2000}})
	}
	return s
}

// TestTrained scores what a pool can use and is in scope. The runtime score of
// the first market is 0.1 an hour, so its hazard -ln 0.9.
func TestTrained(t *testing.T) {
	f, scores, values := fakes(t, models.TrainedConfig{Actions: true}, nil)
	s, plain := shop(), shop()
	if err := errors.Join(f.Forecast(s, &policy.Memory{}), closedForm(t).Forecast(plain, nil)); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0.2, 0.3} {
		got := s.Markets[i].Forecast
		if !close32(got.Capacity, want) || !close32(got.Runtime, want/2) || !close32(got.Hazard, -math.Log(1-want/2)) ||
			got.Confidence != 0.9 || got.Source != policy.SourceModel {
			t.Errorf("market %d: %+v", i, got)
		}
	}
	for _, i := range []int{2, 3} { // out of scope, and of no use
		if s.Markets[i].Forecast != plain.Markets[i].Forecast {
			t.Errorf("market %d: %+v, want the closed form's %+v", i, s.Markets[i].Forecast, plain.Markets[i].Forecast)
		}
	}
	if want := (models.Counts{Calls: 1, Scored: 2, OutOfScope: 1, Valued: 1}); f.Counts() != want {
		t.Errorf("counts %+v, want %+v", f.Counts(), want)
	}
	if !strings.Contains(f.Counts().String(), "2 of 3 forecasts") || !strings.Contains(f.Counts().String(), "1 were out of its scope") {
		t.Errorf("it is said that %s", f.Counts())
	}
	if sum := f.Counts().Plus(models.Counts{Unvalued: 3, Failed: 1}).String(); !strings.HasPrefix(sum,
		"the bundle scored 2 of 4 ") || !strings.HasSuffix(sum, "1 of 4 times") {
		t.Errorf("of the sum it is said that %s", sum)
	}
	// Most nodes are in the second market: its price, a hundredth of a dollar
	// by the scale of the features, is the last value.
	if got := s.Pools[0].Actions; len(got) != models.ActionCount || got[4] != 4 || !close32(got[5], 0.003) {
		t.Errorf("actions %v", got)
	}
	if !slices.Equal(scores.rows, []int{2}) || !slices.Equal(values.rows, []int{1}) {
		t.Errorf("calls of %v and %v rows", scores.rows, values.rows)
	}
}

// TestHazardFamilies takes the hazard from the score of the types that the
// manifest names, and leaves that of the others to the closed form.
func TestHazardFamilies(t *testing.T) {
	f, _, _ := fakes(t, models.TrainedConfig{}, func(m map[string]any) {
		m["forecaster"].(map[string]any)["hazard_families"] = []string{"m5"}
	})
	s, plain := shop(), shop()
	for range 2 { // scored, and remembered
		if err := errors.Join(f.Forecast(s, &policy.Memory{}), closedForm(t).Forecast(plain, nil)); err != nil {
			t.Fatal(err)
		}
		for i, want := range []float64{plain.Markets[0].Forecast.Hazard, -math.Log(1 - 0.15)} {
			got := s.Markets[i].Forecast
			if !close32(got.Runtime, 0.1+0.05*float64(i)) || !close32(got.Hazard, want) || got.Source != policy.SourceModel {
				t.Errorf("market %d: %+v, want hazard %v", i, got, want)
			}
		}
	}
}

func close32(a, b float64) bool { return math.Abs(a-b) < 1e-6 }

// TestTrainedRemembers asks again only for what changed: a price, or the hour.
func TestTrainedRemembers(t *testing.T) {
	f, scores, _ := fakes(t, models.TrainedConfig{}, nil)
	s := shop()
	for _, edit := range []func(){func() {}, func() { s.Now = s.Now.Add(time.Minute) },
		func() { s.Markets[1].Price += 1000 }, func() { s.Now = s.Now.Add(time.Hour) }} {
		edit()
		if err := f.Forecast(s, &policy.Memory{}); err != nil {
			t.Fatal(err)
		}
		if got, want := s.Markets[1].Forecast.Capacity, s.Markets[1].Price.Float(); !close32(got, want) {
			t.Errorf("capacity %v, want %v", got, want)
		}
	}
	if !slices.Equal(scores.rows, []int{2, 1, 2}) {
		t.Errorf("asked for %v rows", scores.rows)
	}
	if n := f.Counts().Scored; n != 8 {
		t.Errorf("%d scores are counted", n)
	}
}

// TestTrainedLooksAgain sees that a slot of the snapshot holds another type now,
// and leaves a pool alone that is off.
func TestTrainedLooksAgain(t *testing.T) {
	f, scores, _ := fakes(t, models.TrainedConfig{}, nil)
	s := shop()
	if err := f.Forecast(s, &policy.Memory{}); err != nil {
		t.Fatal(err)
	}
	s.Types[1].Name, s.Types[1].Family = "p3.8xlarge", "p3"
	if err := f.Forecast(s, &policy.Memory{}); err != nil || s.Markets[1].Forecast.Source != policy.SourceClosedForm {
		t.Errorf("a market of another type: %v, %+v", err, s.Markets[1].Forecast)
	}
	s.Pools[0].Mode, s.Nodes = policy.ModeOff, nil
	s.Now = s.Now.Add(time.Hour)
	if err := f.Forecast(s, &policy.Memory{}); err != nil || len(scores.rows) != 1 {
		t.Errorf("a pool that is off: %v, %v", err, scores.rows)
	}
}

// TestTrainedFails leaves the closed form where the bundle has no answer, says
// so, and asks again the next time.
func TestTrainedFails(t *testing.T) {
	nan := float32(math.NaN())
	for name, spoil := range map[string]func(scores, values *fake){
		"scoring 2 markets: out of memory": func(s, _ *fake) { s.err = errors.New("out of memory") },
		"are not in [0, 1]": func(s, _ *fake) {
			s.answer[0] = func(float32) []float32 { return []float32{nan} }
		},
		"its scores of m5.large": func(s, _ *fake) {
			s.answer[1] = func(x float32) []float32 { return []float32{20 * (x - 0.2)} } // 2 for m5.large
		},
	} {
		f, scores, values := fakes(t, models.TrainedConfig{}, nil)
		before := slices.Clone(scores.answer)
		spoil(scores, values)
		s, plain := shop(), shop()
		if err := closedForm(t).Forecast(plain, nil); err != nil {
			t.Fatal(err)
		}
		if err := f.Forecast(s, &policy.Memory{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if s.Markets[1].Forecast != plain.Markets[1].Forecast {
			t.Errorf("%s: %+v, want the closed form's", name, s.Markets[1].Forecast)
		}
		if n := f.Counts().Failed; n == 0 ||
			!strings.Contains(f.Counts().String(), "1 failed") && !strings.Contains(f.Counts().String(), "2 failed") {
			t.Errorf("%s: %+v", name, f.Counts())
		}
		scores.err, scores.answer = nil, before
		if err := f.Forecast(s, &policy.Memory{}); err != nil || s.Markets[1].Forecast.Source != policy.SourceModel {
			t.Errorf("%s: then %v, %+v", name, err, s.Markets[1].Forecast)
		}
	}
}

// TestValuesFail leaves a pool without values that cannot be trusted.
func TestValuesFail(t *testing.T) {
	for want, spoil := range map[string]func(*fake){
		"valuing the actions of 1 pools: gone": func(v *fake) { v.err = errors.New("gone") },
		"cannot be trusted": func(v *fake) {
			v.answer[0] = func(float32) []float32 { return []float32{0, 1, 2, 3, 4, float32(math.Inf(1))} }
		},
		"of pool web cannot": func(v *fake) {
			v.answer[0] = func(float32) []float32 { return slices.Repeat([]float32{-1001}, 6) }
		},
	} {
		f, _, values := fakes(t, models.TrainedConfig{Actions: true}, nil)
		spoil(values)
		s := shop()
		s.Pools[0].Actions = []float64{1}
		if err := f.Forecast(s, &policy.Memory{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if s.Pools[0].Actions != nil || f.Counts().Unvalued != 1 {
			t.Errorf("%s: actions %v, counts %+v", want, s.Pools[0].Actions, f.Counts())
		}
	}
	f, _, _ := fakes(t, models.TrainedConfig{Actions: true}, nil)
	s := shop()
	s.Pools[0].Markets = []policy.MarketID{2}
	if err := f.Forecast(s, &policy.Memory{}); err != nil || s.Pools[0].Actions != nil {
		t.Errorf("a pool out of scope: %v, %v", err, s.Pools[0].Actions)
	}
}

// TestUnsupported: a market out of scope counts as lost where that is configured.
func TestUnsupported(t *testing.T) {
	f, _, _ := fakes(t, models.TrainedConfig{Unsupported: true}, nil)
	s := shop()
	if err := f.Forecast(s, &policy.Memory{}); err != nil {
		t.Fatal(err)
	}
	if got := s.Markets[2].Forecast; got.Capacity != 1 || got.Runtime != 1 || got.Confidence != 0 || got.Source != policy.SourceModel {
		t.Errorf("%+v", got)
	}
}

// TestNormalised subtracts a mean from the price that the forecaster is fed,
// and keeps the hazard of the closed form where no horizon is stated.
func TestNormalised(t *testing.T) {
	f, _, _ := fakes(t, models.TrainedConfig{}, func(m map[string]any) {
		model := m["forecaster"].(map[string]any)
		delete(model, "horizon_hours")
		model["normalisation"].(map[string]any)["mean"].([]any)[0] = 0.1
		model["normalisation"].(map[string]any)["scale"].([]any)[0] = 2.0
	})
	s, plain := shop(), shop()
	if err := errors.Join(f.Forecast(s, &policy.Memory{}), closedForm(t).Forecast(plain, nil)); err != nil {
		t.Fatal(err)
	}
	if got := s.Markets[1].Forecast; !close32(got.Capacity, 0.1) || got.Hazard != plain.Markets[1].Forecast.Hazard {
		t.Errorf("%+v", got)
	}
}

// TestTrainedProperties forecasts any snapshot: it stays valid, forecasts that
// came with a trace stay, and a new forecaster says the same.
func TestTrainedProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := policytest.Snapshot().Draw(t, "snapshot")
		m := policytest.Memory(s).Draw(t, "memory")
		for i := range s.Types {
			s.Types[i].Provider = "aws"
			s.Types[i].Family = rapid.SampledFrom([]string{"m5", "c6i", "p3"}).Draw(t, "family")
		}
		recorded := policy.Forecast{Hazard: 0.5, Confidence: 1, Source: policy.SourceRecorded}
		s.Markets[0].Forecast = recorded
		var seen [2][]policy.Market
		for i := range seen {
			f, scores, _ := fakes(t, models.TrainedConfig{Actions: true}, nil)
			scores.answer[0] = func(x float32) []float32 { return []float32{x / (1 + x)} }
			scores.answer[1] = func(x float32) []float32 { return []float32{1 / (1 + x)} }
			for range 2 {
				if err := f.Forecast(s, &m); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Validate(); err != nil {
				t.Fatal(err)
			}
			seen[i] = slices.Clone(s.Markets)
		}
		if !reflect.DeepEqual(seen[0], seen[1]) {
			t.Fatal("two forecasters differ")
		}
		if s.Markets[0].Forecast != recorded {
			t.Fatalf("recorded: %+v", s.Markets[0].Forecast)
		}
	})
}

// TestProbe finds a graph that answers no numbers.
func TestProbe(t *testing.T) {
	b, err := models.Open(second(), "aws")
	if err != nil {
		t.Fatal(err)
	}
	_, scores, values := fakes(t, models.TrainedConfig{}, nil)
	if err := errors.Join(models.Probe(b.Forecaster, scores), models.Probe(b.Actions, values)); err != nil {
		t.Error(err)
	}
	values.answer[0] = func(float32) []float32 { return []float32{0, 0, 0, float32(math.NaN()), 0, 0} }
	if err := models.Probe(b.Actions, values); err == nil || !strings.Contains(err.Error(), "a.onnx: output q holds NaN") {
		t.Error(err)
	}
	if _, err := models.NewTrained(b, closedForm(t), nil, nil, models.TrainedConfig{}); err == nil {
		t.Error("a bundle without a session is taken")
	}
}
