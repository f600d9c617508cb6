package autoscaler_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/autoscaler"
)

// What is expected of a state of scale-up.
type goldenUp struct {
	Filtered map[string]string
	Groups   []struct {
		Group   string
		Answers []struct {
			Nodes int
			Pods  map[string]int
		}
		None        int
		Schedulable []string
		Similar     []string
	}
	Skipped map[string]any
	Choices map[string]struct{ Sets [][]string }
	Splits  []struct {
		Chosen string
		Nodes  int
		Added  map[string]int
	}
	Unhelped []string
}

// TestGoldenScaleUp compares which pods existing nodes take, how many nodes each group would need for
// the others, which groups each expander chooses and how balancing splits them.
func TestGoldenScaleUp(t *testing.T) {
	for _, file := range []struct{ name, version string }{{"scale-up", ""}, {"scale-up", "1.35.2"}, {"packing", ""}} {
		t.Run(file.name+" "+file.version, func(t *testing.T) {
			y := newTally()
			for _, s := range goldenStates(t, file.name, file.version) {
				var want goldenUp
				if err := json.Unmarshal(s.Expected, &want); err != nil {
					t.Fatal(err)
				}
				compareUp(t, y, s.load(goldenVersions[file.version], true), &want)
			}
			y.report(t)
		})
	}
}

// goldenRuns is how often an answer that depends on chance is drawn. The most frequent one counts.
const goldenRuns = 9

func compareUp(t *testing.T, y *tally, c *goldenCluster, want *goldenUp) {
	s := c.state
	var m autoscaler.Memory
	filtered := map[string]string{}
	var rest []policy.Pod
	for i, n := range c.PlacePending(&m, c.pending) {
		if n == policy.None {
			rest = append(rest, c.pending[i])
		} else {
			filtered[c.pending[i].Name] = c.Nodes[n].Name
		}
	}
	y.count(t, "filtered", s, maps.Equal(filtered, want.Filtered), "%v, want %v", filtered, want.Filtered)
	runs := make([][]autoscaler.Option, goldenRuns)
	for k := range runs {
		runs[k] = c.ScaleUp(&m, rest)
	}
	compareSchedulable(t, y, c, rest, runs[0], want)
	for i := range want.Groups {
		w := &want.Groups[i]
		var answers []string
		for _, a := range w.Answers {
			answers = append(answers, fmt.Sprint(a.Nodes, " nodes for ", a.Pods))
		}
		if w.None > 0 || len(answers) == 0 {
			answers = append(answers, "none")
		}
		answer := mostFrequent(runs, func(options []autoscaler.Option) string { return c.answerOf(&options[c.group(w.Group)], rest) })
		y.count(t, "answers", s, slices.Contains(answers, answer), "%s: %s, want one of %v", w.Group, answer, answers)
	}
	for _, name := range slices.Sorted(maps.Keys(want.Choices)) {
		at := slices.Index([]string{"least-waste", "most-pods", "least-nodes", "priority", "random"}, name)
		if at < 0 {
			t.Fatalf("expander %q", name)
		}
		c.Expander = autoscaler.Expander(at)
		var sets []string
		for _, set := range want.Choices[name].Sets {
			sets = append(sets, fmt.Sprint(slices.Sorted(slices.Values(set))))
		}
		chosen := mostFrequent(runs, func(options []autoscaler.Option) string {
			var groups []int
			for _, o := range c.Best(rest, options) {
				groups = append(groups, o.Group)
			}
			return fmt.Sprint(c.names(groups))
		})
		y.count(t, "choices of "+name, s, slices.Contains(sets, chosen), "%v, want one of %v", chosen, sets)
	}
	compareSplits(t, y, c, runs[0], want)
}

// mostFrequent returns the most frequent answer of all runs, the first of equals.
func mostFrequent(runs [][]autoscaler.Option, answer func([]autoscaler.Option) string) (best string) {
	seen := map[string]int{}
	for _, options := range runs {
		a := answer(options)
		if seen[a]++; seen[a] > seen[best] {
			best = a
		}
	}
	return best
}

func (c *goldenCluster) answerOf(o *autoscaler.Option, pods []policy.Pod) string {
	if o.Nodes == 0 {
		return "none"
	}
	number := map[string]int{}
	for _, i := range o.Pods {
		number[c.workload(&pods[i])]++
	}
	return fmt.Sprint(o.Nodes, " nodes for ", number)
}

func (c *goldenCluster) workload(p *policy.Pod) string { return c.state.Workloads[p.Template].Name }

// compareSchedulable compares what does not depend on chance: which groups may grow, and for which pods.
func compareSchedulable(t *testing.T, y *tally, c *goldenCluster, rest []policy.Pod, options []autoscaler.Option, want *goldenUp) {
	s := c.state
	lots := c.Lots(rest)
	helped := map[string]bool{}
	for i := range want.Groups {
		w := &want.Groups[i]
		o := &options[c.group(w.Group)]
		g := &c.Groups[o.Group]
		if len(rest) > 0 {
			_, skipped := want.Skipped[w.Group]
			y.count(t, "skipped", s, skipped == (g.Size >= g.Max) && (!skipped || o.Nodes == 0), "%s: %v with %d nodes", w.Group, skipped, o.Nodes)
			if skipped {
				continue // nothing is asked about its pods
			}
		}
		var fit []string
		for _, lot := range o.Schedulable {
			name := c.workload(&rest[lots[lot][0]])
			helped[name] = true
			fit = append(fit, name)
		}
		slices.Sort(fit)
		fit = slices.Compact(fit)
		y.count(t, "schedulable", s, slices.Equal(fit, w.Schedulable), "%s: %v, want %v", w.Group, fit, w.Schedulable)
		if similar := c.names(o.Similar); o.Nodes > 0 {
			y.count(t, "similar", s, slices.Equal(similar, slices.Sorted(slices.Values(w.Similar))), "%s: %v, want %v", w.Group, similar, w.Similar)
		}
	}
	var unhelped []string
	for i := range rest {
		if w := c.workload(&rest[i]); !helped[w] {
			unhelped = append(unhelped, w)
		}
	}
	slices.Sort(unhelped)
	unhelped = slices.Compact(unhelped)
	y.count(t, "unhelped", s, slices.Equal(unhelped, slices.Sorted(slices.Values(want.Unhelped))), "%v, want %v", unhelped, want.Unhelped)
}

// compareSplits compares how balancing distributes a number of nodes. Groups of one size are equals, among which
// the real one takes any.
func compareSplits(t *testing.T, y *tally, c *goldenCluster, options []autoscaler.Option, want *goldenUp) {
	for _, w := range want.Splits {
		o := options[c.group(w.Chosen)]
		o.Nodes = w.Nodes
		var got, wanted []string
		for _, a := range c.BalanceOption(&o) {
			got = append(got, fmt.Sprint(c.Groups[a.Group].Size, "+", a.Nodes))
		}
		for name, n := range w.Added {
			wanted = append(wanted, fmt.Sprint(c.Groups[c.group(name)].Size, "+", n))
		}
		slices.Sort(got)
		slices.Sort(wanted)
		y.count(t, "splits", c.state, slices.Equal(got, wanted), "%s: %v, want %v", w.Chosen, got, wanted)
	}
}

func (c *goldenCluster) group(name string) int {
	return slices.IndexFunc(c.Groups, func(g autoscaler.Group) bool { return g.Name == name })
}

// names returns the names of groups, sorted.
func (c *goldenCluster) names(groups []int) (names []string) {
	for _, g := range groups {
		names = append(names, c.Groups[g].Name)
	}
	slices.Sort(names)
	return names
}
