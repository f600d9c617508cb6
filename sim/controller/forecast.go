package controller

import (
	"errors"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios"
)

// A recordedForecaster gives markets the hazard that the trace forecasts for them. The inner
// forecaster does everything else. It also forecasts markets for which the trace has no forecast
// now. Markets that a model scored keep its forecast, which knows what happened in the cluster; a
// trace does not.
type recordedForecaster struct {
	signals []scenarios.SignalCurve // by market
	inner   driver.Forecaster
}

func (f recordedForecaster) Forecast(s *policy.Snapshot, m *policy.Memory) error {
	for i := range s.Markets { // what was written into this snapshot two steps ago
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

// errModel is what a forecaster that is no [Breakable] answers while a fault says
// that the model fails.
var errModel = errors.New("the model fails (ordered by the scenario)")

// A Breakable is a forecaster with a model that fails on demand, in its own way and
// until that is revoked. Meanwhile it leaves the closed form's numbers, and counts what
// the model did not forecast.
type Breakable interface {
	Fail(scenarios.ModelFailure)
}

// A faultyForecaster is the run's forecaster, failing when a fault says so.
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
