package chart

import (
	"fmt"
	"slices"
	"strconv"
)

// A Grid shows counts by row and interval of the x axis as coloured cells. It has only a few
// colours, so that the legend can state the range of each.
type Grid struct {
	Frame
	Rows []string

	// Edges are the ascending bounds of the intervals, one more than there are intervals.
	Edges []float64

	// Values contains the counts of each row. Cells with counts of 0 or less are blank.
	Values [][]int
}

func (g *Grid) compose() (*plot, error) {
	p := g.newPlot()
	if len(g.Values) != len(g.Rows) || len(g.Rows) == 0 || len(g.Edges) < 2 {
		return nil, fmt.Errorf("%w: %d lists of values for %d rows, %d edges", ErrValue, len(g.Values), len(g.Rows),
			len(g.Edges))
	}
	for i, row := range g.Values {
		if len(row) != len(g.Edges)-1 {
			return nil, fmt.Errorf("%w: row %q has %d values for %d edges", ErrValue, g.Rows[i], len(row), len(g.Edges))
		}
	}
	p.y.down(g.Rows)
	p.x.show(g.Edges)
	colours := g.Theme.palette()
	from := 1
	for _, s := range g.steps() {
		name := strconv.Itoa(s.upTo)
		if from < s.upTo {
			name = strconv.Itoa(from) + "–" + name
		}
		p.keys = append(p.keys, key{name: name, colour: colours.level(s.level), filled: true})
		from = s.upTo + 1
	}
	p.layers = append(p.layers, g.draw)
	return p, nil
}

// A step is a colour level of the grid and the highest count with this colour.
type step struct{ upTo, level int }

// steps divides the range of counts evenly among the colours. There are fewer steps than colours if
// the highest count is small.
func (g *Grid) steps() []step {
	most := 0
	for _, row := range g.Values {
		most = max(most, slices.Max(row))
	}
	var all []step
	for i := range levels {
		upTo := (most*(i+1) + levels - 1) / levels
		if n := len(all); n > 0 && all[n-1].upTo == upTo {
			all[n-1].level = i
		} else if upTo > 0 {
			all = append(all, step{upTo, i})
		}
	}
	return all
}

// draw draws the cells. All cells of one colour are one shape.
func (g *Grid) draw(c canvas) {
	from := 1
	for _, s := range g.steps() {
		var cells [][]point
		for i, row := range g.Values {
			middle := float64(len(g.Rows) - 1 - i)
			for j, v := range row {
				if from <= v && v <= s.upTo {
					cells = append(cells, area{c.x(g.Edges[j]), c.y(middle + 0.42), c.x(g.Edges[j+1]), c.y(middle - 0.42)}.corners())
				}
			}
		}
		if len(cells) > 0 {
			c.fill(g.Theme.palette().level(s.level), cells...)
		}
		from = s.upTo + 1
	}
}

// A Raster shows states over time, one row for each item.
type Raster struct {
	Frame

	// States are the names in the legend; Span.State is an index into it.
	States []string
	Rows   []Strip
}

// A Strip is one row.
type Strip struct {
	Name  string
	Spans []Span
}

// A Span is an interval in one state.
type Span struct {
	From, To float64
	State    int
}

func (r *Raster) compose() (*plot, error) {
	p := r.newPlot()
	var names []string
	for _, row := range r.Rows {
		names = append(names, row.Name)
		for _, s := range row.Spans {
			if s.State < 0 || s.State >= len(r.States) {
				return nil, fmt.Errorf("%w: state %d of row %q; there are %d", ErrValue, s.State, row.Name, len(r.States))
			}
			p.x.show([]float64{s.From, s.To})
		}
	}
	p.y.down(names)
	for i, name := range r.States {
		p.keys = append(p.keys, key{name: name, colour: r.Theme.state(i), filled: true})
	}
	p.layers = append(p.layers, r.draw)
	return p, nil
}

// state returns the colour of state i; the first state has the lightest colour.
func (t Theme) state(i int) colour {
	c := t.palette()
	if i == 0 {
		return c.level(0)
	}
	return c.hue(i)
}

func (r *Raster) draw(c canvas) {
	for i, row := range r.Rows {
		middle := float64(len(r.Rows) - 1 - i)
		for _, s := range row.Spans {
			if s.From < s.To {
				c.fill(r.Theme.state(s.State), area{c.x(s.From), c.y(middle + 0.4), c.x(s.To), c.y(middle - 0.4)}.corners())
			}
		}
	}
}
