// Command karpenterdiff holds Spotter's simulated Karpenter against the real code of
// Karpenter on drawn clusters.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "karpenterdiff:", err)
		os.Exit(1)
	}
}

// leastEqual is how many of a hundred states must be scheduled alike. What is left are pods
// for which Karpenter drew domains in a way that no guide finds again.
const leastEqual = 99.0

// tooMany reports whether more of n states differ than a share of a hundred lets, and a few
// for chance.
func tooMany(differ, n int, least float64) bool {
	return float64(differ) > float64(n)*(100-least)/100+3
}

func run() error {
	n := flag.Int("n", 1000, "states to draw, half of them from fixed seeds")
	seed := flag.Uint64("seed", uint64(time.Now().Unix())<<20, "seed of the first of the others")
	flag.StringVar(&forced, "feature", "", "a feature of the table in features.go that all states have")
	file := flag.String("state", "", "a state as a file, in place of drawn ones")
	out := flag.String("out", os.TempDir(), "where states are written in which the two differ")
	side := flag.String("side", "scheduling", "what is compared: scheduling or disruption")
	sized := flag.Bool("measure", false,
		"print how long a simulation of the real code takes on clusters of several sizes, and compare nothing")
	flag.Parse()
	if *sized {
		return measure()
	}
	seeds, fixed := make([]uint64, *n), *n/2
	for i := range seeds {
		if i < fixed {
			seeds[i] = 1 + uint64(i)
		} else {
			seeds[i] = *seed + uint64(i-fixed)
		}
	}
	switch *side {
	case "scheduling":
		return runScheduling(seeds, fixed, *file, *out)
	case "disruption":
		return runDisruption(seeds, *file, *out)
	}
	return fmt.Errorf("-side is %q, want scheduling or disruption", *side)
}

// runScheduling compares scheduling on the states of seeds, or on the state in file. In the
// first fixed states only random draws may differ. About one in a thousand of the other
// states differs in a rule that no earlier state exercised: it is printed, but does not
// fail an unrelated change.
func runScheduling(seeds []uint64, fixed int, file, out string) error {
	if file != "" {
		s, err := readState(file)
		if err != nil {
			return err
		}
		return show(s)
	}
	t, plain := tally{causes: map[string]int{}, features: newFeatureTally()}, 0
	for i, seed := range seeds {
		s := generate(seed)
		x, err := compareScheduling(s)
		if err != nil {
			return err
		}
		t.add(s, &x)
		if x.difference == "" {
			continue
		}
		if x.ties == 0 && i < fixed {
			plain++
		}
		name := filepath.Join(out, fmt.Sprintf("karpenterdiff-%d.json", s.Seed))
		if err := s.write(name); err != nil {
			return err
		}
		fmt.Printf("state %d: %s differ (%d ties); repeat with: make karpenterdiff SIDE=scheduling STATE=%s\n", s.Seed,
			x.difference, x.ties, name)
	}
	fmt.Println(&t)
	if plain > 0 {
		return fmt.Errorf("%d states of fixed seeds differ in which nothing was drawn", plain)
	}
	if tooMany(t.differ, t.states, leastEqual) {
		return fmt.Errorf("%d of %d states differ, want %.2f %% equal", t.differ, t.states, leastEqual)
	}
	return nil
}

func show(s *State) error {
	x, err := compareScheduling(s)
	if err != nil {
		return err
	}
	fmt.Printf("Karpenter:\n%s\nSpotter (%d ties):\n%s\n", x.theirs, x.ties, x.ours)
	if x.difference != "" {
		return fmt.Errorf("%s differ", x.difference)
	}
	return nil
}

// A tally counts what came of many states.
type tally struct {
	states, differ, again, tied, pods int
	causes                            map[string]int
	features                          featureTally
	more                              []float64 // per hundred of Karpenter's cost, where that is above 0
}

func (t *tally) add(s *State, x *verdict) {
	t.states++
	t.features.add(s, x.difference != "")
	t.pods += x.pods
	if x.ties > 0 {
		t.tied++
	}
	if x.difference != "" {
		t.differ++
		t.causes[x.difference]++
	} else if x.runs > 1 {
		t.again++
	}
	if x.cost > 0 {
		t.more = append(t.more, 100*float64(x.more)/float64(x.cost))
	}
}

// String lists the counts, and the difference in cost over all states.
func (t *tally) String() string {
	s := fmt.Sprintf("%d states, %d pods, %d equal (%.2f %%), of which %d with ties of domains and %d not in Karpenter's first run\n",
		t.states, t.pods, t.states-t.differ, 100*float64(t.states-t.differ)/float64(t.states), t.tied, t.again)
	var causes []string
	for c := range t.causes {
		causes = append(causes, c)
	}
	slices.SortFunc(causes, func(a, b string) int {
		return cmp.Or(cmp.Compare(t.causes[b], t.causes[a]),
			cmp.Compare(a, b))
	})
	for _, c := range causes {
		s += fmt.Sprintf("  %d differ in %s\n", t.causes[c], c)
	}
	s += t.features.String()
	if len(t.more) > 0 {
		for i := range t.more {
			t.more[i] = max(t.more[i], -t.more[i])
		}
		slices.Sort(t.more)
		at := func(q float64) float64 { return t.more[int(q*float64(len(t.more)-1))] }
		s += fmt.Sprintf("  difference in cost of new nodes: median %.2f %%, p99 %.2f %%, most %.2f %%", at(.5),
			at(.99), at(1))
	}
	return s
}
