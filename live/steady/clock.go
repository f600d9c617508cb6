// Package steady is the clock of a controller. Its time passes as the machine's monotonic clock
// does, whatever happens to the machine's time of day, and starts with the API server's. So nothing
// is booked, and nothing expires, because a clock was set.
package steady

import (
	"log/slog"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// leastJump is the least change between two looks at a clock that is reported: less is
	// latency, or a clock that is being adjusted.
	leastJump = 5 * time.Second

	// agreeMax is how far the API server's time, which is given to the second, may differ
	// before the clock is corrected.
	agreeMax = 2 * time.Second

	// slewPart is the part of the elapsed time by which the clock is corrected at most once
	// it runs, so that its time goes neither back nor much faster than time passes.
	slewPart = 100
)

// A Clock tells the time and makes timers. New makes one; it may be used from several
// goroutines.
type Clock struct {
	clock.RealClock // timers and tickers, which follow the monotonic clock

	read func() (wall time.Time, elapsed time.Duration)
	log  *slog.Logger

	mu     sync.Mutex
	base   time.Time     // the time is base and what has elapsed
	synced bool          // the API server's time was taken
	slewed time.Duration // up to which elapsed time corrections are used up

	local, server offset
	jumps         int
}

// An offset is how far another clock is ahead of this one.
type offset struct {
	ahead time.Duration
	known bool
}

// New returns a clock that shows the machine's time of day until an answer of the API server
// is seen.
func New(log *slog.Logger) *Clock {
	start := bootTime()
	return newClock(log, func() (time.Time, time.Duration) { return time.Now().Round(0), bootTime() - start })
}

func newClock(log *slog.Logger, read func() (time.Time, time.Duration)) *Clock {
	wall, elapsed := read()
	return &Clock{read: read, log: log, base: wall.Add(-elapsed), local: offset{known: true}}
}

// Now returns the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, _ := c.look()
	return now
}

// Since returns how long ago t was.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// A State is what is known of the clocks around a Clock.
type State struct {
	// Local and Server are how far the machine's time of day and the API server's are ahead.
	Local, Server time.Duration

	// Jumps is how often either of them was set.
	Jumps int
}

// State returns what was last seen of other clocks.
func (c *Clock) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look()
	return State{Local: c.local.ahead, Server: c.server.ahead, Jumps: c.jumps}
}

// look returns the time and what has elapsed, and notes whether the machine's time of day
// was set.
func (c *Clock) look() (time.Time, time.Duration) {
	wall, elapsed := c.read()
	now := c.base.Add(elapsed)
	c.note(&c.local, wall.Sub(now), "this machine")
	return now, elapsed
}

// note takes in how far a clock is ahead, and reports that it was set.
func (c *Clock) note(o *offset, ahead time.Duration, of string) {
	jump := ahead - o.ahead
	if o.known && jump.Abs() >= leastJump {
		c.jumps++
		c.log.Warn("a clock was set; elapsed time counts, not the clock", "clock", of, "by", jump.Round(time.Millisecond),
			"ahead", ahead.Round(time.Millisecond))
	}
	o.ahead, o.known = ahead, true
}

// answered takes in the time that the API server gave, to the second, in an answer to a
// request that was sent when sent had elapsed.
func (c *Clock) answered(date time.Time, sent time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, elapsed := c.look()
	took := elapsed - sent
	if took > agreeMax {
		return // it says too little of now
	}
	ahead := date.Add(time.Second / 2).Sub(now.Add(-took / 2))
	if ahead.Abs() <= agreeMax {
		ahead = 0
	}
	if !c.synced {
		c.synced, c.slewed = true, elapsed
		c.set(ahead)
		if ahead.Abs() >= leastJump {
			c.log.Warn("this machine's time of day is not the API server's, which is taken", "behind", ahead.Round(time.Second))
		}
		c.server = offset{known: true}
		return
	}
	c.note(&c.server, ahead, "the API server")
	most := (elapsed - c.slewed) / slewPart
	c.slewed = elapsed
	c.set(max(-most, min(ahead, most)))
}

// set moves the time by d. The other clocks are no further from each other than before.
func (c *Clock) set(d time.Duration) {
	c.base = c.base.Add(d)
	c.local.ahead -= d
	c.server.ahead -= d
}

// elapsed returns what has elapsed since the clock was made.
func (c *Clock) elapsed() time.Duration {
	_, elapsed := c.read()
	return elapsed
}
