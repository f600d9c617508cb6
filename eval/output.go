package eval

import (
	"fmt"
	"io"
)

// A Format is a form of output.
type Format string

// The formats, as the user names them.
const (
	Table    Format = "table"
	JSON     Format = "json"
	Markdown Format = "markdown"
	CSV      Format = "csv"
)

// Formats lists them.
func Formats() []Format { return []Format{Table, JSON, Markdown, CSV} }

// Write writes the report in format f. Width is that of the terminal, in
// columns, and is read by the table only; 0 means 120.
func (r *Report) Write(w io.Writer, f Format, width int) error {
	switch f {
	case Table:
		return r.WriteTable(w, width)
	case JSON:
		return r.WriteJSON(w)
	case Markdown:
		return r.WriteMarkdown(w)
	case CSV:
		return r.WriteCSV(w)
	}
	return fmt.Errorf("%w: format %q is none of %v", ErrConfig, f, Formats())
}
