package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spotter-dev/spotter/scenarios/trace"
)

// A grid is a way to split a text into rows and fields.
type grid struct {
	name string

	// delimiter separates fields. The values blanks and doubleBlanks mean one or more and two or
	// more spaces. In boxed text, rows also start and end with a delimiter, and there are lines
	// between rows.
	delimiter byte
	boxed     bool
}

const (
	blanks       byte = 0
	doubleBlanks byte = 1
)

// grids are in the order in which they are tried.
var grids = []grid{
	{"CSV", ',', false}, {"TSV", '\t', false}, {"CSV", ';', false}, {"table", '|', false},
	{"text", doubleBlanks, false}, {"text", blanks, false},
}

var box = grid{"table", '|', true}

// A textTable is a grid with the layout of its rows.
type textTable struct {
	grid
	*layout

	// begin is the line number of the header, which may be repeated; 0 if there is no header.
	begin  int
	header []byte
}

// lines reads a text table. Head is its start, or all of it if whole is set.
func (im *importer) lines(r io.Reader, head []byte, whole bool) error {
	table, err := im.findTable(head, whole)
	if err != nil {
		return err
	}
	if table.at[roleLaunched] >= 0 && !table.has(roleType) {
		return fmt.Errorf("%w: no column instance_type says which type was requested", trace.ErrUnnamed)
	}
	im.take(table.name, table.layout)
	var fields [][]byte
	return eachLine(r, func(line int, row []byte) error {
		if line <= table.begin || row[0] == '#' || bytes.Equal(row, table.header) || table.drawn(row) {
			return nil
		}
		fields = table.split(row, fields[:0])
		if table.caption(fields) {
			return nil
		}
		return im.row(line, fields, table.layout)
	})
}

// sampleLines is the number of lines that are examined to recognise a format.
const sampleLines = 40

// findTable returns the columns and the delimiter of a text that starts with head, which is the
// entire text if whole is set.
func (im *importer) findTable(head []byte, whole bool) (*textTable, error) {
	var lines [][]byte
	var numbers []int
	_ = eachLine(bytes.NewReader(head), func(line int, row []byte) error {
		if row[0] != '#' && len(lines) < sampleLines {
			lines, numbers = append(lines, bytes.Clone(row)), append(numbers, line)
		}
		return nil
	})
	if !whole && len(lines) > 1 && len(lines) < sampleLines {
		lines = lines[:len(lines)-1] // it may be truncated
	}
	if len(lines) == 0 {
		return nil, notUnderstood("it starts with comments only")
	}
	tried := grids
	if isBox(lines[0]) {
		tried = []grid{box}
	}
	best := &columnsError{} // the layout with the most known columns
	for _, g := range tried {
		for i, row := range lines {
			if i > 0 && !g.boxed || g.drawn(row) {
				continue // only a box has a title
			}
			l, fault := im.layoutOf(texts(g.split(row, nil)))
			if fault == nil {
				return &textTable{g, l, numbers[i], row}, nil
			}
			if fault.known > best.known {
				best = fault
			}
		}
	}
	if best.known > 1 {
		return nil, fmt.Errorf("%w: %w", trace.ErrFormat, best)
	}
	var why error
	for _, g := range tried {
		l, fault := im.shapeOf(g.rows(lines))
		if fault == nil {
			return &textTable{g, l, 0, nil}, nil
		}
		if why == nil && !errors.Is(fault, errShapeless) {
			why = fault
		}
	}
	switch {
	case why != nil:
		return nil, fmt.Errorf("%w: it has no header, and %w", trace.ErrFormat, why)
	case best.known > 0:
		return nil, fmt.Errorf("%w: %w", trace.ErrFormat, best)
	}
	return nil, notUnderstood(fmt.Sprintf("it starts with %q", clip(string(lines[0]), 80)))
}

// isBox reports whether a text that starts with row is a table drawn with lines.
func isBox(row []byte) bool {
	first := []rune(string(row[:min(len(row), 8)]))[0]
	return strings.ContainsRune("|+│┌╭╔", first) || len(row) > 3 && len(bytes.Trim(row, "-")) == 0
}

// rows returns the fields of all lines except drawn lines and captions.
func (g grid) rows(lines [][]byte) (rows [][][]byte) {
	for _, row := range lines {
		if fields := g.split(row, nil); !g.drawn(row) && !g.caption(fields) {
			rows = append(rows, fields)
		}
	}
	return rows
}

// drawn reports whether row is a line of a box.
func (g grid) drawn(row []byte) bool {
	return g.delimiter == '|' && strings.Trim(string(row), "-+=|:─│┬┼┴├┤┌┐└┘╭╮╰╯━═║╔╗╚╝╠╣╦╩╬ \t") == ""
}

// caption reports whether fields are the title of a table, or the AWS CLI's token for the next
// page.
func (g grid) caption(fields [][]byte) bool {
	return g.boxed && len(fields) == 1 || len(fields) == 2 && bytes.EqualFold(fields[0], []byte("NextToken"))
}

// split appends the fields of row to fields.
func (g grid) split(row []byte, fields [][]byte) [][]byte {
	switch {
	case g.delimiter == blanks:
		return append(fields, bytes.Fields(row)...)
	case g.delimiter == doubleBlanks:
		for field := range bytes.SplitSeq(row, []byte("  ")) {
			if field = bytes.TrimSpace(field); len(field) > 0 {
				fields = append(fields, field)
			}
		}
		return fields
	case g.boxed:
		row = bytes.ReplaceAll(row, []byte("│"), []byte("|"))
		row = bytes.Trim(bytes.TrimSpace(row), "|")
	}
	return splitRow(row, g.delimiter, fields)
}

func texts(fields [][]byte) []string {
	names := make([]string, len(fields))
	for i, field := range fields {
		names[i] = string(field)
	}
	return names
}

// eachLine calls visit for each line that is not blank.
func eachLine(r io.Reader, visit func(line int, row []byte) error) error {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 0, 1<<16), 1<<20)
	for line := 1; scanner.Scan(); line++ {
		if row := scanner.Bytes(); len(bytes.TrimSpace(row)) > 0 {
			if err := visit(line, row); err != nil {
				return err
			}
		}
	}
	if err := scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("%w: a line of more than 1 MiB", trace.ErrFormat)
	} else if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// splitRow splits a line at its delimiters except those within quotes, and appends the fields.
func splitRow(row []byte, delimiter byte, fields [][]byte) [][]byte {
	for {
		if row = bytes.TrimLeft(row, " "); delimiter != '\t' {
			row = bytes.TrimLeft(row, " \t")
		}
		field, rest, more := cutQuoted(row, delimiter)
		if field == nil {
			field, rest, more = bytes.Cut(row, []byte{delimiter})
			field = bytes.TrimSpace(field)
		}
		if fields = append(fields, field); !more {
			return fields
		}
		row = rest
	}
}

// cutQuoted returns the quoted field at the start of row, in which a doubled quote means a quote,
// and the text after the next delimiter. The field is nil if row does not start with a valid quoted
// field, for example because the closing quote is missing: it must not absorb the fields after it.
func cutQuoted(row []byte, delimiter byte) (field, rest []byte, more bool) {
	if len(row) == 0 || row[0] != '"' {
		return nil, nil, false
	}
	end := 1
	for doubled := false; end < len(row); end++ {
		if row[end] != '"' {
			continue
		}
		if end+1 < len(row) && row[end+1] == '"' {
			end, doubled = end+1, true
			continue
		}
		if rest = row[end+1:]; delimiter != '\t' {
			rest = bytes.TrimLeft(rest, " \t")
		}
		if len(rest) > 0 && rest[0] != delimiter {
			return nil, nil, false
		}
		if field = row[1:end]; doubled {
			field = bytes.ReplaceAll(field, []byte(`""`), []byte(`"`))
		}
		if field = bytes.TrimSpace(field); field == nil {
			field = []byte{}
		}
		return field, bytes.TrimPrefix(rest, []byte{delimiter}), len(rest) > 0
	}
	return nil, nil, false
}
