package screen

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// speeds are the simulated times per second of playback, ascending.
var speeds = [...]time.Duration{
	time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 24 * time.Hour, 48 * time.Hour,
}

// usualSpeed is the index in speeds of the initial speed: an hour per second, or a week in less
// than three minutes.
const usualSpeed = 4

// frameTime is the interval of screen updates during playback, and waitTime the interval at which
// the progress of runs is checked otherwise.
const (
	frameTime = time.Second / 30
	waitTime  = time.Second / 4
)

// A clock is the time shown, and whether and how fast it advances. It advances only by the ticks
// that it receives.
type clock struct {
	now     policy.Time
	playing bool
	speed   int // index in speeds

	// ticked is the time of the last tick, or zero if there was no tick since playback started.
	ticked time.Time
}

// stepMax is the maximum duration that one tick may account for: after a suspension of the machine,
// playback continues where it was.
const stepMax = 200 * time.Millisecond

// advance advances a playing clock to the tick at t, but not beyond limit. It reports whether the
// time changed.
func (c *clock) advance(t time.Time, limit policy.Time) bool {
	if !c.playing {
		c.ticked = time.Time{}
		return false
	}
	passed := frameTime
	if !c.ticked.IsZero() {
		passed = min(t.Sub(c.ticked), stepMax)
	}
	c.ticked = t
	if passed <= 0 {
		return false
	}
	shown := time.Duration(float64(passed) * speeds[c.speed].Seconds())
	next := min(c.now.Add(shown), limit)
	moved := next > c.now
	c.now = max(c.now, next)
	return moved
}

// faster raises the speed by the given number of steps, or lowers it if by is negative.
func (c *clock) faster(by int) { c.speed = min(max(c.speed+by, 0), len(speeds)-1) }

// pace returns the speed, such as "1h/s".
func (c *clock) pace() string { return figures.Duration(speeds[c.speed]) + "/s" }
