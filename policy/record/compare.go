package record

import (
	"fmt"

	"github.com/spotter-dev/spotter/policy"
)

// Comparing configures a comparison of recorded and repeated decisions.
type Comparing struct {
	// Memory reports whether to compare the memory after a decision with the memory at the start of
	// the next step, if that step was recorded. This is meaningful only for the recorded policy.
	Memory bool

	// Most is the maximum number of differences to keep; 0 keeps all. All are counted.
	Most int
}

// A Comparison is the result of comparing a recording with repeated decisions.
type Comparison struct {
	// Steps is the number of recorded steps, Differing the number of steps with a difference, and
	// Total the number of differences.
	Steps, Differing, Total int

	// Gaps are the missing step numbers, due to a restart, steps that could not be recorded, or a
	// missing segment.
	Gaps []Span

	// Differences are the first differences, in order.
	Differences []Difference

	// Recorded and Again count the entries of the recorded and of the repeated plans.
	Recorded, Again Tally
}

// A Tally counts the entries of plans.
type Tally struct {
	Steers, Launches, Drains, DeletionCosts, Gates, Pauses, Evicts, Holds int

	// Priced is the number of entries, without holds, that state a cost. Before and After are the
	// sums of these costs per hour, without and with the entries.
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

// Compare repeats every decision of r with the policy that choose returns for its step. A panic of
// the policy counts as a difference in that step and leaves the memory unchanged.
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

// decide makes one decision. bug is the value with which the policy panicked, or empty.
func decide(p policy.Policy, s *Step) (plan policy.Plan, memory policy.Memory, bug string) {
	defer func() {
		if b := recover(); b != nil {
			plan, memory, bug = policy.Plan{}, s.Memory, fmt.Sprint(b)
		}
	}()
	plan, memory = p.Decide(s.Snapshot, s.Memory)
	return plan, memory, ""
}

// A comparison is a Comparison in progress.
type comparison struct {
	Comparison
	by Comparing

	// last is the last step with a difference.
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
