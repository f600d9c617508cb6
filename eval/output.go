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

	// JUnit is the XML that CI servers read, GitHub the workflow commands that
	// become annotations, SARIF what code scanning reads.
	JUnit  Format = "junit"
	GitHub Format = "github"
	SARIF  Format = "sarif"
)

// Formats lists them.
func Formats() []Format { return []Format{Table, JSON, Markdown, CSV, JUnit, GitHub, SARIF} }

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
	case JUnit:
		return r.WriteJUnit(w)
	case GitHub:
		return r.WriteGitHub(w)
	case SARIF:
		return r.WriteSARIF(w)
	}
	return fmt.Errorf("%w: format %q is none of %v", ErrConfig, f, Formats())
}
