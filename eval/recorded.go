package eval

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/sim"
)

// A Recorded is the comparable part of an earlier report.
type Recorded struct {
	// Name identifies the report, for example the path of its file. Version is the version of the
	// program that wrote it.
	Name, Version string

	Policies []string
	Seeds    []uint64
	Cases    []CaseReport
	Runs     []OtherRun
}

// Record returns the report with the given cases and runs, without a name.
func Record(version string, policies []string, seeds []uint64, cases []CaseReport, runs []RunReport) (*Recorded,
	error) {
	out := &Recorded{Version: version, Policies: policies, Seeds: seeds, Cases: cases}
	for i := range runs {
		x, e := &runs[i], Evidence{}
		if k := CaseOf(cases, x.Scenario, x.Window); k != nil {
			e = k.Evidence
		}
		o, ok := x.other(e)
		if !ok {
			return nil, fmt.Errorf("runs[%d] lacks one of bill_usd, outage_cost_usd, outage_minutes, weather and hash", i)
		}
		out.Runs = append(out.Runs, o)
	}
	return out, nil
}

// CompareRecorded compares a report with an older one, over the runs that both contain. It runs no
// further seeds, so the result may remain undecided.
func CompareRecorded(older, newer *Recorded) (*Comparison, error) {
	cfg := &Config{Seeds: common(newer.Seeds, older.Seeds), Policies: common(newer.Policies, older.Policies)}
	against := Against{Other: recordedRuns(older.Runs), Program: older.Name, Version: older.Version}
	if older.Version == newer.Version {
		against.Program = "" // the same program drew the weather of both
	}
	cases := slices.Clone(newer.Cases)
	cases = slices.DeleteFunc(cases, func(k CaseReport) bool { return !older.has(k.Scenario) })
	for i := range cases {
		k := &cases[i]
		w := &scenarios.BoundScenario{Settings: scenarios.Settings{Start: policy.Time(k.From), Duration: k.Duration()}}
		cfg.Cases = append(cfg.Cases, Case{Scenario: k.Scenario, Window: k.Window, Bound: w})
	}
	switch {
	case !slices.Contains(cfg.Policies, OnDemand):
		return nil, fmt.Errorf("%w: %s or %s does not have the policy %s", ErrConfig, older.Name, newer.Name, OnDemand)
	case len(cfg.Seeds) == 0 || len(cfg.Cases) == 0:
		return nil, fmt.Errorf("%w: %s and %s have no seed or no scenario in common", ErrConfig, older.Name, newer.Name)
	}
	p := newPairing(cfg, against)
	for i := range cases {
		p.evidence[i] = cases[i].Evidence
	}
	rows, err := newer.rows(cfg)
	if err != nil {
		return nil, err
	}
	if err := p.add(context.Background(), rows, cfg.Seeds); err != nil {
		return nil, err
	}
	c := &Comparison{Other: older.Name, Version: older.Version, Seeds: p.seeds, Changes: p.changes(0),
		Warnings: append(leftOut(older, newer), p.warnings()...)}
	c.judge(len(p.strange) > 0 || p.missing)
	return c, nil
}

// common returns the elements of a that are also in b.
func common[T comparable](a, b []T) []T {
	return slices.DeleteFunc(slices.Clone(a), func(x T) bool { return !slices.Contains(b, x) })
}

// has reports whether r contains a scenario.
func (r *Recorded) has(scenario string) bool {
	return slices.ContainsFunc(r.Cases, func(k CaseReport) bool { return k.Scenario == scenario })
}

// leftOut describes what only one of the two reports contains.
func leftOut(a, b *Recorded) []string {
	var out []string
	for _, x := range [][2]*Recorded{{a, b}, {b, a}} {
		one, other := x[0], x[1]
		var names []string
		for _, p := range one.Policies {
			if !slices.Contains(other.Policies, p) {
				names = append(names, p)
			}
		}
		for i := range one.Cases {
			if k := &one.Cases[i]; !other.has(k.Scenario) && !slices.Contains(names, k.Scenario) {
				names = append(names, k.Scenario)
			}
		}
		if len(names) > 0 {
			out = append(out, "only "+one.Name+" has "+strings.Join(names, ", "))
		}
		if n := len(one.Seeds) - len(common(one.Seeds, other.Seeds)); n > 0 {
			out = append(out, fmt.Sprintf("only %s has %d of its %d seeds", one.Name, n, len(one.Seeds)))
		}
	}
	return out
}

// recordedRuns are the runs of the older report.
type recordedRuns []OtherRun

// Runs implements [Other]. It returns ErrRefused for a policy that the report does not contain.
func (r recordedRuns) Runs(_ context.Context, scenario string, policies []string, seeds []uint64) ([]OtherRun, error) {
	var out []OtherRun
	for _, name := range policies {
		n := len(out)
		for i := range r {
			if x := &r[i]; x.Scenario == scenario && x.Policy == name && slices.Contains(seeds, x.Seed) {
				out = append(out, *x)
			}
		}
		if len(out) == n {
			return nil, fmt.Errorf("%w: the older report does not have it", ErrRefused)
		}
	}
	return out, nil
}

// errRecord is wrapped by errors about invalid records of runs.
var errRecord = errors.New("a run that is recorded wrongly")

// rows returns the runs of r in the order of a comparison.
func (r *Recorded) rows(c *Config) ([]RunRow, error) {
	at := map[cellKey]*OtherRun{}
	for i := range r.Runs {
		x := &r.Runs[i]
		at[cellKey{x.Scenario, x.Window, x.Seed, x.Policy}] = x
	}
	rows, err := Cells(context.Background(), c, func(_ context.Context, j Job) (*sim.Result, error) {
		return recordedRun(at[cellKey{j.Scenario, j.Window, j.Seed, j.Policy}])
	})
	for i := range rows {
		if x := &rows[i]; errors.Is(x.Err, errRecord) {
			return nil, fmt.Errorf("%s: %s of %s with seed %d: %w", r.Name, x.Policy, x.Scenario, x.Seed, x.Err)
		}
	}
	return rows, err
}

// recordedRun returns the result of x. It returns an error if x is nil or has an error.
func recordedRun(x *OtherRun) (*sim.Result, error) {
	switch {
	case x == nil:
		return nil, errors.New("it is not in the report")
	case x.Err != "":
		return nil, errors.New(x.Err)
	}
	r := x.result()
	for _, d := range []struct {
		name, text string
		to         []byte
	}{{"weather", x.Weather, r.Weather[:]}, {"hash", x.Hash, r.Hash[:]}} {
		if n, err := hex.Decode(d.to, []byte(d.text)); err != nil || n != len(d.to) {
			return nil, fmt.Errorf("%w: its %s %q is not %d digits in hexadecimal", errRecord, d.name, d.text, 2*len(d.to))
		}
	}
	return r, nil
}
