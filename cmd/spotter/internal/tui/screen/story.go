package screen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/sim"
)

// A story is the moment of a comparison that is most worth looking at: an outage that
// one policy has and another has not, or the most reclaims.
type story struct {
	at   policy.Time
	of   int // the place of the run that it happens to
	text string
}

const (
	// storyBefore is how long before its outage a node is reclaimed that is counted as
	// its cause: the longest notice and a restart of its pods.
	storyBefore = 15 * time.Minute

	// storyAround is how far around an outage that of another policy counts as the same.
	storyAround = time.Hour

	// storyLeast is the smallest difference in outage between two policies that is shown.
	// storyReclaims is the fewest reclaims that are shown without such a difference.
	storyLeast    = 30 * time.Second
	storyReclaims = 3

	// storyLead is how long before the story the screen opens, and storySpeed the place
	// in speeds of how fast it plays there: it comes after three seconds.
	storyLead  = 15 * time.Minute
	storySpeed = 1
)

// A span is from one instant to another.
type span struct{ from, to policy.Time }

// findStory returns the story of runs that have ended; false where nothing happened,
// one of them failed, or what happened is known at the steps of a recording alone.
func findStory(shows []*show) (story, bool) {
	for _, s := range shows {
		if !s.done || s.err != nil || s.about.Recorded {
			return story{}, false
		}
	}
	if x, ok := outageStory(shows); ok {
		return x, true
	}
	return reclaimStory(shows)
}

// outageStory is about the outage that differs most between two policies, the first
// of those that differ alike. A policy alone differs from none.
func outageStory(shows []*show) (story, bool) {
	short := make([][]span, len(shows))
	for i, s := range shows {
		short[i] = s.shortages(0)
	}
	var worst span
	var of, other int
	var most, theirs time.Duration
	for i, s := range shows {
		for _, x := range s.shortages(sim.IncidentGap) {
			for j := range shows {
				var also time.Duration
				switch {
				case i != j:
					also = within(short[j], span{x.from.Add(-storyAround), x.to.Add(storyAround)})
				case len(shows) > 1:
					continue
				}
				if d := within(short[i], x) - also; d > most {
					most, worst, of, other, theirs = d, x, i, j, also
				}
			}
		}
	}
	if most < storyLeast {
		return story{}, false
	}
	s := shows[of]
	text := draw.Day(worst.from) + ", " + s.cause(worst) + s.Name + " has a " + figures.Duration(most+theirs) + " outage"
	switch {
	case other != of && theirs == 0:
		text += ", " + shows[other].Name + " none"
	case other != of:
		text += ", " + shows[other].Name + " " + figures.Duration(theirs)
	}
	return story{worst.from, of, text}, true
}

// reclaimStory is about the most nodes that one policy loses within storyBefore.
func reclaimStory(shows []*show) (story, bool) {
	var x story
	most := storyReclaims - 1
	for of, s := range shows {
		for _, r := range s.reclaims {
			at := r.at
			if at < s.from {
				continue
			}
			if n := s.reclaimsIn(span{at, at.Add(storyBefore)}); n > most {
				most = n
				x = story{at, of, fmt.Sprintf("%s, %s of %s reclaimed; outages differ little", draw.Day(at),
					figures.Count(n, "node"), s.Name)}
			}
		}
	}
	return x, most >= storyReclaims
}

// shortages are the times in which some workload had less than it must within the
// window, ascending; those nearer than gap are one.
func (p *run) shortages(gap time.Duration) []span {
	var all []span
	for _, o := range p.outages {
		to := o.to
		if to == 0 {
			to = p.until
		}
		if x := (span{max(o.from, p.from), min(to, p.to)}); x.to > x.from {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	joined := all[:0]
	for _, x := range all {
		if n := len(joined); n > 0 && x.from.Sub(joined[n-1].to) <= gap {
			joined[n-1].to = max(joined[n-1].to, x.to)
			continue
		}
		joined = append(joined, x)
	}
	return joined
}

// within returns how much of ascending spans, which do not overlap, is in x.
func within(spans []span, x span) (sum time.Duration) {
	for _, s := range spans {
		sum += max(min(s.to, x.to).Sub(max(s.from, x.from)), 0)
	}
	return sum
}

// reclaimsIn is how many nodes were reclaimed within x, its ends included.
func (p *run) reclaimsIn(x span) (n int) {
	for _, r := range p.reclaims {
		if r.at >= x.from && r.at <= x.to {
			n++
		}
	}
	return n
}

// cause says what came with an outage, as "squeeze, 14 reclaims: ": nothing
// where nothing did.
func (p *run) cause(x span) string {
	near := span{x.from.Add(-storyBefore), x.to}
	parts := p.faultsIn(near)
	if n := p.reclaimsIn(near); n > 0 {
		parts = append(parts, figures.Count(n, "reclaim"))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + ": "
}

// faultsIn names the faults that last within x, each once.
func (p *run) faultsIn(x span) []string {
	var lasting []string
	for i := range p.events {
		e := p.Timeline.Event(i)
		if e.At > x.to {
			break
		}
		switch e.Kind {
		case timeline.FaultBegan:
			lasting = append(lasting, e.Subject)
		case timeline.FaultEnded:
			if j := slices.Index(lasting, e.Subject); j >= 0 && e.At < x.from {
				lasting = slices.Delete(lasting, j, j+1)
			}
		}
	}
	slices.Sort(lasting)
	return slices.Compact(lasting)
}
