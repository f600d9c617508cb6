package draw

import (
	"cmp"
	"math"
	"slices"
)

// A chartName is one line of the names of a chart.
type chartName struct {
	key   string
	name  string
	value float64
	ink   Ink
	line  int // where it would best stand

	// bare leaves the value out.
	bare bool
}

// names returns what is drawn, with its value at the shown time.
func (ch Chart) names(s scale) []chartName {
	var all []chartName
	for _, one := range ch.Series {
		n := chartName{key: "─", name: one.Name, value: ch.valueOf(one), ink: one.Ink, line: -1}
		if one.Key != 0 {
			n.key = string(one.Key)
		}
		if !math.IsNaN(n.value) {
			n.line = s.y(n.value) / 4
		}
		all = append(all, n)
	}
	for _, l := range ch.Levels {
		key := "╌"
		if l.End {
			key = "◁"
		}
		all = append(all, chartName{key: key, name: l.Name, value: l.Value, ink: l.Ink, line: s.y(l.Value) / 4})
	}
	return all
}

// valueOf returns the value of s at the shown time, the last known one without
// a cursor; NaN where there is none.
func (ch Chart) valueOf(s Series) float64 {
	at := ch.last()
	if ch.Now != 0 {
		at = min(at, ch.Now)
	}
	n := min(len(s.At), len(s.Value))
	i, found := slices.BinarySearch(s.At[:n], at)
	if !found {
		i--
	}
	if i < 0 {
		return math.NaN()
	}
	return s.Value[i]
}

// draw writes n at line y of c: its key, its name and, if there is room, its value
// at the right.
func (n chartName) draw(c Canvas, y int, u Unit) {
	x := c.Text(0, y, n.key, ink(n.ink).bold()) + 1
	room := c.w - x
	if value := u.text(n.value); !n.bare && room-Width(value)-1 >= min(Width(n.name), 6) {
		c.Text(c.w-Width(value), y, value, Style{})
		room -= Width(value) + 1
	}
	c.Text(x, y, CutMiddle(n.name, room), ink(n.ink))
}

// drawNames writes the names right of the plot, each beside its line as far as
// the others let it.
func (ch Chart) drawNames(c Canvas, s scale) {
	all := ch.names(s)
	cut := 0
	if len(all) > c.h {
		cut = len(all) - max(c.h-1, 0)
		all = all[:max(c.h-1, 0)]
	}
	slices.SortStableFunc(all, func(a, b chartName) int { return cmp.Compare(a.line, b.line) })
	// From below: nobody stands so low that those after it do not fit.
	lines := make([]int, len(all))
	limit := c.h
	if cut > 0 {
		limit--
	}
	for i := len(all) - 1; i >= 0; i-- {
		limit = min(limit-1, max(all[i].line, i))
		lines[i] = limit
	}
	for i, n := range all {
		if i > 0 {
			lines[i] = max(lines[i], lines[i-1]+1)
		}
		lines[i] = max(lines[i], 0)
		n.draw(c, lines[i], ch.Unit)
	}
	if cut > 0 {
		c.Text(0, c.h-1, Cut("… "+Thousands(int64(cut))+" more", c.w), ink(Muted))
	}
}

// nameMin is the least columns of a name in a line of names that still says
// which one it is.
const nameMin = 13

// drawNameLine writes the names in one line above the plot: with their values
// where all fit, else cut, and the last ones as a number where they would say
// nothing any more.
func (ch Chart) drawNameLine(c Canvas) {
	all := ch.names(scale{low: 0, high: 1, dots: 2})
	full := make([]int, len(all)) // with the gap behind it
	short := make([]int, len(all))
	sum := 0
	for i, n := range all {
		short[i] = 2 + Width(n.name) + 2
		full[i] = short[i] + Width(ch.Unit.text(n.value)) + 1
		sum += full[i]
	}
	x := 0
	for i, n := range all {
		room := full[i]
		if sum > c.w {
			n.bare, room = true, min(short[i], max((c.w-x)/(len(all)-i), nameMin+4))
		}
		rest := len(all) - i
		if more := "+" + Thousands(int64(rest)); x+room-2 > c.w || rest > 1 && x+room+Width(more) > c.w {
			c.Text(x, 0, more, ink(Muted))
			return
		}
		n.draw(c.Sub(x, 0, room-2, 1), 0, ch.Unit)
		x += room
	}
}
