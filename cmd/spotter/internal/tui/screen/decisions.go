package screen

import (
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A decisionsPane shows the entries of the decisions around the time shown, or around the entry
// that the viewer selected.
type decisionsPane struct {
	run *run

	// entry is the selected entry, or follow for the last one decided.
	entry entryID

	// log contains the entries, and entries their positions in the timeline. Both depend on key,
	// which is nil before the first time.
	log     draw.Log
	entries []entryID
	key     *logKey
}

// An entryID is the index of a decision and of one of its entries.
type entryID struct{ decision, entry int }

// follow selects the last decision at any time.
var follow = entryID{-1, -1}

// A logKey contains everything that determines the entries of a log.
type logKey struct {
	middle, decisions int
	filter            string
	holds             bool
}

// The numbers of entries before and after the time shown that are kept, and the maximum number of
// decisions that are searched for matches of a filter.
const (
	entriesBefore, entriesAfter = 240, 60
	decisionsLooked             = 1500
)

// list gathers the entries around the time shown.
func (p *decisionsPane) list(now policy.Time, sel *selection) {
	s, filter, holds := p.run, sel.filters[Decisions], sel.withHolds()
	middle, n := s.frame.Decision, s.decisions
	if p.entry != follow {
		middle = p.entry.decision
	}
	of := func(i int) int { return i }
	if !holds {
		i, found := slices.BinarySearch(s.acts, middle)
		if !found {
			i--
		}
		middle, n, of = i, len(s.acts), func(i int) int { return s.acts[i] }
	}
	if k := (logKey{middle, n, filter, holds}); p.key == nil || k != *p.key {
		p.key = &k
		p.gather(middle, n, of, filter, holds)
	}
	p.log.Now, p.log.Selected = now, p.selected()
	switch {
	case filter != "":
		p.log.Empty = "no decision near this time has “" + filter + "”"
	case !holds && s.frame.Decision >= 0:
		p.log.Empty = "nothing was changed so far; a shows what was held back"
	default:
		p.log.Empty = "nothing decided yet"
	}
	if filter != "" && !holds {
		p.log.Empty += "; a looks among holds too"
	}
}

// gather reads the entries around the decision middle of n decisions. of maps the index of a
// decision to its index in the timeline.
func (p *decisionsPane) gather(middle, n int, of func(int) int, filter string, holds bool) {
	var at []policy.Time
	var entries []timeline.Entry
	p.entries = p.entries[:0]
	passes := func(e *timeline.Entry) bool { return (holds || e.Verb != timeline.Hold) && entryMatches(filter, e) }
	first, count := middle, 0
	for ; first >= 0 && count < entriesBefore && middle-first < decisionsLooked; first-- {
		d := p.run.Timeline.Decision(of(first))
		for k := range d.Entries {
			if passes(&d.Entries[k]) {
				count++
			}
		}
	}
	count = 0
	for i := max(first+1, 0); i < n && (i <= middle || count < entriesAfter && i-middle < decisionsLooked); i++ {
		d := p.run.Timeline.Decision(of(i))
		for k := range d.Entries {
			if !passes(&d.Entries[k]) {
				continue
			}
			at, entries = append(at, d.At), append(entries, readable(&p.run.inventory, d.Entries[k]))
			p.entries = append(p.entries, entryID{of(i), k})
			if i > middle {
				count++
			}
		}
	}
	p.log.Entries = draw.Group(at, entries)
}

// readable returns an entry with markets in the notation of the screen.
func readable(v *inventory, e timeline.Entry) timeline.Entry {
	e.Market, e.Why.RunnerUp = v.place(e.Market), v.place(e.Why.RunnerUp)
	return e
}

func entryMatches(filter string, e *timeline.Entry) bool {
	return filter == "" || matches(filter, e.Verb.String(), e.Subject, e.Pool, e.Market, string(e.Why.Reason),
		e.Why.Text, e.Detail)
}

// selected returns the index in the log of the selected entry, or of the first entry of the last
// decision.
func (p *decisionsPane) selected() int {
	at := p.entry
	selected := -1
	for i := range p.log.Entries {
		e := &p.log.Entries[i]
		id := p.entries[e.First]
		switch {
		case at == follow && id.decision > p.run.frame.Decision:
			return selected
		case at == follow && (selected < 0 || p.entries[p.log.Entries[selected].First].decision != id.decision):
			selected = i
		case at != follow && id.decision == at.decision && at.entry >= id.entry && at.entry < id.entry+max(e.Count, 1):
			return i
		}
	}
	return selected
}

// subject returns the selected entry, or the zero subject.
func (p *decisionsPane) subject() subject {
	if i := p.log.Selected; i >= 0 && i < len(p.log.Entries) {
		e := &p.log.Entries[i]
		return subject{Decisions, e.Entry.Subject + " ", p.entries[e.First]}
	}
	return subject{}
}

func (p *decisionsPane) draw(c draw.Canvas, b draw.Box, sel *selection) {
	b.Right = sel.status(Decisions, p.status(sel.withHolds()))
	p.log.Draw(b.Frame(c))
}

// status returns the number of decisions up to the time shown, and whether it includes decisions
// that only held something back.
func (p *decisionsPane) status(holds bool) string {
	s := p.run
	if holds {
		return fmt.Sprintf("%s of %s · a: no holds", figures.Integer(s.frame.Decision+1), figures.Integer(s.decisions))
	}
	i, _ := slices.BinarySearch(s.acts, s.frame.Decision+1)
	return fmt.Sprintf("%s of %s · a: holds", figures.Integer(i), figures.Integer(len(s.acts)))
}

func (p *decisionsPane) move(_ rect, dx, dy int, _ *selection) {
	if n := len(p.log.Entries); n > 0 {
		to := min(max(p.log.Selected+dx+dy, 0), n-1)
		p.entry = p.entries[p.log.Entries[to].First]
	}
}

func (p *decisionsPane) pick(size rect, _, y int, _ *selection) hit {
	i, ok := p.log.RowAt(size.h, y)
	if ok {
		p.entry = p.entries[p.log.Entries[i].First]
	}
	return hit{selected: ok}
}

// Classes of verbs: moving verbs change nodes or pods at once; acting verbs are all except hold;
// judging verbs are all except rank, which only determines when the pods of a node are removed as
// workloads shrink.
var (
	moving  = []timeline.Verb{timeline.Launch, timeline.Drain, timeline.Gate, timeline.Pause, timeline.Evict}
	acting  = append([]timeline.Verb{timeline.Steer, timeline.Rank}, moving...)
	judging = append([]timeline.Verb{timeline.Steer, timeline.Hold}, moving...)
)

// does reports whether a decision has an entry with one of the verbs.
func does(d *timeline.Decision, verbs []timeline.Verb) bool {
	return slices.ContainsFunc(d.Entries, func(e timeline.Entry) bool { return slices.Contains(verbs, e.Verb) })
}
