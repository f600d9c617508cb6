package models

import (
	"errors"
	"fmt"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/scratch"
	"github.com/spotter-dev/spotter/policy/workload"
)

// A TrainedConfig says how the results of a bundle are used.
type TrainedConfig struct {
	// Unsupported takes a market outside of the bundle's scope for one that is
	// about to be lost, with both scores 1, as the SpotVortex agent does.
	// Otherwise such a market keeps the closed form.
	Unsupported bool

	// Actions requests the values of each pool's actions.
	Actions bool
}

// A Trained forecasts with the graphs of a bundle. What is out of its scope,
// has no price or cannot be scored keeps the forecast of the closed form; how
// often is counted.
//
// It remembers what it scored last in each market and serves one run: two
// goroutines need two of them. They may share sessions.
type Trained struct {
	bundle *Bundle
	closed *ClosedForm
	cfg    TrainedConfig

	forecaster, actions Session

	counts Counts

	// kinds says of the types of the last snapshot whether the scope covers
	// them; wanted of its markets whether a pool can use them.
	kinds  []coveredType
	wanted []bool

	scores  scored
	pools   valued
	scratch workload.Scratch
}

type coveredType struct {
	provider, name string
	covered        bool
	hazard         bool // is taken from the score
}

// Counts are how often a [Trained] forecast.
type Counts struct {
	// Calls is the number of snapshots.
	Calls int

	// Markets are forecasts of Spot markets that pools may use: Scored by the bundle, and the
	// others by the reason why they were left to the closed form.
	Scored, OutOfScope, Unpriced, Failed int

	// Pools whose actions were valued, and those whose were not.
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

// String says what a person must know of c, empty if all was scored.
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

// NewTrained returns a forecaster of bundle b. Sessions are those of its graphs, nil where b has no
// such graph. [Probe] checks beforehand whether they work.
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

// Probe asks a session of net for one ordinary row and says what is wrong with
// the result. It finds what names and shapes cannot show.
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

// ordinary writes what a builder builds of an ordinary market or pool.
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

// space returns room for the outputs of rows, in the memory of out.
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

// Counts returns how often f forecast so far.
func (f *Trained) Counts() Counts { return f.counts }

// Fingerprint returns that of the bundle.
func (f *Trained) Fingerprint() string { return f.bundle.Fingerprint }

// Forecast writes the forecast of every market of s, and the values of the actions of every pool.
// An error names the parts for which the bundle failed; their forecasts are those of the closed
// form.
func (f *Trained) Forecast(s *policy.Snapshot, m *policy.Memory) error {
	if err := f.closed.Forecast(s, m); err != nil {
		return err
	}
	f.counts.Calls++
	f.look(s)
	var err error
	if f.forecaster != nil { // else the bundle values actions on what the closed form makes of markets
		err = f.scoreMarkets(s)
	}
	if !f.cfg.Actions {
		return err
	}
	return errors.Join(err, f.valuePools(s, m))
}

// look finds what types are in scope and what markets are of use.
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
