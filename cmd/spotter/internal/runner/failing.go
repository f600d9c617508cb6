package runner

import (
	"errors"
	"math"

	"github.com/spotter-dev/spotter/internal/bundles"
	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim"
)

// The errors of the graphs of a bundle while a scenario makes them fail.
var (
	errGoneByOrder = errors.New("the model is gone (ordered by the scenario)")
	errLateByOrder = errors.New("the model did not answer in time (ordered by the scenario)")
)

// A simModel is the forecaster of a simulated run with a bundle. The scenario can make its model
// fail.
type simModel struct {
	works, fails *models.Trained
	how          scenarios.ModelFailure
}

var _ sim.ModelFaulter = (*simModel)(nil)

// newSimModel returns the forecaster of a run with the bundle b.
func newSimModel(b *bundles.Loaded, closed *models.ClosedForm, cfg models.TrainedConfig) (*simModel, error) {
	m := &simModel{}
	var err error
	if m.works, err = models.NewTrained(b.Bundle, closed, b.ForecasterSession, b.ActionsSession, cfg); err != nil {
		return nil, err
	}
	// A separate forecaster, so that it has no scores from before the failure.
	m.fails, err = models.NewTrained(b.Bundle, closed, m.failing(b.ForecasterSession), m.failing(b.ActionsSession), cfg)
	return m, err
}

// failing returns a session that fails as m.how states, or nil if s is nil.
func (m *simModel) failing(s models.Session) models.Session {
	if s == nil {
		return nil
	}
	return failingSession{&m.how}
}

// SetModelFailure makes the model fail in the given way, or work again.
func (m *simModel) SetModelFailure(how scenarios.ModelFailure) { m.how = how }

// Forecast writes the forecasts of the bundle, or those of the closed form while it fails.
func (m *simModel) Forecast(s *policy.Snapshot, memory *policy.Memory) error {
	if m.how == scenarios.ModelWorks {
		return m.works.Forecast(s, memory)
	}
	return m.fails.Forecast(s, memory)
}

// Counts returns how often the bundle returned a result, and how often it did not.
func (m *simModel) Counts() models.Counts { return m.works.Counts().Plus(m.fails.Counts()) }

// A failingSession is a graph that never returns a usable result.
type failingSession struct{ how *scenarios.ModelFailure }

// Run returns an error, or sets all results to NaN.
func (f failingSession) Run(_ int, _ []float32, out [][]float32) error {
	switch *f.how {
	case scenarios.ModelNaN:
		for _, numbers := range out {
			for i := range numbers {
				numbers[i] = float32(math.NaN())
			}
		}
		return nil
	case scenarios.ModelLate:
		return errLateByOrder
	default:
		return errGoneByOrder
	}
}

// Close does nothing, since there are no resources to release.
func (f failingSession) Close() error { return nil }
