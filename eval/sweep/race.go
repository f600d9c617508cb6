package sweep

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/stats"
)

// errorRate is the maximum probability, over all rungs of a race, that the best candidate is
// dropped.
const errorRate = 0.05

// A Config describes a sweep and its environment.
type Config struct {
	Plan *Plan

	// Scenario is the name of the scenario in Text.
	Scenario string
	Text     []byte

	// Seeds are the seeds of the first rung; later rungs use the numbers after the highest.
	Seeds []uint64

	// Store stores runs by the keys from NewKey: a digest of all inputs of a run. NewKey returns a
	// function that may cache what it read of scenarios; it is used for one set of candidates.
	Store  Store
	NewKey func() func(eval.Job) (string, error)

	// Bind parses a changed scenario and binds its windows. Check returns an error if a policy
	// cannot be created for them. NewRunner returns a runner, which may cache its preparations.
	Bind      func(text []byte) ([]eval.Case, error)
	Check     func(policy string, cases []eval.Case) error
	NewRunner func() eval.Runner

	// Progress, if not nil, is called with the numbers of finished and of all runs in a step.
	Progress func(step string, done, total int)
}

// A Run is one run of a candidate.
type Run struct {
	eval.RunRow

	// Race and Candidate are indexes of Result.Races and Race.Candidates. Rung counts from 1; 0
	// means a run on fresh seeds.
	Race, Candidate, Rung int
}

// A Result is the result of a sweep.
type Result struct {
	Plan     *Plan
	Scenario string
	Races    []Race

	// Runs are ordered by race, rung, candidate, window and seed, with those on fresh seeds last in
	// each race. They include the candidate that changes nothing, but not on-demand.
	Runs []Run
}

// A Race is the result under one set of conditions.
type Race struct {
	Conditions []Setting

	// Candidates starts with the one that changes nothing.
	Candidates []Row

	// Chosen is the index of the remaining candidate with the highest median of net savings. Fresh
	// are its results on fresh seeds, which did not affect the choice, and FreshAsItIs those of the
	// candidate that changes nothing.
	Chosen             int
	Fresh, FreshAsItIs Figures

	// Seeds are the seeds of the race, FreshSeeds those for the chosen candidate.
	Seeds, FreshSeeds []uint64

	// Need is the number of seeds or windows that the last rung requires to drop any candidate, 0
	// if there are enough.
	Need int

	Cases []eval.Case
}

// A Row is the result of a candidate in its race.
type Row struct {
	Candidate
	Figures

	// Rungs is the number of rungs that it took part in. Dropped reports whether it was then worse
	// than the leader beyond chance. Loss is its loss relative to the leader, as in [stats.Paired].
	Rungs   int
	Dropped bool
	Loss    stats.Paired

	// Front reports whether no other candidate is at least as good in savings, outage minutes and
	// evictions, and better in one of them.
	Front bool
}

// Figures summarizes runs. Change is the difference of net savings to the candidate that changes
// nothing, run by run, in percentage points of the on-demand bill; Evictions are per pod-day.
type Figures struct {
	Saved, Change, Outage, Evictions eval.Summary
}

// Sweep runs a plan. If ctx ends, the error wraps that of ctx, and the store contains the finished
// runs.
func Sweep(ctx context.Context, c Config) (*Result, error) {
	r := &Result{Plan: c.Plan, Scenario: c.Scenario}
	sets := c.Plan.Spec.ConditionSets()
	fields := make([][]Candidate, len(sets))
	for i, set := range sets {
		var err error
		if fields[i], err = c.candidates(ctx, set); err != nil {
			return nil, err
		}
	}
	for i, set := range sets {
		h := &heat{Config: &c, field: fields[i], race: Race{Conditions: set}, number: i, of: len(sets)}
		if err := h.run(ctx); err != nil {
			return nil, err
		}
		r.Races, r.Runs = append(r.Races, h.race), append(r.Runs, h.runs...)
	}
	return r, nil
}

// A heat is a race in progress.
type heat struct {
	*Config
	field      []Candidate
	race       Race
	number, of int
	alive      []int // indexes of field
	runs       []Run
}

func (h *heat) run(ctx context.Context) error {
	base, err := h.Bind(h.field[0].Text)
	if err != nil {
		return err
	}
	h.race.Cases = base
	for i := range h.field {
		h.alive = append(h.alive, i)
		h.race.Candidates = append(h.race.Candidates, Row{Candidate: h.field[i]})
	}
	// The fresh seeds must not depend on the rung at which the race ends.
	all := eval.Following(h.Seeds, len(h.Seeds)*(1<<(rungsMax-1)-1))
	if all != nil {
		h.race.FreshSeeds = eval.Following(all, h.Plan.Spec.Fresh)
	}
	if h.race.FreshSeeds == nil {
		return fmt.Errorf("behind seed %d there are too few numbers for the seeds of all rungs", slices.Max(h.Seeds))
	}
	seeds := h.Seeds
	for rung := 1; ; rung++ {
		if err := h.step(ctx, seeds, rung); err != nil {
			return err
		}
		h.race.Seeds = append(h.race.Seeds, seeds...)
		h.drop(rung)
		seeds = eval.Following(h.race.Seeds, len(h.race.Seeds))
		if rung == h.Plan.Spec.Rungs || len(h.alive) == 1 {
			break
		}
	}
	h.race.Chosen = h.leader()
	for i := range h.race.Candidates {
		h.race.Candidates[i].Figures = h.figures(i, 0)
	}
	h.front()
	h.alive = []int{h.race.Chosen}
	if err := h.step(ctx, h.race.FreshSeeds, 0); err != nil {
		return err
	}
	rate := errorRate / float64(h.of)
	h.race.Fresh, h.race.FreshAsItIs = h.fresh(h.race.Chosen, rate), h.fresh(0, rate)
	slices.SortStableFunc(h.runs, func(a, b Run) int {
		later := func(r *Run) int { return (r.Rung + rungsMax) % (rungsMax + 1) }
		return cmp.Or(cmp.Compare(later(&a), later(&b)), cmp.Compare(a.Candidate, b.Candidate),
			cmp.Compare(a.CaseIndex, b.CaseIndex), cmp.Compare(a.Seed, b.Seed))
	})
	return nil
}

// together is the number of candidates that are prepared at once. Each may have prices and weather
// of its own, so all of them could require gigabytes of memory.
const together = 16

// step runs the remaining candidates and the one that changes nothing with seeds.
func (h *heat) step(ctx context.Context, seeds []uint64, rung int) error {
	left := slices.DeleteFunc(slices.Clone(h.alive), func(i int) bool { return i == 0 })
	total := (len(left) + 1) * len(seeds) * len(h.race.Cases)
	done := 0
	for part := range slices.Chunk(append([]int{0}, left...), together) {
		first := part[0] == 0
		if !first {
			part = append([]int{0}, part...)
		}
		rows, err := h.part(ctx, part, seeds, func(n int) {
			if h.Progress != nil {
				h.Progress(h.stepName(rung), min(done+n, total), total)
			}
		})
		if err != nil {
			return err
		}
		for _, row := range rows {
			i := slices.IndexFunc(part, func(i int) bool { return h.field[i].Name == row.Policy })
			if i < 0 || part[i] == 0 && !first {
				continue // on-demand, which is only needed for metrics, and AsItIs, which the first part contains
			}
			h.runs = append(h.runs, Run{row, h.number, part[i], rung})
			done++
		}
	}
	return nil
}

func (h *heat) stepName(rung int) string {
	name := "fresh seeds"
	if rung > 0 {
		name = fmt.Sprintf("rung %d, %d candidates", rung, len(h.alive))
	}
	if h.of > 1 {
		name = fmt.Sprintf("race %d of %d: %s", h.number+1, h.of, name)
	}
	return name
}

// part runs some of the candidates, and on-demand.
func (h *heat) part(ctx context.Context, part []int, seeds []uint64, progress func(done int)) ([]eval.RunRow, error) {
	cfg := eval.Config{
		Cases: h.race.Cases, Seeds: seeds, Baseline: AsItIs, Policies: []string{eval.OnDemand},
		Progress: func(p eval.Progress) { progress(p.Done * len(part) / (len(part) + 1)) },
	}
	for _, i := range part {
		x := &h.field[i]
		v := eval.Variant{Name: x.Name, Policy: x.Policy, Cases: h.race.Cases}
		if string(x.Text) != string(h.field[0].Text) {
			var err error
			if v.Cases, err = h.Bind(x.Text); err != nil {
				return nil, err
			}
		}
		cfg.Policies, cfg.Variants = append(cfg.Policies, x.Name), append(cfg.Variants, v)
	}
	rows, err := eval.Runs(ctx, cfg, h.kept())
	if err != nil {
		return nil, err
	}
	if x := eval.Broken(rows); x != nil {
		return nil, fmt.Errorf("%s broke in window %d under seed %d: %w", x.Policy, x.Window, x.Seed, x.Err)
	}
	return rows, nil
}
