package format

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
	"github.com/spotter-dev/spotter/test/golden"
)

// whatIf compares variants, each given as a change of a run's result, over a number of seeds.
func whatIf(t *testing.T, seeds int, variants ...func(*sim.Result)) *eval.WhatIf {
	t.Helper()
	c := eval.Config{Policies: []string{"as-is"}, Cases: cases(1, "cluster.yaml"), Seeds: eval.DefaultSeeds(seeds),
		Version: "v0.1.0", Invocation: "spotter whatif cluster.yaml"}
	var all []eval.Variant
	for i := range variants {
		v := eval.Variant{Name: fmt.Sprintf("pool/a x=%d", i), Changes: []string{fmt.Sprintf("pool/a.spec.x=%d", i)},
			Policy: "as-is", Cases: cases(1, "cluster.yaml")}
		v.Cases[0].Bound.Slots = i + 1
		all = append(all, v)
	}
	w, err := eval.RunWhatIf(t.Context(), c, all, func(_ context.Context, j eval.Job) (*sim.Result, error) {
		r := evaltest.Result(evaltest.Run{Scenario: "w", Bound: j.Bound, Policy: "static", Seed: j.Seed})
		if i := j.Bound.Slots; i > 0 {
			variants[i-1](r)
		}
		return r, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func same(*sim.Result) {}

// saves takes dollars a day off the bill, and adds evictions.
func saves(dollars float64, evictions int64) func(*sim.Result) {
	return func(r *sim.Result) {
		r.Bill -= policy.Dollars(dollars)
		r.VoluntaryEvictions += evictions
	}
}

// noise is more expensive under even seeds, cheaper under odd ones, and has outages.
func noise(r *sim.Result) {
	saves(0.5-float64(r.Seed%2), 0)(r)
	r.Incidents, r.OutageCost = 2, policy.Dollars(1)
}

// TestWhatIfOutputs compares outputs with files that were looked at.
func TestWhatIfOutputs(t *testing.T) {
	w := whatIf(t, 10, saves(1, 8), saves(-0.5, -1), noise, same)
	w.Variants[1].Demand = true
	sweep := whatIf(t, 10, saves(0, -1), saves(0.1, 0), saves(0.8, 2), saves(0.85, 8), saves(0.9, 20))
	sweep.Sweep = "pool/a x"
	few := whatIf(t, 3, saves(1, 8))
	for name, r := range map[string]*eval.WhatIf{"whatif": w, "whatif-sweep": sweep, "whatif-few": few} {
		var table, comment, data bytes.Buffer
		if err := WriteWhatIf(&table, r, name == "whatif", Options{Width: 160, Details: name != "whatif-few"}); err != nil {
			t.Fatal(err)
		}
		golden.Hold(t, "testdata/golden/"+name+".txt", table.String())
		if err := WriteWhatIfComment(&comment, r); err != nil {
			t.Fatal(err)
		}
		golden.Hold(t, "testdata/golden/"+name+".comment.md", comment.String())
		e := json.NewEncoder(&data)
		e.SetIndent("", "  ")
		if err := e.Encode(WhatIf(r)); err != nil {
			t.Fatal(err)
		}
		golden.Hold(t, "testdata/golden/"+name+".json", data.String())
	}
}

// TestWhatIfQuiet: what chance explains is no reason to begin a comment, and the mark is a good one
// only where nothing got worse.
func TestWhatIfQuiet(t *testing.T) {
	stopped := whatIf(t, 10, noiseOnly)
	stopped.Stopped = true
	for _, c := range []struct {
		name     string
		r        *eval.WhatIf
		quiet    bool
		headline string
	}{
		{"the same", whatIf(t, 10, same), true, "✓ Spotter: no change with pool/a x=0"},
		{"noise", whatIf(t, 10, noiseOnly), true, "✓ Spotter: "},
		{"noise with outages", whatIf(t, 10, noise), false, "⚠ Spotter: "},
		{"cheaper", whatIf(t, 10, saves(1, 0)), false, "✓ Spotter: −$30.42 ("},
		{"the best of two", whatIf(t, 10, same, saves(1, 0)), false, "✓ Spotter: −$30.42 ("},
		{"dearer", whatIf(t, 10, saves(-1, 0)), false, "⚠ Spotter: +$30.42 ("},
		{"too few seeds", whatIf(t, 2, saves(1, 0)), false, "✓ Spotter: −$30.42 ("},
		{"stopped", stopped, false, "⚠ Spotter: "},
	} {
		if got := whatIfHeadline(c.r); whatIfQuiet(c.r) != c.quiet || !strings.HasPrefix(got, c.headline) {
			t.Errorf("%s: quiet %v, %s; want %v, %s", c.name, whatIfQuiet(c.r), got, c.quiet, c.headline)
		}
	}
}

func noiseOnly(r *sim.Result) { saves(0.5-float64(r.Seed%2), 0)(r) }

// noiseBy saves dollars and adds evictions in the median, with noise by seed in both.
func noiseBy(dollars float64, evictions int64) func(*sim.Result) {
	return func(r *sim.Result) {
		luck := 1 - 2*int64(r.Seed%2)
		saves(dollars+2*float64(luck), evictions+50*luck)(r)
	}
}

// TestWhatIfKnee: the knee may be what there is, or nothing.
func TestWhatIfKnee(t *testing.T) {
	for _, c := range []struct {
		name     string
		variants []func(*sim.Result)
		want     string
	}{
		{"as it is", []func(*sim.Result){saves(-1, 0), saves(-0.9, -1), saves(0.1, 20)},
			"The knee is as-is: no value saves more without many more evictions."},
		{"chance", []func(*sim.Result){noiseBy(0.8, 1), noiseBy(0.9, 4)}, "There is no knee"},
		{"none", []func(*sim.Result){saves(-1, 4), saves(-2, 5)}, "There is no knee"},
	} {
		r := whatIf(t, 10, c.variants...)
		r.Sweep = "pool/a x"
		if got := WhatIfWords(r); !strings.HasPrefix(got[0], c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
