package trace

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// open reads the end of a file, or all of a small file if whole is set, and decodes the footer.
func (r *blockReader) open(src *source, file File, whole bool) (*parquet.File, error) {
	r.file, r.size, r.block = file, src.size, r.block[:0]
	begin := max(0, src.size-footerSize)
	if src.size <= blockMax && whole {
		begin = 0
	}
	err := r.fetch(begin, src.size)
	if err == nil {
		err = checkFrame(r, src.size)
	}
	if err != nil {
		return nil, &FileError{File: src.path, Err: err}
	}
	f, err := parquet.OpenFile(r, src.size, parquet.SkipMagicBytes(true),
		parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(1<<16))
	if err != nil {
		return nil, &FileError{File: src.path, Err: fmt.Errorf("%w: %w", ErrCorrupt, err)}
	}
	return f, nil
}

// checkFrame returns an error that distinguishes a file that is not Parquet from a truncated one.
func checkFrame(r io.ReaderAt, size int64) error {
	const magic = "PAR1"
	if size == 0 {
		return fmt.Errorf("%w: the file has no bytes", ErrNotTrace)
	}
	tail := make([]byte, min(size, 8))
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if size >= 12 && string(tail[4:]) == magic && int64(binary.LittleEndian.Uint32(tail)) <= size-12 {
		return nil // checking the first four bytes too is not worth another read
	}
	head := make([]byte, min(size, 4))
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if string(head) != magic {
		return fmt.Errorf("%w: it starts with %q, not with %q as Parquet does;  "+
			"to read another format, import it first", ErrNotTrace, head, magic)
	}
	if size < 12 {
		return fmt.Errorf("%w: it was cut short after %d bytes", ErrCorrupt, size)
	}
	return fmt.Errorf("%w: its end is missing, so it was cut short or is still being written", ErrCorrupt)
}

// checkGroup fails if the footer describes more data than the file can hold. The library trusts the
// footer and would allocate that much memory.
func checkGroup(f *parquet.File, i int) error {
	group := &f.Metadata().RowGroups[i]
	if group.NumRows < 0 {
		return fmt.Errorf("%w: a row group of %d rows", ErrCorrupt, group.NumRows)
	}
	for c := range group.Columns {
		if err := checkChunk(f, group, c, false); err != nil {
			return err
		}
	}
	return nil
}

// checkChunk checks one column of a row group; see [checkGroup]. A repeated column may have several
// values per row. The codecs in more are accepted too.
func checkChunk(f *parquet.File, group *format.RowGroup, c int, repeated bool, more ...format.CompressionCodec) error {
	m := &group.Columns[c].MetaData
	begin := chunkBegin(m)
	if begin < 4 || m.TotalCompressedSize < 0 || m.TotalCompressedSize > f.Size()-begin {
		return fmt.Errorf("%w: column %d is recorded at byte %d with a length of %d, the file has %d",
			ErrCorrupt, c, begin, m.TotalCompressedSize, f.Size())
	}
	// Data in other formats need not state its decompressed size, and the library keeps allocating
	// memory for as long as damaged input requires it.
	read := append([]format.CompressionCodec{format.Zstd, format.Snappy, format.Gzip, format.Uncompressed}, more...)
	if !slices.Contains(read, m.Codec) {
		return fmt.Errorf("%w: compression %v; these are read: %v", ErrFormat, m.Codec, read)
	}
	if !repeated && m.NumValues != group.NumRows {
		return fmt.Errorf("%w: column %d has %d values, its row group %d rows", ErrCorrupt, c, m.NumValues, group.NumRows)
	}
	return nil
}

// chunkBegin returns the offset at which a column of a row group starts.
func chunkBegin(m *format.ColumnMetaData) int64 {
	return cmp.Or(m.DictionaryPageOffset, m.DataPageOffset)
}

// checkPages reads the page headers of a column chunk and fails if they do not fit the chunk or
// announce more values than it has rows. The library allocates what a header announces before it
// reads the data, so that one flipped bit could cost gigabytes.
func checkPages(f *parquet.File, m *format.ColumnMetaData, want int64) error {
	begin := chunkBegin(m)
	section := io.NewSectionReader(f, begin, m.TotalCompressedSize)
	rows := int64(0)
	for offset := int64(0); offset < m.TotalCompressedSize; {
		header, size, err := readPageHeader(section, offset)
		if err != nil {
			return fmt.Errorf("%w: page header at byte %d: %w", ErrCorrupt, begin+offset, err)
		}
		if offset += size + int64(header.CompressedPageSize); offset > m.TotalCompressedSize {
			return fmt.Errorf("%w: a page reaches beyond its column", ErrCorrupt)
		}
		values, err := pageValues(header, want, m.Type)
		if err != nil {
			return err
		}
		rows += values
	}
	if rows != want {
		return fmt.Errorf("%w: its pages hold %d values of %d", ErrCorrupt, rows, want)
	}
	return nil
}

// readPageHeader decodes the header at offset, and returns its length.
func readPageHeader(section *io.SectionReader, offset int64) (*format.PageHeader, int64, error) {
	// Headers without statistics have some dozens of bytes. Statistics add up to twice the length
	// of the longest value.
	for _, most := range [...]int64{256, 4096, 1 << 20} {
		buf := make([]byte, min(most, section.Size()-offset))
		if _, err := section.ReadAt(buf, offset); err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		var protocol thrift.CompactProtocol
		r := protocol.NewReaderFromBytes(buf)
		header := new(format.PageHeader)
		if err := thrift.NewDecoder(r).Decode(header); err == nil {
			return header, int64(r.BytesRead()), nil
		} else if int64(len(buf)) < most {
			return nil, 0, err
		}
	}
	return nil, 0, errors.New("it is longer than 1 MiB")
}

// pageValues returns the number of rows of a data page, or 0 for another page. It returns an error
// if the header contains impossible values.
func pageValues(h *format.PageHeader, rows int64, kind format.Type) (int64, error) {
	var values int64
	switch {
	case h.DataPageHeader.Valid:
		values = int64(h.DataPageHeader.V.NumValues)
	case h.DataPageHeaderV2.Valid:
		values = int64(h.DataPageHeaderV2.V.NumValues)
		if nulls := int64(h.DataPageHeaderV2.V.NumNulls); nulls < 0 || nulls > values {
			return 0, fmt.Errorf("%w: a page of %d values has %d nulls", ErrCorrupt, values, nulls)
		}
	case h.DictionaryPageHeader.Valid:
		values = int64(h.DictionaryPageHeader.V.NumValues)
	default:
		return 0, nil
	}
	// A value takes at most 16 bytes with its level, and a name much less than 1 KiB. A page with
	// few values may be padded.
	most := rows*16 + 1<<16
	if kind == format.ByteArray {
		most = rows*1024 + 1<<16
	}
	if values < 0 || values > rows || h.CompressedPageSize < 0 ||
		h.UncompressedPageSize < 0 || int64(h.UncompressedPageSize) > most {
		return 0, fmt.Errorf("%w: a page of %d values in %d bytes, where the row group has %d rows",
			ErrCorrupt, values, h.UncompressedPageSize, rows)
	}
	if h.DictionaryPageHeader.Valid {
		return 0, nil
	}
	return values, nil
}
