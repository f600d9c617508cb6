package chart

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// A Grid is a count for each row and each stretch of the x axis, shown by the
// colour of its cell: one of a few, so that the legend says what each means.
type Grid struct {
	Frame
	Rows []string

	// Edges are the bounds of the stretches, ascending, one more than those.
	Edges []float64

	// Values holds a list for each row. What is 0 or below is left blank.
	Values [][]int
}

func (g *Grid) frame() *Frame { return &g.Frame }

func (g *Grid) compose() (*plot, []key, error) {
	p := g.newPlot()
	if len(g.Values) != len(g.Rows) || len(g.Rows) == 0 || len(g.Edges) < 2 {
		return nil, nil, fmt.Errorf("%w: %d lists of values for %d rows, %d edges", ErrValue, len(g.Values), len(g.Rows), len(g.Edges))
	}
	for i, row := range g.Values {
		if len(row) != len(g.Edges)-1 {
			return nil, nil, fmt.Errorf("%w: row %q has %d values for %d edges", ErrValue, g.Rows[i], len(row), len(g.Edges))
		}
	}
	p.add(grid{g})
	down(p, g.Rows)
	p.x.min, p.x.max = g.Edges[0], g.Edges[len(g.Edges)-1]
	var keys []key
	colours := g.Theme.palette()
	from := 1
	for _, s := range g.steps() {
		name := strconv.Itoa(s.upTo)
		if from < s.upTo {
			name = strconv.Itoa(from) + "–" + name
		}
		keys = append(keys, key{name: name, colour: colours.level(s.level), filled: true})
		from = s.upTo + 1
	}
	return p, keys, nil
}

// A step is a colour of the grid and the greatest count that has it.
type step struct{ upTo, level int }

// steps divides counts among the colours, evenly; there are fewer of them than
// colours where counts are few.
func (g *Grid) steps() []step {
	most := 0
	for _, row := range g.Values {
		for _, v := range row {
			most = max(most, v)
		}
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

// downTicks name rows from the top.
type downTicks []string

// ticks implements ticker.
func (t downTicks) ticks(float64, float64) []tick {
	ticks := make([]tick, len(t))
	for i, name := range t {
		ticks[i] = tick{float64(len(t) - 1 - i), name}
	}
	return ticks
}

type grid struct{ *Grid }

// draw implements mark.
func (g grid) draw(c canvas, p *plot) {
	x, y := p.places(c)
	steps := g.steps()
	var paths [levels]path // cells of one colour are one shape
	for i, row := range g.Values {
		middle := float64(len(g.Rows) - 1 - i)
		for j, v := range row {
			if v <= 0 {
				continue
			}
			at := steps[slices.IndexFunc(steps, func(s step) bool { return v <= s.upTo })].level
			cell := rectangle(x(g.Edges[j]), y(middle-0.42), x(g.Edges[j+1]), y(middle+0.42))
			paths[at] = append(paths[at], outline{points: cell, closed: true})
		}
	}
	for i, cells := range paths {
		if len(cells) > 0 {
			c.fill(cells, g.Theme.palette().level(i))
		}
	}
}

// A Raster is states over time, a row for each thing that has one.
type Raster struct {
	Frame

	// States are the names of the legend; a span's State is an index into it.
	States []string
	Rows   []Strip
}

// A Strip is one row.
type Strip struct {
	Name  string
	Spans []Span
}

// A Span is a time in one state.
type Span struct {
	From, To float64
	State    int
}

func (r *Raster) frame() *Frame { return &r.Frame }

func (r *Raster) compose() (*plot, []key, error) {
	p := r.newPlot()
	low, high := math.Inf(1), math.Inf(-1)
	names := make([]string, len(r.Rows))
	for i := range r.Rows {
		names[i] = r.Rows[i].Name
		for _, s := range r.Rows[i].Spans {
			if s.State < 0 || s.State >= len(r.States) {
				return nil, nil, fmt.Errorf("%w: state %d of row %q; there are %d", ErrValue, s.State, names[i], len(r.States))
			}
			low, high = min(low, s.From), max(high, s.To)
		}
	}
	p.x.min, p.x.max = low, high
	p.y.min, p.y.max = -0.5, float64(len(r.Rows))-0.5
	p.y.ticks = downTicks(names)
	p.add(strips{r})
	var keys []key
	for i, name := range r.States {
		keys = append(keys, key{name: name, colour: r.Theme.state(i), filled: true})
	}
	return p, keys, nil
}

// state is the colour of a state: the first is the calm one.
func (t Theme) state(i int) colour {
	c := t.palette()
	if i == 0 {
		return c.level(0)
	}
	return c.hue(i)
}

type strips struct{ *Raster }

// draw implements mark.
func (r strips) draw(c canvas, p *plot) {
	x, y := p.places(c)
	for i := range r.Rows {
		middle := float64(len(r.Rows) - 1 - i)
		for _, s := range r.Rows[i].Spans {
			from, to := max(s.From, p.x.min), min(s.To, p.x.max)
			if from < to {
				c.box(r.Theme.state(s.State), x(from), y(middle-0.4), x(to), y(middle+0.4))
			}
		}
	}
}
