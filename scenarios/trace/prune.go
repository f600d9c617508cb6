package trace

import (
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/spotter-dev/spotter/policy"
)

// skips reports whether the statistics of row group g of f say that it holds nothing
// that is wanted: names of which none lies within its bounds, or times after the span.
// What is earlier must be read, since it holds the prices in force.
//
// A row group has one page of each column as we write them, so that an index of pages
// would say the same.
func (s *scanner) skips(f *parquet.File, g int, leaves []leaf) bool {
	choices := marketChoices{s.o.Providers, s.o.Regions, s.o.Zones, s.o.Types}
	for _, l := range leaves {
		chunk := f.RowGroups()[g].ColumnChunks()[l.index].(*parquet.FileColumnChunk)
		least, most, ok := chunk.Bounds()
		switch {
		case !ok:
		case l.name == colTime:
			if policy.Time(least.Int64()/l.scale) > s.o.end() {
				return true
			}
		case l.stored == storedString && len(choices[l.market]) > 0:
			first, last := string(least.ByteArray()), string(most.ByteArray())
			if !slices.ContainsFunc(choices[l.market], func(name string) bool { return first <= name && name <= last }) {
				return true
			}
		}
	}
	return false
}

// marketChoices are the names that are wanted, by their place in a marketCode; empty means all.
type marketChoices [5][]string

// stretch returns where in f the columns of row group g lie that are read.
func stretch(f *parquet.File, g int, leaves []leaf) (begin, end int64) {
	begin = f.Size()
	for _, l := range leaves {
		m := &f.Metadata().RowGroups[g].Columns[l.index].MetaData
		at := chunkBegin(m)
		begin, end = min(begin, at), max(end, at+m.TotalCompressedSize)
	}
	return begin, end
}

// prefetch brings row group g into memory, together with those behind it that are
// wanted, too, as far as they lie close and find room. One that is too long is read
// page by page.
func (s *scanner) prefetch(f *parquet.File, g int, leaves []leaf) error {
	begin, end := stretch(f, g, leaves)
	if end-begin > blockMax || begin >= end {
		return nil
	}
	if r := &s.reader; begin >= r.at && end <= r.at+int64(len(r.block)) {
		return nil
	}
	for next := g + 1; next < len(f.RowGroups()); next++ {
		if s.skips(f, next, leaves) || checkGroup(f, next) != nil {
			continue
		}
		from, to := stretch(f, next, leaves)
		if from < end || from > end+gapMax || to-begin > blockMax {
			break
		}
		end = to
	}
	return s.reader.fetch(begin, end)
}
