package eval

import "math"

// pivotsMax bounds the steps of maximize. Bland's rule ends by itself; the
// bound is for the rounding that could make it go in circles.
const pivotsMax = 200

// A program is a small linear program in a table that is used again: maximize
// gain·y under rows·y ≤ limit and y ≥ 0, with limit ≥ 0.
type program struct {
	columns int
	table   []float64 // a row per constraint: its coefficients, then its limit
	gain    []float64 // a coefficient per column, then minus the value
	basic   []int     // the variable of each row; y has 0…columns−1
	free    []int     // the variable of each column
}

// reset empties the program for columns variables.
func (p *program) reset(columns int) {
	p.columns = columns
	p.table, p.gain, p.basic, p.free = p.table[:0], p.gain[:0], p.basic[:0], p.free[:0]
}

// maximize writes a good y into result: the best one but for rounding. It is
// the simplex method on the condensed table, from y = 0, by Bland's rule.
func (p *program) maximize(rows [][]float64, limits, gain, result []float64) {
	p.reset(len(gain))
	for i, row := range rows {
		p.table = append(append(p.table, row...), limits[i])
		p.basic = append(p.basic, len(gain)+i)
	}
	for j := range gain {
		p.free = append(p.free, j)
	}
	p.gain = append(append(p.gain, gain...), 0)
	for range pivotsMax {
		column := p.entering()
		if column < 0 {
			break
		}
		row := p.leaving(column)
		if row < 0 {
			break // unbounded: no market offers the resource, so no pod can have it
		}
		p.pivot(row, column)
	}
	clear(result)
	for i, v := range p.basic {
		if v < p.columns {
			result[v] = max(0, p.table[i*(p.columns+1)+p.columns])
		}
	}
}

// entering returns the column of the lowest variable that still gains.
func (p *program) entering() int {
	best := -1
	for j := range p.columns {
		if p.gain[j] > 1e-12 && (best < 0 || p.free[j] < p.free[best]) {
			best = j
		}
	}
	return best
}

// leaving returns the row that limits column first, ties by variable.
func (p *program) leaving(column int) int {
	width := p.columns + 1
	best, least := -1, math.Inf(1)
	for i := range p.basic {
		a := p.table[i*width+column]
		if a <= 1e-12 {
			continue
		}
		ratio := p.table[i*width+p.columns] / a
		if ratio < least || ratio == least && p.basic[i] < p.basic[best] {
			best, least = i, ratio
		}
	}
	return best
}

// pivot exchanges the variables of a row and a column.
func (p *program) pivot(row, column int) {
	width := p.columns + 1
	r := p.table[row*width : (row+1)*width]
	inverse := 1 / r[column]
	for j := range r {
		r[j] *= inverse
	}
	r[column] = inverse
	for i := range p.basic {
		if i != row {
			eliminate(p.table[i*width:(i+1)*width], r, column, inverse)
		}
	}
	eliminate(p.gain, r, column, inverse)
	p.basic[row], p.free[column] = p.free[column], p.basic[row]
}

// eliminate takes the pivot row, already divided, out of another one.
func eliminate(target, r []float64, column int, inverse float64) {
	factor := target[column]
	if factor == 0 {
		return
	}
	for j := range target {
		target[j] -= float64(factor * r[j])
	}
	target[column] = -float64(factor * inverse)
}
