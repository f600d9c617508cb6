package eval

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// unknown stands in tables where there is no value.
const unknown = "–"

// A column is one figure of the comparison as tables show it.
type column struct {
	// top and under are the two lines of its heading.
	top, under string

	// rank says what goes first when the terminal is narrow: the greatest. 0
	// stays always.
	rank int

	cell func(*Report, *PolicyReport) string
}

// columns answer, from left to right: who saves how much, is it better than
// the baseline, at what outage, and how.
var columns = []column{
	{"POLICY", "", 0, (*Report).label},
	{"BILL", "$", 0, median("bill_usd", money)},
	{"SAVED", "$", 0, median("net_savings_usd", money)},
	{"SAVED", "%", 0, median("net_savings_pct", percent)},
	{"CHANGE ON *", "% [interval]", 0, change},
	{"OUTAGE MIN", "med / max", 0, func(_ *Report, p *PolicyReport) string {
		s := p.summary("outage_minutes")
		if s.N == 0 {
			return unknown
		}
		return whole(s.Median) + " / " + whole(s.Max)
	}},
	{"INCIDENTS", "med / max", 1, func(_ *Report, p *PolicyReport) string {
		s := p.summary("outage_incidents")
		if s.N == 0 {
			return unknown
		}
		return whole(s.Median) + " / " + whole(s.Max)
	}},
	{"LONGEST", "max", 2, func(_ *Report, p *PolicyReport) string {
		s := p.summary("outage_longest_s")
		if s.N == 0 {
			return unknown
		}
		return duration(s.Max)
	}},
	{"VS *", "max", 1, func(_ *Report, p *PolicyReport) string {
		s := p.summary("outage_delta")
		if s.N == 0 {
			return unknown
		}
		return signed(s.Max, 0)
	}},
	{"MOVED", "/pod-day", 4, median("voluntary_evictions_per_pod_day", rate)},
	{"LOST", "/pod-day", 5, median("reclaim_evictions_per_pod_day", rate)},
	{"SPOT", "%", 2, median("spot_share", share)},
	{"REGRET", "%", 3, median("regret", share)},
}

// summary returns the summary of the metric called name.
func (p *PolicyReport) summary(name string) *Summary { return &p.Summaries[mustMetric(name)] }

// median makes a cell of the median of a metric.
func median(name string, format func(float64) string) func(*Report, *PolicyReport) string {
	return func(_ *Report, p *PolicyReport) string {
		s := p.summary(name)
		if s.N == 0 {
			return unknown
		}
		return format(s.Median)
	}
}

func change(r *Report, p *PolicyReport) string {
	s := p.summary("net_savings_delta_pct")
	switch {
	case s.N == 0:
		return unknown
	case p.Policy == r.Config.Baseline:
		return "baseline"
	case s.Need > 0:
		return signed(s.Median, 1) + " (" + s.NeedWords() + ")"
	case s.MedianInterval == nil:
		return signed(s.Median, 1)
	}
	return fmt.Sprintf("%s [%s, %s]", signed(s.Median, 1), signed(s.MedianInterval.Low, 1), signed(s.MedianInterval.High, 1))
}

// rows returns the cells of group g, for the columns cols.
func (r *Report) rows(g *Group, cols []column) [][]string {
	var out [][]string
	for i := range g.Policies {
		var row []string
		for _, c := range cols {
			row = append(row, c.cell(r, &g.Policies[i]))
		}
		out = append(out, row)
	}
	return out
}

// bound returns the medians of what the oracle costs and saves over the cases
// of g, for the sentence below a table; false where on-demand never ran.
func (r *Report) bound(g *Group) (cost, saved, savedPct float64, ok bool) {
	od, oracle := mustMetric("on_demand_bill_usd"), mustMetric("oracle_usd")
	outage := mustMetric("on_demand_outage_cost_usd")
	var costs, savings, percents []float64
	for p, name := range r.Config.Policies {
		if name != OnDemand {
			continue
		}
		for _, k := range g.Cases {
			for _, i := range r.indices(k, p) {
				bill, least, extra := r.Runs[i].value(od), r.Runs[i].value(oracle), r.Runs[i].value(outage)
				if !bill.Known || bill.V <= 0 || !least.Known {
					continue
				}
				most := bill.V + extra.V - least.V
				costs, savings, percents = append(costs, least.V), append(savings, most), append(percents, most/bill.V*100)
			}
		}
	}
	if len(costs) == 0 {
		return 0, 0, 0, false
	}
	c, s, p := summarize(costs), summarize(savings), summarize(percents)
	return c.Median, s.Median, p.Median, true
}

// money formats dollars: with cents below a hundred, in thousands above a
// hundred thousand.
func money(x float64) string {
	switch size := math.Abs(x); {
	case size < 100:
		return plain(x, 2)
	case size < 100_000:
		return plain(x, 0)
	}
	return plain(x/1000, 1) + "k"
}

func percent(x float64) string { return plain(x, 1) }
func share(x float64) string   { return plain(x*100, 1) }
func rate(x float64) string    { return plain(x, 3) }

// whole formats a number of minutes, of which a median may have a half.
func whole(x float64) string {
	if x == math.Trunc(x) {
		return plain(x, 0)
	}
	return plain(x, 1)
}

func signed(x float64, digits int) string {
	s := plain(x, digits)
	if x > 0 && strings.Trim(s, "0.") != "" {
		return "+" + s
	}
	return s
}

// plain formats x without a minus sign before zero.
func plain(x float64, digits int) string {
	s := strconv.FormatFloat(x, 'f', digits, 64)
	if strings.HasPrefix(s, "-") && strings.Trim(s, "-0.") == "" {
		return s[1:]
	}
	return s
}

// exact formats x with all its digits, for files that are read by programs.
func exact(x float64) string {
	if x == 0 {
		return "0"
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// titledMax is how many scenarios a title names; more are counted.
const titledMax = 4

// title says what is compared, in one line, and before that how far it came where
// it was stopped.
func (r *Report) title() string {
	if text := r.Incomplete(); text != "" {
		return text + " · " + r.compared()
	}
	return r.compared()
}

// compared names scenarios, spans, and how many seeds, policies and runs there are.
func (r *Report) compared() string {
	var names []string
	scenarios := r.Groups
	if len(scenarios) > titledMax {
		names = []string{plural(len(scenarios), "scenario") + " (" + plural(len(r.Config.Cases), "window") + ")"}
		scenarios = nil
	}
	for _, g := range scenarios {
		first := r.Config.Cases[g.Cases[0]].World
		last := &r.Config.Cases[g.Cases[len(g.Cases)-1]]
		names = append(names, fmt.Sprintf("%s (%s, %s to %s)", r.Config.Cases[g.Cases[0]].Scenario,
			plural(len(g.Cases), "window"), instant(first.Start), instant(last.end())))
	}
	return strings.Join(names, ", ") + " · " + plural(len(r.Config.Seeds), "seed") + " · " +
		countPolicies(len(r.Config.Policies)) + " · " + plural(len(r.Runs), "run")
}

// countPolicies says how many policies there are.
func countPolicies(n int) string {
	if n == 1 {
		return "1 policy"
	}
	return fmt.Sprintf("%d policies", n)
}

// settings are the configuration of the report, a line each.
func (r *Report) settings() []string {
	c := &r.Config
	lines := []string{
		"policies " + strings.Join(c.Policies, ", ") + "; baseline " + c.Baseline,
		"seeds " + seedList(c.Seeds),
	}
	var worlds []string
	for i := range c.Cases {
		w := c.Cases[i].World
		line := fmt.Sprintf("%s: warm-up %v, ready grace %v, intensity %s", c.Cases[i].Scenario, w.WarmUp, w.ReadyGrace, exact(w.Intensity))
		if w.Slots > 0 {
			line += fmt.Sprintf(", slots %d", w.Slots)
		}
		if !w.Truth.Modelled() {
			line += ", truth " + w.Truth.String()
		}
		line += fmt.Sprintf(", scenario %x", w.Digest[:6])
		if len(worlds) == 0 || worlds[len(worlds)-1] != line {
			worlds = append(worlds, line)
		}
	}
	lines = append(lines, worlds...)
	for _, g := range c.Gates {
		lines = append(lines, "gate "+g.String())
	}
	if c.Version != "" {
		lines = append(lines, "version "+c.Version)
	}
	if c.Invocation != "" {
		lines = append(lines, "repeat with\n    "+c.Invocation)
	}
	return lines
}

// seedList writes seeds as ranges where they follow each other.
func seedList(seeds []uint64) string {
	var parts []string
	for i := 0; i < len(seeds); {
		j := i
		for j+1 < len(seeds) && seeds[j+1] == seeds[j]+1 {
			j++
		}
		part := strconv.FormatUint(seeds[i], 10)
		if j > i {
			part += "-" + strconv.FormatUint(seeds[j], 10)
		}
		parts, i = append(parts, part), j+1
	}
	return strings.Join(parts, ",")
}

// worstLines name the worst run of every policy of g.
func (r *Report) worstLines(g *Group) []string {
	var lines []string
	for i := range g.Policies {
		p := &g.Policies[i]
		if p.Worst < 0 {
			continue
		}
		run := &r.Runs[p.Worst]
		line := p.Policy + ": " + whole(run.value(mustMetric("outage_minutes")).V) + " outage min"
		if d := run.value(mustMetric("outage_delta")); d.Known && p.Policy != r.Config.Baseline {
			line += " (" + signed(d.V, 0) + ")"
		}
		if d := run.value(mustMetric("net_savings_pct")); d.Known {
			line += ", saved " + percent(d.V) + " %"
		}
		lines = append(lines, line+"\n    "+r.command(p.Worst))
	}
	return lines
}

// outageLines say in how many runs each policy of g had outages. Where there was
// none it says how rare they may still be.
func (r *Report) outageLines(g *Group) []string {
	var lines []string
	for i := range g.Policies {
		p := &g.Policies[i]
		if p.Outages.Of == 0 {
			continue
		}
		line := p.Policy + ": any in " + p.Outages.words()
		if r.Config.trial(p.Policy) && p.Worse.Of > 0 {
			line += "; more than " + r.Config.Baseline + " in " + p.Worse.words()
		}
		if p.Outages.Count > 0 {
			line += "; " + r.outageWords(&p.Outage)
		}
		lines = append(lines, line)
	}
	return lines
}

func (o Occurrence) words() string {
	s := fmt.Sprintf("%d of %s", o.Count, plural(o.Of, "run"))
	if o.Count == 0 {
		s += fmt.Sprintf(" (at 95 %% at most %s %%)", plain(o.Bound*100, 1))
	}
	return s
}

// failedShown is how many missing runs are named.
const failedShown = 5

// missingLines name the runs that failed, the first ones with their error.
func (r *Report) missingLines() []string {
	var lines []string
	for i := range r.Runs {
		if r.Runs[i].Err == nil || r.Runs[i].Unfinished() {
			continue
		}
		if len(lines) == failedShown {
			return append(lines, fmt.Sprintf("… and %d more", r.Missing()-failedShown))
		}
		first, _, _ := strings.Cut(r.Runs[i].Err.Error(), "\n")
		lines = append(lines, first+"\n    "+r.command(i))
	}
	return lines
}

// gateLine puts a verdict into words.
func (r *Report) gateLine(g *GateResult) string {
	mark, actual := "✗", "no value"
	if g.Pass {
		mark = "✓"
	}
	if g.Reason != "" {
		actual += ": " + g.Reason
	}
	if g.Actual.Known {
		actual = plain(g.Actual.V, digitsFor(g.Actual.V, g.Gate.Value))
	}
	line := fmt.Sprintf("%s %s: %s, is %s", mark, r.judged(g).who(), g.Gate.condition(), actual)
	if g.Case >= 0 {
		k := &r.Config.Cases[g.Case]
		line += fmt.Sprintf(" in the window from %s on", instant(k.World.Start))
	}
	if g.Missing > 0 {
		line += fmt.Sprintf("; %s without a value", plural(g.Missing, "run"))
	}
	if g.Stopped {
		line += "; the comparison was stopped"
	}
	if !g.Pass && g.Run >= 0 {
		line += r.gateOutage(g)
		line += "\n    " + r.command(g.Run)
	}
	return line
}

// judged is the gate of g as it holds for the policy, and among several
// scenarios for the one, that g is the verdict on.
func (r *Report) judged(g *GateResult) Gate {
	of := g.Gate
	of.Policy = g.Policy
	if len(r.Groups) > 1 {
		of.Scenario = g.Scenario
	}
	return of
}

// digitsFor returns how many decimals show on which side of limit x lies.
func digitsFor(x, limit float64) int {
	if x == math.Trunc(x) {
		return 0
	}
	for digits := 2; digits < 9; digits++ {
		shown, err := strconv.ParseFloat(plain(x, digits), 64)
		if err == nil && (shown < limit) == (x < limit) && (shown > limit) == (x > limit) {
			return digits
		}
	}
	return 9
}

// windowTable returns heading and rows of the medians of each window, for the
// change on the baseline, in percent; none where there are many, and where there is
// but one.
func (r *Report) windowTable(g *Group) (heading []string, rows [][]string) {
	if g.many() || len(g.Cases) < 2 {
		return nil, nil
	}
	heading = []string{"CHANGE ON *, %"}
	for _, k := range g.Cases {
		heading = append(heading, instant(r.Config.Cases[k].World.Start))
	}
	m := mustMetric("net_savings_delta_pct")
	for i := range g.Policies {
		p := &g.Policies[i]
		if p.Policy == r.Config.Baseline {
			continue
		}
		row := []string{r.label(p)}
		for _, w := range p.Windows {
			if v := w.Medians[m]; v.Known {
				row = append(row, signed(v.V, 1))
			} else {
				row = append(row, unknown)
			}
		}
		rows = append(rows, row)
	}
	return heading, rows
}

// oracleLine puts the bound of g into words.
func (r *Report) oracleLine(g *Group) string {
	least, saved, savedPct, ok := r.bound(g)
	if !ok {
		return ""
	}
	line := fmt.Sprintf("No policy can cost less than $%s (%s): $%s or %s %% saved at the most. Regret is the distance to it, in percent of the on-demand bill.",
		money(least), OracleName, money(saved), percent(savedPct))
	line += r.slotsSentence(g, least)
	for i := range g.Policies {
		p := &g.Policies[i]
		if s := p.summary("packing_overhead"); p.Policy == OnDemand && s.N > 0 {
			line += fmt.Sprintf(" With on-demand markets only it is $%s: on-demand's bill is %s times that, since nodes are whole and take time.",
				money(p.summary("oracle_on_demand_usd").Median), plain(s.Median, 2))
		}
	}
	if r.budgeted(g) {
		line += " It knows no budgets: what these keep out might be served in it, so no policy may come near."
	}
	return line
}

// slotsSentence says of the bound that knows slots what it is, and which policy
// comes nearest; empty where the slots of markets make no difference to the bound
// least.
func (r *Report) slotsSentence(g *Group, least float64) string {
	var nearest *PolicyReport
	bound := least
	for i := range g.Policies {
		p := &g.Policies[i]
		if s := p.summary("oracle_slots_usd"); p.Policy == OnDemand && s.N > 0 {
			bound = s.Median
		}
		if s := p.summary("regret_slots"); s.N > 0 && (nearest == nil || s.Median < nearest.summary("regret_slots").Median) {
			nearest = p
		}
	}
	if nearest == nil || money(bound) == money(least) {
		return ""
	}
	return fmt.Sprintf(" With no more nodes in a market than it has slots it is $%s: the nearest, %s, is %s %% of the on-demand bill above that (regret_slots).",
		money(bound), nearest.Policy, share(nearest.summary("regret_slots").Median))
}

// groupTitle heads the table of one group where there are several.
func (r *Report) groupTitle(g *Group) string {
	if len(r.Groups) == 1 {
		return ""
	}
	return g.Scenario
}
