package screen

import (
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// speeds are how much of the run passes in a second of the viewer's, slowest
// first.
var speeds = [...]time.Duration{
	time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 24 * time.Hour, 48 * time.Hour,
}

// usualSpeed is the place in speeds of the speed at which playing starts: an hour a second, a week
// in less than three minutes.
const usualSpeed = 4

// frameTime is how often the screen moves while something plays, waitTime how
// often it looks whether a run has gone on while nothing does.
const (
	frameTime = time.Second / 30
	waitTime  = time.Second / 4
)

// A clock is the shown time, and whether and how fast it advances. It knows no other time than that
// of the ticks it is given.
type clock struct {
	now     policy.Time
	playing bool
	speed   int // place in speeds

	// ticked is when the last tick came, zero when none has since playing began.
	ticked time.Time
}

// stepMax bounds what one tick may move the clock by: after a pause of the machine the run
// continues from where it was and does not leap.
const stepMax = 200 * time.Millisecond

// advance moves a playing clock to the tick at t, at most to limit. It reports
// whether it moved.
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

// pace says the speed, as "1h/s".
func (c *clock) pace() string { return figures.Duration(speeds[c.speed]) + "/s" }
