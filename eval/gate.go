package eval

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spotter-dev/spotter/internal/nearest"
)

// ErrGate is wrapped by all errors of [ParseGate].
var ErrGate = errors.New("wrong gate")

// A Gate is a condition that policies must satisfy for a comparison to pass.
type Gate struct {
	// Policy is the policy that must satisfy the gate, as written in Config.Policies. Empty means
	// all policies except the baseline and on-demand.
	Policy string `json:"-"`

	// The policy that replaces the baseline.
	//
	// Metrics that compare with the baseline compare with this policy. For all other metrics, the
	// gate applies to the difference to it in the same case and seed.
	Versus string `json:"versus,omitempty"`

	// Scenario is the only scenario that the gate applies to. If empty, the gate must pass
	// separately in each scenario.
	Scenario string `json:"-"`

	Metric    string    `json:"metric"`
	Statistic Statistic `json:"statistic"`
	// One of < <= > >= == and !=.
	Op string `json:"op"`
	// The value that the statistic is compared with.
	Value float64 `json:"value"`
}

// gateForm matches [WHO:]METRIC.STAT OP VALUE. Policies and paths of scenarios may contain colons
// and equal signs; metrics contain neither.
var gateForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:(.*):)?\s*([A-Za-z0-9_]+)\.([A-Za-z0-9_]+)\s*(<=|>=|==|!=|<|>)\s*([^\s=<>]\S*)$`)
})

// ParseGate parses a gate of the form [WHO:]METRIC.STAT OP VALUE. METRIC follows the last colon,
// and WHO is [POLICY] [vs POLICY] [in SCENARIO].
func ParseGate(text string) (Gate, error) {
	wrong := func(format string, args ...any) (Gate, error) {
		return Gate{}, fmt.Errorf("%w %q: %s", ErrGate, text, fmt.Sprintf(format, args...))
	}
	text = strings.TrimSpace(text)
	part := gateForm().FindStringSubmatch(text)
	if part == nil {
		return wrong("want [POLICY:]METRIC.STAT OP VALUE with OP one of < <= > >= == !=, as in outage_delta.max<=0")
	}
	g := Gate{Metric: part[2], Statistic: Statistic(part[3]), Op: part[4]}
	who := strings.TrimSpace(part[1])
	if who == "" && strings.Contains(text, ":") {
		return wrong("the policy before the colon is empty")
	}
	if !g.readWho(who) {
		return wrong("%q is not [POLICY] [vs POLICY] [in SCENARIO]", who)
	}
	m := metricIndex(g.Metric)
	if m < 0 {
		meant := slices.DeleteFunc(MetricNames(), func(name string) bool { return !strings.HasPrefix(name, g.Metric) })
		if best, ok := nearest.Of(g.Metric, MetricNames()); ok && len(meant) == 0 {
			meant = []string{best}
		}
		if len(meant) > 0 {
			return wrong("there is no metric %q; did you mean %s?", g.Metric, strings.Join(meant, ", "))
		}
		return wrong("there is no metric %q; the metrics are %s", g.Metric, strings.Join(MetricNames(), ", "))
	}
	if !slices.Contains(Statistics(), g.Statistic) {
		return wrong("there is no statistic %q; the statistics are %v", g.Statistic, Statistics())
	}
	if (g.Statistic == Low || g.Statistic == High) && !metrics[m].Interval {
		return wrong("there is no interval of %s, and so no %s", g.Metric, g.Statistic)
	}
	value, err := strconv.ParseFloat(part[5], 64)
	if errors.Is(err, strconv.ErrRange) {
		return wrong("%s is too large a number", part[5])
	}
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return wrong("%q is not a number", part[5])
	}
	g.Value = value
	return g, nil
}

// readWho parses [POLICY] [vs POLICY] [in SCENARIO] and reports whether who has this form. The path
// of a scenario may contain spaces, a policy must not.
func (g *Gate) readWho(who string) bool {
	rest := " " + who + " "
	if policies, scenario, ok := strings.Cut(rest, " in "); ok {
		rest, g.Scenario = policies, strings.TrimSpace(scenario)
		if g.Scenario == "" {
			return false
		}
	}
	if policy, versus, ok := strings.Cut(rest, " vs "); ok {
		rest, g.Versus = policy, strings.TrimSpace(versus)
		if g.Versus == "" {
			return false
		}
	}
	g.Policy = strings.TrimSpace(rest)
	return !strings.ContainsAny(g.Policy+g.Versus, " \t")
}

// String formats the gate for ParseGate.
func (g Gate) String() string {
	s := g.Condition()
	if who := g.Who(); who != "" {
		s = who + ":" + s
	}
	return s
}

// Condition returns the gate without the part before the colon.
func (g Gate) Condition() string {
	return fmt.Sprintf("%s.%s %s %s", g.Metric, g.Statistic, g.Op, strconv.FormatFloat(g.Value, 'f', -1, 64))
}

// Who returns the part of the gate before the colon.
func (g Gate) Who() string {
	s := g.Policy
	if g.Versus != "" {
		s += " vs " + g.Versus
	}
	if g.Scenario != "" {
		s += " in " + g.Scenario
	}
	return strings.TrimSpace(s)
}

// holdsFor returns the indexes in c.Policies of the policies that must satisfy g.
func (g Gate) holdsFor(c *Config) []int {
	var policies []int
	for i, p := range c.Policies {
		if g.Policy == p || g.Policy == "" && c.Trial(p) && p != g.Versus {
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

// A GateResult is the result of a gate for one policy in one scenario.
type GateResult struct {
	// The policy that the result is about.
	Policy string `json:"policy"`
	Gate
	// The scenario that the result is about.
	Scenario string `json:"scenario"`
	// The measured value, null if no run has a value.
	Actual Value `json:"actual"`
	// Number of runs without a value. A gate with such runs fails, because one of them might
	// violate it.
	Missing int `json:"missing"`
	// Whether the gate passed.
	Pass bool `json:"pass"`

	// Need is the number of units that the interval requires if low or high has no value because
	// there are too few, else 0. Over is the kind of units.
	Need int    `json:"-"`
	Over string `json:"-"`

	// Stopped reports whether the gate failed because the comparison was stopped.
	Stopped bool `json:"-"`

	// Run is the index in Report.Runs of the run with the measured value if the statistic is min or
	// max, else -1.
	Run int `json:"-"`

	// Case is the index in Config.Cases of the window with the measured value if the statistic is
	// window_min or window_max, else -1.
	Case int `json:"-"`
}

// judge applies g to the runs of policy p in one scenario.
func (g Gate) judge(r *Report, group *Group, p int) GateResult {
	result := g.Measure(r, group, p)
	result.Pass = result.Missing == 0 && g.passes(result.Actual)
	return result
}

// passes reports whether there is a value and it satisfies the gate.
func (g Gate) passes(actual Value) bool { return actual.Known && g.met(actual.V) }

// Measure returns the value that g tests for policy p in one scenario. It does not set Pass.
func (g Gate) Measure(r *Report, group *Group, p int) GateResult {
	result := GateResult{Gate: g, Policy: r.Config.Policies[p], Scenario: group.Scenario, Run: -1, Case: -1}
	m := metricIndex(g.Metric)
	windows := make([][]float64, len(group.Cases))
	best := Value{}
	for w, k := range group.Cases {
		for _, i := range r.indices(k, p) {
			v := g.value(r, i, m)
			if !v.Known {
				result.Missing++
				continue
			}
			windows[w] = append(windows[w], v.V)
			if g.Statistic == Min && (!best.Known || v.V < best.V) || g.Statistic == Max && (!best.Known || v.V > best.V) {
				result.Run, best = i, v
			}
		}
	}
	end := g.Statistic == Low || g.Statistic == High
	rate := 0.0
	if end {
		rate = r.Config.errorRate()
	}
	summary := Summarize(windows, rate)
	if w := &summary.Windows; g.Statistic == WindowMin && w.N > 0 {
		result.Case = group.Cases[w.First]
	} else if g.Statistic == WindowMax && w.N > 0 {
		result.Case = group.Cases[w.Last]
	}
	result.Actual = summary.Of(g.Statistic)
	if end && summary.Need > 0 {
		result.Need, result.Over = summary.Need, summary.Over
	}
	return result
}

// value returns the value that g tests in run i: its metric m, or a comparison with the policy that
// replaces the baseline.
func (g Gate) value(r *Report, i, m int) Value {
	v := r.Runs[i].value(m)
	if g.Versus == "" || !v.Known {
		return v
	}
	n := len(r.Config.Policies)
	first := i / n * n
	other := &r.Runs[first+slices.Index(r.Config.Policies, g.Versus)]
	if other.Err != nil {
		return Value{}
	}
	if slices.Contains(comparisons, g.Metric) {
		m := match{run: r.Runs[i].Result, baseline: other.Result}
		if od := &r.Runs[first+slices.Index(r.Config.Policies, OnDemand)]; od.Err == nil {
			m.onDemand = od.Result
		}
		return m.measure()[metricIndex(g.Metric)]
	}
	o := other.value(m)
	return Value{v.V - o.V, o.Known}
}

// Estimated reports whether all runs have a value and the comparison was not stopped. If it is
// false, the gate failed because its value is unknown, not because it is bad.
func (g *GateResult) Estimated() bool { return g.Missing == 0 && g.Actual.Known && !g.Stopped }
