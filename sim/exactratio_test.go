package sim

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// exactWeb returns web-week of the given duration with an exact ratio of 0.6, under twenty times
// the reclaims and shortages.
func exactWeb(t *testing.T, hours string) *scenarios.BoundScenario {
	t.Helper()
	data, err := os.ReadFile("../scenarios/library/web-week.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, change := range [...][2]string{{"capacity: {spotShare: {min: 0, max: 1}}", "capacity: {exactRatio: 0.6}"},
		{"duration: 168h", "duration: " + hours}} {
		if !strings.Contains(text, change[0]) {
			t.Fatalf("web-week has no %q", change[0])
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	sc, err := scenarios.Parse("web-week.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trace.Synthetic()
	if err != nil {
		t.Fatal(err)
	}
	intensity := 20.0
	w, err := scenarios.Bind(sc, tr, scenarios.BindOptions{Intensity: &intensity})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestExactRatioHeld holds an exact ratio through four days of growing and shrinking
// services and of reclaims and refusals: within one node, of the largest that may be
// bought, but while launches, drains or replacements are under way, or a market that
// refused is left alone, for half an hour.
func TestExactRatioHeld(t *testing.T) {
	const largest = 16 // vCPUs
	stage := mustPrepare(t, exactWeb(t, "96h"))
	for _, spec := range []string{"portfolio", "static:share=0.6", "spotvortex"} {
		res := mustRun(t, Config{Prepared: stage, Policy: mustPolicy(t, spec), Forecaster: mustForecaster(t), Seed: 1, Sample: time.Minute})
		var points []float64
		beyond, spell, longest := 0, 0, 0
		for _, s := range res.Samples {
			off := math.Abs(float64(s.SpotSize) - 0.6*float64(s.Size))
			points = append(points, 100*off/float64(s.Size))
			spell++
			if off <= largest {
				spell = 0
			} else {
				beyond++
			}
			longest = max(longest, spell)
		}
		slices.Sort(points)
		p99, worst := points[len(points)*99/100], points[len(points)-1]
		t.Logf("%s: p99 %.1f and worst %.1f points; %d of %d min beyond a node, %d on end", spec, p99, worst, beyond, len(points), longest)
		if p99 > 3 || worst > 10 || beyond > len(points)/50 || longest > 30 {
			t.Errorf("%s: p99 %.1f and worst %.1f points, %d of %d min beyond a node, %d on end; want at most 3, 10, 2%% and 30 min",
				spec, p99, worst, beyond, len(points), longest)
		}
		if res.Interruptions == 0 {
			t.Errorf("%s: nothing was interrupted", spec)
		}
	}
}
