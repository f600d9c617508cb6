package format

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/weather"
	"github.com/spotter-dev/spotter/sim"
	"github.com/spotter-dev/spotter/test/golden"
)

// A stressFake makes up results that differ by truth. On-demand pays $100; each other policy
// saves the percentage and has the minutes of outage that its function returns, both plus the
// seed. If the savings are negative, the run with seed 3 fails.
type stressFake map[string]func(truth string) (saved, outage float64)

func (f stressFake) run(ctx context.Context, j eval.Job) (*sim.Result, error) {
	r, err := fake{}.run(ctx, j)
	if err != nil || j.Policy == eval.OnDemand {
		r.Bill, r.OutageCost, r.OutageMinutes = 100*policy.Dollar, 0, 0
		return r, err
	}
	of := f[j.Policy]
	if of == nil {
		return nil, errCloud
	}
	saved, outage := of(j.Bound.Truth.String())
	if saved < 0 && j.Seed == 3 {
		return nil, errCloud
	}
	saved = max(saved, -saved)
	r.Bill, r.OutageCost = policy.Dollars(100-saved-float64(j.Seed)), 0
	r.OutageMinutes = int64(outage) + int64(j.Seed)
	return r, nil
}

// flat is a policy with the same savings and outage under every truth except those in but.
func flat(saved, outage float64, but map[string][2]float64) func(string) (float64, float64) {
	return func(truth string) (float64, float64) {
		if x, ok := but[truth]; ok {
			return x[0], x[1]
		}
		return saved, outage
	}
}

func stressConfig() eval.Config {
	c := shown()
	c.Policies = []string{eval.OnDemand, "spot", "static", "spotvortex", "portfolio", "static:share=0.2"}
	c.Cases, c.Seeds, c.Gates = cases(2, "web-week"), eval.DefaultSeeds(3), nil
	return c
}

var stressful = stressFake{
	"spot":             flat(70, 0, map[string][2]float64{"hazard-10": {10, 300}}),
	"static":           flat(20, 5, nil),
	"spotvortex":       flat(20, 2, map[string][2]float64{"alone": {30, 4}}),
	"portfolio":        flat(60, 0, map[string][2]float64{"slots-0.2": {45, 1}, "by-zone": {50, 9}}),
	"static:share=0.2": flat(80, 0, map[string][2]float64{"prices-2": {-80, 0}}),
}

// TestStressRanking: policies stand by the least that they save under a truth, equal
// ones by their worst outage, and one that lacks runs is last whatever it saves.
func TestStressRanking(t *testing.T) {
	s, err := eval.RunStress(context.Background(), stressConfig(), stressful.run)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	rows := s.Rows("web-week")
	for _, x := range rows {
		order = append(order, x.Policy)
	}
	if want := []string{"portfolio", "spotvortex", "static", "spot", "on-demand", "static:share=0.2"}; !slices.Equal(order, want) {
		t.Fatalf("the order is %v, want %v", order, want)
	}
	x := &rows[0]
	saved, outage := x.Worst()
	if saved.V != 47 || outage.V != 12 || s.Truths[x.Least].Name != "slots-0.2" || s.Truths[x.Longest].Name != "by-zone" {
		t.Errorf("portfolio saves at least %v under %v and is out for %v min under %v, want 47 under slots-0.2 and 12 under by-zone",
			saved.V, s.Truths[x.Least], outage.V, s.Truths[x.Longest])
	}
	// The seeds add 1 to 3 points and minutes: the median is at 2, the least saved at
	// seed 1, the most outage at seed 3.
	cell := x.Cells[x.Least]
	if run := s.Reports[x.Least].Runs[cell.LeastRun]; run.Seed != 1 || run.Bound.Truth.Name != "slots-0.2" {
		t.Errorf("the run that saves least has seed %d and truth %v", run.Seed, run.Bound.Truth)
	}
	if run := s.Reports[x.Longest].Runs[x.Cells[x.Longest].LongestRun]; run.Seed != 3 {
		t.Errorf("the run with the most outage has seed %d", run.Seed)
	}
	lines := strings.Join(stress{s}.worstLines(), "\n")
	for _, want := range []string{"--policy portfolio --seed 1 --from 2026-01-05T00:00:00Z --trace synthetic --truth slots-0.2", "--policy spot --seed 3 --from 2026-01-05T00:00:00Z --trace synthetic --truth hazard-10"} {
		if !strings.Contains(lines, want) {
			t.Errorf("no worst run is repeated by …%s:\n%s", want, lines)
		}
	}
	if s.ExitCode() != 3 || (stress{s}).missing() != 2 {
		t.Errorf("with %d runs missing the exit code is %d", (stress{s}).missing(), s.ExitCode())
	}
}

// TestStressMeetsEveryTruth: every run of the comparison is done under each of the
// truths, the model first, and policies that met different weather are refused.
func TestStressMeetsEveryTruth(t *testing.T) {
	c := stressConfig()
	c.Parallel = 1
	var met []string
	done, shown := 0, map[string]bool{}
	c.Progress = func(p eval.Progress) {
		shown[p.Under] = true
		if p.Step == eval.StepRuns {
			done++
		}
	}
	s, err := eval.RunStress(context.Background(), c, func(ctx context.Context, j eval.Job) (*sim.Result, error) {
		if len(met) == 0 || met[len(met)-1] != j.Bound.Truth.String() {
			met = append(met, j.Bound.Truth.String())
		}
		return fake{}.run(ctx, j)
	})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, truth := range weather.Truths() {
		want = append(want, truth.String())
	}
	if !slices.Equal(met, want) || met[0] != "modelled" {
		t.Errorf("runs are done under %v, want %v", met, want)
	}
	if n := len(want) * 2 * 3 * 6; (stress{s}).runs() != n || done != n || s.Stopped {
		t.Errorf("%d runs, %d shown as done, want %d", (stress{s}).runs(), done, n)
	}
	if !shown["truth 1 of 12, modelled"] || len(shown) != len(want) {
		t.Errorf("shown as under %v", shown)
	}
	_, err = eval.RunStress(context.Background(), c, func(ctx context.Context, j eval.Job) (*sim.Result, error) {
		r, err := fake{}.run(ctx, j)
		if j.Policy == "static" && j.Bound.Truth.Name == "slots-0.2" {
			r.Weather[5]++
		}
		return r, err
	})
	if !errors.Is(err, eval.ErrWeather) {
		t.Errorf("policies that met different weather under one truth give %v", err)
	}
}

// TestStressGates: a gate has to hold under every truth.
func TestStressGates(t *testing.T) {
	c := stressConfig()
	c.Policies = []string{eval.OnDemand, "spotvortex", "spot", "portfolio"}
	c.Gates = []eval.Gate{mustGate(t, "spot:net_savings_pct.median >= 50"), mustGate(t, "portfolio:net_savings_pct.median >= 40")}
	s, err := eval.RunStress(context.Background(), c, stressful.run)
	if err != nil {
		t.Fatal(err)
	}
	failed, passed := (stress{s}).gateLines()
	if s.ExitCode() != 1 || len(failed) != 1 || !strings.HasPrefix(failed[0], "hazard-10: ") || len(passed) != 2*len(s.Truths)-1 {
		t.Errorf("exit code %d, %d gates passed, failed %q", s.ExitCode(), len(passed), failed)
	}
}

// TestStressOutputs: every format has the table, and none is wider than its terminal.
func TestStressOutputs(t *testing.T) {
	c := stressConfig()
	c.Policies = slices.DeleteFunc(c.Policies, func(p string) bool { return p == "static:share=0.2" })
	c.Cases = cases(1, "web-week", "batch-night")
	c.Gates = []eval.Gate{mustGate(t, "spot:net_savings_pct.median >= 50")}
	s, err := eval.RunStress(context.Background(), c, stressful.run)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		file   string
		format Format
		width  int
	}{{"stress.txt", Table, 120}, {"stress-80.txt", Table, 80}, {"stress.md", Markdown, 0}} {
		var out bytes.Buffer
		if err := WriteStress(&out, s, x.format, Options{Width: x.width, Details: true}); err != nil {
			t.Fatal(err)
		}
		golden.Hold(t, "testdata/golden/"+x.file, out.String())
	}
	var out bytes.Buffer
	if err := WriteStress(&out, s, CSV, Options{}); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.Index(lines[0], "truth")
	if len(lines) != 1+(stress{s}).runs() || lines[1][at] != "modelled" || lines[len(lines)-1][at] != "slots-0.2" {
		t.Errorf("%d lines for %d runs, from %v to %v", len(lines), (stress{s}).runs(), lines[1][at], lines[len(lines)-1][at])
	}
	if err := WriteStress(&out, s, JUnit, Options{}); !errors.Is(err, eval.ErrConfig) {
		t.Errorf("a format that a stress has not gives %v", err)
	}
}

// TestStressJSON compares the keys of the JSON with its types, both ways, and a figure
// with the table.
func TestStressJSON(t *testing.T) {
	c := stressConfig()
	c.Gates = append(c.Gates, mustGate(t, "spot vs static in web-week:outage_delta.max<=0"), mustGate(t, "spot:bill_usd.low>0"))
	s, err := eval.RunStress(context.Background(), c, stressful.run)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := WriteStress(&out, s, JSON, Options{}); err != nil {
		t.Fatal(err)
	}
	var value map[string]any
	if err := json.Unmarshal(out.Bytes(), &value); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	walk(value, "", found)
	sameKeys(t, reflect.TypeFor[jsonStress](), found)
	first := value["scenarios"].([]any)[0].(map[string]any)["policies"].([]any)[0].(map[string]any)
	worst := first["worst"].(map[string]any)["net_savings_pct"].(map[string]any)
	if first["policy"] != "portfolio" || worst["value"] != 47.0 || worst["truth"] != "slots-0.2" || worst["seed"] != 1.0 {
		t.Errorf("the first policy is %v, at its worst %v", first["policy"], worst)
	}
}

// TestStressMarksWhoBreaksManifests: a policy that does not keep the manifests under one
// truth is marked, and behind those that keep them, however much it saves.
func TestStressMarksWhoBreaksManifests(t *testing.T) {
	runner := func(ctx context.Context, j eval.Job) (*sim.Result, error) {
		r, err := stressful.run(ctx, j)
		if r != nil && j.Policy == "portfolio" && j.Seed == 2 && j.Bound.Truth.Name == "alone" {
			r.Violations = []string{tooMuchSpot}
		}
		return r, err
	}
	s, err := eval.RunStress(context.Background(), stressConfig(), runner)
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, row := range (stress{s}).grid("web-week").Rows {
		order = append(order, row.Cells[0].Text)
	}
	if want := []string{"spotvortex", "static", "spot", "on-demand", "portfolio !", "static:share=0.2"}; !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
	var out bytes.Buffer
	if err := WriteStress(&out, s, Markdown, Options{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "| portfolio ! |") || !strings.Contains(out.String(),
		"! marks a policy that did not keep the manifests") {
		t.Errorf("nothing is marked in\n%s", out.String())
	}
}

// TestStressStopped: one that is stopped has the truths that it came to, says so in
// every format, and ends with 3.
func TestStressStopped(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	c := stressConfig()
	c.Parallel = 1
	s, err := eval.RunStress(ctx, c, func(_ context.Context, j eval.Job) (*sim.Result, error) {
		if j.Bound.Truth.Name == "hazard-3" && j.Seed == 2 {
			stop()
		}
		return fake{}.run(ctx, j)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Reports) != 3 || len(s.Truths) != 3 || !s.Stopped || s.ExitCode() != 3 ||
		(stress{s}).done() >= (stress{s}).runs() || (stress{s}).missing() != 0 {
		t.Errorf("%d truths, %d of %d runs done, %d missing, exit code %d", len(s.Truths), (stress{s}).done(),
			(stress{s}).runs(), (stress{s}).missing(), s.ExitCode())
	}
	for f, want := range map[Format]string{
		Table: "INCOMPLETE: stopped after ", Markdown: "INCOMPLETE: stopped after ", JSON: `"incomplete": true`, CSV: ",true,",
	} {
		var out bytes.Buffer
		if err := WriteStress(&out, s, f, Options{Width: 200}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s does not say %s:\n%s", f, want, out.String())
		}
	}
	before, end := context.WithCancel(context.Background())
	end()
	if _, err := eval.RunStress(before, c, fake{}.run); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped before anything is done: %v", err)
	}
}
