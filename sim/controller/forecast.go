package controller

import (
	"errors"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios"
)

// A recordedForecaster sets the hazards of markets to the forecasts that the trace contains. The
// inner forecaster does everything else, including markets for which the trace has no current
// forecast. Forecasts of a model have precedence, since they take account of events in the cluster
// and a trace does not.
type recordedForecaster struct {
	signals []scenarios.SignalCurve // by market
	inner   driver.Forecaster
}

// Forecast implements [driver.Forecaster].
func (f recordedForecaster) Forecast(s *policy.Snapshot, m *policy.Memory) error {
	// The driver reuses the snapshot of two steps ago: drop its recorded forecasts, so that inner
	// makes its own.
	for i := range s.Markets {
		if x := &s.Markets[i].Forecast; x.Source == policy.SourceRecorded {
			x.Source = policy.SourceNone
		}
	}
	err := f.inner.Forecast(s, m)
	for i := range s.Markets {
		hazard, ok := f.signals[i].HazardAt(s.Now)
		x := &s.Markets[i].Forecast
		if !ok || s.Markets[i].Capacity != policy.Spot || x.Source == policy.SourceModel {
			continue
		}
		x.Hazard, x.Source = hazard, policy.SourceRecorded
		x.Runtime = 1 - portable.Exp(-hazard) // the probability of a reclaim within an hour
	}
	return err
}

// errModel is returned while the scenario orders a failure of the model and the forecaster is not a
// [ModelFaulter].
var errModel = errors.New("the model fails (ordered by the scenario)")

// A ModelFaulter is a forecaster whose model can be made to fail in a given way, until the next call
// of SetModelFailure. While the model fails, the forecaster keeps the closed-form forecasts, and
// counts the forecasts that the model did not make.
type ModelFaulter interface {
	SetModelFailure(scenarios.ModelFailure)
}

// A faultyForecaster is the forecaster of a run. It fails while a fault requires it.
type faultyForecaster struct {
	inner   driver.Forecaster
	failure func() scenarios.ModelFailure // that the scenario orders now
}

// Forecast implements [driver.Forecaster].
func (f faultyForecaster) Forecast(s *policy.Snapshot, m *policy.Memory) error {
	faulter, ok := f.inner.(ModelFaulter)
	if ok {
		faulter.SetModelFailure(f.failure())
	}
	err := f.inner.Forecast(s, m)
	if !ok && f.failure() != scenarios.ModelWorks {
		return errors.Join(err, errModel)
	}
	return err
}
