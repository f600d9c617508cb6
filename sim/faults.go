package sim

import (
	"errors"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// errModel is what a forecaster that is no [Breakable] answers while a fault says
// that the model fails.
var errModel = errors.New("the model fails (ordered by the scenario)")

// A Breakable is a forecaster with a model that fails when it is told to, in its own
// way and until it is told otherwise. Meanwhile it leaves the closed form's numbers,
// and counts what was not answered.
type Breakable interface {
	Fail(scenarios.ModelFailure)
}

// planFaults plans the begin and the end of what the scenario orders. Outages,
// squeezes, late notices, failing calls and price ramps are in the weather and
// the prices; the event only marks them in the log.
func (r *run) planFaults() {
	for i := range r.world.Faults {
		f := &r.world.Faults[i]
		if end := f.At.Add(f.Duration); end > r.q.now && f.At < r.window.To {
			r.q.add(max(f.At, r.q.now), evFault, int32(i), 0, 0)
			r.q.add(end, evFault, int32(i), 1, 0)
		}
	}
}

// fault begins or ends fault i.
func (r *run) fault(i int, begins bool) {
	f := &r.world.Faults[i]
	amount := int64(0)
	if begins {
		amount = 1
	}
	r.log.add(r.q.now, logFault, f.Zone, f.Type, int64(f.Kind)<<1|amount)
	switch f.Kind {
	case scenarios.FaultSlowNodes:
		r.slowFactor = r.slowest()
	case scenarios.FaultModelFails:
		r.modelDown = r.modelFailure()
	case scenarios.FaultControllerDown:
		was := r.down
		r.down = r.ordered(f.Kind)
		if was && !r.down {
			// A new process: nothing is left but what was saved.
			r.driver = r.newDriver(r.saved)
			r.planStep(r.q.now)
		}
	}
}

// ordered reports whether a fault of kind is in force now. Faults may overlap.
func (r *run) ordered(kind scenarios.FaultKind) bool {
	return slices.ContainsFunc(r.world.Faults, func(f scenarios.Fault) bool {
		return f.Kind == kind && f.At <= r.q.now && r.q.now < f.At.Add(f.Duration)
	})
}

// modelFailure returns how the model fails now, by the first fault in force that says so.
func (r *run) modelFailure() scenarios.ModelFailure {
	for i := range r.world.Faults {
		f := &r.world.Faults[i]
		if f.Kind == scenarios.FaultModelFails && f.At <= r.q.now && r.q.now < f.At.Add(f.Duration) {
			return max(f.Model, scenarios.ModelGone)
		}
	}
	return scenarios.ModelWorks
}

// slowest returns the greatest factor of the slow spells in force, 1 without.
func (r *run) slowest() float64 {
	factor := 0.0
	for i := range r.world.Faults {
		f := &r.world.Faults[i]
		if f.Kind == scenarios.FaultSlowNodes && f.At <= r.q.now && r.q.now < f.At.Add(f.Duration) {
			factor = max(factor, f.Factor)
		}
	}
	if factor == 0 {
		return 1
	}
	return factor
}

// A faultyForecaster is the run's forecaster, failing when a fault says so.
type faultyForecaster struct{ r *run }

func (f faultyForecaster) Forecast(s *policy.Snapshot, m *policy.Memory) error {
	b, ok := f.r.cfg.Forecaster.(Breakable)
	if ok {
		b.Fail(f.r.modelDown)
	}
	err := f.r.cfg.Forecaster.Forecast(s, m)
	if !ok && f.r.modelDown != scenarios.ModelWorks {
		return errors.Join(err, errModel)
	}
	return err
}
