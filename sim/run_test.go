package sim

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
)

var (
	seedFlag   = flag.Uint64("seed", 0, "run only the random scenario of this seed")
	worldsFlag = flag.Int("scenarios", worldsDefault, "number of random scenarios")
)

// specs are the policies that random scenarios are played under.
var specs = []string{"on-demand", "spot", "static", "static:share=0.9", "spotvortex", "spotvortex:compat=true"}

func mustPolicy(t testing.TB, spec string) policy.Policy {
	t.Helper()
	p, err := registry.New(spec, registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustForecaster(t testing.TB) *models.ClosedForm {
	t.Helper()
	f, err := models.NewClosedForm(models.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func mustPrepare(t testing.TB, w *scenarios.BoundScenario) *Prepared {
	t.Helper()
	s, err := Prepare(w)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustRun(t testing.TB, cfg Config) *Result {
	t.Helper()
	res, err := Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// foundSeeds are those whose scenarios once broke what a checker holds.
var foundSeeds = []uint64{
	1795378420984836106, // a bid below a price that went on while nothing was offered
	1795744006087802531, // a rollout in an outage counted from before it began
}

// TestRandomScenarios plays random scenarios, with faults in half of them, under every
// checker: those that were at fault once, and of the others half the same every time
// and half new. A failure prints the seed and how to repeat it.
func TestRandomScenarios(t *testing.T) {
	seeds := make(chan uint64)
	go func() {
		defer close(seeds)
		if *seedFlag != 0 {
			seeds <- *seedFlag
			return
		}
		for _, seed := range foundSeeds {
			seeds <- seed
		}
		fresh := uint64(time.Now().UnixNano())
		for i := range uint64(*worldsFlag) {
			if i%2 == 0 {
				seeds <- i/2 + 1
			} else {
				seeds <- fresh + i
			}
		}
	}()
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for seed := range seeds {
				if err := playRandom(t, seed); err != nil {
					t.Errorf("seed %d: %v\nrepeat with: go test ./sim -run TestRandomScenarios -seed=%d", seed, err, seed)
				}
			}
		})
	}
	wait.Wait()
}

func playRandom(t *testing.T, seed uint64) (err error) {
	defer func() {
		if e := recover(); e != nil {
			stack := make([]byte, 4096)
			err = fmt.Errorf("panic: %v\n%s", e, stack[:runtime.Stack(stack, false)])
		}
	}()
	w := randomScenario(seed)
	stage, err := Prepare(w)
	if err != nil {
		return err
	}
	cfg := Config{Prepared: stage, Policy: mustPolicy(t, specs[seed%uint64(len(specs))]), Forecaster: mustForecaster(t),
		Seed: seed, Check: true}
	var bad error
	last := policy.Time(0)
	cfg.Observed = func(s *policy.Snapshot, _ *policy.Plan) {
		if s.Now <= last && bad == nil {
			bad = fmt.Errorf("a step at %v after one at %v", s.Now, last)
		}
		last = s.Now
		if e := s.Validate(); e != nil && bad == nil {
			bad = e
		}
	}
	res, err := Run(context.Background(), cfg)
	if err == nil {
		err = bad
	}
	if err != nil {
		return err
	}
	if seed/uint64(len(specs))%3 != 0 {
		return nil
	}
	// The same once more, watched and without the checkers, gives the same. A third of the
	// scenarios of every policy says so as well as all of them.
	auditor := &auditor{}
	cfg.Policy, cfg.Check, cfg.Observed = mustPolicy(t, specs[seed%uint64(len(specs))]), false, nil
	cfg.Observer, cfg.Sample = auditor, 5*time.Hour
	again, err := Run(context.Background(), cfg)
	if err != nil {
		return err
	}
	if err := auditor.against(again); err != nil {
		return err
	}
	if res.Hash != again.Hash || res.Weather != again.Weather {
		return fmt.Errorf("two runs differ")
	}
	return nil
}

// calmWorld has one size of node, one price and no reclaims.
func calmScenario() *scenarios.BoundScenario {
	b := newBuilder(48 * time.Hour)
	b.w.Intensity = 0
	b.markets(1, 1, false)
	b.pool("p")
	b.workload("web", policy.KindDeployment, 6, policy.Resources{CPU: 1800, Memory: gib})
	return b.scenario()
}

// TestCalm checks the bill against the plain sum: six pods, two to a node of
// $0.20/h, make three nodes for 48 hours.
func TestCalm(t *testing.T) {
	res := mustRun(t, Config{Prepared: mustPrepare(t, calmScenario()), Policy: mustPolicy(t, "on-demand"), Seed: 1, Check: true})
	if want := 3 * 48 * 200_000 * policy.Money(1); res.Bill != want || res.OnDemandBill != want {
		t.Errorf("bill %v (on-demand %v), want %v", res.Bill, res.OnDemandBill, want)
	}
	if res.OutageCost != 0 || res.OutageMinutes != 0 || res.Availability != 1 {
		t.Errorf("outage %v, %d min, availability %v in a calm scenario", res.OutageCost, res.OutageMinutes, res.Availability)
	}
}

// TestPodValue checks the value of a pod: the larger share (1.8 of 3.9 cores)
// of a node of $0.20/h.
func TestPodValue(t *testing.T) {
	s := mustPrepare(t, calmScenario())
	if want := policy.Money(200_000).Times(1800.0 / 3900.0); s.PodValue(0) != want {
		t.Errorf("pod value %v, want %v", s.PodValue(0), want)
	}
}

// TestSpotIsCheaper moves everything to Spot in a calm scenario: from then on each of the nodes
// costs 30%.
func TestSpotIsCheaper(t *testing.T) {
	res := mustRun(t, Config{Prepared: mustPrepare(t, calmScenario()), Policy: mustPolicy(t, "spot"), Seed: 1, Check: true})
	if want := 3 * 48 * 60_000 * policy.Money(1); res.Bill != want || res.SpotShare != 1 {
		t.Errorf("bill %v at spot share %v, want %v at 1", res.Bill, res.SpotShare, want)
	}
}

// stormy has reclaims in plenty.
func stormy(intensity float64) *scenarios.BoundScenario {
	b := newBuilder(48 * time.Hour)
	b.w.Intensity = intensity
	b.markets(3, 2, false)
	b.pool("p")
	b.workload("web", policy.KindDeployment, 60, policy.Resources{CPU: 900, Memory: gib})
	b.workload("db", policy.KindStatefulSet, 4, policy.Resources{CPU: 1500, Memory: 2 * gib})
	b.budget(0, policy.Quantity{Set: true, N: 6})
	return b.scenario()
}

// TestEqualWeather holds that policies of one seed meet the same weather, and
// that seeds differ.
func TestEqualWeather(t *testing.T) {
	stage := mustPrepare(t, stormy(300))
	a := mustRun(t, Config{Prepared: stage, Policy: mustPolicy(t, "spot"), Seed: 7})
	b := mustRun(t, Config{Prepared: stage, Policy: mustPolicy(t, "on-demand"), Seed: 7})
	c := mustRun(t, Config{Prepared: stage, Policy: mustPolicy(t, "spot"), Seed: 8})
	if a.Weather != b.Weather || a.Hash == b.Hash || a.Weather == c.Weather {
		t.Errorf("weather %x under spot, %x under on-demand, %x under another seed", a.Weather[:4], b.Weather[:4], c.Weather[:4])
	}
	if a.Interruptions == 0 || b.Interruptions != 0 {
		t.Errorf("%d interruptions on spot and %d on-demand", a.Interruptions, b.Interruptions)
	}
}

// TestSameHash runs one scenario repeatedly, on one processor and on all.
func TestSameHash(t *testing.T) {
	stage := mustPrepare(t, stormy(20))
	run := func() *Result {
		return mustRun(t, Config{Prepared: stage, Policy: mustPolicy(t, "spotvortex"), Forecaster: mustForecaster(t), Seed: 3})
	}
	first := run()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if second := run(); first.Hash != second.Hash || first.Bill != second.Bill {
		t.Errorf("two runs differ: %x and %x; repeat with -seed=3", first.Hash[:8], second.Hash[:8])
	}
}

// TestNoLeak changes the weather after an instant and sees every snapshot up to
// it unchanged: nothing of the future is in one.
func TestNoLeak(t *testing.T) {
	instant := testStart.Add(20 * time.Hour)
	observe := func(w *scenarios.BoundScenario) string { return seenUntil(t, w, instant) }
	plain := observe(stormy(5))
	changed := stormy(5)
	// A reclaim is announced at most an hour before: what is said up to the
	// instant belongs to it.
	announced := instant.Add(time.Hour) + 1
	changed.Faults = []scenarios.Fault{
		{Kind: scenarios.FaultCapacityShortage, At: announced, Duration: 5 * time.Hour, Share: 1},
		{Kind: scenarios.FaultZoneOutage, At: instant + 1, Duration: time.Hour, Zone: "z0"},
		{Kind: scenarios.FaultPriceRamp, At: instant + 1, Duration: time.Hour, Factor: 4},
	}
	if after := observe(changed); after != plain {
		at := 0
		for at < min(len(after), len(plain)) && after[at] == plain[at] {
			at++
		}
		t.Errorf("snapshots before %v differ at byte %d: %q and %q", instant, at, cut(plain, at), cut(after, at))
	}
	longer := stormy(5)
	longer.Duration += 24 * time.Hour
	if after := observe(longer); after != plain {
		t.Errorf("a later end changes snapshots before %v", instant)
	}
}

// seenUntil plays a scenario and returns the snapshots up to an instant, as text.
func seenUntil(t *testing.T, w *scenarios.BoundScenario, instant policy.Time) string {
	t.Helper()
	var b strings.Builder
	after := false
	cfg := Config{Prepared: mustPrepare(t, w), Policy: mustPolicy(t, "spotvortex"), Forecaster: mustForecaster(t), Seed: 5}
	cfg.Observed = func(s *policy.Snapshot, _ *policy.Plan) {
		if after = s.Now > instant; !after {
			fmt.Fprintf(&b, "%+v\n", s.Whole())
		}
	}
	mustRun(t, cfg)
	if b.Len() == 0 || !after {
		t.Fatalf("%d bytes were seen until %v, and something after it: %v", b.Len(), instant, after)
	}
	return b.String()
}

func cut(s string, at int) string { return s[max(0, at-60):min(len(s), at+60)] }

// TestLog holds that the written log has a line for every kind of thing that
// happened, and that writing it changes nothing.
func TestLog(t *testing.T) {
	w := stormy(300)
	w.Faults = []scenarios.Fault{{Kind: scenarios.FaultLateNotice, At: testStart, Duration: 48 * time.Hour, Share: 0.5}}
	for _, zone := range w.Zones { // what a notice announces may be empty before it is taken
		w.Faults = append(w.Faults, scenarios.Fault{Kind: scenarios.FaultZoneOutage, At: testStart.Add(12 * time.Hour),
			Duration: time.Hour, Zone: zone})
	}
	stage := mustPrepare(t, w)
	var out bytes.Buffer
	a := mustRun(t, Config{Prepared: stage, Policy: mustPolicy(t, "spot"), Seed: 7, Log: &out})
	b := mustRun(t, Config{Prepared: stage, Policy: mustPolicy(t, "spot"), Seed: 7})
	if a.Hash != b.Hash {
		t.Error("writing the log changes the hash")
	}
	for _, word := range []string{" launch ", " reclaimed ", " bound ", " ready ", " step ", " bill ", " lost "} {
		if !strings.Contains(out.String(), word) {
			t.Errorf("the log has no %q", word)
		}
	}
}
