package fidelity

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"
)

// A bar is how far a figure may be off.
type bar struct {
	Figure string `json:"figure"`

	// Relative bounds the difference as a part of the real mean. 0 requires a difference
	// within the sampling error.
	Relative float64 `json:"relative"`

	// Known are the days, or for random days the versions of Karpenter, on which the bar
	// is not met, with the most that the difference may be there, in the terms of the
	// bar or, without Relative, in units of the figure, and why. A bar that is met there
	// needs none.
	Known map[string]gap `json:"known,omitempty"`
}

// A gap is a bar that is not met.
type gap struct {
	Most float64 `json:"most"`

	// Covered replaces coveredLeast where it is not 0.
	Covered float64 `json:"covered,omitempty"`

	Why string `json:"why"`
}

type bars []bar

// readBars reads the bars.
func readBars(t testing.TB) bars {
	t.Helper()
	text, err := os.ReadFile("bars.json")
	if err != nil {
		t.Fatal(err)
	}
	var all bars
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// A standing is how a comparison stands to its bar.
type standing int

const (
	met     standing = iota // the difference is within the bar
	open                    // it is not, and the runs are too few to say that it is beyond
	missed                  // it is beyond the bar, and known to be
	failing                 // it is beyond the bar by more than is known
)

func (s standing) String() string { return [...]string{"met", "open", "missed", "FAILS"}[s] }

// judge holds a comparison against a bar.
func (b *bar) judge(day string, c *comparison) standing {
	difference, err := math.Abs(c.difference), c.err
	if b.Relative > 0 {
		difference, err = c.relative()
		difference = math.Abs(difference)
	}
	switch known, ok := b.Known[day]; {
	case difference <= b.Relative || b.Relative == 0 && difference <= err:
		return met
	case b.Relative > 0 && difference-err <= b.Relative:
		return open
	case ok && difference-err <= known.Most:
		return missed
	}
	return failing
}

// say returns the standing of a figure in words, nothing for one without a bar.
func (all bars) say(day string, c *comparison) string {
	for i := range all {
		b := &all[i]
		if b.Figure != c.name {
			continue
		}
		bound := "within the sampling error"
		if b.Relative > 0 {
			bound = fmt.Sprintf("%g %%", 100*b.Relative)
		}
		return fmt.Sprintf("%s: %v", bound, b.judge(day, c))
	}
	return ""
}

// hold fails the test for each figure that is beyond its bar, and names it.
func (all bars) hold(t testing.TB, x *result) {
	t.Helper()
	for i := range all {
		b := &all[i]
		for k := range x.figures {
			c := &x.figures[k]
			if c.name != b.Figure {
				continue
			}
			switch s := b.judge(x.script.name, c); s {
			case failing:
				part, err := c.relative()
				t.Errorf("%s: %s: real %s, simulated %s: off by %+.3f ± %.3f (%+.1f ± %.1f %%)", x.script.name, c.name,
					spread(c.real), spread(c.simulated),
					c.difference, c.err, 100*part, 100*err)
			case missed:
				t.Logf("%s: %s misses its bar, as is known: %s", x.script.name, c.name, b.Known[x.script.name].Why)
			}
		}
	}
}
