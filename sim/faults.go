package sim

import (
	"errors"
	"slices"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim/engine"
)

// errModel is what a forecaster that is no [Breakable] answers while a fault says
// that the model fails.
var errModel = errors.New("the model fails (ordered by the scenario)")

// A Breakable is a forecaster with a model that fails on demand, in its own way and
// until that is revoked. Meanwhile it leaves the closed form's numbers, and counts what
// the model did not forecast.
type Breakable interface {
	Fail(scenarios.ModelFailure)
}

// faults are those that the scenario orders and that are in force.
type faults struct {
	*environment
	consolidation *consolidation
	decider       *decider
	karpenter     *karpenterProvisioner

	down       bool // the controller
	slowFactor float64
	modelDown  scenarios.ModelFailure
}

// plan plans the begin and the end of what the scenario orders. Outages,
// shortages, late notices, failing calls and price ramps are in the weather and
// the prices; the event only marks them in the log.
func (fs *faults) plan() {
	for i := range fs.scenario.Faults {
		f := &fs.scenario.Faults[i]
		if end := f.At.Add(f.Duration); end > fs.q.Now && f.At < fs.window.To {
			fs.q.Add(max(f.At, fs.q.Now), engine.FaultChanges, int32(i), 0, 0)
			fs.q.Add(end, engine.FaultChanges, int32(i), 1, 0)
		}
	}
}

// change begins or ends fault i.
func (fs *faults) change(i int, begins bool) {
	f := &fs.scenario.Faults[i]
	amount, name := int64(0), f.Kind.String()+"-ends"
	if begins {
		amount, name = 1, f.Kind.String()+"-begins"
	}
	fs.log.AddNamed(fs.q.Now, engine.RecordFault, f.Zone, f.Type, int64(f.Kind)<<1|amount, name)
	switch f.Kind {
	case scenarios.FaultSlowNodes:
		fs.slowFactor = fs.slowest()
	case scenarios.FaultZonalShift:
		fs.shift()
	case scenarios.FaultModelFails:
		fs.modelDown = fs.modelFailure()
	case scenarios.FaultControllerDown:
		was := fs.down
		fs.down = fs.ordered(f.Kind)
		if was && !fs.down {
			// A new process: nothing is left but what was saved.
			fs.decider.driver = fs.decider.newDriver(fs.decider.saved)
			fs.decider.plan(fs.q.Now)
		}
	}
}

// shift finds the zones from which zonal shifts in force lead away. Karpenter offers
// nothing there any more, and looks at its nodes again (base_resolver.go, where offerings
// are available, and instance.go, Delete, of karpenter-provider-aws).
func (fs *faults) shift() {
	fs.shifted = make([]bool, len(fs.scenario.Zones))
	for i := range fs.scenario.Faults {
		f := &fs.scenario.Faults[i]
		if at := slices.Index(fs.scenario.Zones, f.Zone); at >= 0 && f.Kind == scenarios.FaultZonalShift && f.At <= fs.q.Now && fs.q.Now < f.At.Add(f.Duration) {
			fs.shifted[at] = true
		}
	}
	fs.consolidation.reread = true
	fs.consolidation.offers.forget()
	fs.consolidation.noteChange()
	fs.karpenter.want()
}

// ordered reports whether a fault of kind is in force now. Faults may overlap.
func (fs *faults) ordered(kind scenarios.FaultKind) bool {
	return slices.ContainsFunc(fs.scenario.Faults, func(f scenarios.Fault) bool {
		return f.Kind == kind && f.At <= fs.q.Now && fs.q.Now < f.At.Add(f.Duration)
	})
}

// modelFailure returns how the model fails now, by the first fault in force that says so.
func (fs *faults) modelFailure() scenarios.ModelFailure {
	for i := range fs.scenario.Faults {
		f := &fs.scenario.Faults[i]
		if f.Kind == scenarios.FaultModelFails && f.At <= fs.q.Now && fs.q.Now < f.At.Add(f.Duration) {
			return max(f.Model, scenarios.ModelGone)
		}
	}
	return scenarios.ModelWorks
}

// slowest returns the greatest factor of the slow intervals in force, 1 without.
func (fs *faults) slowest() float64 {
	factor := 0.0
	for i := range fs.scenario.Faults {
		f := &fs.scenario.Faults[i]
		if f.Kind == scenarios.FaultSlowNodes && f.At <= fs.q.Now && fs.q.Now < f.At.Add(f.Duration) {
			factor = max(factor, f.Factor)
		}
	}
	if factor == 0 {
		return 1
	}
	return factor
}

// A faultyForecaster is the run's forecaster, failing when a fault says so.
type faultyForecaster struct {
	inner  driver.Forecaster
	faults *faults
}

func (f faultyForecaster) Forecast(s *policy.Snapshot, m *policy.Memory) error {
	b, ok := f.inner.(Breakable)
	if ok {
		b.Fail(f.faults.modelDown)
	}
	err := f.inner.Forecast(s, m)
	if !ok && f.faults.modelDown != scenarios.ModelWorks {
		return errors.Join(err, errModel)
	}
	return err
}
