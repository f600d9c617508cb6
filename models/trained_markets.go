package models

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
)

// scored is the state of markets between calls. A score only depends on the row of features, so a
// market whose row is unchanged is not scored again.
type scored struct {
	last []lastScore // by market

	asked   []policy.MarketID
	in      []float32
	out     [][]float32
	history []float64
	rows    MarketRows // for MarketFeaturesV2
}

type lastScore struct {
	row               []float32
	capacity, runtime float64
	hazard            float64
}

// runtimeMax limits the runtime score for the hazard, whose logarithm is unbounded.
const runtimeMax = 1 - 1e-6

// scoreMarkets sets the forecasts of all Spot markets in scope that a pool uses.
func (f *Trained) scoreMarkets(s *policy.Snapshot) error {
	sc := &f.scores
	if len(sc.last) != len(s.Markets) {
		sc.last = make([]lastScore, len(s.Markets))
	}
	net := f.bundle.Forecaster
	second := net.Model.Features == MarketFeaturesV2
	if second {
		sc.rows.Collect(s)
	}
	sc.asked, sc.in = sc.asked[:0], sc.in[:0]
	for i := range s.Markets {
		m := &s.Markets[i]
		if m.Capacity != policy.Spot || !f.wanted[i] || m.Forecast.Source == policy.SourceRecorded {
			continue
		}
		switch {
		case !f.kinds[m.Type].covered:
			f.counts.OutOfScope++
			if f.cfg.Unsupported {
				m.Forecast.Capacity, m.Forecast.Runtime, m.Forecast.Confidence = 1, 1, 0
				m.Forecast.Source = policy.SourceModel
			}
		case !m.Offered || m.OnDemand <= 0:
			f.counts.Unpriced++
		default:
			at := len(sc.in)
			sc.in = slices.Grow(sc.in, net.Width)[:at+net.Width]
			if second {
				sc.rows.Row(s, m.ID, sc.in[at:])
			} else {
				f.market(s, m).Row(sc.in[at:])
			}
			if last := &sc.last[i]; last.row != nil && slices.Equal(last.row, sc.in[at:]) {
				sc.in = sc.in[:at]
				f.write(m, last)
				continue
			}
			sc.asked = append(sc.asked, m.ID)
		}
	}
	return f.ask(s)
}

// market returns the input of the features of m.
func (f *Trained) market(s *policy.Snapshot, m *policy.Market) *MarketState {
	f.scores.history = prices(f.scores.history, m.History)
	return &MarketState{Spot: m.Charge().Float(), OnDemand: m.OnDemand.Float(), History: f.scores.history, Now: s.Now}
}

// ask scores the markets with changed features.
func (f *Trained) ask(s *policy.Snapshot) error {
	sc, net := &f.scores, f.bundle.Forecaster
	rows := len(sc.asked)
	if rows == 0 {
		return nil
	}
	for i, id := range sc.asked { // before normalisation
		last := &sc.last[id]
		last.row = append(last.row[:0], sc.in[i*net.Width:(i+1)*net.Width]...)
	}
	net.Model.Normalisation.normalise(sc.in)
	sc.out = net.space(sc.out, rows)
	if err := f.forecaster.Run(rows, sc.in, sc.out); err != nil {
		f.counts.Failed += rows
		for _, id := range sc.asked {
			sc.last[id].row = nil
		}
		return fmt.Errorf("scoring %d markets: %w", rows, err)
	}
	failed := policy.MarketID(policy.None)
	names := net.Names()
	for i, id := range sc.asked {
		last := &sc.last[id]
		for k, name := range names {
			x := score(net.Outputs[k], sc.out[k][i*net.Widths[k]:(i+1)*net.Widths[k]])
			switch name {
			case outputCapacity:
				last.capacity = x
			case outputRuntime:
				last.runtime = x
			}
		}
		if !isScore(last.capacity) || !isScore(last.runtime) {
			last.row = nil
			f.counts.Failed++
			failed = id
			continue
		}
		if h := net.Model.HorizonHours; h > 0 {
			last.hazard = -portable.Log(1-min(last.runtime, runtimeMax)) / h
		}
		f.write(&s.Markets[id], last)
	}
	if failed >= 0 {
		return fmt.Errorf("%s: its scores of %s are not in [0, 1]", net.Model.Graph, s.Markets[failed].Name)
	}
	return nil
}

// write sets the forecast of m to a score. The hazard remains that of the closed form if the bundle
// does not state the horizon of its runtime score, or excludes the type's family.
func (f *Trained) write(m *policy.Market, x *lastScore) {
	f.counts.Scored++
	if f.kinds[m.Type].hazard {
		m.Forecast.Hazard = x.hazard
	}
	m.Forecast.Capacity, m.Forecast.Runtime = x.capacity, x.runtime
	m.Forecast.Confidence, m.Forecast.Source = f.bundle.Manifest.Confidence, policy.SourceModel
}

// Scores runs a session of a forecaster with n rows of features that are not normalised, and
// returns the results by the name of the output.
func Scores(net *Net, session Session, rows []float32, n int) (map[string][]float64, error) {
	const batch = 4096
	results := map[string][]float64{}
	for begin := 0; begin < n; begin += batch {
		count := min(batch, n-begin)
		in := slices.Clone(rows[begin*net.Width : (begin+count)*net.Width])
		net.Model.Normalisation.normalise(in)
		out := net.space(nil, count)
		if err := session.Run(count, in, out); err != nil {
			return nil, fmt.Errorf("scoring %d rows: %w", count, err)
		}
		for k, name := range net.Names() {
			for i := range count {
				x := score(net.Outputs[k], out[k][i*net.Widths[k]:(i+1)*net.Widths[k]])
				if !isScore(x) {
					return nil, fmt.Errorf("%s: its %s of row %d is %v and not in [0, 1]", net.Model.Graph, name, begin+i+1, x)
				}
				results[name] = append(results[name], x)
			}
		}
	}
	return results, nil
}
