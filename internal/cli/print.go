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

// The forms in which every command prints a table or an object.
const (
	FormTable = "table"
	FormWide  = "wide"
	FormJSON  = "json"
	FormYAML  = "yaml"
)

// A Form is the form in which a command prints, one of those that its flag takes.
type Form struct {
	name    string
	forms   []string
	details bool
}

// String returns the name of the form.
func (f *Form) String() string { return f.name }

// Set takes the name of a form.
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

// Type is what the flag is called where it is listed.
func (f *Form) Type() string { return "string" }

// Register gives c the flag --format, which is -o too, with the forms that all commands
// have and more.
func (f *Form) Register(c *cobra.Command, more ...string) {
	f.name, f.forms = FormTable, append([]string{FormTable, FormWide, FormJSON, FormYAML}, more...)
	c.Flags().VarP(f, "format", "o", "output `F`: "+strings.Join(f.forms, ", "))
	Complete(c, "format", f.forms)
}

// RegisterDetails gives c the flag --details.
func (f *Form) RegisterDetails(c *cobra.Command) { DetailsVar(c.Flags(), &f.details) }

// Details reports whether all details are requested.
func (f *Form) Details() bool { return f.details }

// IsText reports whether people read the form.
func (f *Form) IsText() bool { return f.name == FormTable || f.name == FormWide }

// DetailsVar adds the flag --details, which has a command print everything that it found.
func DetailsVar(flags *pflag.FlagSet, v *bool) {
	flags.BoolVar(v, "details", false, "print as text everything that was found, not the answer alone")
}

// Print writes v to the terminal as JSON or YAML if f says so. Otherwise it calls text, with wide
// set if all columns are requested.
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

// WriteJSON writes v as JSON for programs and readers.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// WriteYAML writes v as YAML with the keys that it has in JSON, ascending.
func WriteYAML(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if text, err = yaml.JSONToYAML([]byte(figures.PlainText(string(text)))); err != nil { // YAML has no control characters
		return err
	}
	_, err = w.Write(text)
	return err
}

// columnGap is the number of spaces between columns, lastColumnMin the least width to which
// the last column is broken.
const columnGap, lastColumnMin = 2, 20

// Columns writes rows with their columns side by side, under a heading.
func Columns(w io.Writer, heading []string, rows [][]string) error {
	return WrappedColumns(w, 0, heading, rows)
}

// WrappedColumns writes columns in lines of at most width runes, 0 for any number: a text in
// the last column continues on the next line.
func WrappedColumns(w io.Writer, width int, heading []string, rows [][]string) error {
	rows = slices.DeleteFunc(append([][]string{heading}, rows...), func(row []string) bool { return len(row) == 0 })
	for i, row := range rows {
		rows[i] = slices.Clone(row)
		for k, cell := range row {
			rows[i][k] = figures.Plain(cell)
		}
	}
	before := make([]int, 0, 8) // the widths of all columns but the last
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
			_, _ = io.WriteString(t, strings.Join(append(slices.Clone(head), line), "\t")+"\n") // Flush has the error
		}
	}
	return t.Flush()
}
