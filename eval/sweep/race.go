package sweep

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/stats"
)

// errorRate is the chance, over all rungs of a race, that the best candidate drops out.
const errorRate = 0.05

// A Config says what is swept.
type Config struct {
	Plan *Plan

	// Scenario is the name of what Text is.
	Scenario string
	Text     []byte

	// Seeds are those of the first rung; later ones follow the greatest.
	Seeds []uint64

	// Store keeps runs under what NewKey's functions return: a digest of all that a run depends on.
	// Each may keep what it has read of scenarios, and is used while those are raced.
	Store  Store
	NewKey func() func(eval.Job) (string, error)

	// Bind reads a changed text and binds its windows, Check says whether a policy can be made for
	// them, and NewRunner makes what does runs, which may keep what it prepared.
	Bind      func(text []byte) ([]eval.Case, error)
	Check     func(policy string, cases []eval.Case) error
	NewRunner func() eval.Runner

	// Progress, if not nil, is called with how many runs are done of how many in a step.
	Progress func(step string, done, total int)
}

// A Run is one run of a candidate.
type Run struct {
	eval.RunRow

	// Race and Candidate are places in Result.Races and Race.Candidates. Rung counts from 1; 0 is
	// a run on fresh seeds.
	Race, Candidate, Rung int
}

// A Result is the result of a sweep.
type Result struct {
	Plan     *Plan
	Scenario string
	Races    []Race

	// Runs are ordered by race, rung, candidate, window and seed, those on fresh seeds last in each
	// race. On-demand and what changes nothing are among them.
	Runs []Run
}

// A Race is what happened under one set of conditions.
type Race struct {
	Conditions []Setting

	// Candidates begin with the one that changes nothing.
	Candidates []Row

	// Chosen is the place of the one with the greatest median of net savings among those that did
	// not drop out. Fresh judges it by seeds that it was not chosen by; FreshAsItIs are the savings
	// of what changes nothing there.
	Chosen             int
	Fresh, FreshAsItIs Figures

	// Seeds are those of the race, FreshSeeds those that judge what was chosen.
	Seeds, FreshSeeds []uint64

	// Need is how many seeds or windows a rung needs for any candidate to drop out, 0 where there
	// are enough.
	Need int

	Cases []eval.Case
}

// A Row is what a candidate came to in its race.
type Row struct {
	Candidate
	Figures

	// Rungs is how many it took part in; Dropped says that it was then worse than the leader
	// beyond chance. Loss is what it was worse by, as in [stats.Paired].
	Rungs   int
	Dropped bool
	Loss    stats.Paired

	// Front says that no other candidate is as good in savings, outage minutes and evictions and
	// better in one of them.
	Front bool
}

// Figures are those of runs. Change is of net savings against what changes nothing, run by run, in
// points of the on-demand bill; evictions are per pod-day.
type Figures struct {
	Saved, Change, Outage, Evictions eval.Summary
}

// Sweep runs a plan. When ctx ends the error wraps its; what was run is kept in the store.
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

// A heat is a race that is being run.
type heat struct {
	*Config
	field      []Candidate
	race       Race
	number, of int
	alive      []int // places in field
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
	// Fresh seeds do not depend on when the race ends.
	all := eval.Following(h.Seeds, len(h.Seeds)*(1<<(rungsMost-1)-1))
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
		later := func(r *Run) int { return (r.Rung + rungsMost) % (rungsMost + 1) }
		return cmp.Or(cmp.Compare(later(&a), later(&b)), cmp.Compare(a.Candidate, b.Candidate),
			cmp.Compare(a.CaseIndex, b.CaseIndex), cmp.Compare(a.Seed, b.Seed))
	})
	return nil
}

// together is how many candidates are prepared at once: each may have prices and weather of its
// own, and all of them would be gigabytes.
const together = 16

// step runs those that are left, and what changes nothing, under seeds.
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
				continue // on-demand, which the metrics hold, and what was in the first part
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

// part runs some of the field and on-demand.
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
