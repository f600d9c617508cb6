package eval

import "fmt"

// weeksTable returns heading and rows of what g comes to window by window, with
// the worst of them; none with so few windows that each is listed.
func (r *Report) weeksTable(g *Group) (heading []string, rows [][]string) {
	if !g.many() {
		return nil, nil
	}
	heading = []string{fmt.Sprintf("MEDIAN / WORST OF %d WINDOWS", len(g.Cases)), "SAVED %", "CHANGE ON *", "ABOVE 0 IN %", "ATTAINABLE %", "REGRET %", "AVAILABLE %"}
	for i := range g.Policies {
		p := &g.Policies[i]
		row := []string{r.label(p), pair(p, "net_savings_pct", percent, false)}
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
