package record

import (
	"fmt"

	"github.com/spotter-dev/spotter/policy"
)

// Comparing says what of two decisions is compared.
type Comparing struct {
	// Memory compares also what a decision leaves behind with what the next step
	// began with, where that step was recorded. It means something only for the
	// policy that was recorded.
	Memory bool

	// Most is how many differences are kept; 0 keeps all. All are counted.
	Most int
}

// A Comparison is a recording against the same decisions taken again.
type Comparison struct {
	// Steps are those of the recording, Differing those of them with a difference,
	// and Total is how many differences there are.
	Steps, Differing, Total int

	// Gaps are the numbers that are left out between steps: of a restart, of steps
	// that could not be recorded, or of a segment that is missing.
	Gaps []Span

	// Differences are the first of them, in order.
	Differences []Difference

	// Recorded and Again are the tallies of the plans on both sides.
	Recorded, Again Tally
}

// A Tally counts the entries of plans.
type Tally struct {
	Steers, Launches, Drains, DeletionCosts, Gates, Pauses, Evicts, Holds int

	// Priced are the entries, holds left out, whose reason has dollars. Before and
	// After are the sums of these per hour, without the entries and with them.
	Priced        int
	Before, After policy.Money
}

func (t *Tally) add(rows []planRow) {
	for i := range rows {
		r := &rows[i]
		count := map[string]*int{
			kindSteer: &t.Steers, kindLaunch: &t.Launches, kindDrain: &t.Drains, kindDeletionCost: &t.DeletionCosts,
			kindGate: &t.Gates, kindPause: &t.Pauses, kindEvict: &t.Evicts, kindHold: &t.Holds,
		}[r.Kind]
		*count++
		if r.Kind != kindHold && (r.CostBefore != 0 || r.CostAfter != 0) {
			t.Priced++
			t.Before += policy.Money(r.CostBefore)
			t.After += policy.Money(r.CostAfter)
		}
	}
}

// Compare takes every decision of r again, each with the policy that choose
// returns for its step. A policy that panics differs in that step and leaves the
// memory as it was.
func Compare(r *Recording, choose func(*Step) (policy.Policy, error), by Comparing) (Comparison, error) {
	c := comparison{by: by}
	var before *Step
	var left policy.Memory
	for s, err := range r.Steps() {
		if err != nil {
			return c.Comparison, err
		}
		if before != nil && s.Number > before.Number+1 {
			c.Gaps = append(c.Gaps, Span{before.Number + 1, s.Number - 1})
		}
		if by.Memory && before != nil && s.Number == before.Number+1 && !sameMemory(&left, &s.Memory) {
			c.differ(Difference{
				Step: before.Number, Now: before.Snapshot.Now,
				Recorded: fmt.Sprintf("memory %+v", s.Memory), Again: fmt.Sprintf("memory %+v", left),
			})
		}
		p, err := choose(s)
		if err != nil {
			return c.Comparison, fmt.Errorf("step %d: %w", s.Number, err)
		}
		plan, memory, bug := decide(p, s)
		left = memory
		if err := c.step(s, &plan, bug); err != nil {
			return c.Comparison, err
		}
		before = s
	}
	return c.Comparison, nil
}

// decide takes one decision. bug is what the policy panicked with, empty when it
// did not.
func decide(p policy.Policy, s *Step) (plan policy.Plan, memory policy.Memory, bug string) {
	defer func() {
		if b := recover(); b != nil {
			plan, memory, bug = policy.Plan{}, s.Memory, fmt.Sprint(b)
		}
	}()
	plan, memory = p.Decide(s.Snapshot, s.Memory)
	return plan, memory, ""
}

// A comparison is one under way.
type comparison struct {
	Comparison
	by Comparing

	// last is the step that was last found to differ.
	last int64
}

// step compares one plan.
func (c *comparison) step(s *Step, again *policy.Plan, bug string) error {
	c.Steps++
	recorded, err := toPlanRows(s.Number, s.Snapshot, &s.Plan)
	if err != nil {
		return err
	}
	c.Recorded.add(recorded)
	if bug != "" {
		c.differ(Difference{Step: s.Number, Now: s.Snapshot.Now, Recorded: fmt.Sprintf("a plan of %d entries",
			len(recorded)), Again: "the policy panicked: " + bug})
		return nil
	}
	rows, err := toPlanRows(s.Number, s.Snapshot, again)
	if err != nil {
		return err
	}
	c.Again.add(rows)
	for _, d := range diff(s, again, recorded, rows) {
		c.differ(d)
	}
	return nil
}

func (c *comparison) differ(d Difference) {
	if c.Total == 0 || c.last != d.Step {
		c.Differing++
	}
	c.last = d.Step
	c.Total++
	if c.by.Most == 0 || len(c.Differences) < c.by.Most {
		c.Differences = append(c.Differences, d)
	}
}
