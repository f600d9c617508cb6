package live

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
)

// An endedDrain is a drain that has ended, and the time of its end.
type endedDrain struct {
	drain.Result
	at time.Time
}

// endedKept is how long a drain that was held or undone is reported in the conditions of its pool.
const endedKept = 10 * time.Minute

// DrainEnded records the result of a drain. A drain that was held or undone is reported in the
// conditions of its pool until another succeeds or endedKept has passed. DrainEnded is safe for
// concurrent use.
func (c *Controller) DrainEnded(r drain.Result) {
	c.spans.ended(&r)
	c.notifyDrain(&r)
	c.table.drainEnded(r, c.parts.Clock.Now())
	c.workers.status.add(priorityReport, r.Pool)
}

func (t *table) drainEnded(r drain.Result, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drains[r.Pool] = endedDrain{r, now}
	t.drained[r.Node] = r.Outcome == drain.OutcomeDone
	if stops(t.kill) && r.Outcome == drain.OutcomeUndone {
		t.undone = append(t.undone, r.Node)
	}
}

// drainRefused records that a drain did not start. The slot of its node in the ramp becomes free,
// as after a drain that failed.
func (t *table) drainRefused(node string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drained[node] = false
}

// watchRamps passes the results of admitted nodes to the ramps of all pools. Results of other nodes
// are dropped. The result of a drain is kept until Spotter no longer acts on its node or the node
// is drained again.
func (c *Controller) watchRamps(s *policy.Snapshot, live map[string]*policy.Node) {
	drains := c.parts.Drains.Status()
	draining := func(node string) bool {
		return slices.ContainsFunc(drains, func(d drain.Status) bool { return d.Node == node })
	}
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	moving := map[string]bool{}
	for i := range s.Pools {
		r := &c.store.book(s.Pools[i].Name).Ramp
		stage := r.Stage
		if r.observe(live, c.table.drained, draining, s.Now, c.cfg.Settle); r.Stage != stage {
			c.notifyRamp(s.Pools[i].Name, r)
		}
		for _, m := range r.Moving {
			moving[m.Node] = true
		}
	}
	maps.DeleteFunc(c.table.drained, func(node string, _ bool) bool { return live[node] == nil && !moving[node] })
}

// resumeRamps prepares the ramps after a change of leader: of the nodes that the ramps have
// admitted, only those with marks of a drain count as being drained.
func (c *Controller) resumeRamps() {
	for _, b := range c.store.books { // the order does not matter: they are added to a set
		for _, m := range b.Ramp.Moving {
			c.table.drainRefused(m.Node)
		}
	}
}

// turnSwitch records the state of the kill switch, and reports whether it has changed.
func (t *table) turnSwitch(kill permit.Switch) bool {
	turned := t.isTurned(kill)
	t.mu.Lock()
	defer t.mu.Unlock()
	if stops(kill) != stops(t.kill) {
		t.undone = nil
	}
	t.kill = kill
	return turned
}

// isTurned reports whether kill differs from the recorded state of the kill switch.
func (t *table) isTurned(kill permit.Switch) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return kill.On != t.kill.On || kill.Unreadable != t.kill.Unreadable
}

// stops reports whether the state of the kill switch forbids all changes.
func stops(kill permit.Switch) bool { return kill.On || kill.Unreadable }

// A finding contains everything that the status of a pool reports, from the last step and since
// then.
type finding struct {
	*report
	result
	undone []string // nodes whose drains were undone since the kill switch has stopped all changes
}

// finding returns the finding of a pool; nil if no step has observed the pool.
func (t *table) finding(pool string, now time.Time) *finding {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reports[pool] == nil {
		return nil
	}
	x := &finding{t.reports[pool], t.results[pool], slices.Clone(t.undone)}
	switch r, there := t.drains[pool]; {
	case there && now.Sub(r.at) > endedKept:
		delete(t.drains, pool)
	case there && r.Outcome != drain.OutcomeDone:
		x.held = cmp.Or(x.held, held{r.Reason, "the drain of node " + r.Node + " was " + string(r.Outcome) + ": " +
			r.Message})
	}
	return x
}

// stoppedSays returns a sentence about the effects of the kill switch; empty if it is off.
func (x *finding) stoppedSays(drains []drain.Status) string {
	if !stops(x.kill) {
		return ""
	}
	parts := []string{"no node is changed, including those under notice"}
	if len(x.undone) > 0 {
		parts = append(parts, "undone: "+strings.Join(x.undone, ", "))
	}
	var left []string
	for _, d := range drains {
		left = append(left, fmt.Sprintf("%s (%s)", d.Node, d.Phase))
	}
	if len(left) > 0 {
		parts = append(parts, "left: "+strings.Join(left, ", "))
	}
	switch {
	case x.kill.Unreadable:
		parts = append(parts, "it may have been turned on: "+x.kill.Problem)
	case x.kill.Problem != "":
		parts = append(parts, x.kill.Problem+", so its last known value applies")
	}
	return strings.Join(parts, "; ")
}
