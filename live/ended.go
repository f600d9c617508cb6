package live

import (
	"maps"
	"time"

	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
)

// An endedDrain is a drain that is over, and since when.
type endedDrain struct {
	drain.Result
	at time.Time
}

// endedKept is how long a drain that was held or undone is told in the conditions of
// its pool.
const endedKept = 10 * time.Minute

// DrainEnded takes note of a drain that is over. The conditions of its pool tell of
// one that came to nothing, until another succeeds or some time has passed. It may be
// called from any goroutine.
func (c *Controller) DrainEnded(r drain.Result) {
	c.results.Lock()
	defer c.results.Unlock()
	c.ended[r.Pool] = endedDrain{r, c.parts.Clock.Now()}
	if r.Outcome != drain.OutcomeDone {
		c.fruitless[r.Node] = true
	}
}

// drainRefused takes note of a drain that was not begun: the place of its node in the
// ramp is given back, as that of one whose drain came to nothing.
func (c *Controller) drainRefused(node string) {
	c.results.Lock()
	defer c.results.Unlock()
	c.fruitless[node] = true
}

// watchRamps lets the ramps of all pools take note of what became of the nodes that they
// let through. What is told of other nodes is forgotten. A node whose marks are still
// seen, or that is drained anew, stays among the fruitless until it is out of our hands.
func (c *Controller) watchRamps(s *policy.Snapshot, standing map[string]*policy.Node) {
	c.results.Lock()
	defer c.results.Unlock()
	for i := range s.Pools {
		c.store.book(s.Pools[i].Name).Ramp.observe(standing, c.fruitless, s.Now, c.cfg.Settle)
	}
	maps.DeleteFunc(c.fruitless, func(node string, _ bool) bool { return standing[node] == nil })
}

// resumeRamps is told that the leader before has ended: of the nodes that ramps have let
// through, those are on their way that their marks say so of, and no others.
func (c *Controller) resumeRamps() {
	c.results.Lock()
	defer c.results.Unlock()
	for _, b := range c.store.books { // in no order: they go into a set
		for _, m := range b.Ramp.Moving {
			c.fruitless[m.Node] = true
		}
	}
}

// heldDrain says why the last drain of a pool came to nothing; nothing if it did not.
func (c *Controller) heldDrain(pool string) held {
	c.results.Lock()
	defer c.results.Unlock()
	r, there := c.ended[pool]
	switch {
	case !there:
		return held{}
	case c.parts.Clock.Since(r.at) > endedKept:
		delete(c.ended, pool)
		return held{}
	case r.Outcome == drain.OutcomeDone:
		return held{}
	}
	return held{r.Reason, "the drain of node " + r.Node + " was " + string(r.Outcome) + ": " + r.Message}
}
