package eval

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/scenarios/weather"
)

// A Stress is a comparison that is repeated under truths that its policies do not know. Package
// eval/format writes it.
type Stress struct {
	// Truths are the first of [weather.Truths], and Reports contains the comparison under each of
	// them.
	Truths  []weather.Truth
	Reports []*Report

	// Stopped reports whether the comparison was stopped before it was finished under all truths.
	Stopped bool
}

// StressSeeds is the default number of seeds of a stress test. With the default policies, web-week
// and gpu-training together take about five CPU-minutes.
const StressSeeds = 10

// RunStress runs the comparison of c under every truth. The cases of c must have the unchanged
// market model. Errors are those of [Run]. If ctx ends, it returns the truths that were started,
// with the finished part of the last one.
func RunStress(ctx context.Context, c Config, runner Runner) (*Stress, error) {
	c.Mine = nil // a stress test contains all runs
	s := &Stress{}
	for d, err := range Do(ctx, Truths(&c), runner) {
		if err != nil {
			return nil, err
		}
		r, err := d.report()
		if err != nil {
			return nil, err
		}
		s.Truths, s.Reports = append(s.Truths, weather.Truths()[len(s.Reports)]), append(s.Reports, r)
	}
	s.Stopped = ctx.Err() != nil
	return s, nil
}

// Truths returns the comparisons of a stress test: c under every truth of [weather.Truths], in
// order.
func Truths(c *Config) []Config {
	var out []Config
	truths := weather.Truths()
	for i, truth := range truths {
		under := *c
		under.Cases = slices.Clone(c.Cases)
		for k := range under.Cases {
			if of := &under.Cases[k]; of.Bound != nil {
				of.Bound = of.Bound.Under(truth)
			}
		}
		if c.Progress != nil {
			under.Progress = func(g Progress) {
				g.Under = fmt.Sprintf("truth %d of %d, %v", i+1, len(truths), truth)
				c.Progress(g)
			}
		}
		out = append(out, under)
	}
	return out
}

// ExitCode returns the exit code of a program that made the stress test: the highest of its
// reports, and at least 3 if it was stopped.
func (s *Stress) ExitCode() int {
	code := 0
	if s.Stopped {
		code = 3
	}
	for _, r := range s.Reports {
		code = max(code, r.ExitCode())
	}
	return code
}

// A StressRow describes one policy in one scenario.
type StressRow struct {
	// Name of the policy, as written in the configuration.
	Policy string `json:"policy"`
	// on-demand, baseline or compared.
	Role string `json:"role"`
	// Result of the policy under each truth.
	Cells []StressCell `json:"truths"`
	// Worst results of the policy over all truths.
	WorstRuns StressWorst `json:"worst"`
	// Number of runs under all truths that violate the manifests. A policy with such runs is never
	// first.
	Violating int `json:"violating_runs"`

	// Least is the index of the truth under which the policy has the lowest savings, Longest the
	// index of the truth under which one of its runs has the most outage minutes; the first if
	// several are equal, and -1 if unknown.
	Least   int `json:"-"`
	Longest int `json:"-"`
}

// A StressCell describes one policy under one truth.
type StressCell struct {
	Truth string `json:"truth"`
	// Median over runs.
	Saved Value `json:"net_savings_pct,omitzero"`
	// Maximum over runs.
	Outage Value `json:"outage_minutes,omitzero"`
	// Number of runs that failed.
	Missing int `json:"missing"`

	// LeastRun and LongestRun are indexes in the report's Runs of the run with the lowest savings
	// and of the run with the most outage minutes. Among equal runs it is the one that is worse in
	// the other metric, then the first. They are -1 if unknown.
	LeastRun   int `json:"-"`
	LongestRun int `json:"-"`
}

// A StressWorst contains the worst results of a policy over all truths.
type StressWorst struct {
	// The lowest of the medians, and the run with the lowest savings under that truth.
	Saved *StressRun `json:"net_savings_pct,omitempty"`
	// The most outage minutes of a run, and that run.
	Outage *StressRun `json:"outage_minutes,omitempty"`
}

// A StressRun is a value and the run that demonstrates it.
type StressRun struct {
	Value  float64 `json:"value"`
	Truth  string  `json:"truth"`
	Window int     `json:"window"`
	Seed   uint64  `json:"seed"`
	// Command that repeats the run.
	Command string `json:"command"`
}

// shows returns value v of run i under a truth.
func (s *Stress) shows(truth, i int, v Value) *StressRun {
	p := s.Reports[truth].Place(i)
	return &StressRun{v.V, s.Truths[truth].String(), p.Window, p.Seed, p.Command}
}

// Scenarios returns the distinct scenarios of the comparison, in order.
func (s *Stress) Scenarios() (names []string) {
	for _, k := range s.Reports[0].Config.Cases {
		if !slices.Contains(names, k.Scenario) {
			names = append(names, k.Scenario)
		}
	}
	return names
}

// Rows returns the policies in a scenario, best first: by the savings under the truth that is worst
// for the policy, then by fewer outage minutes of its worst run, then in the order of the
// comparison. Policies that violate the manifests come after those that comply, and policies with
// unknown values under some truth after all others.
func (s *Stress) Rows(scenario string) []StressRow {
	var rows []StressRow
	for i, p := range s.Reports[0].Config.Policies {
		row := StressRow{Policy: p, Role: s.Reports[0].Config.Role(p), Least: -1, Longest: -1}
		for t, r := range s.Reports {
			row.Violating += r.Group(scenario).Policies[i].Violating
			c := r.stressCell(scenario, p)
			c.Truth = s.Truths[t].String()
			row.Cells = append(row.Cells, c)
			if c.Saved.Known && (row.Least < 0 || c.Saved.V < row.Cells[row.Least].Saved.V) {
				row.Least = t
			}
			if c.Outage.Known && (row.Longest < 0 || c.Outage.V > row.Cells[row.Longest].Outage.V) {
				row.Longest = t
			}
		}
		saved, outage := row.Worst()
		if row.Least >= 0 {
			row.WorstRuns.Saved = s.shows(row.Least, row.Cells[row.Least].LeastRun, saved)
		}
		if row.Longest >= 0 {
			row.WorstRuns.Outage = s.shows(row.Longest, row.Cells[row.Longest].LongestRun, outage)
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b StressRow) int {
		if c := cmp.Compare(b.known(), a.known()); c != 0 {
			return c
		}
		if a.Violating > 0 != (b.Violating > 0) {
			return cmp.Compare(min(a.Violating, 1), min(b.Violating, 1))
		}
		saved, outage := a.Worst()
		otherSaved, otherOutage := b.Worst()
		return cmp.Or(cmp.Compare(otherSaved.V, saved.V), cmp.Compare(outage.V, otherOutage.V))
	})
	return rows
}

// known returns the number of truths for which all values of the row are known.
func (x *StressRow) known() (n int) {
	for i := range x.Cells {
		if c := &x.Cells[i]; c.Saved.Known && c.Outage.Known && c.Missing == 0 {
			n++
		}
	}
	return n
}

// Worst returns the lowest savings and the most outage minutes under any truth, unknown if they are
// unknown under all truths.
func (x *StressRow) Worst() (saved, outage Value) {
	if x.Least >= 0 {
		saved = x.Cells[x.Least].Saved
	}
	if x.Longest >= 0 {
		outage = x.Cells[x.Longest].Outage
	}
	return saved, outage
}

// stressCell summarizes the runs of a policy in a scenario.
func (r *Report) stressCell(scenario, policy string) StressCell {
	c := StressCell{LeastRun: -1, LongestRun: -1}
	saved, outage := mustMetric("net_savings_pct"), mustMetric("outage_minutes")
	var values []float64
	for i := range r.Runs {
		run := &r.Runs[i]
		if run.Scenario != scenario || run.Policy != policy {
			continue
		}
		if run.Err != nil {
			if !run.Unfinished() {
				c.Missing++
			}
			continue
		}
		s, o := run.value(saved), run.value(outage)
		if s.Known {
			values = append(values, s.V)
			if c.LeastRun < 0 || worseRun(s.V, o.V, r.Runs[c.LeastRun].value(saved).V, r.Runs[c.LeastRun].value(outage).V) {
				c.LeastRun = i
			}
		}
		if o.Known && (c.LongestRun < 0 || worseRun(-o.V, -s.V, -r.Runs[c.LongestRun].value(outage).V,
			-r.Runs[c.LongestRun].value(saved).V)) {
			c.LongestRun = i
			c.Outage = o
		}
	}
	if len(values) > 0 {
		c.Saved = Value{stats.Median(values), true}
	}
	return c
}

// worseRun reports whether (a, b) is worse than (otherA, otherB): a is lower, or equal with a
// higher b.
func worseRun(a, b, otherA, otherB float64) bool {
	return a < otherA || a == otherA && b > otherB
}
