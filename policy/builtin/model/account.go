package model

import (
	"fmt"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// account adds to plan the explanations of the shares.
func (t *turn) account(plan *policy.Plan) {
	for i := range plan.Steers {
		x := &plan.Steers[i]
		c := &t.courses[x.Pool]
		if c.pool == nil || c.pool.Share.Exact {
			continue
		}
		text := fmt.Sprintf("%s; the Spot share changes from %.2f to %.2f", t.said(c), c.was, x.Share)
		if c.was == x.Share {
			text = fmt.Sprintf("%s; the Spot share stays at %.2f, in the markets that cost least with expected losses",
				t.said(c), x.Share)
		}
		if c.kept > 0 {
			text += fmt.Sprintf("; %s of it stays on demand, since its services could not tolerate losing it",
				figures.Share(c.kept, 0))
		}
		why := t.why(c, text)
		why.Before, why.After = x.Why.Before, x.Why.After
		x.Why = why
	}
	for i := range t.courses {
		if c := &t.courses[i]; c.wait != "" && !c.pool.Share.Exact {
			w := t.why(c, c.text)
			w.Reason = c.wait
			plan.Holds = append(plan.Holds, policy.Hold{Pool: c.pool.ID, Node: policy.None, Why: w})
		}
	}
}

// said returns a text that names the action with the highest value.
func (t *turn) said(c *course) string {
	if len(c.pool.Actions) != actions {
		return "no trained model rates the actions for this pool"
	}
	return "the model's best action is to " + verb(c.action)
}

// verb returns the text of an action as a verb phrase.
func verb(action int) string {
	if action == hold || action == exit {
		return names[action]
	}
	return "hold " + names[action] + " on Spot"
}

// why returns the reason of a plan entry, with the action of the second highest value as the
// runner-up.
func (t *turn) why(c *course, text string) policy.Why {
	w := policy.Why{Reason: ReasonValued, Text: text, RunnerUp: "hold"}
	if len(c.pool.Actions) != actions {
		w.Reason = ReasonUnvalued
		return w
	}
	second := -1
	for a, q := range c.pool.Actions {
		if a != c.action && (second < 0 || q > c.pool.Actions[second]) {
			second = a
		}
	}
	w.RunnerUp = fmt.Sprintf("%s, rated %.4f instead of %.4f", verb(second), c.pool.Actions[second],
		c.pool.Actions[c.action])
	return w
}
