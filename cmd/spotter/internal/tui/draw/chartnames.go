package draw

import (
	"cmp"
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy/figures"
)

// A chartName is one line of the names of a chart.
type chartName struct {
	key   string
	name  string
	short string
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
		n := chartName{key: "─", name: one.Name, short: cmp.Or(one.Short, one.Name), value: ch.valueOf(one), ink: one.Ink, line: -1}
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
		all = append(all, chartName{key: key, name: l.Name, short: cmp.Or(l.Short, l.Name), value: l.Value, ink: l.Ink, line: s.y(l.Value) / 4})
	}
	return all
}

// valueMax is the columns that the value of a series takes, whatever it is: the plot keeps
// its width as time passes.
const valueMax = 9

// namesWidth returns the columns that the names take right of the plot with their values,
// 0 without any.
func (ch Chart) namesWidth() (n int) {
	for _, s := range ch.Series {
		n = max(n, Width(s.Name))
	}
	for _, l := range ch.Levels {
		n = max(n, Width(l.Name))
	}
	if n > 0 {
		n += 2 + 1 + valueMax + 1
	}
	return n
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
	free := c.w - x
	if value := u.text(n.value); !n.bare && free-Width(value)-1 >= min(Width(n.name), 6) {
		c.Text(c.w-Width(value), y, value, Style{})
		free -= Width(value) + 1
	}
	c.Text(x, y, CutMiddle(n.name, free), ink(n.ink))
}

// drawNames writes the names right of the plot, each next to its line as far as
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
		c.Text(0, c.h-1, Cut("… "+figures.Integer(cut)+" more", c.w), ink(Muted))
	}
}

// width returns the columns that n takes in a line of names.
func (n chartName) width(u Unit) int {
	w := 2 + Width(n.name)
	if !n.bare {
		w += 1 + Width(u.text(n.value))
	}
	return w
}

// nameGap is the columns between two names in a line.
const nameGap = 2

// nameLines spreads the names over so many lines of w columns: with their values
// where all fit, else without, else short. What still has no room is left out,
// from the end; room is then left for how many that are.
func (ch Chart) nameLines(w, lines int) [][]chartName {
	all := ch.names(scale{low: 0, high: 1, dots: 2})
	var out [][]chartName
	for _, change := range []func(n *chartName){
		func(*chartName) {},
		func(n *chartName) { n.bare = true },
		func(n *chartName) { n.name = n.short },
	} {
		for i := range all {
			change(&all[i])
		}
		var fit int
		if out, fit = ch.spreadNames(all, w, lines, 0); fit == len(all) {
			return out
		}
	}
	out, _ = ch.spreadNames(all, w, lines, Width(" +"+figures.Integer(len(all))))
	return out
}

// spreadNames puts as many names as fit into so many lines of w columns, with some
// columns to spare at the end of the last, and returns how many they are.
func (ch Chart) spreadNames(all []chartName, w, lines, spare int) (out [][]chartName, fit int) {
	out = make([][]chartName, lines)
	line, x := 0, 0
	for _, n := range all {
		need := n.width(ch.Unit)
		if x > 0 && x+need > w && line+1 < lines {
			line, x = line+1, 0
		}
		free := w
		if line+1 == lines {
			free -= spare
		}
		if x > 0 && x+need > free {
			break
		}
		out[line], fit, x = append(out[line], n), fit+1, x+need+nameGap
	}
	return out, fit
}

// drawNameLines writes the names above the plot, and how many have no room.
func (ch Chart) drawNameLines(c Canvas) {
	left := len(ch.Series) + len(ch.Levels)
	x := 0
	for y, line := range ch.nameLines(c.w, c.h) {
		x = 0
		for _, n := range line {
			w := n.width(ch.Unit)
			n.draw(c.Sub(x, y, w, 1), 0, ch.Unit)
			x += w + nameGap
		}
		left -= len(line)
	}
	if left > 0 {
		more := " +" + figures.Integer(left)
		c.Text(max(min(x-1, c.w-len(more)), 0), c.h-1, more, ink(Muted))
	}
}
