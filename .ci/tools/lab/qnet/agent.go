package qnet

import (
	"context"
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/sim"
)

// stepTime is the time between two actions of a pool. It is the cooldown of the
// policy.
const stepTime policy.Time = 30 * 60 * 1000

// A move is a step of one pool: the state that it was in, what was done, and what
// was saved until the next step.
type move struct {
	row    [inputs]float32
	action int8
	saved  float32
}

// An agent is the forecaster of one run: it gives the policy the values of a
// network, now and then another action than the best one, and keeps what came of
// it.
type agent struct {
	net    *Net
	closed *models.ClosedForm
	rows   models.PoolRows
	ledger ledger
	key    chance.Key
	dare   float64 // part of the actions that are drawn

	// always is the one action that is taken where fixed says so.
	always int8
	fixed  bool

	next  policy.Time
	steps uint64
	moves [][]move // by pool, in time
}

// Forecast writes forecasts and action values, as [driver.Forecaster] does. The
// network is asked every stepTime; in between pools are left at their share.
func (a *agent) Forecast(s *policy.Snapshot, m *policy.Memory) error {
	if err := a.closed.Forecast(s, m); err != nil {
		return fmt.Errorf("closed form: %w", err)
	}
	a.ledger.read(s)
	if a.moves == nil {
		a.moves = make([][]move, len(s.Pools))
	}
	for i := range s.Pools {
		s.Pools[i].Actions = nil
	}
	if s.Now < a.next {
		return nil
	}
	a.rows.Collect(s, m)
	hours := float64(stepTime) / hourMS
	for i := range s.Pools {
		p := policy.PoolID(i)
		if n := len(a.moves[i]); n > 0 {
			a.moves[i][n-1].saved = a.ledger.take(p, hours)
		} else {
			a.ledger.take(p, hours) // what was before the first step
		}
		a.moves[i] = append(a.moves[i], move{})
		x := &a.moves[i][len(a.moves[i])-1]
		a.rows.Row(p, x.row[:])
		s.Pools[i].Actions = a.choose(x, i)
	}
	a.steps++
	a.next = s.Now - s.Now%stepTime + stepTime
	return nil
}

// drawn are the actions as often as they are drawn: those that add spot more
// often, since from much spot there is a short way back.
var drawn = []int8{0, 0, 1, 2, 3, 3, 4, 4, 5}

// choose returns the values to be followed in the state of x.
func (a *agent) choose(x *move, pool int) []float64 {
	q := a.net.Values(x.row[:])
	values := make([]float64, actions)
	for k, v := range q {
		values[k] = float64(v)
		if v > q[x.action] {
			x.action = int8(k)
		}
	}
	key := a.key.At2(uint64(pool), a.steps)
	switch {
	case a.fixed:
		x.action = a.always
	case key.At1(0).Float() < a.dare:
		x.action = drawn[key.At1(1).IntN(len(drawn))]
	}
	if a.fixed || values[x.action] < slices.Max(values) {
		values[x.action] = slices.Max(values) + 1
	}
	return values
}

// play runs scenario w under a and returns the moves of its pools. The weather is
// that of the agent's key.
func play(ctx context.Context, w *scenarios.BoundScenario, a *agent) ([][]move, *sim.Result, error) {
	stage, err := sim.Prepare(w)
	if err != nil {
		return nil, nil, err
	}
	p, err := registry.New("model:bundle=trained:cooldown=30m:interval=1h:spread=0:calm=false:floor=0",
		registry.Options{OpenBundle: func(string) error { return nil }})
	if err != nil {
		return nil, nil, err
	}
	if a.closed, err = models.NewClosedForm(models.DefaultConfig()); err != nil {
		return nil, nil, err
	}
	result, err := sim.Run(ctx, sim.Config{Prepared: stage, Policy: p, Forecaster: a, Seed: uint64(a.key.At1(1 << 32))})
	if err != nil {
		return nil, nil, err
	}
	return a.moves, result, nil
}
