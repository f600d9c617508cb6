package trace

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/andybalholm/brotli"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// unpackers decompress formats that the library handles incorrectly, into a buffer of the right
// length. The library decodes LZ4 to zeros if the compressed page is more than a third as long as
// its content, and keeps allocating memory for a damaged page of either format.
var unpackers = map[format.CompressionCodec]func(dst, src []byte) error{
	format.Lz4Raw: func(dst, src []byte) error {
		n, err := lz4.UncompressBlock(src, dst)
		if err == nil && n < len(dst) {
			err = io.ErrUnexpectedEOF
		}
		return err
	},
	format.Brotli: func(dst, src []byte) error {
		_, err := io.ReadFull(brotli.NewReader(bytes.NewReader(src)), dst)
		return err
	},
}

// repacked returns a file with only row group g of f, in which the columns with the given indices
// can be read. It decompresses them if the library handles their compression incorrectly.
func repacked(f *parquet.File, g int, columns []int) (*parquet.File, error) {
	meta := *f.Metadata()
	group := meta.RowGroups[g]
	group.Columns, group.Ordinal = slices.Clone(group.Columns), 0
	file := bytes.NewBufferString("PAR1")
	for _, c := range columns {
		m := &group.Columns[c].MetaData
		section := io.NewSectionReader(f, chunkBegin(m), m.TotalCompressedSize)
		at := int64(file.Len())
		if err := copyPages(file, section, m); err != nil {
			return nil, err
		}
		m.TotalCompressedSize = int64(file.Len()) - at
	}
	meta.RowGroups = []format.RowGroup{group}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), &meta)
	if err != nil {
		return nil, err
	}
	file.Write(footer)
	file.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(footer))))
	file.WriteString("PAR1")
	return parquet.OpenFile(bytes.NewReader(file.Bytes()), int64(file.Len()),
		parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
}

// copyPages copies the pages of a column and updates their offsets in m. It decompresses them if
// the library handles their compression incorrectly.
func copyPages(file *bytes.Buffer, section *io.SectionReader, m *format.ColumnMetaData) error {
	found := false
	unpack := unpackers[m.Codec]
	if unpack != nil {
		m.Codec = format.Uncompressed
	}
	m.DictionaryPageOffset, m.IndexPageOffset = 0, 0
	for offset := int64(0); offset < section.Size(); {
		header, size, err := readPageHeader(section, offset)
		if err != nil {
			return err
		}
		page := make([]byte, header.CompressedPageSize)
		if _, err := section.ReadAt(page, offset+size); err != nil {
			return err
		}
		offset += size + int64(len(page))
		if unpack != nil {
			if page, err = plainPage(header, page, unpack); err != nil {
				return err
			}
		}
		header.CompressedPageSize, header.CRC = int32(len(page)), 0
		text, err := thrift.Marshal(new(thrift.CompactProtocol), header)
		if err != nil {
			return err
		}
		switch {
		case header.DictionaryPageHeader.Valid:
			m.DictionaryPageOffset = int64(file.Len())
		case !found:
			m.DataPageOffset, found = int64(file.Len()), true
		}
		file.Write(text)
		file.Write(page)
	}
	return nil
}

// plainPage decompresses a page. In version 2 pages, the levels at the start are not compressed.
func plainPage(h *format.PageHeader, page []byte, unpack func(dst, src []byte) error) ([]byte, error) {
	levels := int32(0)
	if v2 := &h.DataPageHeaderV2; v2.Valid {
		levels = v2.V.RepetitionLevelsByteLength + v2.V.DefinitionLevelsByteLength
		if v2.V.IsCompressed.Valid && !v2.V.IsCompressed.V {
			return page, nil
		}
	}
	if levels < 0 || levels > min(int32(len(page)), h.UncompressedPageSize) {
		return nil, fmt.Errorf("a page of %d bytes has %d of levels", len(page), levels)
	}
	plain := make([]byte, h.UncompressedPageSize)
	copy(plain, page[:levels])
	if int(levels) == len(page) {
		return plain[:levels], nil
	}
	if err := unpack(plain[levels:], page[levels:]); err != nil {
		return nil, fmt.Errorf("a page cannot be decompressed: %w", err)
	}
	return plain, nil
}
