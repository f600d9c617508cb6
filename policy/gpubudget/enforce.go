package gpubudget

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// An enforcement adds the actions of the budgets to one plan.
type enforcement struct {
	cfg     *Config
	s       *policy.Snapshot
	before  *policy.Memory
	plan    *policy.Plan
	tallies []tally
	index   *index

	// running contains, by template that a budget counts, the pods that hold devices. picked
	// reports, by pod, whether this plan evicts it.
	running [][]int32
	picked  []bool
}

// judge determines, for all budgets before acting on any, which are spent and which gates must be
// closed.
func (e *enforcement) judge() {
	for i := range e.tallies {
		t := &e.tallies[i]
		b := t.budget
		if b.Invalid {
			continue
		}
		t.over = t.use.atLeast(b, 1)
		switch {
		case !t.over:
			t.next.Over = 0
		case t.next.Over == 0:
			t.next.Over = e.s.Now
		}
		t.enforcing = t.over && b.Action != policy.BudgetAlert && e.s.Now >= t.next.Over.Add(b.OverQuotaDelay)
		gated := b.Gate || b.Action != policy.BudgetAlert
		t.closed = t.over && (b.Gate || t.enforcing) || gated && t.next.Closed && t.use.atLeast(b, 1-e.room(t))
	}
}

// room returns the fraction of the quota of t that must be free for its gate to open.
func (e *enforcement) room(t *tally) float64 {
	if t.budget.Action == policy.BudgetPause {
		return e.cfg.JobRoom
	}
	return e.cfg.Room
}

// act adds gates, pauses and evictions to the plan, and requests the next step in time.
func (e *enforcement) act() {
	p := e.plan // appending must not change lists of the inner policy
	p.Gates, p.Pauses, p.Evicts, p.Holds = slices.Clip(p.Gates), slices.Clip(p.Pauses), slices.Clip(p.Evicts), slices.Clip(p.Holds)
	for i := range e.tallies {
		t := &e.tallies[i]
		if t.budget.Invalid {
			continue
		}
		e.gate(t)
		e.forget(t)
		switch {
		case t.over && t.budget.Action == policy.BudgetAlert:
			e.hold(t, "the budget is spent; its action is Alert, so its pods keep running")
		case t.enforcing && !t.budget.Closed:
			e.hold(t,
				"the budget is spent; its pods are evicted once the gate is closed, since their controllers would recreate them before")
		case t.enforcing && t.budget.Action == policy.BudgetPause:
			e.pause(t)
		case t.enforcing:
			e.evict(t)
		}
		e.wake(t)
	}
	e.resume()
}

// gate adds an order to change the gate of t if it is not in the required state. An order is
// repeated only after Retry.
func (e *enforcement) gate(t *tally) {
	b := t.budget
	again := t.next.Closed == t.closed && e.s.Now < t.next.Ordered.Add(e.cfg.Retry)
	t.next.Closed = t.closed
	if t.closed == b.Closed || again {
		return
	}
	t.next.Ordered = e.s.Now
	text := fmt.Sprintf("%s: %s", b.Name, t.state())
	if t.closed {
		text += ", so no new pod is admitted; " + e.reopening(t)
	} else {
		text += ", so pods are admitted again"
	}
	e.plan.Gates = append(e.plan.Gates, policy.Gate{Budget: b.Name, Closed: t.closed, Why: policy.Why{
		Reason: policy.ReasonBudget, Text: text, Before: t.now.cost, After: t.now.cost,
	}})
}

// reopening returns a text about when the gate of t will open again.
func (e *enforcement) reopening(t *tally) string {
	at := e.reopens(t, e.s.Now.Add(t.budget.Window))
	switch {
	case at == 0 && t.now.devices > 0:
		return "it opens when fewer of its pods run"
	case at == 0:
		return "it stays closed"
	case t.leaves():
		return fmt.Sprintf("it opens at %v once all its pods are gone", at)
	}
	return fmt.Sprintf("it opens at %v if its pods keep running as now", at)
}

// leaves reports whether the pods of t are removed, so that they are assumed to use nothing from
// now on.
func (t *tally) leaves() bool { return t.budget.Action != policy.BudgetAlert }

// reopens returns when the budget will have room again; zero if that is unknown or after horizon.
func (e *enforcement) reopens(t *tally, horizon policy.Time) policy.Time {
	if t.budget.LiveObjects {
		return 0
	}
	r := t.now
	if t.leaves() {
		r = rate{}
	}
	return t.ledger.crossing(t.budget, e.s.Now, horizon, r, 1-e.room(t), false)
}

// state returns a text about how much of the budget of t is used.
func (t *tally) state() string {
	var parts []string
	if b := t.budget; b.HasGPUHours {
		unit := "GPU-hours"
		if b.Resource == "cpu" {
			unit = "core-hours"
		}
		parts = append(parts, fmt.Sprintf("%.2f of %g %s", t.use.hours(), b.GPUHours, unit))
	}
	if b := t.budget; b.HasDollars {
		parts = append(parts, fmt.Sprintf("%s of %s", t.use.cost.Short(), b.Dollars.Short()))
	}
	return strings.Join(parts, " and ") + " used in the last " + window(t.budget.Window)
}

// window formats a window of whole hours.
func window(d time.Duration) string { return fmt.Sprintf("%d h", int64(d.Hours())) }

func (e *enforcement) hold(t *tally, text string) {
	e.plan.Holds = append(e.plan.Holds, policy.Hold{Pool: policy.None, Node: policy.None, Why: policy.Why{
		Reason: policy.ReasonBudget, Text: fmt.Sprintf("%s: %s: %s", t.budget.Name, t.state(), text),
		Before: t.now.cost, After: t.now.cost,
	}})
}

// wake requests a step at the next time that matters for t.
func (e *enforcement) wake(t *tally) {
	b, now := t.budget, e.s.Now
	at := func(x policy.Time) {
		if x > now {
			e.plan.Wake = min(e.plan.Wake, max(x, now.Add(e.cfg.Soonest)))
		}
	}
	if t.closed != b.Closed && t.next.Ordered == now {
		at(now.Add(e.cfg.Soonest)) // to observe the result
	}
	switch {
	case !t.over && t.now.devices > 0:
		at(e.spentAt(t))
	case t.over && b.Action != policy.BudgetAlert && !t.enforcing:
		at(t.next.Over.Add(b.OverQuotaDelay))
	}
	if t.closed {
		at(e.reopens(t, e.plan.Wake))
	}
}

// spentAt returns when the budget of t will be spent if its pods keep running; zero if that is not
// before the next step.
func (e *enforcement) spentAt(t *tally) policy.Time {
	if !t.budget.LiveObjects {
		return t.ledger.crossing(t.budget, e.s.Now, e.plan.Wake, t.now, 1, true)
	}
	// The use of live pods never falls while they run, except for the part that leaves the window.
	l := ledger{{Hour: e.s.Now, Used: t.use.used, Cost: t.use.cost}}
	return l.crossing(t.budget, e.s.Now, e.plan.Wake, t.now, 1, true)
}

// keepNodes removes from the plan the drains of nodes whose pods would not be admitted again, and
// the launches that would replace these nodes. A node under notice is lost in any case, so its
// drain is kept. The result reports, by node, whether a drain was removed; it is nil if none was.
func (e *enforcement) keepNodes() (held []bool) {
	if len(e.plan.Drains) == 0 || !slices.ContainsFunc(e.tallies, func(t tally) bool { return t.closed }) {
		return nil
	}
	kept := make([]string, len(e.s.Nodes)) // by node, the name of the budget that keeps it
	for t, pods := range e.running {
		shut := slices.IndexFunc(e.index.of[t], func(c match) bool { return e.tallies[c.at].closed })
		if shut < 0 || e.s.Templates[t].DaemonSet {
			continue
		}
		for _, i := range pods {
			if p := &e.s.Pods[i]; p.Phase != policy.PodTerminating && e.s.Nodes[p.Node].ReclaimAt == 0 {
				kept[p.Node] = e.tallies[e.index.of[t][shut].at].budget.Name
			}
		}
	}
	var tokens []string
	drains := make([]policy.Drain, 0, len(e.plan.Drains))
	for _, d := range e.plan.Drains {
		if kept[d.Node] == "" {
			drains = append(drains, d)
			continue
		}
		if held == nil {
			held = make([]bool, len(e.s.Nodes))
		}
		held[d.Node] = true
		tokens = append(tokens, d.After...)
		why := d.Why
		why.Reason = policy.ReasonBudget
		why.Text = kept[d.Node] + ": its gate is closed, so the pods of the node would not be admitted again"
		e.plan.Holds = append(e.plan.Holds, policy.Hold{Pool: e.s.Nodes[d.Node].Pool, Node: d.Node, Why: why})
	}
	e.plan.Drains = drains
	e.dropLaunches(kept, tokens)
	return held
}

// forgetMoves undoes what m records of the removed drains, as the guardrails do for the drains that
// they hold: the last move of a pool without moves is reset, and so is the backoff of a node whose
// drain was not tried.
func (e *enforcement) forgetMoves(m policy.Memory, held []bool) policy.Memory {
	moves := make([]bool, len(e.s.Pools))
	for i := range e.plan.Drains {
		if n := &e.s.Nodes[e.plan.Drains[i].Node]; n.Pool != policy.None && n.ReclaimAt == 0 {
			moves[n.Pool] = true
		}
	}
	for i := range e.s.Nodes {
		n := &e.s.Nodes[i]
		if !held[i] || n.Pool == policy.None {
			continue
		}
		pool := m.Pool(e.s.Pools[n.Pool].Name)
		before := e.before.Pool(pool.Name)
		if !moves[n.Pool] {
			pool.Moved = before.Moved
		}
		pool.Backoff = restored(pool.Backoff, before.Backoff, n.Name)
		m = m.With(pool)
	}
	return m
}

// restored returns list with the entry of node reset to its entry in before.
func restored(list, before []policy.Backoff, node string) []policy.Backoff {
	named := func(b policy.Backoff) bool { return b.Node == node }
	at, was := slices.IndexFunc(list, named), slices.IndexFunc(before, named)
	switch {
	case at >= 0 && was >= 0:
		list = slices.Clone(list)
		list[at] = before[was]
	case at >= 0:
		list = slices.Delete(slices.Clone(list), at, at+1)
		if len(list) == 0 {
			return nil
		}
	}
	return list
}

// dropLaunches removes from the plan the launches that replace a kept node, or that only removed
// drains wait for.
func (e *enforcement) dropLaunches(kept, tokens []string) {
	needed := func(token string) bool {
		return slices.ContainsFunc(e.plan.Drains, func(d policy.Drain) bool { return slices.Contains(d.After, token) })
	}
	launches := make([]policy.Launch, 0, len(e.plan.Launches))
	for _, l := range e.plan.Launches {
		replaces := l.Replaces != policy.None && kept[l.Replaces] != ""
		if !replaces && !slices.Contains(tokens, l.Token) || needed(l.Token) {
			launches = append(launches, l)
		}
	}
	e.plan.Launches = launches
}
