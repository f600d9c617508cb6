package sim

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios"
)

// A recordedForecaster gives markets the hazard that the trace foretells for them.
// Everything else is the work of the forecaster in it, as are markets of which the
// trace says nothing now, and those that a model scored: it knows what the cluster
// met, and a trace does not.
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
