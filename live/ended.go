package live

import (
	"time"

	"github.com/spotter-dev/spotter/live/drain"
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
