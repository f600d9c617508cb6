package models

import (
	"errors"
	"fmt"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
	"github.com/spotter-dev/spotter/policy/workload"
)

// A TrainedConfig defines how the results of a bundle are used.
type TrainedConfig struct {
	// Unsupported sets both scores of a market outside of the bundle's scope to 1, as if it were
	// about to be lost, as the SpotVortex agent does. Otherwise such a market has the forecast of
	// the closed form.
	Unsupported bool

	// Actions enables the values of each pool's actions.
	Actions bool
}

// A Trained forecasts with the graphs of a bundle. Markets that are out of its scope, have no price
// or cannot be scored have the forecast of the closed form, and are counted.
//
// It stores the last score of each market and serves one run. It must not be used concurrently, but
// several may share sessions.
type Trained struct {
	bundle *Bundle
	closed *ClosedForm
	cfg    TrainedConfig

	forecaster, actions Session

	counts Counts

	// kinds describes the types of the last snapshot. wanted reports which of its markets are in a
	// pool or have a node.
	kinds  []coveredType
	wanted []bool

	scores  scored
	pools   valued
	scratch workload.Scratch
}

type coveredType struct {
	provider, name string
	covered        bool
	hazard         bool // whether the hazard is derived from the score
}

// Counts are the numbers of forecasts of a [Trained] by result.
type Counts struct {
	// Calls is the number of snapshots.
	Calls int

	// Scored is the number of forecasts of Spot markets by the bundle. The others are the numbers
	// of forecasts by the closed form, by reason.
	Scored, OutOfScope, Unpriced, Failed int

	// Number of times that the actions of a pool were valued, and that they were not.
	Valued, Unvalued int
}

// Plus returns the sum of c and d.
func (c Counts) Plus(d Counts) Counts {
	return Counts{
		Calls: c.Calls + d.Calls, Scored: c.Scored + d.Scored, OutOfScope: c.OutOfScope +
			d.OutOfScope, Unpriced: c.Unpriced + d.Unpriced,
		Failed: c.Failed + d.Failed, Valued: c.Valued + d.Valued, Unvalued: c.Unvalued + d.Unvalued,
	}
}

// String describes incomplete forecasts, empty if the bundle made all of them.
func (c Counts) String() string {
	var text string
	if missing := c.OutOfScope + c.Unpriced + c.Failed; missing > 0 {
		text = fmt.Sprintf("the bundle scored %d of %d forecasts; %d were out of its scope, %d without a price and %d failed",
			c.Scored, c.Scored+missing, c.OutOfScope, c.Unpriced, c.Failed)
	}
	if c.Unvalued > 0 {
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("it valued the actions of pools %d of %d times", c.Valued, c.Valued+c.Unvalued)
	}
	return text
}

// NewTrained returns a forecaster with bundle b. The sessions are those of its graphs, nil for a
// missing graph. Use [Probe] first to check that they work.
func NewTrained(b *Bundle, closed *ClosedForm, forecaster, actions Session, cfg TrainedConfig) (*Trained, error) {
	f := &Trained{bundle: b, closed: closed, cfg: cfg, forecaster: forecaster, actions: actions}
	if (b.Forecaster == nil || forecaster == nil) && !cfg.Actions {
		return nil, errors.New("the bundle has no forecaster")
	}
	if cfg.Actions && (b.Actions == nil || actions == nil) {
		return nil, errors.New("the bundle values no actions")
	}
	return f, nil
}

// Probe runs a session of net with one ordinary row and returns an error if the result is invalid.
// It detects errors that names and shapes do not show.
func Probe(net *Net, s Session) error {
	row := make([]float32, net.Width)
	ordinary(net.Model.Features, row)
	net.Model.Normalisation.normalise(row)
	out := net.space(nil, 1)
	if err := s.Run(1, row, out); err != nil {
		return fmt.Errorf("%s: %w", net.Model.Graph, err)
	}
	for i, numbers := range out {
		for _, x := range numbers {
			if !finite(float64(x)) {
				return fmt.Errorf("%s: output %s holds %v for an ordinary input", net.Model.Graph, net.Outputs[i].Name, x)
			}
		}
	}
	return nil
}

// ordinary writes the features of an ordinary market or pool.
func ordinary(features string, row []float32) {
	market := MarketState{Spot: 0.31, OnDemand: 0.97, Now: 1_700_000_000_000}
	switch features {
	case MarketFeaturesV1:
		market.Row(row)
	case MarketFeaturesV2:
		s := &policy.Snapshot{
			Now: market.Now, Zones: []string{"a"}, Types: []policy.InstanceType{{VCPU: 4}},
			Markets: []policy.Market{{Name: "a", Capacity: policy.Spot, Offered: true, Price: policy.Dollars(market.Spot),
				OnDemand: policy.Dollars(market.OnDemand)}},
		}
		var rows MarketRows
		rows.Collect(s)
		rows.Row(s, 0, row)
	case PoolFeaturesQ:
		ordinaryPool(row)
	case PoolFeaturesV1:
		pool := PoolState{Market: market, Startup: 30, MigrationCost: 1, Penalty: 1, Steps: 5, Utilization: 0.6, Share: 0.6,
			Target: 0.6}
		pool.Row(row)
	}
}

// space returns slices for the outputs of rows rows. It reuses out.
func (n *Net) space(out [][]float32, rows int) [][]float32 {
	if out == nil {
		out = make([][]float32, len(n.Widths))
	}
	for i, w := range n.Widths {
		if cap(out[i]) < rows*w {
			out[i] = make([]float32, rows*w)
		}
		out[i] = out[i][:rows*w]
	}
	return out
}

func finite(x float64) bool { return x-x == 0 }

// Counts returns the numbers of forecasts so far.
func (f *Trained) Counts() Counts { return f.counts }

// Fingerprint returns the fingerprint of the bundle.
func (f *Trained) Fingerprint() string { return f.bundle.Fingerprint }

// Forecast sets the forecast of every market of s, and the values of the actions of every pool. An
// error names the parts for which the bundle failed; they have the forecasts of the closed form.
func (f *Trained) Forecast(s *policy.Snapshot, m *policy.Memory) error {
	if err := f.closed.Forecast(s, m); err != nil {
		return err
	}
	f.counts.Calls++
	f.look(s)
	var err error
	if f.forecaster != nil { // otherwise the bundle only values actions, based on the closed form
		err = f.scoreMarkets(s)
	}
	if !f.cfg.Actions {
		return err
	}
	return errors.Join(err, f.valuePools(s, m))
}

// look sets which types are in scope and which markets are used.
func (f *Trained) look(s *policy.Snapshot) {
	if len(f.kinds) != len(s.Types) {
		f.kinds = make([]coveredType, len(s.Types))
	}
	for i := range s.Types {
		t, k := &s.Types[i], &f.kinds[i]
		if k.name != t.Name || k.provider != t.Provider {
			*k = coveredType{t.Provider, t.Name, f.bundle.Scope.Covers(t), f.bundle.GivesHazard(t)}
		}
	}
	f.wanted = scratch.Zeroed(f.wanted, len(s.Markets))
	for i := range s.Pools {
		if s.Pools[i].Mode == policy.ModeOff {
			continue
		}
		for _, id := range s.Pools[i].Markets {
			f.wanted[id] = true
		}
	}
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Phase != policy.NodeGone && n.Market >= 0 {
			f.wanted[n.Market] = true
		}
	}
}
