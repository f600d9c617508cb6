package screen

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A header is the first lines of the screen: the title, the runs, and the results of the focused
// run at the time shown.
type header struct {
	*playback
	title string

	// before is the text that is shown until a run is opened.
	before string
}

// draw writes the title and the runs on one line, and the time shown and the results up to it on
// the next.
func (h *header) draw(c draw.Canvas) {
	first, second := c.Cut(1)
	s := h.shown()
	if s == nil {
		draw.Bar{Left: []draw.Part{draw.Strong(" spotter ", draw.Title), draw.Say(h.title, draw.Title)}}.Draw(first)
		draw.Bar{Left: []draw.Part{draw.Say(" "+h.before, draw.Muted)}}.Draw(second)
		return
	}
	left := []draw.Part{draw.Strong(" spotter ", draw.Title), draw.Say(h.title+" ", draw.Title)}
	for i, x := range h.shows {
		left = append(left, h.nameOf(i, x)...)
	}
	draw.Bar{Left: left, Right: []draw.Part{draw.Say(h.origin(s)+" ", h.originInk(s))}}.Draw(first)
	draw.Bar{Left: h.moment(s), More: h.position(s), Right: h.figures(s, c.Width() >= widthFigures)}.Draw(second)
}

// nameOf returns the name of a policy in the header. Visible policies are highlighted, and the
// focused one is in brackets.
func (h *header) nameOf(i int, s *show) []draw.Part {
	name := s.Name
	if s.about.Recorded && name == "" {
		name = s.about.Policy
	}
	switch {
	case i == h.port.focus:
		return []draw.Part{draw.Strong("["+name+"]", draw.Accent), draw.Say(" ", draw.Own)}
	case slices.Contains(h.visible(), s):
		return []draw.Part{draw.Strong(" "+name+" ", draw.Title), draw.Say(" ", draw.Own)}
	}
	return []draw.Part{draw.Say(" "+name+" ", draw.Muted), draw.Say(" ", draw.Own)}
}

// origin describes the source of the prices, and the seed.
func (h *header) origin(s *show) string {
	var parts []string
	switch {
	case h.live.on:
		parts = append(parts, h.live.says(s.to))
	case s.about.Recorded:
		parts = append(parts, "recording, seen at its steps")
	}
	switch {
	case s.synthetic():
		parts = append(parts, "synthetic prices")
	case !s.about.Recorded:
		parts = append(parts, s.about.Trace.Prices()+" prices")
	}
	if s.about.Seed != 0 {
		parts = append(parts, fmt.Sprintf("seed %d", s.about.Seed))
	}
	return strings.Join(parts, " · ")
}

func (h *header) originInk(s *show) draw.Ink {
	if s.synthetic() || s.about.Trace.Scripted || h.live.on && (h.live.trouble != nil || h.live.silent(s.to)) {
		return draw.Warn
	}
	return draw.Muted
}

// moment describes the time shown and the state of playback.
func (h *header) moment(s *show) []draw.Part {
	state := draw.Strong(" ▌▌ paused  ", draw.Warn)
	ahead := !s.done && h.clock.now >= h.limit()
	switch {
	case h.live.on && h.clock.now >= s.to:
		state = h.live.state(s.to)
	case h.awaits, ahead && h.clock.playing:
		state = draw.Strong(" ► simulating…  ", draw.Accent)
	case ahead:
		state = draw.Strong(" ▌▌ simulating…  ", draw.Accent)
	case h.clock.playing:
		state = draw.Strong(" ► "+h.clock.pace()+"  ", draw.Good)
	}
	day := draw.Day(h.time())
	if h.port.width >= widthSome {
		day = draw.Date(h.time())
	}
	parts := []draw.Part{state, draw.Strong(day+" ", draw.Title)}
	if s.err != nil {
		parts = append(parts, draw.Strong(" run failed: "+s.err.Error(), draw.Bad))
	}
	return parts
}

// position describes where in the run the time shown is.
func (h *header) position(s *show) []draw.Part {
	now := h.time()
	var text string
	switch {
	case now < s.from:
		text = "warm-up, " + figures.Duration((s.from.Sub(now) + time.Minute - 1).Truncate(time.Minute)) + " before it counts"
	case now >= s.to && h.live.on:
		text = "the last decision"
	case now >= s.to:
		text = "the end"
	default:
		text = fmt.Sprintf("day %d of %d", now.Sub(s.from)/(24*time.Hour)+1, (s.to.Sub(s.from)+24*time.Hour-1)/(24*time.Hour))
	}
	parts := []draw.Part{draw.Say("· "+text+" ", draw.Muted)}
	if !s.done {
		parts = append(parts, draw.Say(" simulated to "+draw.Day(s.until)+" ", draw.Accent))
	}
	return parts
}

// figures returns the results of the run at the time shown. With all false, it omits those that do
// not fit on a narrow screen.
func (h *header) figures(s *show, all bool) []draw.Part {
	k := &s.frame.Costs
	var parts []draw.Part
	if all {
		spot := 0
		for i := range s.frame.Nodes {
			if s.frame.Nodes[i].Spot {
				spot++
			}
		}
		parts = append(parts, draw.Say(fmt.Sprintf("%s (%d spot)  ", figures.Count(len(s.frame.Nodes), "node"), spot),
			draw.Title))
	}
	parts = append(parts, draw.Say("bill "+figures.Dollars(k.Bill.Float())+"  ", draw.Title), outageFigure(s, all))
	saved, ok := h.saved(s)
	switch {
	case ok && all:
		parts = append(parts, draw.Strong("net savings "+figures.DollarChange(saved.Float())+share(saved,
			h.baseline.frame.Costs.Bill)+" ", gain(saved)))
	case ok:
		parts = append(parts, draw.Strong("saved "+figures.DollarChange(saved.Float())+" ", gain(saved)))
	}
	return parts
}

// outageFigure returns the outage minutes and their cost and, with all, the number of incidents.
// They are unknown for a recording, which contains only the instants of decisions.
func outageFigure(s *show, all bool) draw.Part {
	k := &s.frame.Costs
	if s.about.Recorded {
		return draw.Say("outage cost not known  ", draw.Muted)
	}
	ink, incidents := draw.Muted, ""
	if k.Incidents > 0 || k.OutageCost > 0 {
		ink = draw.Bad
	}
	if k.Incidents > 0 && all {
		incidents = " in " + figures.Integer(k.Incidents)
	}
	return draw.Say(fmt.Sprintf("outage %s min%s %s  ", figures.Integer(k.OutageMinutes), incidents,
		figures.Dollars(k.OutageCost.Float())), ink)
}
