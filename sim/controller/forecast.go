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

func (f recordedForecaster) Forecast(s *policy.Snapshot, m *policy.Memory) error {
	for i := range s.Markets { // forecasts of the previous use of this snapshot, two steps ago
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
		x.Hazard, x.Runtime, x.Source = hazard, 1-portable.Exp(-hazard), policy.SourceRecorded // within an hour
	}
	return err
}

// errModel is the error of a forecaster that is not [Breakable] while a fault makes the model fail.
var errModel = errors.New("the model fails (ordered by the scenario)")

// A Breakable is a forecaster whose model can be made to fail in a given way. The failure lasts
// until the next call of Fail. While the model fails, the forecaster keeps the closed-form
// forecasts, and counts the forecasts that the model did not make.
type Breakable interface {
	Fail(scenarios.ModelFailure)
}

// A faultyForecaster is the forecaster of a run. It fails while a fault requires it.
type faultyForecaster struct {
	inner   driver.Forecaster
	decider *decider
}

func (f faultyForecaster) Forecast(s *policy.Snapshot, m *policy.Memory) error {
	b, ok := f.inner.(Breakable)
	if ok {
		b.Fail(f.decider.modelFails)
	}
	err := f.inner.Forecast(s, m)
	if !ok && f.decider.modelFails != scenarios.ModelWorks {
		return errors.Join(err, errModel)
	}
	return err
}
