package eval

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ErrGate is wrapped by every error of [ParseGate].
var ErrGate = errors.New("wrong gate")

// A Gate is a condition that policies must meet for a comparison to pass.
type Gate struct {
	// Policy is the one that must meet it, as in Config.Policies. Empty means
	// every policy but the baseline and on-demand.
	Policy string

	Metric    string
	Statistic Statistic

	// Op is one of < <= > >= == and !=.
	Op    string
	Value float64
}

// StandingGates are those that a policy must pass to be called better than the
// baseline: it improves net profit by 2 % in the median run and costs no
// minute of outage more in any.
func StandingGates() []Gate {
	return []Gate{
		{Metric: "net_profit_improvement_pct", Statistic: Median, Op: ">=", Value: 2},
		{Metric: "outage_delta", Statistic: Max, Op: "<=", Value: 0},
	}
}

// gateForm is POLICY:METRIC.STAT OP VALUE. A policy may hold colons and equal
// signs of its own; a metric holds neither.
var gateForm = regexp.MustCompile(`^(?:(.*):)?\s*([A-Za-z0-9_]+)\.([A-Za-z0-9]+)\s*(<=|>=|==|!=|<|>)\s*([^\s=<>]\S*)$`)

// ParseGate reads a gate of the form [POLICY:]METRIC.STAT OP VALUE, where
// METRIC follows the last colon.
func ParseGate(text string) (Gate, error) {
	wrong := func(format string, args ...any) (Gate, error) {
		return Gate{}, fmt.Errorf("%w %q: %s", ErrGate, text, fmt.Sprintf(format, args...))
	}
	text = strings.TrimSpace(text)
	part := gateForm.FindStringSubmatch(text)
	if part == nil {
		return wrong("want [POLICY:]METRIC.STAT OP VALUE with OP one of < <= > >= == !=, as in outage_delta.max<=0")
	}
	g := Gate{Policy: strings.TrimSpace(part[1]), Metric: part[2], Statistic: Statistic(part[3]), Op: part[4]}
	if g.Policy == "" && strings.Contains(text, ":") {
		return wrong("the policy before the colon is empty")
	}
	if metricIndex(g.Metric) < 0 {
		return wrong("there is no metric %q; the metrics are %s", g.Metric, metricNames())
	}
	if !slices.Contains(Statistics(), g.Statistic) {
		return wrong("there is no statistic %q; the statistics are %v", g.Statistic, Statistics())
	}
	value, err := strconv.ParseFloat(part[5], 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return wrong("%q is not a number", part[5])
	}
	g.Value = value
	return g, nil
}

// String returns the gate as ParseGate reads it.
func (g Gate) String() string {
	s := fmt.Sprintf("%s.%s %s %s", g.Metric, g.Statistic, g.Op, strconv.FormatFloat(g.Value, 'f', -1, 64))
	if g.Policy != "" {
		s = g.Policy + ":" + s
	}
	return s
}

// holdsFor returns the places in c.Policies of those that must meet g.
func (g Gate) holdsFor(c *Config) []int {
	var policies []int
	for i, p := range c.Policies {
		if g.Policy == p || g.Policy == "" && c.trial(p) {
			policies = append(policies, i)
		}
	}
	return policies
}

// met reports whether actual satisfies the gate.
func (g Gate) met(actual float64) bool {
	switch g.Op {
	case "<":
		return actual < g.Value
	case "<=":
		return actual <= g.Value
	case ">":
		return actual > g.Value
	case ">=":
		return actual >= g.Value
	case "==":
		return actual == g.Value
	case "!=":
		return actual != g.Value
	}
	panic("eval: gate with the operator " + g.Op)
}

// A GateResult is the verdict on one policy under one gate.
type GateResult struct {
	Gate   Gate
	Policy string

	// Actual is the value that was judged; unknown when no run has one.
	Actual Value

	// Missing is how many runs have no value of the metric. One is enough to
	// fail: the run that is missing may be the one that broke the gate.
	Missing int

	// Pass is the verdict.
	Pass bool

	// Run is the run that has the judged value, where the statistic is min or
	// max; else -1. It indexes Report.Runs.
	Run int
}

// judge applies g to the runs of one policy.
func (g Gate) judge(r *Report, p int) GateResult {
	result := GateResult{Gate: g, Policy: r.Config.Policies[p], Run: -1}
	m := metricIndex(g.Metric)
	var values []float64
	for i := p; i < len(r.Runs); i += len(r.Config.Policies) {
		v := r.Runs[i].value(m)
		if !v.Known {
			result.Missing++
			continue
		}
		values = append(values, v.V)
		if g.Statistic == Min || g.Statistic == Max {
			if result.Run < 0 || (v.V < r.Runs[result.Run].value(m).V) == (g.Statistic == Min) && v.V != r.Runs[result.Run].value(m).V {
				result.Run = i
			}
		}
	}
	if len(values) > 0 {
		summary := summarize(values)
		v, _ := summary.Of(g.Statistic)
		result.Actual = Value{v, true}
	}
	result.Pass = result.Missing == 0 && result.Actual.Known && g.met(result.Actual.V)
	return result
}
