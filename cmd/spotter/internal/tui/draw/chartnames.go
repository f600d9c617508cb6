package draw

import (
	"cmp"
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy/figures"
)

// A chartName is an entry in the legend of a chart.
type chartName struct {
	key   string
	name  string
	short string
	value float64
	ink   Ink

	// bare omits the value.
	bare bool
}

// names returns the entries of the legend, with the values at the time of the cursor.
func (ch Chart) names() []chartName {
	var all []chartName
	for _, one := range ch.Series {
		n := chartName{key: "─", name: one.Name, short: cmp.Or(one.Short, one.Name), value: ch.valueOf(one), ink: one.Ink}
		if one.Key != 0 {
			n.key = string(one.Key)
		}
		all = append(all, n)
	}
	for _, l := range ch.Levels {
		key := "╌"
		if l.End {
			key = "◁"
		}
		all = append(all, chartName{key: key, name: l.Name, short: cmp.Or(l.Short, l.Name), value: l.Value, ink: l.Ink})
	}
	return all
}

// valueOf returns the value of s at the time of the cursor, or its last known value without a
// cursor; NaN if s has no value then.
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

// draw writes n on the first line of c: its key, name and value.
func (n chartName) draw(c Canvas, u Unit) {
	x := c.Text(0, 0, n.key, ink(n.ink).bold()) + 1
	x = c.Text(x, 0, CutMiddle(n.name, c.w-x), ink(n.ink)) + 1
	if !n.bare {
		c.Text(x, 0, u.text(n.value), Style{})
	}
}

// width returns the number of columns of n in the legend.
func (n chartName) width(u Unit) int {
	w := 2 + Width(n.name)
	if !n.bare {
		w += 1 + Width(u.text(n.value))
	}
	return w
}

// nameGap is the number of columns between two names.
const nameGap = 2

// The levels of omission in the legend, if space is short.
const (
	nothingLeftOut = iota
	valuesLeftOut
	longLeftOut // values, and long names
	namesLeftOut
)

// nameLines distributes the names over n lines of w columns: with values if all fit, otherwise
// without values, otherwise with short names. Names that still do not fit are omitted from the end,
// and space is left for their number.
func (ch Chart) nameLines(w, n int) (lines [][]chartName, left int) {
	all := ch.names()
	for left = nothingLeftOut; left < namesLeftOut; left++ {
		for i := range all {
			switch left {
			case valuesLeftOut:
				all[i].bare = true
			case longLeftOut:
				all[i].name = all[i].short
			}
		}
		lines, fit := ch.spreadNames(all, w, n, 0)
		if fit == len(all) {
			return lines, left
		}
	}
	lines, _ = ch.spreadNames(all, w, n, Width(" +"+figures.Integer(len(all))))
	return lines, left
}

// spreadNames puts as many names as fit into the given number of lines of w columns, with spare
// columns left at the end of the last line. It returns the names of each line, and how many fit.
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

// drawNames writes the names above the plot, and the number of omitted names.
func (ch Chart) drawNames(c Canvas) {
	left := len(ch.Series) + len(ch.Levels)
	x := 0
	lines, _ := ch.nameLines(c.w, c.h)
	for y, line := range lines {
		x = 0
		for _, n := range line {
			w := n.width(ch.Unit)
			n.draw(c.Sub(x, y, w, 1), ch.Unit)
			x += w + nameGap
		}
		left -= len(line)
	}
	if left > 0 {
		more := " +" + figures.Integer(left)
		c.Text(max(min(x-1, c.w-len(more)), 0), c.h-1, more, ink(Muted))
	}
}
