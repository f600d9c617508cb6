package screen

import (
	"fmt"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/eval/timeline"
	"github.com/spotter-dev/spotter/policy"
)

// A playback is the runs at the time shown. The clock may be ahead of a run that is still being
// simulated, but the time shown never is.
type playback struct {
	comparison
	clock clock
	live  live
	port  *viewport

	// awaits reports that playback starts at the story, which is unknown before the runs end.
	// wanted reports that the viewer has requested to go there.
	awaits, wanted bool

	// ticking reports that a tick has been scheduled.
	ticking bool
}

// open shows other runs from their start, or a record at its end.
func (p *playback) open(o *Opened) {
	p.comparison.open(o)
	p.port.focus, p.port.runs = 0, len(p.shows)
	p.clock.now = p.shows[0].from
	if o.Live {
		p.live.on, p.clock.playing = true, false
		p.clock.now = p.shows[0].to
	}
	if p.awaits = o.AtStory; p.awaits {
		p.clock.playing = false
		p.beginAtStory()
	}
}

// beginAtStory plays from shortly before the story, with both policies side by side; from the start
// without a story. It does nothing before the runs end.
func (p *playback) beginAtStory() {
	if p.simulating() {
		return
	}
	p.dismiss()
	if p.story != nil {
		p.port.focus, p.port.both = p.story.of, true
		p.clock.speed = storySpeed
		p.seek(p.story.at.Add(-storyLead))
	}
}

// storyLine returns the story, or that it is being determined, or an empty string.
func (p *playback) storyLine() string {
	switch {
	case p.story != nil:
		return p.story.text
	case p.awaits:
		return "is being looked for while the runs continue; any key starts now"
	}
	return ""
}

// dismiss stops waiting for the story and starts playback.
func (p *playback) dismiss() {
	p.wanted = false
	if p.awaits {
		p.awaits, p.clock.playing = false, true
	}
}

// toStory seeks to the story and pauses. It returns a message.
func (p *playback) toStory() string {
	switch {
	case p.simulating():
		p.wanted = true
		return "the story is known when the runs have ended; this goes there then"
	case p.story == nil:
		return "nothing happened that sets the policies apart"
	}
	p.port.focus = p.story.of
	p.stop(p.story.at)
	return ""
}

// shown returns the focused run, or nil if no run is open.
func (p *playback) shown() *show {
	if len(p.shows) == 0 {
		return nil
	}
	return p.shows[p.port.focus]
}

// visible returns the runs that are visible on the screen.
func (p *playback) visible() []*show {
	switch {
	case len(p.shows) == 0:
		return nil
	case p.port.sideBySide():
		first := p.port.first()
		return p.shows[first : first+2]
	}
	return []*show{p.shown()}
}

// limit returns the last instant that can be shown.
func (p *playback) limit() policy.Time {
	limit := p.shown().until
	for _, s := range p.visible() {
		limit = min(limit, s.until)
	}
	return limit
}

// time returns the time shown: that of the clock, or the last one simulated.
func (p *playback) time() policy.Time {
	return min(p.clock.now, max(p.limit(), p.shown().warmup))
}

// passed advances the clock and checks how far the runs have progressed. It reports whether to show
// the story, because the clock has reached it or the viewer has waited for it.
func (p *playback) passed(t time.Time) (story bool) {
	p.ticking = false
	p.look()
	s := p.shown()
	if s == nil {
		return false
	}
	if p.awaits {
		p.beginAtStory()
	}
	if p.wanted && !p.simulating() {
		p.wanted = false
		return true
	}
	before := p.clock.now
	p.clock.advance(t, p.limit())
	if p.clock.now >= s.to {
		p.clock.playing = false
	}
	return p.story != nil && before < p.story.at && p.clock.now >= p.story.at
}

// next returns the command that schedules the next tick, or nil if nothing moves.
func (p *playback) next() tea.Cmd {
	if p.ticking || len(p.shows) == 0 {
		return nil
	}
	wait := frameTime
	if !p.clock.playing {
		if !p.simulating() {
			return nil
		}
		wait = waitTime
	}
	p.ticking = true
	return tea.Tick(wait, func(t time.Time) tea.Msg { return tick(t) })
}

// refresh updates the screen to the time shown. It updates the costs of all runs, since these are
// always visible.
func (p *playback) refresh(sel *selection) {
	if len(p.shows) == 0 {
		return
	}
	now := p.time()
	p.at(now)
	for _, s := range p.visible() {
		s.list(now, sel)
	}
}

func (p *playback) playOrPause() {
	s := p.shown()
	if !p.clock.playing && p.clock.now >= s.to {
		p.clock.now = s.from // at the end, playback restarts
	}
	p.clock.playing = !p.clock.playing
	p.clock.ticked = time.Time{}
}

// seek sets the clock to t. A time that has not been simulated is shown as soon as it has; until
// then the screen follows the progress of the run.
func (p *playback) seek(t policy.Time) {
	s := p.shown()
	p.clock.now = min(max(t, s.warmup), s.to)
	for _, x := range p.shows {
		x.decisionPane.entry = follow
	}
}

// seekText seeks to the time that the viewer typed. It returns an error message, or an empty
// string.
func (p *playback) seekText(text string) string {
	s := p.shown()
	t, err := parseMoment(text, s.from, p.time())
	switch {
	case err != nil:
		return err.Error()
	case t < s.warmup || t > s.to:
		return text + " is outside " + draw.Date(s.warmup) + " to " + draw.Date(s.to) + s.to.Std().Format(" 2006")
	}
	p.seek(t)
	return ""
}

// stepEvent seeks to the next instant with an event, or the previous one if by is negative,
// optionally of some kinds, which are called what. It returns the event, or nil, and a message.
func (p *playback) stepEvent(by int, what string, kinds ...timeline.Kind) (*timeline.Event, string) {
	line := p.shown().Timeline
	find := line.NextEvent
	if by < 0 {
		find = line.PreviousEvent
	}
	i, ok := find(p.time(), kinds...)
	if !ok {
		p.clock.playing = false
		return nil, p.none(by, what)
	}
	e := line.Event(i)
	if e.At > p.limit() {
		return nil, p.none(by, what)
	}
	p.stop(e.At)
	note := draw.Day(e.At) + "  " + sentence(&p.shown().inventory, &e)
	if n := countAlike(line, &e); n > 1 {
		note += fmt.Sprintf(", %d at once", n)
	}
	return &e, note
}

// countAlike returns the number of events of the same kind at the same instant.
func countAlike(line *timeline.Timeline, e *timeline.Event) (n int) {
	for i, ok := line.NextEvent(e.At-1, e.Kind); ok && line.Event(i).At == e.At; i++ {
		if line.Event(i).Kind == e.Kind {
			n++
		}
		ok = i+1 < line.Events()
	}
	return n
}

// stepDecision seeks to the next decision with one of the verbs, or the previous one if by is
// negative. It returns a message.
func (p *playback) stepDecision(by int, what string, verbs ...timeline.Verb) string {
	line := p.shown().Timeline
	find := line.NextDecision
	if by < 0 {
		find = line.PreviousDecision
	}
	i, ok := find(p.time(), verbs...)
	if !ok {
		return p.none(by, what)
	}
	d := line.Decision(i)
	if d.At > p.limit() {
		return p.none(by, what)
	}
	p.stop(d.At)
	return draw.Day(d.At) + "  decided: " + tally(&d)
}

// stop seeks to t and pauses.
func (p *playback) stop(t policy.Time) {
	p.clock.playing = false
	p.seek(t)
}

// none returns the message that there is no such event in that direction.
func (p *playback) none(by int, what string) string {
	switch {
	case by < 0:
		return "no " + what + " before"
	case p.shown().done:
		return "no " + what + " after this"
	}
	return "no " + what + " after this so far; simulating…"
}

// grow shows the record as it is now. A viewer at the end of the record stays at its end. The
// selection and filters are kept, and the inspected subject too if the record has the same start.
func (p *playback) grow(g Grown) {
	if len(p.shows) != 1 {
		return
	}
	before := p.shows[0]
	atEnd := p.clock.now >= before.to
	s := newShow(g.Run)
	if s.warmup == before.warmup {
		s.decisionPane.entry = before.decisionPane.entry
	} else {
		p.port.inspected = nil // decisions are identified by their index, which depends on the start of the record
	}
	p.shows[0] = s
	if atEnd {
		p.clock.now, p.clock.playing = s.to, false
	}
	p.clock.now = max(p.clock.now, s.warmup)
	p.measure()
}

// scrubBar returns the timeline of the whole run.
func (p *playback) scrubBar() draw.Scrub {
	s := p.shown()
	b := draw.Scrub{WarmUp: s.warmup, From: s.from, To: s.to, Now: p.time(), Until: p.limit()}
	for _, t := range s.moved {
		b.Marks = append(b.Marks, draw.Mark{At: t, Glyph: '·', Ink: draw.Muted})
	}
	for _, r := range s.reclaims {
		b.Marks = append(b.Marks, draw.Mark{At: r.at, Glyph: '×', Ink: draw.Warn})
	}
	for _, o := range s.outages {
		to := o.to
		if to == 0 {
			to = s.until
		}
		if to <= s.from {
			continue // outages before the metered window do not count
		}
		b.Outages = append(b.Outages, [2]policy.Time{o.from, to})
		b.Marks = append(b.Marks, draw.Mark{At: o.from, Glyph: '!', Ink: draw.Bad})
	}
	return b
}
