// Package formattest reads the tables of outputs back, for tests that compare their numbers with
// those of JSON.
package formattest

import (
	"html"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A Table is a table of an output.
type Table struct {
	// Title is the heading above it, empty without one.
	Title string

	// Headings are in one line each. The first cell of a row is its name, without marks.
	Headings []string
	Rows     [][]string
}

// name returns the first cell of a row without the marks of tables.
func name(cell string) string {
	cell = strings.TrimLeft(strings.TrimSpace(cell), "▸ ★")
	return strings.TrimSpace(strings.TrimRight(cell, " *!"))
}

// Text reads the tables of a text whose first heading is one of names.
func Text(text string, names ...string) (out []Table) {
	title := ""
	for _, block := range strings.Split(text, "\n\n") {
		lines := strings.Split(strings.Trim(block, "\n"), "\n")
		if last := len(lines) - 1; strings.HasPrefix(lines[last], "and ") { // how many rows were left out
			lines = lines[:last]
		}
		rule := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "──") })
		first := slices.IndexFunc(lines[:max(rule, 0)], func(l string) bool {
			return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(strings.TrimSpace(l), n) })
		})
		if rule < 0 || first < 0 {
			continue
		}
		if first > 0 {
			title = lines[0]
		}
		out = append(out, aligned(title, lines[first:rule], lines[rule+1:]))
	}
	return out
}

// aligned reads lines whose columns are apart by at least two blanks in all of them.
func aligned(title string, headings, rows []string) Table {
	var grid [][]rune
	width := 0
	for _, l := range slices.Concat(headings, rows) {
		grid = append(grid, []rune(l))
		width = max(width, len([]rune(l)))
	}
	blank := func(at int) bool {
		return !slices.ContainsFunc(grid, func(l []rune) bool { return at < len(l) && l[at] != ' ' })
	}
	var starts, ends []int
	for at := 0; at < width; at++ {
		if blank(at) {
			continue
		}
		if n := len(ends); n == 0 || at-ends[n-1] >= 2 {
			starts, ends = append(starts, at), append(ends, at+1)
		} else {
			ends[n-1] = at + 1
		}
	}
	cells := func(l []rune) (out []string) {
		for i := range starts {
			out = append(out, strings.TrimSpace(string(l[min(starts[i], len(l)):min(ends[i], len(l))])))
		}
		return out
	}
	t := Table{Title: title, Headings: make([]string, len(starts))}
	for i, line := range grid {
		for k, c := range cells(line) {
			switch {
			case i >= len(headings):
			case strings.HasSuffix(t.Headings[k], "-"):
				t.Headings[k] += c
			default:
				t.Headings[k] = strings.TrimSpace(t.Headings[k] + " " + c)
			}
		}
		if i < len(headings) {
			continue
		}
		row := cells(line)
		if last := len(t.Rows) - 1; last >= 0 && (row[0] == "" || row[0][0] == ':') { // the second line of a row
			t.Rows[last][0] += row[0]
			for k := 1; k < len(row); k++ {
				t.Rows[last][k] += " / " + row[k]
			}
			continue
		}
		row[0] = name(row[0])
		t.Rows = append(t.Rows, row)
	}
	return t
}

// Markdown reads the tables of a text in Markdown.
func Markdown(text string) (out []Table) {
	plain := strings.NewReplacer(`\|`, "¦", `\*`, "*", `\_`, "_", "&lt;", "<")
	title, inside := "", false
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "**") {
			title = strings.Trim(line, "#* ")
		}
		if !strings.HasPrefix(line, "|") {
			inside = false
			continue
		}
		var cells []string
		for _, c := range strings.Split(strings.Trim(plain.Replace(line), "|"), "|") {
			cells = append(cells, strings.ReplaceAll(strings.TrimSpace(c), "¦", "|"))
		}
		switch {
		case !inside:
			out, inside = append(out, Table{Title: title, Headings: cells}), true
		case strings.HasPrefix(line, "|:--"):
		default:
			cells[0] = name(cells[0])
			out[len(out)-1].Rows = append(out[len(out)-1].Rows, cells)
		}
	}
	return out
}

var (
	htmlTable = regexp.MustCompile(`(?s)<table.*?</table>`)
	htmlCell  = regexp.MustCompile(`<t[hd]( [^>]*)?>`)
	htmlTag   = regexp.MustCompile(`(?s)<[^>]*>`)
)

// HTML reads the tables of a page, in which nothing needs to be closed but tables. The first row has
// the headings.
func HTML(page string) (out []Table) {
	for _, text := range htmlTable.FindAllString(page, -1) {
		var t Table
		for _, row := range strings.Split(text, "<tr")[1:] {
			var cells []string
			for _, c := range htmlCell.Split(row, -1)[1:] {
				cells = append(cells, strings.Join(strings.Fields(html.UnescapeString(htmlTag.ReplaceAllString(c, " "))), " "))
			}
			switch {
			case len(cells) == 0:
			case t.Headings == nil:
				t.Headings = cells
			default:
				cells[0] = name(cells[0])
				t.Rows = append(t.Rows, cells)
			}
		}
		out = append(out, t)
	}
	return out
}

// A Number is one of a text, with the number of decimals that it is written with.
type Number struct {
	Value    float64
	Decimals int
}

var number = regexp.MustCompile(`([−+-]?)\$?([0-9][0-9,]*)(\.[0-9]+)?`)

// Numbers returns those of a text, in their order.
func Numbers(text string) (out []Number) {
	for _, m := range number.FindAllStringSubmatch(text, -1) {
		x, err := strconv.ParseFloat(strings.ReplaceAll(m[2], ",", "")+m[3], 64)
		if err != nil {
			continue
		}
		if m[1] == "−" || m[1] == "-" {
			x = -x
		}
		out = append(out, Number{x, max(len(m[3])-1, 0)})
	}
	return out
}

// Is reports whether n is x, rounded to the decimals of n.
func (n Number) Is(x float64) bool {
	return math.Abs(n.Value-x) <= 0.5*math.Pow10(-n.Decimals)*(1+1e-9)+1e-12
}

// A Want returns the numbers that the cell of a table in the row of a name and under a heading must
// have, and whether the table has such a cell.
type Want func(title, row, heading string) (numbers []float64, known bool)

// Compare compares every number of tables with want, and returns how many cells it compared.
func Compare(t testing.TB, output string, tables []Table, want Want) (cells int) {
	t.Helper()
	for _, table := range tables {
		for _, row := range table.Rows {
			for i := 1; i < len(row); i++ {
				numbers, known := want(table.Title, row[0], table.Headings[i])
				if !known {
					t.Errorf("%s has a row %q with a column %q that is not known", output, row[0], table.Headings[i])
					continue
				}
				cells++
				got := Numbers(row[i])
				same := slices.EqualFunc(got, numbers, func(n Number, x float64) bool { return n.Is(x) })
				if !same {
					t.Errorf("%s: %s, %s, %s is %q, want %v", output, table.Title, row[0], table.Headings[i], row[i], numbers)
				}
			}
		}
	}
	return cells
}
