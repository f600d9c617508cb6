package cli

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/spotter-dev/spotter/policy/figures"
)

// The formats in which all commands print tables or objects.
const (
	FormTable = "table"
	FormWide  = "wide"
	FormJSON  = "json"
	FormYAML  = "yaml"
)

// A Form is the value of a flag that selects the output format.
type Form struct {
	name    string
	forms   []string
	details bool
}

// String returns the name of the format.
func (f *Form) String() string { return f.name }

// Set sets the format by name.
func (f *Form) Set(name string) error {
	if !slices.Contains(f.forms, name) {
		meant := Meant(name, f.forms)
		if strings.ContainsAny(name, "./") {
			meant = "; a file is named by --out, or by > of the shell"
		}
		return errors.New("give one of " + strings.Join(f.forms, ", ") + meant)
	}
	f.name = name
	return nil
}

// Type implements pflag.Value.
func (f *Form) Type() string { return "string" }

// Register adds the flag --format, with the shorthand -o, to c. Its values are the common formats
// and more.
func (f *Form) Register(c *cobra.Command, more ...string) {
	f.name, f.forms = FormTable, append([]string{FormTable, FormWide, FormJSON, FormYAML}, more...)
	c.Flags().VarP(f, "format", "o", "output `F`: "+strings.Join(f.forms, ", "))
	Complete(c, "format", f.forms)
}

// RegisterDetails adds the flag --details to c.
func (f *Form) RegisterDetails(c *cobra.Command) { DetailsVar(c.Flags(), &f.details) }

// Details reports whether all details are requested.
func (f *Form) Details() bool { return f.details }

// IsText reports whether the format is meant for people.
func (f *Form) IsText() bool { return f.name == FormTable || f.name == FormWide }

// DetailsVar adds the flag --details, which makes a command print all its findings.
func DetailsVar(flags *pflag.FlagSet, v *bool) {
	flags.BoolVar(v, "details", false, "print as text everything that was found, not the answer alone")
}

// Print writes v as JSON or YAML if f selects that. Otherwise it calls text, with wide set if all
// columns are requested.
func (p *Program) Print(f *Form, v any, text func(w io.Writer, wide bool) error) error {
	return p.Output("", func(w io.Writer) error {
		switch f.name {
		case FormJSON:
			return WriteJSON(w, v)
		case FormYAML:
			return WriteYAML(w, v)
		}
		return text(w, f.name == FormWide)
	})
}

// WriteJSON writes v as indented JSON.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// WriteYAML writes v as YAML with the keys of its JSON form, in ascending order.
func WriteYAML(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if text, err = yaml.JSONToYAML([]byte(figures.PlainText(string(text)))); err != nil { // YAML must not contain control characters
		return err
	}
	_, err = w.Write(text)
	return err
}

// columnGap is the number of spaces between columns. lastColumnMin is the minimum width of a
// wrapped last column.
const columnGap, lastColumnMin = 2, 20

// Columns writes rows as aligned columns with a heading.
func Columns(w io.Writer, heading []string, rows [][]string) error {
	return WrappedColumns(w, 0, heading, rows)
}

// WrappedColumns writes aligned columns in lines of at most width runes; 0 means no limit. Text in
// the last column is wrapped.
func WrappedColumns(w io.Writer, width int, heading []string, rows [][]string) error {
	rows = slices.DeleteFunc(append([][]string{heading}, rows...), func(row []string) bool { return len(row) == 0 })
	for i, row := range rows {
		rows[i] = slices.Clone(row)
		for k, cell := range row {
			rows[i][k] = figures.Plain(cell)
		}
	}
	before := make([]int, 0, 8) // widths of all columns except the last
	for _, row := range rows {
		for k, cell := range row[:len(row)-1] {
			if k == len(before) {
				before = append(before, 0)
			}
			before[k] = max(before[k], utf8.RuneCountInString(cell)+columnGap)
		}
	}
	room := width
	for _, n := range before {
		room -= n
	}
	t := tabwriter.NewWriter(w, 0, 0, columnGap, ' ', 0)
	for _, row := range rows {
		last := len(row) - 1
		lines := []string{row[last]}
		if width > 0 && utf8.RuneCountInString(row[last]) > room {
			lines = wrap(row[last], max(room, lastColumnMin))
		}
		for i, line := range lines {
			head := row[:last]
			if i > 0 {
				head = make([]string, last)
			}
			_, _ = io.WriteString(t, strings.Join(append(slices.Clone(head), line), "\t")+"\n") // Flush returns the error
		}
	}
	return t.Flush()
}
