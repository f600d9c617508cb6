// Package steady provides the clock of the controller. It follows the monotonic clock of the
// machine and starts at the API server's time. So a change of the machine's time of day neither
// adds cost nor makes anything expire.
package steady

import (
	"log/slog"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// leastJump is the minimum change between two reads of a clock that is reported: a smaller
	// change is latency or clock adjustment.
	leastJump = 5 * time.Second

	// agreeMax is how far the API server's time, which has a precision of one second, may differ
	// before the clock is corrected.
	agreeMax = 2 * time.Second

	// slewPart limits corrections of a running clock to 1/slewPart of the elapsed time, so that its
	// time never goes backwards or runs much too fast.
	slewPart = 100
)

// A Clock returns the time and creates timers. New creates a Clock; it is safe for concurrent use.
type Clock struct {
	clock.RealClock // timers and tickers, which follow the monotonic clock

	read func() (wall time.Time, elapsed time.Duration)
	log  *slog.Logger

	mu     sync.Mutex
	base   time.Time     // the time is base plus the elapsed time
	synced bool          // the API server's time was received
	slewed time.Duration // elapsed time up to which corrections are used up

	local, server offset
	jumps         int
}

// An offset is how far another clock is ahead of this one.
type offset struct {
	ahead time.Duration
	known bool
}

// New returns a clock that shows the machine's time of day until it receives the API server's time.
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

// Since returns the time that has passed since t.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// A State is the state of the other clocks relative to a Clock.
type State struct {
	// Local and Server are how far the machine's time of day and the API server's time are ahead.
	Local, Server time.Duration

	// Jumps is how often either of them was set.
	Jumps int
}

// State returns the last known state of the other clocks.
func (c *Clock) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.look()
	return State{Local: c.local.ahead, Server: c.server.ahead, Jumps: c.jumps}
}

// look returns the time and the elapsed time, and checks whether the machine's time of day was set.
func (c *Clock) look() (time.Time, time.Duration) {
	wall, elapsed := c.read()
	now := c.base.Add(elapsed)
	c.note(&c.local, wall.Sub(now), "this machine")
	return now, elapsed
}

// note records how far a clock is ahead, and logs and counts a jump.
func (c *Clock) note(o *offset, ahead time.Duration, of string) {
	jump := ahead - o.ahead
	if o.known && jump.Abs() >= leastJump {
		c.jumps++
		c.log.Warn("a clock was set; elapsed time counts, not the clock", "clock", of, "by", jump.Round(time.Millisecond),
			"ahead", ahead.Round(time.Millisecond))
	}
	o.ahead, o.known = ahead, true
}

// answered processes the API server's time, with a precision of one second, in the response to a
// request that was sent at the elapsed time sent.
func (c *Clock) answered(date time.Time, sent time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, elapsed := c.look()
	took := elapsed - sent
	if took > agreeMax {
		return // too imprecise
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

// set moves the time by d. The other clocks do not change.
func (c *Clock) set(d time.Duration) {
	c.base = c.base.Add(d)
	c.local.ahead -= d
	c.server.ahead -= d
}

// elapsed returns the time since the clock was created.
func (c *Clock) elapsed() time.Duration {
	_, elapsed := c.read()
	return elapsed
}
