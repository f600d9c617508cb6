package format

import (
	"bytes"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
)

// A Format is an output format.
type Format string

// The formats, as the user names them.
const (
	Table    Format = "table"
	Wide     Format = "wide"
	JSON     Format = "json"
	YAML     Format = "yaml"
	Markdown Format = "markdown"
	CSV      Format = "csv"

	// Parquet has a typed row for each run, and can be read again. It is binary.
	Parquet Format = "parquet"

	// JUnit is XML for CI servers.
	JUnit Format = "junit"

	// Comment is Markdown for reviewers of a change.
	Comment Format = "comment"
)

// Formats returns all formats.
func Formats() []Format {
	return []Format{Table, Wide, JSON, YAML, Markdown, CSV, Parquet, JUnit, Comment}
}

// allColumns is a width, in characters, that is sufficient for all columns of the table.
const allColumns = 200

// of returns the options for a text format.
func (o Options) of(f Format) Options {
	if f == Wide {
		o.Wide, o.Width = true, max(o.Width, allColumns)
	}
	return o
}

// asYAML converts the JSON that write writes to YAML.
func asYAML(w io.Writer, write func(io.Writer) error) error {
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	out, err := yaml.JSONToYAML([]byte(figures.PlainText(text.String()))) // YAML must not contain control characters
	if err == nil {
		_, err = w.Write(out)
	}
	return err
}

// Write writes r in format f.
func Write(w io.Writer, r *eval.Report, f Format, o Options) error {
	switch f {
	case Table, Wide:
		return AnswerOf(r).Write(w, o.of(f))
	case JSON:
		return o.writeJSON(w, r)
	case YAML:
		return asYAML(w, func(w io.Writer) error { return o.writeJSON(w, r) })
	case Markdown:
		return AnswerOf(r).Markdown(w)
	case CSV:
		return writeCSV(w, r)
	case Parquet:
		return writeParquet(w, r)
	case JUnit:
		return writeJUnit(w, r)
	case Comment:
		return AnswerOf(r).Comment(w)
	}
	return fmt.Errorf("%w: format %q is not one of %v", eval.ErrConfig, f, Formats())
}
