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

// A grid is how a text divides into rows and fields.
type grid struct {
	name string

	// delimiter separates fields; blanks and doubleBlanks are one or more and two or more
	// blanks. In boxed text there is one at the start and at the end of a row too, and lines
	// are drawn between rows.
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

	// begin is the number of the line of the header, which may come again; without a
	// header it is 0.
	begin  int
	header []byte
}

// lines reads a table that is text, of which head is the start.
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

// sampleLines is how many lines are looked at to find out what a text is.
const sampleLines = 40

// findTable returns the columns and the delimiter of a text that starts with head, which is
// all of it if whole.
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
		lines = lines[:len(lines)-1] // it may be cut off
	}
	if len(lines) == 0 {
		return nil, notUnderstood("it starts with comments only")
	}
	tried := grids
	if isBox(lines[0]) {
		tried = []grid{box}
	}
	best := &columnsError{} // that of which most is known
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

// rows returns the fields of lines that are neither drawn nor a caption.
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

// caption reports whether fields are no row of a table but its title, or the token of the AWS
// CLI for the next page.
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

// eachLine calls visit with each line that is not blank.
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

// splitRow cuts a line at its delimiters but for those within quotes.
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

// cutQuoted returns the quoted field at the start of row, in which a quote is written as two, and
// what follows the next delimiter. The field is nil if row does not start with a valid one, for
// example because a closing quote is missing: it must not absorb the fields after it.
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
