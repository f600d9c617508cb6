package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spotter-dev/spotter/sim/karpenter"
)

// leastDisruption is how many of a hundred states must be disrupted alike. All but one in
// a thousand are.
const leastDisruption = 99.5

// runDisruption compares disruption on the states of seeds, or on the one of a file.
func runDisruption(seeds []uint64, file, out string) error {
	if file != "" {
		s, err := readState(file)
		if err != nil {
			return err
		}
		return showDisruption(s)
	}
	t, n := disruptionTally{causes: map[string]int{}, features: newFeatureTally()}, len(seeds)
	for _, seed := range seeds {
		s := generateDisruption(seed)
		contests, err := compareDisruption(s)
		if err != nil {
			return err
		}
		for k := range contests {
			t.add(&contests[k])
		}
		i := slices.IndexFunc(contests, func(x contest) bool { return x.difference != "" })
		t.features.add(s, i >= 0)
		if i >= 0 {
			t.differ++
			name := filepath.Join(out, fmt.Sprintf("karpenterdiff-%d.json", s.Seed))
			if err := s.write(name); err != nil {
				return err
			}
			fmt.Printf("state %d: %s, %s; repeat with: make karpenterdiff SIDE=disruption STATE=%s\n",
				s.Seed, methods[contests[i].method], contests[i].difference, name)
		}
	}
	fmt.Println(t.report(n))
	if tooMany(t.differ, n, leastDisruption) {
		return fmt.Errorf("%d of %d states differ, want %.2f%% equal", t.differ, n, leastDisruption)
	}
	return nil
}

func showDisruption(s *State) error {
	contests, err := compareDisruption(s)
	if err != nil {
		return err
	}
	for i := range contests {
		x := &contests[i]
		fmt.Printf("%s: %s\n  Karpenter %s\n  Spotter   %s\n", methods[x.method], x.difference, x.theirs, x.ours)
	}
	if slices.ContainsFunc(contests, func(x contest) bool { return x.difference != "" }) {
		return fmt.Errorf("the two differ")
	}
	return nil
}

// A disruptionTally counts what came of many states.
type disruptionTally struct {
	differ                             int
	asked, candidates, deletes, places [karpenter.Methods]int
	later                              int
	causes                             map[string]int
	features                           featureTally
	saved                              int64
	more                               []int64
}

func (t *disruptionTally) add(x *contest) {
	t.asked[x.method]++
	if len(x.theirs.candidates) > 0 {
		t.candidates[x.method]++
	}
	switch {
	case x.theirs.replaces:
		t.places[x.method]++
	case len(x.theirs.nodes) > 0:
		t.deletes[x.method]++
	}
	switch {
	case x.difference != "":
		t.causes[methods[x.method]+": "+x.difference]++
	case x.runs > 1:
		t.later++
	}
	t.saved += x.saved
	t.more = append(t.more, max(x.more, -x.more))
}

// report lists the counts for n states.
func (t *disruptionTally) report(n int) string {
	s := fmt.Sprintf("%d states, %d equal (%.2f%%), %d decisions not in Karpenter's first run\n", n, n-t.differ,
		100*float64(n-t.differ)/float64(n), t.later)
	for m, name := range methods {
		s += fmt.Sprintf("  %-9s %d states with candidates, %d deletions, %d replacements\n", name, t.candidates[m],
			t.deletes[m], t.places[m])
	}
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
	slices.Sort(t.more)
	var sum int64
	for _, x := range t.more {
		sum += x
	}
	at := func(q float64) float64 { return float64(t.more[int(q*float64(len(t.more)-1))]) / 1e6 }
	s += fmt.Sprintf("  Karpenter saves $%.2f an hour in all; difference by decision: median $%.4f, p99 $%.4f, most $%.4f, in all $%.2f",
		float64(t.saved)/1e6, at(.5), at(.99), at(1), float64(sum)/1e6)
	return s
}
