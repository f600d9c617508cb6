package sim

import (
	"slices"

	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim/controller"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/groups"
	"github.com/spotter-dev/spotter/sim/nodepools"
	"github.com/spotter-dev/spotter/sim/setup"
)

// faults starts and ends the faults of the scenario.
type faults struct {
	*setup.Run
	karpenter  *nodepools.Karpenter
	autoscaler *groups.Autoscaler
	controller *controller.Controller
}

// plan schedules the start and the end of the faults of the scenario. Zone outages, shortages, late
// notices, failing calls and price ramps are part of the weather and the prices; their events only
// mark them in the log.
func (fs *faults) plan() {
	for i := range fs.Scenario.Faults {
		f := &fs.Scenario.Faults[i]
		if end := f.At.Add(f.Duration); end > fs.Clock.Now && f.At < fs.Window.To {
			fs.Clock.Add(max(f.At, fs.Clock.Now), engine.FaultChanges, int32(i), 0, 0)
			fs.Clock.Add(end, engine.FaultChanges, int32(i), 1, 0)
		}
	}
}

// change starts or ends fault i.
func (fs *faults) change(i int, begins bool) {
	f := &fs.Scenario.Faults[i]
	amount, name := int64(0), f.Kind.String()+"-ends"
	if begins {
		amount, name = 1, f.Kind.String()+"-begins"
	}
	fs.Log.AddNamed(fs.Clock.Now, engine.RecordFault, f.Zone, f.Type, int64(f.Kind)<<1|amount, name)
	switch f.Kind {
	case scenarios.FaultSlowNodes:
		fs.SlowFactor = fs.slowest()
	case scenarios.FaultZonalShift:
		fs.shift()
	case scenarios.FaultModelFails:
		fs.controller.SetModel(fs.modelFailure())
	case scenarios.FaultControllerDown:
		fs.controller.SetDown(fs.ordered(f.Kind))
	}
}

// shift computes the zones that active zonal shifts avoid.
func (fs *faults) shift() {
	fs.Shifted = make([]bool, len(fs.Scenario.Zones))
	for i := range fs.Scenario.Faults {
		f := &fs.Scenario.Faults[i]
		if at := slices.Index(fs.Scenario.Zones, f.Zone); at >= 0 && fs.inForce(f, scenarios.FaultZonalShift) {
			fs.Shifted[at] = true
		}
	}
	fs.karpenter.ShiftZones()
	fs.autoscaler.Want()
}

// inForce reports whether f is of the given kind and active now. Faults may overlap.
func (fs *faults) inForce(f *scenarios.Fault, kind scenarios.FaultKind) bool {
	return f.Kind == kind && f.At <= fs.Clock.Now && fs.Clock.Now < f.At.Add(f.Duration)
}

// ordered reports whether a fault of the given kind is active now.
func (fs *faults) ordered(kind scenarios.FaultKind) bool {
	return slices.ContainsFunc(fs.Scenario.Faults, func(f scenarios.Fault) bool { return fs.inForce(&f, kind) })
}

// modelFailure returns how the model fails now, according to the first active fault of that kind.
func (fs *faults) modelFailure() scenarios.ModelFailure {
	for i := range fs.Scenario.Faults {
		f := &fs.Scenario.Faults[i]
		if fs.inForce(f, scenarios.FaultModelFails) {
			return max(f.Model, scenarios.ModelGone)
		}
	}
	return scenarios.ModelWorks
}

// slowest returns the greatest factor of the active slow-node faults, or 1 without one.
func (fs *faults) slowest() float64 {
	factor := 0.0
	for i := range fs.Scenario.Faults {
		f := &fs.Scenario.Faults[i]
		if fs.inForce(f, scenarios.FaultSlowNodes) {
			factor = max(factor, f.Factor)
		}
	}
	if factor == 0 {
		return 1
	}
	return factor
}
