package draw

// A Meter is a bar that shows parts of a whole.
type Meter struct {
	// Value is drawn as filled, relative to Whole. Tick marks a value that must be reached, or 0.
	Value, Tick, Whole float64
	Ink                Ink
}

var eighths = []rune(" ▏▎▍▌▋▊▉█")

// Draw fills the first line of c: blocks up to the value with a resolution of an eighth of a
// column, dots up to the whole, and a line at the tick.
func (m Meter) Draw(c Canvas) {
	if c.w == 0 || !(m.Whole > 0) {
		return
	}
	part := func(x float64) float64 { return min(max(x/m.Whole, 0), 1) }
	full := int(part(m.Value)*float64(c.w*8) + 0.5)
	if m.Value > 0 {
		full = max(full, 1)
	}
	for x := range c.w {
		switch n := min(full-x*8, 8); {
		case n > 0:
			c.Set(x, 0, eighths[n], ink(m.Ink))
		default:
			c.Set(x, 0, '·', ink(Faint))
		}
	}
	if m.Tick > 0 {
		s := ink(Title)
		x := min(int(part(m.Tick)*float64(c.w)), c.w-1)
		if m.Value < m.Tick {
			s = ink(Bad)
		}
		if x*8 < full {
			s.Ground = m.Ink
		}
		c.Set(x, 0, '│', s.bold())
	}
}
