package qnet

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// small is a training of seconds.
func small() Config {
	c := DefaultConfig()
	c.Rounds, c.Scenarios, c.Steps, c.Held, c.Traces = 2, 3, 20, 2, 2
	return c
}

// TestTrainIsAFunction trains twice, with one and with several scenarios at once: the
// files are the same, and those of another seed are others.
func TestTrainIsAFunction(t *testing.T) {
	train := func(seed uint64, parallel int) []File {
		c := small()
		c.Seed, c.Parallel = seed, parallel
		x, err := Train(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		files, err := x.Bundle()
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	one, three, other := train(1, 1), train(1, 3), train(2, 3)
	for i := range one {
		if !bytes.Equal(one[i].Data, three[i].Data) {
			t.Errorf("%s is another one when three worlds are played at once", one[i].Name)
		}
		if bytes.Equal(one[i].Data, other[i].Data) {
			t.Errorf("%s is the same with another seed", one[i].Name)
		}
	}
	fsys := fstest.MapFS{}
	for _, f := range one {
		fsys[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	b, err := models.Open(fsys, "aws")
	if err != nil {
		t.Fatal(err)
	}
	if b.Forecaster != nil || b.Actions.Width != inputs || b.Manifest.Training.Fingerprint == strings.Repeat("0", 64) {
		t.Errorf("the bundle is %+v", b.Manifest)
	}
}

// TestPlayLearnsWhatWasDone looks at the moves of a run: one each half hour for
// each pool, with what was done, and with the share following what is always done.
func TestPlayLearnsWhatWasDone(t *testing.T) {
	s, err := newSource(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.scenario(chance.Stream(1, "world"), 0)
	if err != nil {
		t.Fatal(err)
	}
	share := map[int8]float32{}
	for _, always := range []int8{4, 5} {
		pools, result, err := play(t.Context(), w, &agent{net: NewNet(1), key: chance.Stream(1, "x"), fixed: true, always: always})
		if err != nil {
			t.Fatal(err)
		}
		if len(pools) != len(w.Pools) || len(pools[0]) != 2*(scenarioHours+warmHours) {
			t.Fatalf("%d pools, %d moves of the first", len(pools), len(pools[0]))
		}
		for i, m := range pools[0] {
			if m.action != always {
				t.Fatalf("move %d is action %d and not %d", i, m.action, always)
			}
		}
		if result.Bill == 0 {
			t.Error("nothing was bought")
		}
		share[always] = pools[0][len(pools[0])-1].row[0]
	}
	if !(share[5] < 0.05 && share[4] > 0.5) {
		t.Errorf("with thirty points more always the share is %v, without spot always %v", share[4], share[5])
	}
}

func TestTrainEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := small()
	c.Rounds = 1000
	c.Progress = func(Round) { cancel() }
	if _, err := Train(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("a training that was stopped returns %v", err)
	}
}

func TestConfig(t *testing.T) {
	for what, change := range map[string]func(*Config){
		"rounds 0":   func(c *Config) { c.Rounds = 0 },
		"worlds -1":  func(c *Config) { c.Scenarios = -1 },
		"held 0":     func(c *Config) { c.Held = 0 },
		"rate 2":     func(c *Config) { c.Rate = 2 },
		"parallel 0": func(c *Config) { c.Parallel = 0 },
		"traces -5":  func(c *Config) { c.Traces = -5 },
	} {
		c := DefaultConfig()
		change(&c)
		if _, err := Train(t.Context(), c); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestLedger counts an hour by hand: of four wanted pods worth a dollar an hour
// each three are ready for half of it, on a node of 1.50 an hour. That is 4 - 1.50
// less 2 × 1 × ½ for the missing one; and as three are required nothing more.
// Then two are ready: one below what is required, which costs 4 hours of a pod,
// once, and 2 × 2 an hour.
func TestLedger(t *testing.T) {
	const hour = policy.Time(3_600_000)
	s := &policy.Snapshot{
		Now:   100 * hour,
		Types: []policy.InstanceType{{VCPU: 4, Allocatable: policy.Resources{CPU: 4000, Memory: 1 << 40, Pods: 100}}},
		Markets: []policy.Market{{Offered: true, Price: policy.Dollars(4), OnDemand: policy.Dollars(4)},
			{ID: 1, Capacity: policy.Spot, Offered: true, Price: policy.Dollars(1.5)}},
		Pools:     []policy.Pool{{Markets: []policy.MarketID{0, 1}}},
		Templates: []policy.Template{{Requests: policy.Resources{CPU: 1000}, OutagePenalty: -1}},
		Workloads: []policy.Workload{{Kind: policy.KindDeployment, Replicas: 4, Ready: 4}},
		Nodes:     []policy.Node{{Market: 1, Phase: policy.NodeInitialized, Launched: hour}},
	}
	var l ledger
	l.read(s)
	l.sum[0], l.scale[0] = 0, 1
	step := func(after policy.Time, ready int32) {
		s.Now += after
		s.Workloads[0].Ready = ready
		l.read(s)
	}
	step(hour/2, 3)
	step(hour/2, 2)
	if got := l.take(0, 1); got != 4-1.5-1-4 {
		t.Errorf("the first hour saved %v, want %v", got, 4-1.5-1-4)
	}
	step(hour, 4)
	if got := l.take(0, 1); got != 4-1.5-4 {
		t.Errorf("the second hour saved %v, want %v", got, 4-1.5-4)
	}
	step(hour, 2)
	if got := l.take(0, 1); got != 4-1.5-4 {
		t.Errorf("the hour before the second outage saved %v with its penalty, want %v", got, 4-1.5-4)
	}
}
