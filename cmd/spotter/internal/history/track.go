package history

import (
	"fmt"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A span is a time in which a source did not look.
type span struct{ from, to policy.Time }

// A clock knows when a source looked: every step but in gaps.
type clock struct {
	from, to policy.Time
	step     time.Duration
	gaps     []span      // ascending
	last     policy.Time // when it looked last; zero before the first time
}

// tick notes that the source looked at an instant. Instants ascend.
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

// end notes that nothing more comes.
func (c *clock) end() {
	before := c.last.Add(c.step)
	if c.last == 0 {
		before = c.from
	}
	if before < c.to {
		c.gaps = append(c.gaps, span{before, c.to})
	}
}

// seen returns the first instant from at on at which the source looked.
func (c *clock) seen(at policy.Time) policy.Time {
	for i := len(c.gaps) - 1; i >= 0 && c.gaps[i].to > at; i-- {
		if c.gaps[i].from <= at {
			return c.gaps[i].to
		}
	}
	return at
}

// gapLeast is the shortest gap that is worth a word: a scrape or two may fail anywhere.
const gapLeast = 5 * time.Minute

// uncertain says where the gaps are.
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

// A track is a number over time, folded to its changes as it is seen.
type track struct {
	changes []Change
	last    policy.Time
}

// observe notes a number. Where the source looked in between and did not see it, it was
// 0 there. Instants ascend.
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

// vanish makes the number 0 where the source looked before an instant and did not see it.
func (t *track) vanish(c *clock, before policy.Time) {
	if gone := c.seen(t.last.Add(c.step)); t.last != 0 && gone < before {
		t.set(gone, 0)
	}
}

// set adds a change at an instant that is not before the last.
func (t *track) set(at policy.Time, n int32) {
	if k := len(t.changes) - 1; k >= 0 && t.changes[k].N == n {
		return
	} else if k >= 0 && t.changes[k].At >= at {
		t.changes[k].N = n
		return
	}
	t.changes = append(t.changes, Change{at, n})
}

// sum adds up numbers over time, each of whose first change is at the same instant.
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
