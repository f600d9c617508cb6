package sweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/sim"
)

const planText = `apiVersion: spotter.dev/v1alpha1
kind: Sweep
metadata: {name: shares}
spec:
  scenario: shop
  policy: static
  parameters:
    - {parameter: share, values: [0.1, 0.5, 0.52, 0.9]}
`

func read(t *testing.T, text string) *Plan {
	t.Helper()
	p, err := ReadPlan("plan.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestReadPlanErrors: what is wrong is named with file, line, field and value.
func TestReadPlanErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"kind: Sweep", "kind: Swep", `plan.yaml:2: field "kind": "Swep", want Sweep`},
		{"v1alpha1", "v1", `field "apiVersion": "spotter.dev/v1", want`},
		{"{name: shares}", "{}", `field "metadata.name": must be set`},
		{"scenario: shop", "scenario: ''", `field "spec.scenario": must be set`},
		{"policy: static", "polcy: static", `plan.yaml:6: field "spec.polcy": unknown key; did you mean "policy"?`},
		{"policy: static", "policy: static\n  rungs: 4", `field "spec.rungs": 4 is not from 0 to 3`},
		{"policy: static", "policy: static\n  fresh: -1", `field "spec.fresh": -1 is not from`},
		{"policy: static", "policy: static\n  points: 4", `field "spec.points": 4: a grid has as many`},
		{"policy: static", "policy: static\n  method: random", `field "spec.points": 0 is not from 2`},
		{"policy: static", "policy: static\n  method: best", `field "spec.method": "best" is not grid`},
		{"values: [0.1, 0.5, 0.52, 0.9]", "range: 2..1", `plan.yaml:8: field "spec.parameters[0].range": "2..1": 2 is not below 1`},
		{"values: [0.1, 0.5, 0.52, 0.9]", "", `field "spec.parameters[0].values": must be set, or else range`},
		{"values: [0.1, 0.5, 0.52, 0.9]", "values: [0.1], range: 1..2", `"1..2" is set together with 1 values`},
		{"parameter: share, ", "", `field "spec.parameters[0].set": must be set, or else parameter`},
		{"0.52", "0.5", `field "spec.parameters[0].values": "0.5" is listed twice`},
		{"parameter: share", "parameter: 'share=1:x'", `"share=1:x" is not the name of a parameter`},
		{"parameter: share", "set: a/b.c, parameter: share", `"a/b.c" is set together with parameter "share"`},
		{"  parameters:", "  conditions:\n    - {parameter: x, values: [1]}\n  parameters:", `field "spec.conditions[0].set": must be set`},
		{"  parameters:", "  parameters:\n    - {parameter: x, range: 1..100@35}\n    - {parameter: y, range: 1..100@35}",
			"candidates, more than 1000"},
	} {
		_, err := ReadPlan("plan.yaml", []byte(strings.Replace(planText, c.old, c.new, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.new, err, c.want)
		}
	}
}

// TestCandidates: a grid has every combination, and the other methods the configured number of
// points. A Latin hypercube covers the parts of each range evenly.
func TestCandidates(t *testing.T) {
	two := strings.Replace(planText, "    - {parameter", "    - {set: nodepool/a.spec.after, range: 10s..80s}\n    - {parameter", 1)
	var names []string
	for _, c := range read(t, strings.Replace(two, "10s..80s", "10s..80s@2", 1)).Spec.Candidates() {
		names = append(names, Name(c))
	}
	if len(names) != 8 || names[1] != "nodepool/a after=10s, share=0.5" || names[7] != "nodepool/a after=80s, share=0.9" {
		t.Errorf("%q", names)
	}
	for _, method := range []Method{Random, Latin} {
		s := &read(t, strings.Replace(two, "policy: static", "policy: static\n  points: 8\n  method: "+string(method), 1)).Spec
		all := s.Candidates()
		count := map[string]int{}
		for _, c := range all {
			count[c[1].Value]++
		}
		even := count["0.1"] == 2 && count["0.5"] == 2 && count["0.52"] == 2 && count["0.9"] == 2
		if len(all) != 8 || even != (method == Latin) {
			t.Errorf("%s: %d candidates, of shares %v", method, len(all), count)
		}
		if again := s.Candidates(); fmt.Sprint(again) != fmt.Sprint(all) {
			t.Errorf("%s: equal seeds give %v and %v", method, all, again)
		}
	}
}

// memory is a store that counts.
type memory struct {
	mu   sync.Mutex
	runs map[string]*sim.Result
	hits int
}

func (m *memory) Get(key string) (*sim.Result, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.runs[key]
	if ok {
		m.hits++
	}
	return r, ok
}

func (m *memory) Put(key string, r *sim.Result) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runs[key] = r
	return nil
}

// keyOf returns the keys of a program.
func keyOf(program string) func() func(eval.Job) (string, error) {
	return func() func(eval.Job) (string, error) {
		return func(j eval.Job) (string, error) { return fmt.Sprint(program, j.Policy, j.Seed), nil }
	}
}

// shares is a sweep in which a share of s saves 50·s % of a bill of $4.80 and a little luck.
func shares(t *testing.T, store *memory, done *[]eval.Job, mu *sync.Mutex) Config {
	return Config{
		Plan: read(t, planText), Scenario: "shop", Seeds: eval.DefaultSeeds(12), Store: store, NewKey: keyOf("this"),
		Bind: func([]byte) ([]eval.Case, error) {
			return []eval.Case{{Scenario: "shop", Bound: evaltest.Scenario("shop", 0)}}, nil
		},
		Check: func(string, []eval.Case) error { return nil },
		NewRunner: func() eval.Runner {
			return func(_ context.Context, j eval.Job) (*sim.Result, error) {
				mu.Lock()
				*done = append(*done, j)
				mu.Unlock()
				r := evaltest.Result(evaltest.Run{Scenario: "shop", Bound: j.Bound, Policy: j.Policy, Seed: j.Seed})
				share := 0.5
				if _, text, ok := strings.Cut(j.Policy, "share="); ok {
					share, _ = strconv.ParseFloat(text, 64)
				}
				if j.Policy == eval.OnDemand {
					share = 0
				}
				luck := chance.New(j.Seed, j.Policy, "luck").Float()
				r.Bill, r.OutageCost = policy.Dollars(4.8*(1-0.5*share)+0.1*luck), 0
				return r, nil
			}
		},
	}
}

// TestSweep: what is worse beyond chance drops out, the best is chosen, and judged by seeds that
// had no part in it.
func TestSweep(t *testing.T) {
	var mu sync.Mutex
	var done []eval.Job
	store := &memory{runs: map[string]*sim.Result{}}
	c := shares(t, store, &done, &mu)
	r, err := Sweep(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	x := &r.Races[0]
	if got := x.Candidates[x.Chosen].Name; got != "share=0.9" {
		t.Errorf("%s is chosen", got)
	}
	for _, row := range x.Candidates {
		if row.Dropped != (row.Name != "share=0.9") || row.Rungs != 1 {
			t.Errorf("%s: dropped %v in rung %d", row.Name, row.Dropped, row.Rungs)
		}
	}
	if i := x.Fresh.Change.MedianInterval; i == nil || i.Low < 18 || i.High > 22 {
		t.Errorf("the interval on fresh seeds is %+v, want about 20 points", i)
	}
	if len(x.FreshSeeds) != 20 || slices.ContainsFunc(x.FreshSeeds, func(s uint64) bool {
		return slices.Contains(x.Seeds,
			s)
	}) || x.FreshSeeds[0] != 49 {
		t.Errorf("seeds %v, fresh %v", x.Seeds, x.FreshSeeds)
	}
	// On-demand and five candidates, and then on-demand, the chosen one and what changes nothing.
	if want := 6*12 + 3*20; len(done) != want {
		t.Errorf("%d runs, want %d", len(done), want)
	}
	if len(r.Runs) != 5*12+2*20 {
		t.Errorf("%d rows", len(r.Runs))
	}
	var first, second bytes.Buffer
	if err := r.WriteParquet(&first); err != nil {
		t.Fatal(err)
	}
	done = nil
	again, err := Sweep(t.Context(), c)
	if err != nil || len(done) > 0 {
		t.Fatalf("with all kept %d are run again: %v", len(done), err)
	}
	if err := again.WriteParquet(&second); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("what was kept gives other bytes: %v", err)
	}
	c.NewKey = keyOf("other")
	if _, err := Sweep(t.Context(), c); err != nil || len(done) == 0 {
		t.Errorf("another program takes the runs of this one: %v", err)
	}
}

// TestSweepKeepsWhatChanceExplains: if all candidates do the same, none drops out.
func TestSweepKeepsWhatChanceExplains(t *testing.T) {
	var mu sync.Mutex
	var done []eval.Job
	c := shares(t, &memory{runs: map[string]*sim.Result{}}, &done, &mu)
	c.Plan = read(t, strings.Replace(planText, "[0.1, 0.5, 0.52, 0.9]", "[0.5, 0.501, 0.502]", 1))
	r, err := Sweep(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	x := &r.Races[0]
	for _, row := range x.Candidates {
		if row.Dropped || row.Rungs != 3 {
			t.Errorf("%s: dropped %v in rung %d", row.Name, row.Dropped, row.Rungs)
		}
	}
	if len(x.Seeds) != 48 {
		t.Errorf("%d seeds, want 12, as many more, and twice as many more", len(x.Seeds))
	}
}

// TestSweepErrors: what cannot be run is said before the first run, and a stop is no result.
func TestSweepErrors(t *testing.T) {
	var mu sync.Mutex
	var done []eval.Job
	c := shares(t, &memory{runs: map[string]*sim.Result{}}, &done, &mu)
	c.Check = func(policy string, _ []eval.Case) error {
		if strings.Contains(policy, "0.9") {
			return errors.New("no such share")
		}
		return nil
	}
	if _, err := Sweep(t.Context(), c); err == nil || !strings.Contains(err.Error(),
		"plan.yaml: spec.parameters: share=0.9: no such share") || len(done) > 0 {
		t.Errorf("%v after %d runs", err, len(done))
	}
	c = shares(t, &memory{runs: map[string]*sim.Result{}}, &done, &mu)
	ctx, stop := context.WithCancel(t.Context())
	c.Progress = func(_ string, done, _ int) {
		if done > 10 {
			stop()
		}
	}
	if r, err := Sweep(ctx, c); !errors.Is(err, context.Canceled) || r != nil {
		t.Errorf("stopped: %v, %v", r, err)
	}
}
