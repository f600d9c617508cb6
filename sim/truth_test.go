package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// TestTruthIsNotSeen holds that no truth shows in a Snapshot before something
// happens: the first one is that of the model, prices apart, and what happens later
// changes none before it.
func TestTruthIsNotSeen(t *testing.T) {
	instant := testStart.Add(2 * time.Hour)
	announced := instant.Add(time.Hour) + 1 // at most an hour before a reclaim
	faults := []scenarios.Fault{
		{Kind: scenarios.FaultCapacityShortage, At: announced, Duration: 5 * time.Hour, Share: 1},
		{Kind: scenarios.FaultZoneOutage, At: instant + 1, Duration: time.Hour, Zone: "z0"},
	}
	usual := firstSeen(t, stormy(5))
	for _, truth := range weather.Truths() {
		plain, changed := stormy(5), stormy(5)
		changed.Faults = faults
		plain, changed = plain.Under(truth), changed.Under(truth)
		if seenUntil(t, plain, instant) != seenUntil(t, changed, instant) {
			t.Errorf("%v: what happens after %v shows before it", truth, instant)
		}
		if first := firstSeen(t, plain); first != usual {
			t.Errorf("%v shows in the first snapshot: %s, in the model %s", truth, first, usual)
		}
	}
}

// firstSeen returns the first snapshot of a run of w, as text.
func firstSeen(t *testing.T, w *scenarios.BoundScenario) (first string) {
	t.Helper()
	mustRun(t, Config{Prepared: mustPrepare(t, w), Policy: mustPolicy(t, "spot"), Forecaster: mustForecaster(t), Seed: 5,
		Observed: func(s *policy.Snapshot, _ *policy.Plan) {
			if first == "" {
				first = fmt.Sprintf("%+v", s.Whole())
			}
		}})
	return first
}

// TestTruthOfARun holds that a run meets the truth of its scenario: the weather says
// which, and reclaims follow it.
func TestTruthOfARun(t *testing.T) {
	run := func(name string) *Result {
		truth, err := weather.TruthNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		return mustRun(t, Config{Prepared: mustPrepare(t, stormy(20).Under(truth)), Policy: mustPolicy(t, "spot"), Seed: 3})
	}
	usual, more, silent, again := run("modelled"), run("hazard-10"), run("no-notice"), run("no-notice")
	if usual.Weather == silent.Weather || usual.Weather == run("prices-flat").Weather {
		t.Error("two truths have one weather")
	}
	if silent.Hash != again.Hash {
		t.Error("two runs under one truth differ")
	}
	if usual.Interruptions == 0 || more.Interruptions < 3*usual.Interruptions {
		t.Errorf("%d interruptions at ten times the hazard, %d at one", more.Interruptions, usual.Interruptions)
	}
	if usual.Notices == 0 || silent.Notices != 0 || silent.Reclaims == 0 {
		t.Errorf("without notices %d come for %d reclaims, in the model %d", silent.Notices, silent.Reclaims, usual.Notices)
	}
}

// TestNoticesOfAnAuction takes nodes that are outbid at six, six minutes later: with
// late notices they hear of it 36 seconds before, without notices never.
func TestNoticesOfAnAuction(t *testing.T) {
	for name, want := range map[string]string{"modelled": "T06:00:00.000Z notice ", "late-notice": "T06:05:24.000Z notice ", "no-notice": ""} {
		truth, err := weather.TruthNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		b := auction(6, map[int]policy.Money{-48: 1000, 6: 300_000})
		b.w.Intensity, b.w.Pools[0].OnDemandFallback = 1, false
		_, log := runScenario(t, b.seeded(3).Under(truth), "spot")
		if n, all := count(log, want), count(log, " notice "); want != "" && n != 3 || want == "" && all != 0 {
			t.Errorf("%s: %d notices as wanted of %d\n%s", name, n, all, strings.Join(log, "\n"))
		}
	}
}
