package trace

import (
	"fmt"
	"strconv"

	"github.com/spotter-dev/spotter/policy"
)

// A Batch is some consecutive rows of one file. Slices of columns that were
// not asked for, or that the file lacks, are nil. It is only valid until visit
// returns.
type Batch struct {
	File string

	// Row is the number of rows of the file before the batch, Rows those in it.
	Row  int64
	Rows int

	Time []policy.Time

	// Runs are stretches of rows of one market; the first begins at row 0.
	Runs []Run

	Spot     []policy.Money // policy.NoPrice where not offered
	OnDemand []policy.Money // 0 where unknown

	// -1 where unknown.
	Available, Band, Score []float64
	Hazard, TrueHazard     []float64

	// ProbeGap is in seconds; -1 means unknown. Bids are 0 where unknown.
	ProbeGap []float64
	Bids     [3][]policy.Money

	// Requested and Launched are -1 where unknown.
	Requested, Launched []float64

	symbols *symbols
}

// A Run is a stretch of rows of one market, up to but not including row End of
// the batch.
type Run struct {
	market marketCode
	End    int
}

// A marketCode is a market's names as codes: provider, region, zone, type,
// product.
type marketCode [5]int32

// equal reports whether both are of one market. It takes a fraction of the
// time of ==, which calls a comparison of memory.
func (m *marketCode) equal(o *marketCode) bool {
	return m[3] == o[3] && m[2] == o[2] && m[1] == o[1] && m[0] == o[0] && m[4] == o[4]
}

// Market returns the provider, region, zone, type and product of run i.
func (b *Batch) Market(i int) (m [5]string) {
	for k, code := range b.Runs[i].market {
		m[k] = b.symbols.names[code]
	}
	return m
}

// extras reports whether there is more than prices.
func (b *Batch) extras() bool {
	return b.Available != nil || b.Launched != nil || b.Band != nil || b.Score != nil || b.Hazard != nil || b.TrueHazard != nil ||
		b.Bids[0] != nil || b.Bids[1] != nil || b.Bids[2] != nil
}

// probeGap returns how long before row i the market was last looked at; 0 if
// the row does not say.
func (b *Batch) probeGap(i int) int32 {
	if b.ProbeGap == nil {
		return 0
	}
	return max(0, int32(b.ProbeGap[i]))
}

// sample returns what row i says; without extras, its prices only.
func (b *Batch) sample(i int, extras bool) Sample {
	v := unknown
	v.Spot = b.Spot[i]
	set(&v.OnDemand, b.OnDemand, i)
	if !extras {
		return v
	}
	convert(&v.Available, b.Available, i)
	convert(&v.Band, b.Band, i)
	convert(&v.Score, b.Score, i)
	set(&v.Hazard, b.Hazard, i)
	set(&v.TrueHazard, b.TrueHazard, i)
	for k, bids := range b.Bids {
		set(&v.Bids[k], bids, i)
	}
	convert(&v.Requested, b.Requested, i)
	convert(&v.Launched, b.Launched, i)
	return v
}

// convert is set for a whole number that was read as a float.
func convert[T int8 | int32](v *T, column []float64, i int) {
	if column != nil {
		*v = T(column[i])
	}
}

// checkDepth fails at the first row of a batch whose depth cannot be: more
// nodes launched than were requested, one of the two without the other, or
// against what the row says of whether a node could be had.
func (b *Batch) checkDepth(want Columns) error {
	if !want.has(ColumnDepth) || b.Requested == nil && b.Launched == nil {
		return nil
	}
	fault := func(column string, i int, value float64, reason string) error {
		return &FileError{
			File: b.File, Column: column, Row: b.Row + int64(i) + 1, Value: strconv.FormatFloat(value, 'g', -1, 64),
			Err: fmt.Errorf("%w: %s", ErrValue, reason),
		}
	}
	for i := range b.Rows {
		requested, launched, available := -1.0, -1.0, -1.0
		set(&requested, b.Requested, i)
		set(&launched, b.Launched, i)
		set(&available, b.Available, i)
		switch {
		case requested == -1 && launched == -1:
		case requested < 1:
			return fault(colRequested, i, requested, "how many nodes were requested is unknown or none, while launched is given")
		case launched < 0 || launched > requested:
			return fault(colLaunched, i, launched, fmt.Sprintf("not between 0 and the %g nodes requested", requested))
		case want.has(ColumnAvailable) && available != min(launched, 1):
			return fault(colAvailable, i, available, fmt.Sprintf("%g nodes launched, so that it must be %t", launched, launched > 0))
		}
	}
	return nil
}
