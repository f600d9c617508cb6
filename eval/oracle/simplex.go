package oracle

import "math"

// pivotsMax is the maximum number of steps of maximize. After blandAfter steps it changes from the
// steepest column, which is fast, to Bland's rule, which terminates. The limit is necessary because
// rounding could cause cycles.
const (
	pivotsMax  = 400
	blandAfter = 200
)

// A program is a small linear program in a reusable table: maximize gain·z subject to rows·z ≤ 1
// and z ≥ 0. Simplex of gonum v0.17 finds the same optimum for programs of this size (up to 13 rows
// and 31 columns), but takes 55 times as long (0.8 ms instead of 0.014 ms), allocates in each step
// and returns no dual prices. A separate program for the prices takes 360 times as long and fails
// if one of its rows is zero.
type program struct {
	columns int
	table   []float64 // a row per constraint: its coefficients, then its limit
	gain    []float64 // a coefficient per column, then the negative objective value
	basic   []int     // the variable of each row; z has variables 0 to columns−1
	free    []int     // the variable of each column
}

// maximize writes z to result and the dual prices of the constraints to prices. They are optimal
// except for rounding, unless the maximum number of steps is reached. It uses the simplex method on
// the condensed table, starting from z = 0.
func (p *program) maximize(rows [][]float64, gain, result, prices []float64) {
	p.columns = len(gain)
	p.table, p.gain, p.basic, p.free = p.table[:0], p.gain[:0], p.basic[:0], p.free[:0]
	for i, row := range rows {
		p.table = append(append(p.table, row...), 1)
		p.basic = append(p.basic, p.columns+i)
	}
	for j := range gain {
		p.free = append(p.free, j)
	}
	p.gain = append(append(p.gain, gain...), 0)
	for step := range pivotsMax {
		column := p.entering(step >= blandAfter)
		if column < 0 {
			break
		}
		row := p.leaving(column)
		if row < 0 {
			break // no constraint limits the column, so its gain is unbounded
		}
		p.pivot(row, column)
	}
	clear(result)
	for i, v := range p.basic {
		if v < p.columns {
			result[v] = max(0, p.table[i*(p.columns+1)+p.columns])
		}
	}
	clear(prices)
	for j, v := range p.free {
		if v >= p.columns {
			prices[v-p.columns] = max(0, -p.gain[j])
		}
	}
}

// entering returns a column with a positive gain: the one with the highest gain, or by Bland's rule
// the one with the lowest variable; −1 if no column has one.
func (p *program) entering(bland bool) int {
	best := -1
	for j := range p.columns {
		switch {
		case p.gain[j] <= 1e-12:
		case best < 0, bland && p.free[j] < p.free[best], !bland && p.gain[j] > p.gain[best]:
			best = j
		}
	}
	return best
}

// leaving returns the row that limits column first. Ties go to the lowest variable.
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

// pivot exchanges the variable of a row with that of a column.
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

// eliminate subtracts the pivot row, which is already divided, from another row.
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
