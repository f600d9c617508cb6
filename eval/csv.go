package eval

import (
	"encoding/csv"
	"encoding/hex"
	"io"
	"strconv"
	"strings"
)

// WriteCSV writes a line per run that was done: what was run, its figures, and what is
// needed to know where they come from and to repeat them. A figure that is
// unknown is empty; "worst" marks the worst run of a policy in a scenario, and
// "violations" says what of the manifests a run did not keep.
func (r *Report) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(csvHeading()); err != nil {
		return err
	}
	if err := r.csvLines(out); err != nil {
		return err
	}
	out.Flush()
	return out.Error()
}

// csvHeading is the first line.
func csvHeading() []string {
	heading := []string{"scenario", "window", "from", "to", "seed", "policy", "role"}
	for i := range metrics {
		heading = append(heading, metrics[i].Name)
	}
	return append(heading, "outage_longest_workload", "outage_longest_began", "outage_longest_cause", "worst", "violations", "error", "weather", "hash", "trace", "trace_from", "trace_to", "trace_prices", "trace_reclaims",
		"discount_1y", "discount_3y", "baseline", "gates", "run_count", "runs_done", "incomplete", "version", "command", "invocation", "truth")
}

// csvLines writes a line per run.
func (r *Report) csvLines(out *csv.Writer) error {
	for i := range r.Runs {
		if r.Runs[i].Unfinished() {
			continue
		}
		if err := out.Write(r.csvLine(i)); err != nil {
			return err
		}
	}
	return nil
}

func (r *Report) csvLine(i int) []string {
	run, c := &r.Runs[i], &r.Config
	line := []string{run.Scenario, strconv.Itoa(run.Window), run.World.Start.String(), run.end().String(),
		strconv.FormatUint(run.Seed, 10), run.Policy, c.role(run.Policy)}
	for m := range metrics {
		line = append(line, cell(&metrics[m], run.value(m)))
	}
	failure, weather, hash, violations := "", "", "", ""
	longest := [3]string{}
	if run.Err != nil {
		failure = run.Err.Error()
	} else {
		weather, hash = hex.EncodeToString(run.Result.Weather[:]), hex.EncodeToString(run.Result.Hash[:])
		violations = strings.Join(run.Result.Violations, "; ")
		if x := &run.Result.Longest; run.Result.Incidents > 0 {
			longest = [3]string{x.Workload, x.Began.String(), x.Cause.String()}
		}
	}
	line = append(line, longest[:]...)
	t := &run.World.Trace
	return append(line, strconv.FormatBool(r.isWorst(i)), violations, failure, weather, hash, t.Name, t.From.String(), t.To.String(), t.Prices(), r.reclaims(t),
		exact(c.Discount1y), exact(c.Discount3y), c.Baseline, r.verdict(run.Policy, run.Scenario), strconv.Itoa(len(r.Runs)), strconv.Itoa(r.Done()), strconv.FormatBool(r.Stopped), c.Version, r.command(i), c.Invocation, run.World.Truth.String())
}

// cell formats a value of m for a program.
func cell(m *Metric, v Value) string {
	switch {
	case !v.Known:
		return ""
	case m.truth():
		return strconv.FormatBool(v.V != 0)
	}
	return exact(v.V)
}

// truth reports whether m is true or false rather than a number.
func (m *Metric) truth() bool { return m.Unit == "yes/no" }

// isWorst reports whether run i is the worst of its policy in its scenario.
func (r *Report) isWorst(i int) bool {
	return r.group(r.Runs[i].Scenario).Policies[i%len(r.Config.Policies)].Worst == i
}

// verdict returns pass or fail for a policy that gates hold for in a scenario,
// else "".
func (r *Report) verdict(policy, scenario string) string {
	verdict := ""
	for i := range r.Gates {
		switch g := &r.Gates[i]; {
		case g.Policy != policy || g.Scenario != scenario:
		case !g.Pass:
			return "fail"
		default:
			verdict = "pass"
		}
	}
	return verdict
}
