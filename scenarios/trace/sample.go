package trace

import (
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A Sample contains the values of a series in one interval. -1 means unknown, or 0 in OnDemand and
// Bids. It does not include ProbeGap, since another observation of the same values is not a change.
type Sample struct {
	Spot, OnDemand         policy.Money
	Available, Band, Score int8
	Hazard, TrueHazard     float64
	Bids                   [3]policy.Money
	Requested, Launched    int32
}

// unknown is the sample without known values.
var unknown = Sample{Spot: policy.NoPrice, Available: -1, Band: -1, Score: -1, Hazard: -1, TrueHazard: -1,
	Requested: -1, Launched: -1}

// Sample returns the values of s in interval i.
func (s *Series) Sample(i int) Sample {
	v := unknown
	v.Spot = s.Spot[i]
	set(&v.OnDemand, s.OnDemand, i)
	set(&v.Available, s.Available, i)
	set(&v.Band, s.Band, i)
	set(&v.Score, s.Score, i)
	set(&v.Hazard, s.Hazard, i)
	set(&v.TrueHazard, s.TrueHazard, i)
	for k, bids := range s.Bids {
		set(&v.Bids[k], bids, i)
	}
	set(&v.Requested, s.Requested, i)
	set(&v.Launched, s.Launched, i)
	return v
}

// set sets v to entry i of a column, unless the column is nil.
func set[T any](v *T, column []T, i int) {
	if column != nil {
		*v = column[i]
	}
}

// Last returns the values in the last interval, or unknown values if s has no interval.
func (s *Series) Last() Sample {
	if len(s.At) == 0 {
		return unknown
	}
	return s.Sample(len(s.At) - 1)
}

// ProbeGapAt returns the number of seconds between the previous observation of the market and the
// start of interval i.
func (s *Series) ProbeGapAt(i int) int32 {
	if s.ProbeGap == nil {
		return 0
	}
	return s.ProbeGap[i]
}

// live reports whether a reader that starts at a later time needs v.
func (v Sample) live() bool { return v.Spot != policy.NoPrice || v.Available >= 0 }

// Append adds an interval that starts at at, which is after the start of the last one. The market
// was last observed gap seconds before at.
func (s *Series) Append(at policy.Time, v Sample, gap int32) {
	n := len(s.At)
	s.At = append(s.At, at)
	s.Spot = append(s.Spot, v.Spot)
	pushColumn(&s.OnDemand, n, v.OnDemand, 0)
	pushColumn(&s.ProbeGap, n, gap, 0)
	pushColumn(&s.Available, n, v.Available, -1)
	pushColumn(&s.Band, n, v.Band, -1)
	pushColumn(&s.Score, n, v.Score, -1)
	pushColumn(&s.Hazard, n, v.Hazard, -1)
	pushColumn(&s.TrueHazard, n, v.TrueHazard, -1)
	for k := range s.Bids {
		pushColumn(&s.Bids[k], n, v.Bids[k], 0)
	}
	pushColumn(&s.Requested, n, v.Requested, -1)
	pushColumn(&s.Launched, n, v.Launched, -1)
}

// pushColumn appends v to a column of n values. It creates the column at the first known value.
func pushColumn[T comparable](col *[]T, n int, v, unknown T) {
	if *col == nil {
		if v == unknown {
			return
		}
		*col = slices.Repeat([]T{unknown}, n)
	}
	*col = append(*col, v)
}

// A column contains one value for each interval of a series. It is nil if no interval has a known
// value.
type column interface {
	len() int

	// cut keeps the values in [i, n).
	cut(i, n int)

	// dropUnknown sets the column to nil if every value in it is unknown.
	dropUnknown(unknown int)
}

type columnOf[T int8 | int32 | float64 | policy.Money] []T

func (c *columnOf[T]) len() int { return len(*c) }

func (c *columnOf[T]) cut(i, n int) {
	if *c != nil {
		*c = (*c)[i:n]
	}
}

func (c *columnOf[T]) dropUnknown(unknown int) {
	if !slices.ContainsFunc(*c, func(v T) bool { return v != T(unknown) }) {
		*c = nil
	}
}

// An optionalColumn is a column that a series may lack, with its name in files and the value that
// means unknown.
type optionalColumn struct {
	column
	name    string
	unknown int
}

// optional returns the columns that a series may lack.
func (s *Series) optional() [12]optionalColumn {
	return [...]optionalColumn{
		{(*columnOf[policy.Money])(&s.OnDemand), colOnDemand, 0},
		{(*columnOf[int8])(&s.Available), colAvailable, -1},
		{(*columnOf[int32])(&s.ProbeGap), colProbeGap, 0},
		{(*columnOf[int8])(&s.Band), colBand, -1},
		{(*columnOf[int8])(&s.Score), colScore, -1},
		{(*columnOf[float64])(&s.Hazard), colHazard, -1},
		{(*columnOf[float64])(&s.TrueHazard), colTrueHazard, -1},
		{(*columnOf[policy.Money])(&s.Bids[0]), colBidP20, 0},
		{(*columnOf[policy.Money])(&s.Bids[1]), colBidP50, 0},
		{(*columnOf[policy.Money])(&s.Bids[2]), colBidP80, 0},
		{(*columnOf[int32])(&s.Requested), colRequested, -1},
		{(*columnOf[int32])(&s.Launched), colLaunched, -1},
	}
}

// collapse removes intervals that are equal to the one before them.
func (s *Series) collapse() {
	repeats := func(i int) bool { return i > 0 && s.Sample(i) == s.Sample(i-1) }
	some := false
	for i := range s.At {
		some = some || repeats(i)
	}
	if !some {
		return
	}
	kept := Series{Provider: s.Provider, Region: s.Region, Zone: s.Zone, Type: s.Type, Product: s.Product}
	for i, at := range s.At {
		if !repeats(i) {
			kept.Append(at, s.Sample(i), s.ProbeGapAt(i))
		}
	}
	*s = kept
}

// Cut keeps the intervals in [i, n).
func (s *Series) Cut(i, n int) {
	s.At, s.Spot = s.At[i:n], s.Spot[i:n]
	for _, c := range s.optional() {
		c.cut(i, n)
	}
}

func (s *Series) dropUnknown() {
	for _, c := range s.optional() {
		c.dropUnknown(c.unknown)
	}
}
