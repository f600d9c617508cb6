package screen

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui/draw"
	"github.com/spotter-dev/spotter/policy"
)

// drawHeader says on one line which run this is, and on the next where it stands
// and what it has come to.
func (m *Model) drawHeader(c draw.Canvas) {
	first, second := c.Cut(1)
	s := m.shown()
	if s == nil {
		draw.Bar{Left: []draw.Part{draw.Strong(" spotter ", draw.Title), draw.Say(m.title, draw.Title)}}.Draw(first)
		draw.Bar{Left: []draw.Part{draw.Say(" loading…", draw.Muted)}}.Draw(second)
		return
	}
	left := []draw.Part{draw.Strong(" spotter ", draw.Title), draw.Say(m.title+" ", draw.Title)}
	for i, x := range m.shows {
		left = append(left, m.nameOf(i, x)...)
	}
	draw.Bar{Left: left, Right: []draw.Part{draw.Say(m.origin(s)+" ", m.originInk(s))}}.Draw(first)
	draw.Bar{Left: m.moment(s), More: m.position(s), Right: m.figures(s, c.Width() >= widthFigures)}.Draw(second)
}

// nameOf is a policy in the header; those on the screen stand out, by brackets
// too.
func (m *Model) nameOf(i int, s *show) []draw.Part {
	on := i == m.focus
	for _, v := range m.visible() {
		on = on || v == s
	}
	name := s.Name
	if s.about.Recorded && name == "" {
		name = s.about.Policy
	}
	switch {
	case i == m.focus:
		return []draw.Part{draw.Strong("["+name+"]", draw.Accent), draw.Say(" ", draw.Own)}
	case on:
		return []draw.Part{draw.Strong(" "+name+" ", draw.Title), draw.Say(" ", draw.Own)}
	}
	return []draw.Part{draw.Say(" "+name+" ", draw.Muted), draw.Say(" ", draw.Own)}
}

// origin says where the prices come from, and the seed.
func (m *Model) origin(s *show) string {
	var parts []string
	switch {
	case m.live.on:
		parts = append(parts, m.live.says(s.to))
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

func (s *show) synthetic() bool { return s.Synthetic || s.about.Trace.Synthetic }

func (m *Model) originInk(s *show) draw.Ink {
	if s.synthetic() || s.about.Trace.Scripted || m.live.on && (m.live.trouble != nil || m.live.silent(s.to)) {
		return draw.Warn
	}
	return draw.Muted
}

// moment says at what time the screen stands, and how it moves.
func (m *Model) moment(s *show) []draw.Part {
	state := draw.Strong(" ▌▌ paused  ", draw.Warn)
	ahead := !s.done && m.clock.now >= m.limit()
	switch {
	case m.live.on && m.clock.now >= s.to:
		state = draw.Strong(" ● live  ", draw.Good)
	case ahead && m.clock.playing:
		state = draw.Strong(" ► simulating…  ", draw.Accent)
	case ahead:
		state = draw.Strong(" ▌▌ simulating…  ", draw.Accent)
	case m.clock.playing:
		state = draw.Strong(" ► "+m.clock.pace()+"  ", draw.Good)
	}
	day := draw.Day(m.at())
	if m.width >= widthSome {
		day = draw.Date(m.at())
	}
	parts := []draw.Part{state, draw.Strong(day+" ", draw.Title)}
	if s.err != nil {
		parts = append(parts, draw.Strong(" run failed: "+s.err.Error(), draw.Bad))
	}
	return parts
}

// position says where the shown time stands in the run.
func (m *Model) position(s *show) []draw.Part {
	now := m.at()
	var text string
	switch {
	case now < s.from:
		text = "warm-up, " + spell((s.from.Sub(now) + time.Minute - 1).Truncate(time.Minute)) + " before it counts"
	case now >= s.to && m.live.on:
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

// figures are what the run has come to at the shown time; on a narrow screen those
// for which there is room.
func (m *Model) figures(s *show, all bool) []draw.Part {
	k := &s.frame.Costs
	var parts []draw.Part
	if all {
		spot := 0
		for i := range s.frame.Nodes {
			if s.frame.Nodes[i].Spot {
				spot++
			}
		}
		parts = append(parts, draw.Say(fmt.Sprintf("%s (%d spot)  ", counted(len(s.frame.Nodes), "node", "nodes"), spot), draw.Title))
	}
	parts = append(parts, draw.Say("bill "+draw.Dollars(k.Bill)+"  ", draw.Title), outageFigure(s, all))
	saved, ok := m.saved(s)
	switch {
	case ok && all:
		parts = append(parts, draw.Strong("net savings "+draw.Signed(saved)+share(saved, m.baseline.frame.Costs.Bill)+" ", gain(saved)))
	case ok:
		parts = append(parts, draw.Strong("saved "+draw.Signed(saved)+" ", gain(saved)))
	}
	return parts
}

// outageFigure says how long outages were and what they cost, and if there is room in
// how many incidents. A recording tells nothing of it: it has the instants of decisions
// alone.
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
		incidents = " in " + draw.Thousands(k.Incidents)
	}
	return draw.Say(fmt.Sprintf("outage %s min%s %s  ", draw.Thousands(k.OutageMinutes), incidents, draw.Dollars(k.OutageCost)), ink)
}

// share says what part of an on-demand bill an amount is, nothing before there is
// a bill.
func share(saved, bill policy.Money) string {
	if bill <= 0 {
		return ""
	}
	return " (" + draw.Percent(saved.Float()/bill.Float()) + ")"
}

func gain(m policy.Money) draw.Ink {
	if m < 0 {
		return draw.Bad
	}
	return draw.Good
}

// drawFooter shows what is being typed, what the last key had to say, or keys.
func (m *Model) drawFooter(c draw.Canvas) {
	switch {
	case m.asked == forMoment:
		m.drawPrompt(c, " go to: ", "wed 14:00, +36h, 2026-01-07")
	case m.asked == forFilter:
		m.drawPrompt(c, " filter "+strings.ToLower(m.pane.String())+": ", filterHint(m.pane))
	case m.note != "":
		c.Text(0, 0, " "+draw.Cut(m.note, max(c.Width()-1, 0)), draw.Style{Ink: draw.Accent, Attr: draw.Bold})
	default:
		hints.Draw(c)
	}
}

// hints are the keys of the last line; those at its end go first where it is short.
var hints = draw.Hints{{Keys: "space", What: "play"}, {Keys: "?", What: "help"}, {Keys: "q", What: "quit"}, {Keys: "←→", What: "event"}, {Keys: "g", What: "jump"},
	{Keys: "tab", What: "policy"}, {Keys: "enter", What: "inspect"}, {Keys: "/", What: "filter"}, {Keys: "t", What: "time"}, {Keys: "b", What: "both"}, {Keys: "z", What: "zoom"},
	{Keys: "+-", What: "speed"}, {Keys: "[ ]", What: "decision"}, {Keys: "1-6", What: "pane"}}

func filterHint(p Pane) string {
	switch p {
	case Nodes:
		return "name, market, pool, phase, spot, notice"
	case Markets:
		return "zone or type"
	case Decisions:
		return "verb, node, pool, reason"
	}
	return "name"
}

// drawPrompt shows what is typed behind a label, or an example.
func (m *Model) drawPrompt(c draw.Canvas, label, example string) {
	x := c.Text(0, 0, label, draw.Style{Ink: draw.Accent, Attr: draw.Bold})
	text := []rune(m.input.Value())
	at := min(m.input.Position(), len(text))
	room := c.Width() - x - 1
	if at > room && room > 0 { // the cursor stays in sight
		text, at = text[at-room:], room
	}
	c.Text(x, 0, string(text), draw.Style{Ink: draw.Title})
	under := " "
	if at < len(text) {
		under = string(text[at])
	}
	c.Text(x+draw.Width(string(text[:at])), 0, under, draw.Style{Attr: draw.Reverse})
	if len(text) == 0 {
		c.Text(x+2, 0, example, draw.Style{Ink: draw.Muted})
	}
}

// titleOf is the title of a pane: with the policy where two stand side by side.
func (m *Model) titleOf(s *show, p Pane) string {
	title := p.String()
	if p == Savings && m.baseline == nil {
		title = "Costs"
	}
	if m.beside() && p != Savings {
		title += " · " + s.Name
	}
	return title
}

// statusOf is what a pane says at the right of its title.
func (m *Model) statusOf(s *show, p Pane) string {
	text := ""
	switch p {
	case Nodes:
		text = numbers(len(s.grid.Nodes), len(s.frame.Nodes))
	case Markets:
		text = fmt.Sprintf("%s · %d in use", numbers(len(s.marketIDs), len(s.markets)), inUse(s))
	case Savings:
		text = m.savingsStatus()
	case Workloads:
		text = numbers(len(s.workloadIDs), len(s.workloads))
		if out := outNow(s); out > 0 {
			text = counted(out, "outage", "outages") + " · " + text
		}
	case Decisions:
		text = m.decisionsStatus(s)
	case Budgets:
		text = numbers(len(s.budgetIDs), len(s.budgets))
	}
	if m.filters[p] != "" {
		text += " /" + m.filters[p]
	}
	return text
}

// decisionsStatus says how many decisions there are up to the shown time, and
// whether those that only held something back are among them.
func (m *Model) decisionsStatus(s *show) string {
	if m.withHolds() {
		return fmt.Sprintf("%s of %s · a: no holds", draw.Thousands(int64(s.frame.Decision+1)), draw.Thousands(int64(s.decisions)))
	}
	i, _ := slices.BinarySearch(s.acts, s.frame.Decision+1)
	return fmt.Sprintf("%s of %s · a: holds", draw.Thousands(int64(i)), draw.Thousands(int64(len(s.acts))))
}

func numbers(shown, all int) string {
	if shown == all {
		return draw.Thousands(int64(all))
	}
	return draw.Thousands(int64(shown)) + " of " + draw.Thousands(int64(all))
}

func inUse(s *show) (n int) {
	for _, k := range s.inUse {
		if k > 0 {
			n++
		}
	}
	return n
}

func outNow(s *show) (n int) {
	for i := range s.frame.Workloads {
		if w := &s.frame.Workloads[i]; w.Ready < w.Required {
			n++
		}
	}
	return n
}

// attainable is what the oracle shows that no policy saves more than, and the
// on-demand bill of the whole run; false while that is not known.
func (m *Model) attainable() (saved, bill policy.Money, ok bool) {
	b := m.baseline
	if m.bound <= 0 || b == nil || !b.done || b.err != nil || len(b.costs) == 0 {
		return 0, 0, false
	}
	last := &b.costs[len(b.costs)-1].Costs
	return spent(last) - m.bound, last.Bill, true
}

// savingsStatus says what savings are against, and what they can be in the end.
func (m *Model) savingsStatus() string {
	if m.baseline == nil {
		return "no on-demand run to compare with"
	}
	if saved, bill, ok := m.attainable(); ok {
		return "oracle ≤ " + draw.Signed(saved) + share(saved, bill)
	}
	return "against on-demand"
}

// policyMin is the width from which on the name of a policy is cut rather than a
// figure left out.
const policyMin = 24

// savedColumn is the first of the columns that say what is saved.
const savedColumn = 4

// savingsTable says what each run has come to at the shown time.
func (m *Model) savingsTable(selected int) draw.Table {
	t := draw.Table{Selected: selected, Columns: []draw.Column{{Title: "policy", Min: policyMin, Middle: true}, {Title: "bill", Right: true, Rank: 1},
		{Title: "outage", Right: true, Rank: 2}, {Title: "reclaims", Right: true, Rank: 4}, {Title: "net savings", Right: true}, {Title: "%", Right: true, Rank: 3}}}
	for i, s := range m.shows {
		t.Rows = append(t.Rows, m.savingsRow(s, i))
	}
	if b := m.baseline; b != nil && !m.isShown(b) {
		t.Rows = append(t.Rows, m.savingsRow(b, -1))
	}
	if m.baseline == nil { // there is nothing to save against
		t.Columns = t.Columns[:savedColumn]
	}
	return t
}

// savingsRow is the row of one run; series is its line in the chart, -1 without.
func (m *Model) savingsRow(s *show, series int) []draw.Field {
	k := &s.frame.Costs
	name := draw.Field{Text: "  " + s.Name, Ink: draw.Muted}
	if series >= 0 {
		name = draw.Field{Text: string(letter(series)) + " " + s.Name, Ink: draw.SeriesInk(series)}
	}
	row := []draw.Field{name, {Text: draw.Dollars(k.Bill)}, {Text: draw.Dollars(k.OutageCost)}, {Text: draw.Thousands(k.Reclaims)}, {Text: "–"}, {Text: "–"}}
	if s.about.Recorded {
		row[2].Text = "–"
	}
	if m.at() > s.until {
		return append([]draw.Field{name}, draw.Field{Text: "simulating…", Ink: draw.Accent}, draw.Field{}, draw.Field{}, draw.Field{}, draw.Field{})
	}
	if saved, ok := m.saved(s); ok {
		row[savedColumn] = draw.Field{Text: draw.Signed(saved), Ink: gain(saved)}
		row[savedColumn+1] = draw.Field{Text: strings.Trim(share(saved, m.baseline.frame.Costs.Bill), " ()"), Ink: gain(saved)}
	}
	return row
}
