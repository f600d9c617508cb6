package history

import (
	"fmt"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A span is an interval without observations.
type span struct{ from, to policy.Time }

// A clock records when a source made observations: at every step except in gaps.
type clock struct {
	from, to policy.Time
	step     time.Duration
	gaps     []span      // ascending
	last     policy.Time // time of the last observation, or zero before the first
}

// tick records an observation at an instant. Instants must be ascending.
func (c *clock) tick(at policy.Time) {
	before := c.last.Add(c.step)
	if c.last == 0 {
		before = c.from
	}
	if at > before {
		c.gaps = append(c.gaps, span{before, at})
	}
	c.last = at
}

// end records that there are no more observations.
func (c *clock) end() {
	before := c.last.Add(c.step)
	if c.last == 0 {
		before = c.from
	}
	if before < c.to {
		c.gaps = append(c.gaps, span{before, c.to})
	}
}

// seen returns the first observation at or after an instant.
func (c *clock) seen(at policy.Time) policy.Time {
	for i := len(c.gaps) - 1; i >= 0 && c.gaps[i].to > at; i-- {
		if c.gaps[i].from <= at {
			return c.gaps[i].to
		}
	}
	return at
}

// gapLeast is the length that a gap must exceed to be reported. Single scrapes may fail anywhere.
const gapLeast = 5 * time.Minute

// uncertain describes the gaps.
func (c *clock) uncertain() []string {
	n, total := 0, time.Duration(0)
	var longest span
	for _, g := range c.gaps {
		if d := g.to.Sub(g.from); d > gapLeast {
			n++
			total += d
			if d > longest.to.Sub(longest.from) {
				longest = g
			}
		}
	}
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("nothing was recorded for %v in %d gaps of more than %v, the longest from %v to %v: the state before each is assumed to last",
		total, n, gapLeast, longest.from.Std().Format(time.RFC3339), longest.to.Std().Format(time.RFC3339))}
}

// A track is a number over time, stored as its changes.
type track struct {
	changes []Change
	last    policy.Time
}

// observe records a number. If there were observations without it since the last one, it was 0
// there. Instants must be ascending.
func (t *track) observe(c *clock, at policy.Time, n int32) {
	switch {
	case t.changes == nil && c.seen(c.from) < at:
		t.changes = []Change{{c.from, 0}}
	case t.changes == nil:
		t.changes, t.last = []Change{{c.from, n}}, at
		return
	default:
		t.vanish(c, at)
	}
	t.set(at, n)
	t.last = at
}

// vanish sets the number to 0 from the first observation without it, if there was one before an
// instant.
func (t *track) vanish(c *clock, before policy.Time) {
	if gone := c.seen(t.last.Add(c.step)); t.last != 0 && gone < before {
		t.set(gone, 0)
	}
}

// set adds a change at an instant, which must not be before the last.
func (t *track) set(at policy.Time, n int32) {
	if k := len(t.changes) - 1; k >= 0 && t.changes[k].N == n {
		return
	} else if k >= 0 && t.changes[k].At >= at {
		t.changes[k].N = n
		return
	}
	t.changes = append(t.changes, Change{at, n})
}

// sum adds up numbers over time. The first change of each must be at the same instant.
func sum(all [][]Change) []Change {
	if len(all) == 1 {
		return all[0]
	}
	delta := map[policy.Time]int32{}
	for _, changes := range all {
		n := int32(0)
		for _, c := range changes {
			delta[c.At] += c.N - n
			n = c.N
		}
	}
	t, n := track{}, int32(0)
	for _, at := range sorted(delta) {
		n += delta[at]
		t.set(at, n)
	}
	return t.changes
}
