package eval

import (
	"slices"
	"strconv"
	"strings"
)

// behindMark is how many points of the on-demand bill a policy must lie behind
// the best of a scenario for reports to name the scenario.
const behindMark = 3.0

// simple are the policies that only choose how much to put on spot. Which of
// them is best says what kind of world a scenario is.
var simple = []string{OnDemand, "spot", "static"}

// A standing says how the policies of a comparison stand in one scenario.
type standing struct {
	scenario string

	// saved has the median net savings of each policy in percent of the
	// on-demand bill, in the order of Config.Policies; not known for a policy
	// without runs.
	saved []Value
}

// standings returns one of each scenario, none where there is only one.
func (r *Report) standings() []standing {
	var out []standing
	groups := r.scenarios()
	for i := range groups {
		g := &groups[i]
		s := standing{scenario: g.Scenario}
		for p := range g.Policies {
			sum := g.Policies[p].summary("net_savings_pct")
			s.saved = append(s.saved, Value{sum.Median, sum.N > 0})
		}
		out = append(out, s)
	}
	if len(out) < 2 {
		return nil
	}
	return out
}

// behind returns how many points policy p lies behind the best of those in
// among; false where it is not known.
func (s *standing) behind(p int, among []int) (float64, bool) {
	if !s.saved[p].Known {
		return 0, false
	}
	best := s.saved[p].V
	for _, k := range among {
		if s.saved[k].Known {
			best = max(best, s.saved[k].V)
		}
	}
	return best - s.saved[p].V, true
}

// standingTable returns the net savings of every policy in every scenario, with
// the distance from the best of the row in brackets.
func (r *Report) standingTable() (heading []string, rows [][]string) {
	standings := r.standings()
	if standings == nil {
		return nil, nil
	}
	every := make([]int, len(r.Config.Policies))
	for p := range every {
		every[p] = p
	}
	heading = append([]string{"SAVED % (BEHIND BEST)"}, r.Config.Policies...)
	for i := range standings {
		s := &standings[i]
		row := []string{s.scenario}
		for p := range every {
			distance, ok := s.behind(p, every)
			switch {
			case !ok:
				row = append(row, unknown)
			case distance == 0:
				row = append(row, percent(s.saved[p].V)+" (best)")
			default:
				row = append(row, percent(s.saved[p].V)+" (−"+percent(distance)+")")
			}
		}
		rows = append(rows, row)
	}
	return heading, rows
}

// standingLines say, of the policies that only choose how much to put on spot,
// in which scenarios each is best and in which it is far behind. There are none
// unless all of them were compared in several scenarios.
func (r *Report) standingLines() []string {
	standings := r.standings()
	var among []int
	for _, name := range simple {
		if p := slices.Index(r.Config.Policies, name); p >= 0 {
			among = append(among, p)
		}
	}
	if standings == nil || len(among) < len(simple) {
		return nil
	}
	var lines []string
	for _, p := range among {
		var best, behind []string
		for i := range standings {
			distance, ok := standings[i].behind(p, among)
			switch {
			case ok && distance == 0:
				best = append(best, standings[i].scenario)
			case ok && distance > behindMark:
				behind = append(behind, standings[i].scenario)
			}
		}
		lines = append(lines, r.Config.Policies[p]+" is the best of the three in "+counted(best)+
			", and more than "+plain(behindMark, 0)+" points behind the best of them in "+counted(behind)+".")
	}
	return lines
}

// counted names scenarios after their number.
func counted(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strconv.Itoa(len(names)) + " (" + strings.Join(names, ", ") + ")"
}
