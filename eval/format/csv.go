package format

import (
	"encoding/csv"
	"encoding/hex"
	"io"
	"strconv"
	"strings"

	"github.com/spotter-dev/spotter/eval"
)

// writeCSV writes a line per run that was done: what was run, its figures, and what is
// needed to know where they come from and to repeat them. A figure that is
// unknown is empty; "worst" marks the worst run of a policy in a scenario, and
// "violations" says what of the manifests a run did not keep.
func writeCSV(w io.Writer, r *eval.Report) error {
	out := csv.NewWriter(w)
	if err := out.Write(csvHeading()); err != nil {
		return err
	}
	if err := csvLines(r, out); err != nil {
		return err
	}
	out.Flush()
	return out.Error()
}

// csvHeading is the first line.
func csvHeading() []string {
	heading := []string{"scenario", "window", "from", "to", "seed", "policy", "role"}
	for _, m := range eval.Metrics() {
		heading = append(heading, m.Name)
	}
	return append(heading, "outage_longest_workload", "outage_longest_began", "outage_longest_cause", "worst", "violations", "error", "weather", "hash", "trace", "trace_from", "trace_to", "trace_prices", "trace_reclaims",
		"discount_1y", "discount_3y", "baseline", "gates", "run_count", "runs_done", "incomplete", "version", "command", "invocation", "truth")
}

// csvLines writes a line per run.
func csvLines(r *eval.Report, out *csv.Writer) error {
	for i := range r.Runs {
		if r.Runs[i].Unfinished() {
			continue
		}
		if err := out.Write(csvLine(r, i)); err != nil {
			return err
		}
	}
	return nil
}

func csvLine(r *eval.Report, i int) []string {
	run, c := &r.Runs[i], &r.Config
	line := []string{run.Scenario, strconv.Itoa(run.Window), run.Bound.Start.String(), run.End().String(),
		strconv.FormatUint(run.Seed, 10), run.Policy, role(c, run.Policy)}
	for _, m := range eval.Metrics() {
		line = append(line, cell(&m, run.Value(m.Name)))
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
	t := &run.Bound.Trace
	return append(line, strconv.FormatBool(isWorst(r, i)), violations, failure, weather, hash, t.Name, t.From.String(), t.To.String(), t.Prices(), reclaims(r, t),
		exact(c.Discount1y), exact(c.Discount3y), c.Baseline, gatesOf(r, run.Policy, run.Scenario), strconv.Itoa(len(r.Runs)), strconv.Itoa(r.Done()), strconv.FormatBool(r.Stopped), c.Version, r.Command(i), c.Invocation, run.Bound.Truth.String())
}

// cell formats a value of m for a program.
func cell(m *eval.Metric, v eval.Value) string {
	switch {
	case !v.Known:
		return ""
	case m.YesNo():
		return strconv.FormatBool(v.V != 0)
	}
	return exact(v.V)
}

// isWorst reports whether run i is the worst of its policy in its scenario.
func isWorst(r *eval.Report, i int) bool {
	return r.Group(r.Runs[i].Scenario).Policies[i%len(r.Config.Policies)].Worst == i
}

// gatesOf returns pass or fail for a policy that gates hold for in a scenario, else
// "".
func gatesOf(r *eval.Report, policy, scenario string) string {
	result := ""
	for i := range r.Gates {
		switch g := &r.Gates[i]; {
		case g.Policy != policy || g.Scenario != scenario:
		case !g.Pass:
			return "fail"
		default:
			result = "pass"
		}
	}
	return result
}

// role says what part a policy has in the comparison.
func role(c *eval.Config, p string) string {
	switch p {
	case eval.OnDemand:
		return "on-demand"
	case c.Baseline:
		return "baseline"
	}
	return "compared"
}
