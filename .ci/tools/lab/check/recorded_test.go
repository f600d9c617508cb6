package check

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/.ci/tools/lab/measure"
	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/scenarios/trace/importer"
)

// published are the figures that were measured on a recording by another
// program.
type published struct {
	Changes       int        `json:"change_events"`
	Markets       int        `json:"markets"`
	Rate          [3]float64 `json:"changes_per_market_day_p5_50_95"`
	RateMean      float64    `json:"changes_per_market_day_mean"`
	Unmoved       float64    `json:"markets_never_changed_frac"`
	Gaps          [4]float64 `json:"inter_change_hours_p5_50_95_99"`
	Momentum      float64    `json:"autocorr_lag1_change_returns_pooled"`
	SameSign      float64    `json:"sign_persistence_P(next same sign)"`
	Ratio         [8]float64 `json:"ratio_timeweighted_p1_5_25_50_75_95_99_max"`
	Above         float64    `json:"time_frac_ratio_gt_0.9"`
	SpikesPerYear float64    `json:"spike_entries_gt0.9_per_market_year"`
	Steps         struct {
		Std    float64 `json:"std"`
		Median float64 `json:"abs_p50"`
		P95    float64 `json:"abs_p95"`
		P99    float64 `json:"abs_p99"`
		Max    float64 `json:"abs_max"`
	} `json:"logret_per_change"`
	Zones struct {
		Returns []float64 `json:"ret"`
	} `json:"corr_sametype_crossAZ_sameregion"`
}

// The figures of the AWS recordings are those that were published with them.
// They are given to three or four digits.
func TestRecordedPrices(t *testing.T) {
	data, err := os.ReadFile(policytest.Recording(t, "STATS.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]published
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	for file, want := range all {
		if strings.HasPrefix(file, "aws_") {
			t.Run(file, func(t *testing.T) { compareRecorded(t, file, &want) })
		}
	}
}

func compareRecorded(t *testing.T, file string, want *published) {
	if testing.Short() && want.Changes > 150_000 {
		t.Skipf("%s takes long", file)
	}
	tr, _, err := importer.Import([]string{policytest.Recording(t, "prices/"+file)}, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := measure.Measure(tr, measure.Options{})
	p := &s.Prices
	near := func(name string, got, want, tolerance float64) {
		t.Helper()
		if !(math.Abs(got-want) <= tolerance) {
			t.Errorf("%s is %v and was %v", name, got, want)
		}
	}
	part := func(name string, got, want, tolerance float64) {
		t.Helper()
		near(name, got, want, max(0.0006, tolerance*math.Abs(want)))
	}
	if p.Changes != want.Changes || s.Markets != want.Markets {
		t.Errorf("%d changes of %d markets; there were %d of %d", p.Changes, s.Markets, want.Changes, want.Markets)
	}
	part("mean rate", p.RateMean, want.RateMean, 0.01)
	for i, name := range []string{"p5", "p50", "p95"} {
		part("rate "+name, p.Rate[i], want.Rate[i], 0.015)
	}
	for i, name := range []string{"p5", "p50", "p95", "p99"} {
		part("gap "+name, p.GapHours[i], want.Gaps[i], 0.01)
	}
	near("unmoved", p.Unmoved, want.Unmoved, 0.001)
	part("median step", p.StepMedian, want.Steps.Median, 0.01)
	part("p95 of steps", p.StepP95, want.Steps.P95, 0.01)
	part("p99 of steps", p.StepP99, want.Steps.P99, 0.01)
	part("largest step", p.StepMax, want.Steps.Max, 0.01)
	part("deviation of steps", p.StepStd, want.Steps.Std, 0.01)
	near("autocorrelation", p.Autocorrelation, want.Momentum, 0.005)
	near("same sign", p.SameSign, want.SameSign, 0.002)
	for i := range p.Ratio {
		part("ratio", p.Ratio[i], want.Ratio[i], 0.01)
	}
	near("above", p.Above90, want.Above, 0.001)
	if len(want.Zones.Returns) == 3 {
		// The other program drew 3,000 pairs; here all are taken.
		near("zone correlation", p.ZoneCorrelation, want.Zones.Returns[1], 0.02)
	}
	// The other program saw spikes once an hour.
	hourly := measure.Measure(tr, measure.Options{Sampling: &measure.Sampling{Interval: time.Hour, Period: time.Hour,
		Offsets: []time.Duration{0}}})
	part("spikes", hourly.Prices.SpikeEntries, want.SpikesPerYear, 0.01)
}

// The hazards, shares and correlations of the V100 zones of 2023 are those that
// were published with the recording.
func TestRecordedAvailability(t *testing.T) {
	folder := policytest.Recording(t, "availability/skypilot/availability/1-node/aws-02-15-2023")
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) != 9 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	tr, _, err := importer.Import(files, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := measure.Measure(tr, measure.Options{})
	a := s.Availability
	if a == nil || a.Markets != 9 || a.Probe != 195*time.Second || !s.Prices.Modelled {
		t.Fatalf("%+v", a)
	}
	near := func(name string, got, want, tolerance float64) {
		t.Helper()
		if !(math.Abs(got-want) <= tolerance) {
			t.Errorf("%s is %v and was %v", name, got, want)
		}
	}
	for i, want := range []float64{1.20, 0.77, 0.43, 0.20, 0.15, 0.10, 0.03} {
		near("hazard", a.Hazard[i].Hazard(), want, 0.01)
	}
	if a.Hazard[6].Events != 39 {
		t.Errorf("%d spells end beyond a day", a.Hazard[6].Events)
	}
	shares := make([]float64, len(a.Zones))
	for i := range a.Zones {
		shares[i] = a.Zones[i].Share
	}
	near("least share", slices.Min(shares), 0.17, 0.005)
	near("greatest share", slices.Max(shares), 0.91, 0.006)
	near("across regions", a.Across, 0.14, 0.005)
	for i, want := range []struct{ down, independent float64 }{{0.287, 0.100}, {0.1935, 0.0765}, {0.039, 0.0012}} {
		near("all down in "+a.Regions[i].Region, a.Regions[i].AllDown, want.down, 0.001)
		near("independently", a.Regions[i].Independent, want.independent, 0.001)
	}
	near("us-east-2", a.Regions[1].Correlation, 0.59, 0.005)
}
