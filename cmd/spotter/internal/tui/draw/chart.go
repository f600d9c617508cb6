package draw

import (
	"math"

	"github.com/spotter-dev/spotter/policy"
)

// A Unit is the unit of the values of a chart.
type Unit uint8

// The units: dollars per hour, dollars, a share in [0, 1] shown in percent, and counts.
const (
	UnitPrice Unit = iota
	UnitDollars
	UnitPercent
	UnitCount
)

// A Series is one line of a chart.
type Series struct {
	Name string
	Ink  Ink

	// Short is the name if there is little space. If empty, it is Name.
	Short string

	// Key is the letter at the end of the line and before the name.
	Key rune

	// At are ascending instants, and Value the values from each instant on; NaN is a gap.
	At    []policy.Time
	Value []float64

	// Straight connects values by straight lines instead of steps.
	Straight bool
}

// A Mark is an instant at which something happened.
type Mark struct {
	At    policy.Time
	Glyph rune
	Ink   Ink
}

// A Level is a constant value, such as an on-demand price or the final value of the oracle.
type Level struct {
	Name  string
	Short string // see [Series]
	Value float64
	Ink   Ink

	// End draws only a mark at the right end instead of a line.
	End bool
}

// A Chart shows values over time in braille: an axis of values on the left, of days below, and the
// names of the series above. Each name has a letter that is also shown at the end of its series, so
// that series can be distinguished without colour. Charts of one width have their plots in the same
// columns.
type Chart struct {
	Series   []Series
	Levels   []Level
	Marks    []Mark
	From, To policy.Time

	// Now is the time of the cursor, or zero without a cursor; the names show the values at that
	// time. Until is the end of the known values, or zero if all are known.
	Now, Until policy.Time

	Unit Unit

	// Log selects a logarithmic axis if all values are positive. Zero includes 0 in the axis.
	Log, Zero bool

	// Empty is the text if there is nothing to draw.
	Empty string
}

// twoNameLines is the height from which names that do not fit in one line above the plot may use
// two lines, and twoValueLines the height from which their values may.
const twoNameLines, twoValueLines = 8, 12

// A chartLook is the layout of a chart on a canvas.
type chartLook struct {
	left       int // columns of the axis
	w, h       int // size of the plot
	top        int // lines of names above the plot
	axis, days bool
}

func (ch Chart) look(w, h int) chartLook {
	l := chartLook{}
	if w >= 24 {
		l.left = 8
	}
	if h >= 5 {
		l.top = 1
		if _, left := ch.nameLines(w, 1); h >= twoValueLines && left > nothingLeftOut ||
			h >= twoNameLines && left == namesLeftOut {
			l.top = 2
		}
	}
	l.days, l.axis = h >= 5, h >= 4
	l.w, l.h = w-l.left, h-l.top
	if l.days {
		l.h--
	}
	if l.axis {
		l.h--
	}
	return l
}

// Draw fills c.
func (ch Chart) Draw(c Canvas) {
	l := ch.look(c.w, c.h)
	low, high, found := ch.bounds()
	if !found || ch.To <= ch.From || l.w < 2 || l.h < 1 {
		Message{Text: ch.Empty}.Draw(c)
		return
	}
	s := scaleOf(low, high, ch.Log, l.h*4)
	area := c.Sub(l.left, l.top, l.w, l.h)
	if l.left > 0 {
		ch.drawValues(c.Sub(0, l.top, l.left, l.h), s)
	}
	ch.drawCursor(area)
	ch.drawLevels(area, s)
	ch.drawSeries(area, s)
	if l.axis {
		ch.drawAxis(c.Sub(l.left-1, l.top+l.h, l.w+1, 1), l.left > 0)
	}
	if l.days {
		drawTicks(c.Sub(l.left, l.top+l.h+1, l.w, 1), ch.From, ch.To, ink(Muted))
	}
	if l.top > 0 {
		ch.drawNames(c.Sub(0, 0, c.w, l.top))
	}
}

// bounds returns the minimum and maximum of the visible values. found is false if no value is
// visible.
func (ch Chart) bounds() (low, high float64, found bool) {
	low, high = math.Inf(1), math.Inf(-1)
	take := func(v float64) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			low, high, found = min(low, v), max(high, v), true
		}
	}
	for _, s := range ch.Series {
		for i := range min(len(s.At), len(s.Value)) {
			// A value is valid up to the next instant.
			after := i+1 < len(s.At) && s.At[i+1] <= ch.From
			if s.At[i] <= ch.last() && !after {
				take(s.Value[i])
			}
		}
	}
	if !found {
		return 0, 0, false
	}
	for _, l := range ch.Levels {
		take(l.Value)
	}
	if ch.Zero {
		take(0)
	}
	return low, high, true
}

// last returns the last instant with known values.
func (ch Chart) last() policy.Time {
	if ch.Until != 0 && ch.Until < ch.To {
		return ch.Until
	}
	return ch.To
}

// drawValues draws the axis of values.
func (ch Chart) drawValues(c Canvas, s scale) {
	for y := range c.h {
		c.Set(c.w-1, y, '│', ink(Faint))
	}
	values, step := s.ticks(max((c.h+1)/2, 2))
	free := c.h
	for _, v := range values {
		y := s.y(v) / 4
		if y < 0 || y >= free {
			continue
		}
		text := ch.Unit.label(v, step)
		c.Text(max(c.w-1-Width(text), 0), y, Cut(text, c.w-1), ink(Muted))
		c.Set(c.w-1, y, '┤', ink(Faint))
		free = y - 1
	}
}

// drawCursor draws the line at the time of the cursor.
func (ch Chart) drawCursor(c Canvas) {
	if ch.Now == 0 {
		return
	}
	x := column(ch.Now, ch.From, ch.To, c.w)
	for y := range c.h {
		c.Set(x, y, '│', ink(Now))
	}
}

// drawLevels draws constant values, behind the series.
func (ch Chart) drawLevels(c Canvas, s scale) {
	for _, l := range ch.Levels {
		y := s.y(l.Value) / 4
		if l.End {
			c.Set(c.w-1, y, '◁', ink(l.Ink).bold())
			continue
		}
		for x := range c.w {
			c.Set(x, y, '╌', ink(l.Ink))
		}
	}
}

// drawSeries draws the lines. The first series is drawn last, in front of the others.
func (ch Chart) drawSeries(c Canvas, s scale) {
	p := newPlot(c.w, c.h)
	ends := make([][2]int, len(ch.Series))
	for i := len(ch.Series) - 1; i >= 0; i-- {
		ends[i][0], ends[i][1] = ch.trace(p, ch.Series[i], s)
	}
	p.draw(c)
	taken := map[[2]int]bool{}
	for i, one := range ch.Series {
		x, y := ends[i][0]/2, ends[i][1]/4
		if one.Key == 0 || ends[i][0] < 0 || y < 0 || y >= c.h {
			continue
		}
		for x = min(x+1, c.w-1); x > 0 && taken[[2]int{x, y}]; {
			x--
		}
		taken[[2]int{x, y}] = true
		c.Set(x, y, one.Key, ink(one.Ink).bold())
	}
}

// trace draws one line and returns its last dot, or -1, -1 if it has no dots.
func (ch Chart) trace(p plot, s Series, sc scale) (endX, endY int) {
	endX, endY = -1, -1
	until, joined := ch.last(), false
	for i := range min(len(s.At), len(s.Value)) {
		if s.At[i] > until {
			break
		}
		end := until
		if i+1 < len(s.At) {
			end = min(end, s.At[i+1])
		}
		if v := s.Value[i]; math.IsNaN(v) || math.IsInf(v, 0) || end < ch.From {
			joined = false
			continue
		}
		x, y := column(s.At[i], ch.From, ch.To, p.w*2), sc.y(s.Value[i])
		switch {
		case joined && s.Straight:
			p.line(endX, endY, x, y, s.Ink)
		case joined:
			p.line(x, endY, x, y, s.Ink)
		}
		endX, endY, joined = x, y, true
		if !s.Straight {
			endX = column(end, ch.From, ch.To, p.w*2)
		}
		p.line(x, y, endX, y, s.Ink)
	}
	return endX, endY
}

// drawAxis draws the axis under the plot with its marks; it is dashed after the last known values.
// Its first column is the corner.
func (ch Chart) drawAxis(c Canvas, corner bool) {
	x0 := 1
	if corner {
		c.Set(0, 0, '└', ink(Faint))
	} else {
		x0 = 0
	}
	w := c.w - x0
	known := column(ch.last(), ch.From, ch.To, w)
	for x := range w {
		line := '─'
		if x > known {
			line = '╌'
		}
		c.Set(x0+x, 0, line, ink(Faint))
	}
	for _, t := range timeTicks(ch.From, ch.To, w) {
		c.Set(x0+column(t.at, ch.From, ch.To, w), 0, '┴', ink(Faint))
	}
	if ch.Now != 0 {
		if x := column(ch.Now, ch.From, ch.To, w); x >= 0 {
			c.Set(x0+x, 0, '┴', ink(Now))
		}
	}
	for _, m := range ch.Marks {
		if x := column(m.At, ch.From, ch.To, w); x >= 0 && m.At <= ch.last() {
			c.Set(x0+x, 0, m.Glyph, ink(m.Ink).bold())
		}
	}
}

// TimeAt returns the instant of column x on a canvas of w columns and h lines, for the mouse. It
// returns false outside the plot.
func (ch Chart) TimeAt(w, h, x int) (policy.Time, bool) {
	l := ch.look(w, h)
	if x -= l.left; x < 0 || x >= l.w {
		return 0, false
	}
	return instant(x, ch.From, ch.To, l.w), true
}
