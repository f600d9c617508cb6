package draw

import "github.com/spotter-dev/spotter/policy"

// A Scrub is the timeline of the whole run: it shows the time of the cursor, the end of the
// simulated time, and events. It has one to three lines: the bar, days below it, and marks above
// it.
type Scrub struct {
	// WarmUp is when the run starts, From when its metered window starts. Without a warm-up WarmUp
	// equals From or is zero.
	WarmUp, From, To policy.Time

	Now, Until policy.Time

	// Marks are drawn above the bar. If several are in one column, the last one is shown.
	Marks []Mark

	// Outages are drawn in the bar, from the first to the second instant of each.
	Outages [][2]policy.Time
}

// begin returns the instant of the first column.
func (s Scrub) begin() policy.Time {
	if s.WarmUp != 0 && s.WarmUp < s.From {
		return s.WarmUp
	}
	return s.From
}

// Draw fills the first three lines of c.
func (s Scrub) Draw(c Canvas) {
	y := 0
	if c.h >= 3 {
		for _, m := range s.Marks {
			if m.At <= s.Until {
				c.Set(column(m.At, s.begin(), s.To, c.w), 0, m.Glyph, ink(m.Ink).bold())
			}
		}
		y = 1
	}
	s.drawBar(c.Sub(0, y, c.w, 1))
	if c.h >= 2 {
		s.drawDays(c.Sub(0, y+1, c.w, 1))
	}
}

// drawBar draws the bar: heavy up to the time shown, light up to the end of the simulated time,
// dashed beyond it; the warm-up is dotted.
func (s Scrub) drawBar(c Canvas) {
	col := func(t policy.Time) int { return column(t, s.begin(), s.To, c.w) }
	now, until, from := col(s.Now), col(s.Until), col(s.From)
	for x := range c.w {
		r, style := '╌', ink(Faint)
		switch {
		case x <= now && x < from:
			r, style = '┅', ink(Accent)
		case x <= now:
			r, style = '━', ink(Accent)
		case x <= until:
			r, style = '─', ink(Muted)
		}
		c.Set(x, 0, r, style)
	}
	for _, o := range s.Outages {
		for x := max(col(o[0]), 0); x <= min(col(min(o[1], s.Until)), c.w-1); x++ {
			c.Set(x, 0, '▄', ink(Bad))
		}
	}
	if from > 0 {
		c.Set(from, 0, '├', ink(Muted))
	}
	c.Set(min(max(now, 0), c.w-1), 0, '◆', ink(Title).bold())
}

// drawDays writes the days below the bar, and "warm-up" if there is space.
func (s Scrub) drawDays(c Canvas) {
	from := max(column(s.From, s.begin(), s.To, c.w), 0)
	if s.begin() == s.From {
		from = 0
	}
	if from > len("warm-up") {
		c.Text(0, 0, "warm-up", ink(Muted))
	}
	drawTicks(c.Sub(from, 0, c.w-from, 1), s.From, s.To, ink(Muted))
}

// TimeAt returns the instant of column x in w columns. Columns outside return the nearest end.
func (s Scrub) TimeAt(w, x int) policy.Time { return instant(x, s.begin(), s.To, w) }
