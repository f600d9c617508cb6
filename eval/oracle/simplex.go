package oracle

import "math"

// pivotsMax bounds the steps of maximize, and blandAfter says after how many of
// them the rule changes from the steepest column, which is fast, to Bland's,
// which ends. The bound is for the rounding that could make it go in circles.
const (
	pivotsMax  = 400
	blandAfter = 200
)

// A program is a small linear program in a table that is used again: maximize
// gain·z under rows·z ≤ 1 and z ≥ 0. The Simplex of gonum v0.17 finds the same
// optimum for programs of this size (up to 13 rows and 31 columns), but takes 55
// times as long (0.8 ms to 0.014), allocates at each step and returns no prices,
// which cost as a program of their own 360 times as much and fail where a row of
// it is all zeros.
type program struct {
	columns int
	table   []float64 // a row per constraint: its coefficients, then its limit
	gain    []float64 // a coefficient per column, then minus the value
	basic   []int     // the variable of each row; z has 0…columns−1
	free    []int     // the variable of each column
}

// maximize writes a good z into result and the prices of the constraints into
// prices: the best ones but for rounding. It is the simplex method on the
// condensed table, from z = 0.
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
			break // no constraint has it: its gain has no bound
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

// entering returns a column that still gains: the one that gains most, or by
// Bland's rule that of the lowest variable; −1 for none.
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
