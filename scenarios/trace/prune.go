package trace

import (
	"slices"

	"github.com/parquet-go/parquet-go"

	"github.com/spotter-dev/spotter/policy"
)

// sorted returns names in order.
func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return names
}

// skips reports whether the statistics of row group g of f say that it holds nothing
// that is wanted: names of which none lies within its bounds, or times after the span.
// What is earlier must be read, since it holds the prices in force.
//
// A row group has one page of each column as we write them, so that an index of pages
// would say the same.
func (s *scanner) skips(f *parquet.File, g int, leaves []leaf) bool {
	for _, l := range leaves {
		if l.name == colTime {
			if s.o.To != 0 && l.after(f, g, s.o.To) {
				return true
			}
			continue
		}
		choice := s.choices[l.name]
		if len(choice) == 0 {
			continue
		}
		stats := &f.Metadata().RowGroups[g].Columns[l.index].MetaData.Statistics
		if len(stats.MinValue) == 0 || len(stats.MaxValue) == 0 {
			continue
		}
		i, _ := slices.BinarySearch(choice, string(stats.MinValue))
		if i == len(choice) || choice[i] > string(stats.MaxValue) {
			return true
		}
	}
	return false
}

// after reports whether all times of row group g are later than to.
func (l *leaf) after(f *parquet.File, g int, to policy.Time) bool {
	chunk, ok := f.RowGroups()[g].ColumnChunks()[l.index].(*parquet.FileColumnChunk)
	if !ok {
		return false
	}
	first, _, ok := chunk.Bounds()
	return ok && first.Kind() == parquet.Int64 && policy.Time(first.Int64()/l.scale) > to
}

// stretch returns where in f the columns of row group g lie that are read.
func stretch(f *parquet.File, g int, leaves []leaf) (begin, end int64) {
	begin = f.Size()
	for _, l := range leaves {
		m := &f.Metadata().RowGroups[g].Columns[l.index].MetaData
		at := m.DataPageOffset
		if m.DictionaryPageOffset != 0 {
			at = m.DictionaryPageOffset
		}
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
