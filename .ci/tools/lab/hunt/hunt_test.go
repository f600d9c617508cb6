package hunt

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/sim"
)

func bind(t *testing.T) func(*scenarios.Scenario) (*scenarios.BoundScenario, error) {
	t.Helper()
	tr, err := trace.Synthetic()
	if err != nil {
		t.Fatal(err)
	}
	return func(sc *scenarios.Scenario) (*scenarios.BoundScenario, error) {
		return scenarios.Bind(sc, tr, scenarios.BindOptions{})
	}
}

// TestBounds: every vector encodes a scenario that can be read and bound without a warning
// and is within the recorded bounds.
func TestBounds(t *testing.T) {
	const length = 48 * time.Hour
	vectors := chance.LatinHypercube(uint64(time.Now().UnixNano()), "test", 60, dims)
	low, high := make(vector, dims), make(vector, dims)
	for i := range high {
		high[i] = 0.999
	}
	for _, v := range append(vectors, low, high) {
		p := decode(v, length)
		text := p.text("try", "", "A try.")
		sc, err := scenarios.Parse("try.yaml", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		w, err := bind(t)(sc)
		if err != nil || len(w.Warnings)+len(sc.Warnings) > 0 {
			t.Fatalf("%v, %q, %q\n%s", err, w.Warnings, sc.Warnings, text)
		}
		short := time.Duration(0)
		for _, f := range p.faults {
			if f.kind == "squeeze" && f.length >= shortLeast {
				short += f.length
			}
			if f.at+f.length > length || f.factor > rampMost {
				t.Errorf("fault %+v\n%s", f, text)
			}
		}
		if short.Hours() > shortMost*length.Hours() {
			t.Errorf("shortages of %v\n%s", short, text)
		}
		for _, s := range p.services {
			if float64(s.peak) > burstMost*float64(s.replicas)+0.5 || s.replicas < replicasLeast {
				t.Errorf("a service of %d to %d\n%s", s.replicas, s.peak, text)
			}
		}
	}
}

// hunted is a hunt in which the policy loses $1 where spot is short in the whole region, and
// nothing else matters.
func hunted(t *testing.T) Config {
	return Config{
		Policy: "portfolio", Goal: Savings, Rules: Rules(), Objective: 0.999, Seed: 7, Length: 24 * time.Hour, Tries: 40, Keep: 2, Least: 1, Name: "found", Invocation: "spotter scenario hunt",
		Bind: bind(t),
		NewRunner: func() eval.Runner {
			return func(_ context.Context, j eval.Job) (*sim.Result, error) {
				r := evaltest.Result(evaltest.Run{Scenario: "w", Bound: j.Bound, Policy: j.Policy, Seed: j.Seed})
				r.Bill, r.OutageCost = policy.Dollars(4), 0
				for _, f := range j.Bound.Faults {
					if j.Policy == "portfolio" && f.Kind == scenarios.FaultCapacityShortage && f.Zone == "" {
						r.Bill = policy.Dollars(5)
					}
				}
				return r, nil
			}
		},
	}
}

// TestHunt: what does harm is found, all else is taken away, and equal calls find the same.
func TestHunt(t *testing.T) {
	finds, err := Run(t.Context(), hunted(t))
	if err != nil || len(finds) == 0 {
		t.Fatalf("%d finds, %v", len(finds), err)
	}
	text := string(finds[0].Text)
	if strings.Count(text, "kind: squeeze") != 1 || strings.Contains(text, "zoneNumber") || strings.Contains(text, "price-ramp") ||
		strings.Count(text, "kind: Deployment")+strings.Count(text, "kind: CronJob") != 1 || !strings.Contains(text, "intensity: 1}") {
		t.Errorf("it is not small:\n%s", text)
	}
	for _, want := range []string{"# spotter scenario hunt\n",
		"# Gap: portfolio 25.0 points of the on-demand bill behind on-demand", "name: found-1"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if finds[0].Gap != 25 || finds[0].Interval == nil || finds[0].Interval.Low != 25 {
		t.Errorf("%+v", finds[0])
	}
	again, err := Run(t.Context(), hunted(t))
	if err != nil || len(again) != len(finds) || string(again[0].Text) != text {
		t.Errorf("equal calls differ: %v\n%s", err, again[0].Text)
	}
}

// TestNothing: where the policy is as good as the rules nothing is found.
func TestNothing(t *testing.T) {
	c := hunted(t)
	c.Policy = "leftover"
	if finds, err := Run(t.Context(), c); err != nil || len(finds) > 0 {
		t.Errorf("%d finds, %v", len(finds), err)
	}
}
