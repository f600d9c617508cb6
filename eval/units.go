package eval

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval/stats"
)

// windowsMany is how many windows make a table show their median and the worst
// of them in place of each.
const windowsMany = 8

// many reports whether g has so many windows that each is not listed.
func (g *Group) many() bool { return g.Windows >= windowsMany }

// errorRate returns that of one interval: a policy's part of what all of them
// share.
func (c *Config) errorRate() float64 { return errorRate / float64(len(c.Policies)) }

// intervalsOver says what the units of intervals in g are: windows where there
// are several, else seeds.
func (g *Group) intervalsOver() string {
	if len(g.Cases) > 1 {
		return overWindows
	}
	return overSeeds
}

// lacks returns how many units the intervals of g need where there are too few,
// else 0.
func (r *Report) lacks(g *Group) int {
	units := len(r.Config.Seeds)
	if len(g.Cases) > 1 {
		units = len(g.Cases)
	}
	if need := stats.UnitsMin(r.Config.errorRate()); units < need {
		return need
	}
	return 0
}

// levelWords writes a level as 99.3 %, with as many digits as keep it below 100.
func levelWords(level float64) string {
	for digits := 3; ; digits++ {
		if s := fmt.Sprintf("%.*g", digits, level*100); s != "100" || level >= 1 {
			return s + " %"
		}
	}
}

// IntervalNote says what the intervals of g are.
func (r *Report) IntervalNote(g *Group) string {
	over, level := g.intervalsOver(), levelWords(r.Level)
	holds := "the result holds for this window only"
	if over == overWindows {
		holds = "the result holds for these windows only"
	}
	switch need := r.lacks(g); {
	case need > 0:
		return fmt.Sprintf("There are no intervals, which %s at %s: %s.", needWords(need, over), level, holds)
	case over == overWindows:
		return fmt.Sprintf("Intervals are of the median over windows, each with the median over its seeds, and hold at %s each, whatever the distribution (order statistics).", level)
	}
	return fmt.Sprintf("Intervals are of the median over the seeds of one window and hold at %s each, whatever the distribution (order statistics): %s.", level, holds)
}

// intervalNotes are the notes of all scenarios, each sentence once, with the
// scenarios that it is about where there are others.
func (r *Report) intervalNotes() []string {
	return r.byScenario(r.IntervalNote)
}

// intervalWarnings name the scenarios that have no intervals.
func (r *Report) intervalWarnings() []string {
	return r.byScenario(func(g *Group) string {
		need := r.lacks(g)
		if need == 0 {
			return ""
		}
		return fmt.Sprintf("there are no intervals: %s for %s", needWords(need, g.intervalsOver()), levelWords(r.Level))
	})
}

// byScenario returns what say says of each scenario, each sentence once, in the
// order of the scenarios. Where not all say the same, those that it is about
// stand in front.
func (r *Report) byScenario(say func(*Group) string) []string {
	var said []string
	var names [][]string
	for i := range r.Groups {
		g := &r.Groups[i]
		text := say(g)
		if text == "" {
			continue
		}
		at := slices.Index(said, text)
		if at < 0 {
			at = len(said)
			said, names = append(said, text), append(names, nil)
		}
		names[at] = append(names[at], g.Scenario)
	}
	for i := range said {
		if len(names[i]) < len(r.Groups) {
			said[i] = strings.Join(names[i], ", ") + ": " + said[i]
		}
	}
	return said
}
