package trace

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math"
)

// digest hashes the names and columns of all series. Each is preceded by its length, so that
// different contents never give the same bytes.
func digest(series []Series) [32]byte {
	d := newDigester(len(series))
	for i := range series {
		d.series(&series[i])
	}
	return d.sum()
}

// newDigester returns a digester of a trace with the given number of markets.
func newDigester(markets int) *digester {
	d := &digester{hash: sha256.New()}
	d.buffer = bufio.NewWriterSize(d.hash, 1<<13)
	d.text("spotter trace 1")
	d.word(uint64(markets))
	return d
}

// series hashes the next series.
func (d *digester) series(s *Series) {
	for _, name := range [...]string{s.Provider, s.Region, s.Zone, s.Type, s.Product} {
		d.text(name)
	}
	words(d, s.At)
	words(d, s.Spot)
	words(d, s.OnDemand)
	for _, col := range [...][]int8{s.Available, s.Band, s.Score} {
		words(d, col)
	}
	for _, col := range [...][]float64{s.Hazard, s.TrueHazard} {
		d.word(uint64(len(col)))
		for _, v := range col {
			d.word(math.Float64bits(v))
		}
	}
	d.later(s)
}

func (d *digester) sum() [32]byte {
	d.buffer.Flush()
	return [32]byte(d.hash.Sum(nil))
}

// later hashes the columns that were added after the first digests had been published. A column
// that the series lacks adds nothing, so that a trace without these columns keeps its digest. The
// word before each column cannot be mistaken for a length.
func (d *digester) later(s *Series) {
	const mark = 1 << 63
	if s.ProbeGap != nil {
		d.word(mark)
		words(d, s.ProbeGap)
	}
	for k, col := range s.Bids {
		if col != nil {
			d.word(mark + 1 + uint64(k))
			words(d, col)
		}
	}
	if s.Launched != nil {
		d.word(mark + 4)
		words(d, s.Requested)
		words(d, s.Launched)
	}
}

// A digester buffers its input, so that the hash receives long pieces. Writing to a hash never
// fails.
type digester struct {
	hash   hash.Hash
	buffer *bufio.Writer
}

func (d *digester) word(v uint64) {
	_, _ = d.buffer.Write(binary.LittleEndian.AppendUint64(d.buffer.AvailableBuffer(), v))
}

func (d *digester) text(s string) {
	d.word(uint64(len(s)))
	_, _ = d.buffer.WriteString(s)
}

// words hashes a column of integers.
func words[T ~int8 | ~int32 | ~int64](d *digester, col []T) {
	d.word(uint64(len(col)))
	for _, v := range col {
		d.word(uint64(v))
	}
}
