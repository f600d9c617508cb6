package trace

import (
	"math"
	"slices"

	"github.com/spotter-dev/spotter/policy"
)

// A rowLog holds rows that begin an interval, in the order in which they are read,
// until it is known how many each market has. A trace lies on disk by date and
// in memory by market: to append each row to its series at once would reach
// for memory far apart every few rows, and would copy each series again and
// again while it grows.
type rowLog struct {
	blocks []logBlock
	used   int // the blocks in use; the others are kept for the next region

	// onDemand are the changes of the on-demand price, which are few.
	onDemand []logOnDemand

	// touched are the series that have rows here, in the order of the first.
	touched []int32
}

// A logBlock is some rows and whose they are.
type logBlock struct {
	at   []policy.Time
	spot []policy.Money
	runs []logRun
}

// A logRun is some rows of one series.
type logRun struct{ series, rows int32 }

// A logOnDemand says that the on-demand price of a series is price from its
// row-th row in the log on.
type logOnDemand struct {
	series, row int32
	price       policy.Money
}

const (
	// logRows is how many rows a block has: far more than a batch, so that
	// little is left over at its end.
	logRows = 8 * batchRows

	// logBlocksMax bounds the log. A region that has more rows, some hundred
	// million, is moved to its series in several parts.
	logBlocksMax = 1 << 11
)

// A tail is what a builder must know of a series to tell whether a row begins
// an interval. It is far smaller than the series, so that those of a whole region
// stay in the processor's cache.
type tail struct {
	at             policy.Time // of the last interval
	spot, onDemand policy.Money

	logged int32 // rows in the log
	to     int32 // where the next of them goes, while they are moved

	// wide says that the series has more than prices, so that the log cannot
	// hold its rows.
	wide bool
}

// noTail is that of a series without intervals: any row differs from it and is
// later.
var noTail = tail{at: math.MinInt64, spot: math.MinInt64}

// block returns a block that the rows of a batch can be added to.
func (b *builder) block() *logBlock {
	l := &b.rows
	if l.used > 0 && len(l.blocks[l.used-1].at)+batchRows <= logRows {
		return &l.blocks[l.used-1]
	}
	if l.used == logBlocksMax {
		b.flush()
	}
	if l.used == len(l.blocks) {
		l.blocks = append(l.blocks, logBlock{
			make([]policy.Time, 0, logRows), make([]policy.Money, 0, logRows), make([]logRun, 0, logRows/2),
		})
	}
	block := &l.blocks[l.used]
	l.used++
	block.at, block.spot, block.runs = block.at[:0], block.spot[:0], block.runs[:0]
	return block
}

// log adds to block those of the rows begin to end of the batch, all of series
// k and with nothing but prices, that begin an interval. Whether one does is hard to
// foresee for the processor, so that no branch depends on it.
func (b *builder) log(block *logBlock, k int32, batch *Batch, begin, end int) error {
	t := &b.tails[k]
	lastAt, lastSpot, lastOnDemand := t.at, t.spot, t.onDemand
	first := len(block.at)
	n := first
	ats, spots := block.at[:n+end-begin], block.spot[:n+end-begin]
	latest := b.seenTo
	for i := begin; i < end; i++ {
		at, spot, onDemand := batch.Time[i], batch.Spot[i], policy.Money(0)
		if batch.OnDemand != nil {
			onDemand = batch.OnDemand[i]
		}
		differs := (spot ^ lastSpot) | (onDemand ^ lastOnDemand)
		switch {
		case at < b.first || at > b.last:
			return b.outside(batch, i)
		case at <= lastAt && (at < lastAt || differs != 0):
			return clockError(batch, i, b.of(k), lastAt)
		case onDemand != lastOnDemand:
			b.rows.onDemand = append(b.rows.onDemand, logOnDemand{k, t.logged + int32(n-first), onDemand})
		}
		latest = max(latest, at)
		ats[n], spots[n] = at, spot
		lastSpot, lastOnDemand = spot, onDemand
		if differs != 0 {
			lastAt = at
			n++
		}
	}
	b.seenTo = latest
	if n == first {
		return nil
	}
	b.seen = min(b.seen, ats[first])
	if t.logged == 0 {
		b.rows.touched = append(b.rows.touched, k)
	}
	t.at, t.spot, t.onDemand = lastAt, lastSpot, lastOnDemand
	t.logged += int32(n - first)
	block.at, block.spot = ats[:n], spots[:n]
	block.runs = append(block.runs, logRun{k, int32(n - first)})
	return nil
}

// flush moves the rows of the log to their series and empties it.
func (b *builder) flush() {
	l := &b.rows
	total := int32(0)
	for _, k := range l.touched {
		b.tails[k].to = total
		total += b.tails[k].logged
	}
	if total == 0 {
		return
	}
	at, spot := make([]policy.Time, total), make([]policy.Money, total)
	for i := range l.blocks[:l.used] {
		b.scatter(&l.blocks[i], at, spot)
	}
	onDemand := b.logOnDemand(total)
	for _, k := range l.touched {
		t := &b.tails[k]
		begin, end := t.to-t.logged, t.to
		part := Series{At: at[begin:end:end], Spot: spot[begin:end:end]}
		if onDemand != nil {
			part.OnDemand = onDemand[begin:end:end]
		}
		b.of(k).join(&part)
		t.logged = 0
	}
	l.used, l.onDemand, l.touched = 0, l.onDemand[:0], l.touched[:0]
}

// scatter moves the rows of a block to where those of their series stand.
func (b *builder) scatter(block *logBlock, at []policy.Time, spot []policy.Money) {
	from := 0
	for _, run := range block.runs {
		t, n := &b.tails[run.series], int(run.rows)
		to := int(t.to)
		ats, spots := block.at[from:from+n], block.spot[from:from+n]
		toAts, toSpots := at[to:to+n], spot[to:to+n]
		// Most runs are of a few rows, for which a call to copy takes longer.
		for i := range ats {
			toAts[i], toSpots[i] = ats[i], spots[i]
		}
		t.to, from = t.to+run.rows, from+n
	}
}

// logOnDemand returns the on-demand prices of the rows of the log, those of
// each series together, of which to is the end; nil if no row has one.
func (b *builder) logOnDemand(total int32) []policy.Money {
	l := &b.rows
	had := func(k int32) bool { return b.of(k).OnDemand != nil }
	if len(l.onDemand) == 0 && !slices.ContainsFunc(l.touched, had) {
		return nil
	}
	// A price plus one marks where it begins; it holds until the next mark.
	prices := make([]policy.Money, total)
	for _, c := range l.onDemand {
		t := &b.tails[c.series]
		prices[t.to-t.logged+c.row] = c.price + 1
	}
	for _, k := range l.touched {
		t, s, price := &b.tails[k], b.of(k), policy.Money(0)
		if n := len(s.At); n > 0 {
			price = s.onDemand(n - 1)
		}
		part := prices[t.to-t.logged : t.to]
		for i, mark := range part {
			if mark != 0 {
				price = mark - 1
			}
			part[i] = price
		}
	}
	return prices
}

// join appends the intervals of part, which has nothing but prices, as s does.
func (s *Series) join(part *Series) {
	if len(s.At) == 0 {
		s.At, s.Spot, s.OnDemand = part.At, part.Spot, part.OnDemand
		return
	}
	if s.OnDemand == nil && part.OnDemand != nil {
		s.OnDemand = make([]policy.Money, len(s.At))
	}
	s.At, s.Spot = append(s.At, part.At...), append(s.Spot, part.Spot...)
	s.OnDemand = append(s.OnDemand, part.OnDemand...)
}
