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

// A story is the most interesting moment of a comparison: an outage that one policy has and another
// does not, or the most reclaims.
type story struct {
	at   policy.Time
	of   int // index of the run to which it happens
	text string
}

const (
	// storyBefore is the longest time between a reclaim and an outage for which the reclaim counts
	// as the cause: the longest notice and a restart of the pods.
	storyBefore = 15 * time.Minute

	// storyAround is the time around an outage within which an outage of another policy counts as
	// the same.
	storyAround = time.Hour

	// storyLeast is the smallest difference in outage between two policies that is shown.
	// storyReclaims is the fewest reclaims that are shown without such a difference.
	storyLeast    = 30 * time.Second
	storyReclaims = 3

	// storyLead is the time before the story at which playback starts, and storySpeed the index in
	// speeds of its speed: the story is reached after three seconds.
	storyLead  = 15 * time.Minute
	storySpeed = 1
)

// A span is the interval between two instants.
type span struct{ from, to policy.Time }

// findStory returns the story of runs that have ended. It returns false if nothing happened, if a
// run failed, and for recordings, which contain only the instants of decisions.
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

// outageStory returns the outage that differs most between two policies, the first one of equal
// differences. A single policy is compared with no outage.
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

// reclaimStory returns the most reclaims of one policy within storyBefore.
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

// shortages returns the intervals within the window in which some workload had fewer ready pods
// than required, ascending. Intervals that are at most gap apart are joined.
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

// within returns the total length of the parts of spans within x. The spans must not overlap.
func within(spans []span, x span) (sum time.Duration) {
	for _, s := range spans {
		sum += max(min(s.to, x.to).Sub(max(s.from, x.from)), 0)
	}
	return sum
}

// reclaimsIn returns the number of nodes reclaimed within x, including its ends.
func (p *run) reclaimsIn(x span) (n int) {
	for _, r := range p.reclaims {
		if r.at >= x.from && r.at <= x.to {
			n++
		}
	}
	return n
}

// cause describes what preceded an outage, such as "squeeze, 14 reclaims: ". It is empty if there
// was no such event.
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

// faultsIn returns the distinct names of the faults within x, ascending.
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
