package eval

import (
	"fmt"
	"strconv"
)

// worstTable returns the worst run of every policy in every scenario: what it
// saved, its outage minutes and its seed. There is none with one scenario,
// where the list of worst runs says it all.
func (r *Report) worstTable() (heading []string, rows [][]string) {
	if len(r.Groups) < 2 {
		return nil, nil
	}
	heading = append([]string{"WORST RUN: SAVED %, OUTAGE MIN #SEED"}, r.Config.Policies...)
	for _, g := range r.scenarios() {
		row := []string{g.Scenario}
		for i := range g.Policies {
			row = append(row, r.worstCell(&g, g.Policies[i].Worst))
		}
		rows = append(rows, row)
	}
	return heading, rows
}

// worstCell puts a run into a cell. Among several windows its own is named in
// front of the seed, by the number that --windows takes.
func (r *Report) worstCell(g *Group, i int) string {
	if i < 0 {
		return unknown
	}
	run := &r.Runs[i]
	saved := unknown
	if v := run.value(mustMetric("net_savings_pct")); v.Known {
		saved = percent(v.V)
	}
	seed := strconv.FormatUint(run.Seed, 10)
	if len(g.Cases) > 1 {
		seed = strconv.Itoa(run.Window+1) + "/" + seed
	}
	return fmt.Sprintf("%s, %s #%s", saved, whole(run.value(mustMetric("outage_minutes")).V), seed)
}

// isWorst reports whether run i is the worst of its policy in its scenario.
func (r *Report) isWorst(i int) bool {
	p := i % len(r.Config.Policies)
	g := r.groupOf(r.Runs[i].Scenario)
	return g.Policies[p].Worst == i
}

// weeksTable returns heading and rows of what g comes to window by window, with
// the worst of them; none with so few windows that each is listed.
func (r *Report) weeksTable(g *Group) (heading []string, rows [][]string) {
	if !g.many() {
		return nil, nil
	}
	heading = []string{fmt.Sprintf("MEDIAN / WORST OF %d WINDOWS", len(g.Cases)), "SAVED %", "CHANGE ON *", "ABOVE 0 IN %", "ATTAINABLE %", "REGRET %", "AVAILABLE %"}
	for i := range g.Policies {
		p := &g.Policies[i]
		row := []string{p.Policy, pair(p, "net_savings_pct", percent, false)}
		if p.Policy == r.Config.Baseline {
			row = append(row, "baseline", "")
		} else {
			row = append(row, pair(p, "net_savings_delta_pct", func(x float64) string { return signed(x, 1) }, false), unknown)
			if s := p.summary("net_savings_delta_pct"); s.N > 0 {
				row[3] = share(s.Windows.Positive)
			}
		}
		three := func(x float64) string { return plain(x*100, 3) }
		row = append(row, pair(p, "attainable_share", share, false), pair(p, "regret", share, true), pair(p, "availability", three, false))
		rows = append(rows, row)
	}
	return heading, rows
}

// pair formats the median of the windows' values and the worst of them: the
// greatest where more is worse, else the least.
func pair(p *PolicyReport, metric string, format func(float64) string, moreIsWorse bool) string {
	s := p.summary(metric)
	if s.N == 0 {
		return unknown
	}
	worst := s.Windows.Min
	if moreIsWorse {
		worst = s.Windows.Max
	}
	return format(s.Windows.Median) + " / " + format(worst)
}
