package evaltest

import (
	"cmp"
	"testing"

	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/sim"
)

// Embedded returns an embedded scenario on the trace that it names, else on the synthetic one, whose
// figures stay.
func Embedded(t testing.TB, name string) *scenarios.BoundScenario {
	t.Helper()
	sc, err := scenarios.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	tr, _, err := trace.EmbeddedNamed(cmp.Or(sc.Trace, "synthetic"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := scenarios.Bind(sc, tr, scenarios.BindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// Config is that of a run of w under the policy that spec writes, with the
// closed-form forecaster.
func Config(t testing.TB, w *scenarios.BoundScenario, spec string, seed uint64) sim.Config {
	t.Helper()
	prepared, err := sim.Prepare(w)
	if err != nil {
		t.Fatal(err)
	}
	p, err := registry.New(spec, registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := models.NewClosedForm(models.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	return sim.Config{Prepared: prepared, Policy: p, Forecaster: f, Seed: seed}
}
