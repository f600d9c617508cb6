package hunt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// A Goal is what a policy is to do badly.
type Goal string

// The goals, with the unit of the gap.
const (
	// Savings is net savings, in points of the on-demand bill behind the rule that saves most.
	Savings Goal = "savings"

	// Outage is outage minutes beyond both those of the rule that has fewest and what the
	// objective allows.
	Outage Goal = "outage"
)

// Unit is what a gap is counted in.
func (g Goal) Unit() string {
	if g == Outage {
		return "outage minutes"
	}
	return "points of the on-demand bill"
}

// Rules returns the simple rules that a policy is held against where nothing else is said.
func Rules() []string { return []string{eval.OnDemand, eval.DefaultBaseline, "spot", "static"} }

// compared are the rules, on-demand, which savings are counted against, and the policy, which is the
// last.
func (c *Config) compared() []string {
	out := slices.Clone(c.Rules)
	if !slices.Contains(out, eval.OnDemand) && c.Policy != eval.OnDemand {
		out = append(out, eval.OnDemand)
	}
	return append(out, c.Policy)
}

// A Config says what is hunted.
type Config struct {
	Policy string
	Goal   Goal

	// Rules are what it is held against, the best of them in each scenario.
	Rules []string

	// Objective is the part of the time for which a workload has to have the pods that it
	// requires, in (0, 1). It counts where the goal is Outage.
	Objective float64

	// Seed is that of the search. The weather has seeds of its own.
	Seed uint64

	// Length is how long a scenario is metered, at least six hours.
	Length time.Duration

	// Tries is how many scenarios are tried. Raising it finds more.
	Tries int

	// Keep is how many are made smaller and returned at most, Least the gap from which on.
	Keep  int
	Least float64

	// Name is the prefix of the names of the scenarios found, and Invocation the command
	// that repeats the hunt. Trace is the trace that these scenarios name, empty for none.
	Name, Invocation, Trace string

	// Bind binds a scenario to prices; NewRunner makes what does runs and may keep what it
	// prepared, until the next one is made.
	Bind      func(*scenarios.Scenario) (*scenarios.BoundScenario, error)
	NewRunner func() eval.Runner

	// Progress, if not nil, is called with how many runs are done of how many.
	Progress func(done, total int)
}

// A Find is a scenario in which the policy does badly.
type Find struct {
	Name string
	Text []byte

	// Rule is the simple rule that does best, and Gap by how much better, the median over the
	// seeds 101 to 110, with its interval.
	Rule     string
	Gap      float64
	Interval *stats.Interval
}

// The seeds of the weather. A scenario is found under the first, made smaller under the second,
// and judged under the third: what was found by luck with few is lost with the others.
var searchSeeds, shrinkSeeds, freshSeeds = []uint64{1, 2}, []uint64{11, 12, 13, 14, 15}, []uint64{101, 102, 103, 104,
	105, 106, 107, 108, 109, 110}

// The parameters of the evolution: it keeps the given number of parents and makes the given
// number of children at a time.
const (
	parents  = 8
	children = 8
	step     = 0.15 // deviation of a number that changes
	changing = 0.15 // part of the numbers that change
)

// apart is how far from each other, in the mean number, two finds are at least.
const apart = 0.12

// A tried is a vector with how badly the policy does in it.
type tried struct {
	v   vector
	gap float64
}

// Run hunts. What it finds is ordered by gap, the worst first. An error comes back where a scenario
// cannot be run, and when ctx ends.
func Run(ctx context.Context, c Config) ([]Find, error) {
	c.Rules = slices.DeleteFunc(slices.Clone(c.Rules), func(r string) bool { return r == c.Policy })
	h := &hunter{Config: c}
	all, err := h.search(ctx)
	if err != nil {
		return nil, err
	}
	var finds []Find
	var seen []string
	for _, x := range distinct(all, c.Keep, c.Least) {
		small, err := h.shrink(ctx, decode(x.v, c.Length))
		if err != nil {
			return nil, err
		}
		if small == nil || slices.Contains(seen, string(small.text("", "", ""))) {
			continue
		}
		seen = append(seen, string(small.text("", "", "")))
		f, err := h.judge(ctx, small, fmt.Sprintf("%s-%d", c.Name, len(finds)+1))
		if err != nil {
			return nil, err
		}
		if f.Gap >= c.Least {
			finds = append(finds, f)
		}
	}
	slices.SortStableFunc(finds, func(a, b Find) int { return cmp.Compare(b.Gap, a.Gap) })
	return finds, nil
}

// distinct returns the n worst that are apart from each other.
func distinct(all []tried, n int, least float64) []tried {
	var out []tried
	for _, x := range all {
		near := slices.ContainsFunc(out, func(o tried) bool { return distance(o.v, x.v) < apart })
		if len(out) < n && x.gap >= least && !near {
			out = append(out, x)
		}
	}
	return out
}

// distance is the mean one of two vectors' numbers.
func distance(a, b vector) float64 {
	sum := 0.0
	for i := range a {
		sum += max(a[i]-b[i], b[i]-a[i])
	}
	return sum / float64(len(a))
}

// A hunter hunts.
type hunter struct {
	Config
	done, total int
}

// search tries scenarios, the first of them spread over all bounds and the others near the worst,
// and returns all, the worst first.
func (h *hunter) search(ctx context.Context) ([]tried, error) {
	first := min(max(h.Tries/4, parents), h.Tries)
	var next []vector
	for _, v := range chance.LatinHypercube(h.Seed, "hunt", first, dims) {
		next = append(next, v)
	}
	h.total = h.Tries * len(searchSeeds) * len(h.compared())
	var all []tried
	for turn := uint64(0); len(next) > 0; turn++ {
		plans := make([]plan, len(next))
		for i, v := range next {
			plans[i] = decode(v, h.Length)
		}
		results, err := h.gaps(ctx, plans, searchSeeds)
		if err != nil {
			return nil, err
		}
		for i := range next {
			all = append(all, tried{next[i], results[i].median()})
		}
		slices.SortStableFunc(all, func(a, b tried) int { return cmp.Compare(b.gap, a.gap) })
		next = h.children(all, turn, min(children, h.Tries-len(all)))
	}
	return all, nil
}

// children makes n vectors near the worst that are apart from each other.
func (h *hunter) children(all []tried, turn uint64, n int) []vector {
	pool := distinct(all, parents, all[len(all)-1].gap)
	var out []vector
	for i := range n {
		key := chance.Stream(h.Seed, "hunt-child").At2(turn, uint64(i))
		// The lesser of two draws: the worst are parents more often.
		a := pool[min(key.At1(0).IntN(len(pool)), key.At1(1).IntN(len(pool)))].v
		b := pool[key.At1(2).IntN(len(pool))].v
		child := slices.Clone(a)
		for d := range child {
			draw := key.At2(3, uint64(d))
			if draw.At1(0).Float() < 0.25 {
				child[d] = b[d]
			}
			if draw.At1(1).Float() < changing {
				child[d] = min(max(child[d]+float64(step*draw.At1(2).Normal()), 0), 0.999)
			}
		}
		out = append(out, child)
	}
	return out
}

// A result is what a scenario came to, seed by seed.
type result struct {
	rule string
	gaps []float64
}

func (r *result) median() float64 { return stats.Median(r.gaps) }

// gaps runs scenarios under seeds and returns how badly the policy does in each.
func (h *hunter) gaps(ctx context.Context, plans []plan, seeds []uint64) ([]result, error) {
	c := eval.Config{Policies: h.compared(), Baseline: eval.OnDemand, Seeds: seeds}
	for i := range plans {
		name := fmt.Sprintf("try-%d", i)
		sc, err := scenarios.Parse(name+".yaml", plans[i].text(name, "", ""))
		if err != nil {
			return nil, fmt.Errorf("a scenario that cannot be read: %w\n%s", err, plans[i].text(name, "", ""))
		}
		bound, err := h.Bind(sc)
		if err != nil {
			return nil, err
		}
		c.Cases = append(c.Cases, eval.Case{Scenario: name, Bound: bound})
	}
	c.Progress = func(p eval.Progress) {
		if h.Progress != nil {
			h.Progress(h.done+p.Done, max(h.total, h.done+p.Total))
		}
	}
	runs, err := eval.Runs(ctx, c, h.NewRunner())
	if err != nil {
		return nil, err
	}
	h.done += len(runs)
	n := len(seeds) * len(c.Policies)
	if x := eval.Broken(runs); x != nil {
		return nil, fmt.Errorf("%s broke under seed %d: %w\n%s", x.Policy, x.Seed, x.Err,
			plans[x.CaseIndex].text("broken", "", ""))
	}
	out := make([]result, len(plans))
	for i := range plans {
		if out[i], err = h.gap(runs[i*n:(i+1)*n], len(c.Policies), &plans[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// gap compares the policy, the last of n, with the best of the rules before it.
func (h *hunter) gap(runs []eval.RunRow, n int, p *plan) (result, error) {
	metric, sign := "net_savings_pct", 1.0
	if h.Goal == Outage {
		metric, sign = "outage_minutes", -1
	}
	figures := make([][]float64, n)
	for i := range runs {
		v := runs[i].Value(metric)
		if !v.Known {
			return result{}, errors.New("hunt: on-demand has no bill in\n" + string(p.text("broken", "", "")))
		}
		figures[i%n] = append(figures[i%n], sign*v.V)
	}
	best := 0
	for k := range n - 1 {
		if k < len(h.Rules) && stats.Median(figures[k]) > stats.Median(figures[best]) {
			best = k
		}
	}
	r := result{rule: runs[best].Policy}
	for s, own := range figures[n-1] {
		other := figures[best][s]
		if h.Goal == Outage {
			other = min(other, -h.allowed(p))
		}
		r.gaps = append(r.gaps, other-own)
	}
	return r, nil
}

// allowed is how many minutes of outage the objective leaves to the workloads of p together.
func (h *hunter) allowed(p *plan) float64 {
	return float64((1 - h.Objective) * p.length.Minutes() * float64(len(p.services)))
}
