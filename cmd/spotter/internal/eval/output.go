package eval

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/internal/cli"
)

// terminal is the file name that means standard output.
const terminal = "-"

// extensions maps a file extension to the format of files for which none is given. The format table
// is text.
var extensions = map[string]format.Format{
	".json": format.JSON, ".md": format.Markdown, ".markdown": format.Markdown, ".yaml": format.YAML, ".yml": format.YAML, ".csv": format.CSV, ".parquet": format.Parquet, ".xml": format.JUnit,
	".txt": format.Table,
}

// A target is a file to which a report is written, and its format.
type target struct {
	path   string // empty for standard output
	format format.Format
}

// targets returns where the report is written: to the files of --out, otherwise to standard output.
//
// The format of a file is the prefix of its name, as in junit=out.txt; otherwise that of --format
// if set; otherwise that of its extension, which must then be known; without an extension, a table.
func (f *evalFlags) targets() ([]target, error) {
	given := f.Flags.Changed("format")
	if !slices.Contains(format.Formats(), format.Format(f.format)) {
		return nil, cli.Invalid(fmt.Errorf("--format: %q is unknown%s", f.format,
			cli.Meant(f.format, strings.Split(formatList(), ", "))), "give one of "+formatList()+"; a file is named by --out")
	}
	if len(f.out) == 0 {
		return []target{{format: format.Format(f.format)}}, nil
	}
	var out []target
	for _, text := range f.out {
		t := target{text, format.Format(f.format)}
		before, after, named := strings.Cut(text, "=")
		switch ext, known := extensions[strings.ToLower(filepath.Ext(text))]; {
		case named && slices.Contains(format.Formats(), format.Format(before)):
			t = target{after, format.Format(before)}
		case named && !strings.ContainsAny(before, "./"):
			return nil, cli.Invalid(fmt.Errorf("--out: %s: format %q is unknown", text, before),
				"give one of "+formatList()+", or ./"+text+" for a file of that name")
		case given:
		case known:
			t.format = ext
		case strings.EqualFold(filepath.Ext(text), ".html"):
			return nil, cli.Invalid(fmt.Errorf("--out: %s: a page for a browser is written by --report", text),
				"give --report "+cli.Shell([]string{text}))
		case filepath.Ext(text) != "" && !cli.IsDevice(text):
			return nil, cli.Invalid(fmt.Errorf("--out: %s: %s is not the ending of a format", text, filepath.Ext(text)),
				"write FORMAT="+text+" with one of "+formatList()+", or an extension of "+strings.Join(slices.Sorted(maps.Keys(extensions)), ", "))
		}
		if !endsAs(t) {
			return nil, cli.Invalid(fmt.Errorf("--out: %s: its ending means %s, but it would be written as %s", t.path,
				extensions[strings.ToLower(filepath.Ext(t.path))], t.format),
				"name another file, or leave the format out")
		}
		if t.path == "" {
			return nil, cli.Invalid(fmt.Errorf("--out: %q names no file", text), "give FILE, FORMAT=FILE, or - for the terminal")
		}
		if t.path == terminal {
			t.path = ""
		}
		if slices.ContainsFunc(out, func(o target) bool { return o.path == t.path }) {
			return nil, cli.Invalid(fmt.Errorf("--out: %s is named twice", text), "give each output a file of its own")
		}
		out = append(out, t)
	}
	return out, nil
}

// alike maps a format to the formats whose extensions its files may have.
var alike = map[format.Format][]format.Format{
	format.Wide: {format.Table}, format.Comment: {format.Markdown},
}

// endsAs reports whether the extension of a file is compatible with its format. An unknown
// extension, or one for text, is compatible with all text formats.
func endsAs(t target) bool {
	stands, known := extensions[strings.ToLower(filepath.Ext(t.path))]
	return !known || stands == t.format || slices.Contains(alike[t.format], stands) ||
		stands == format.Table && t.format != format.Parquet
}

func formatList() string { return formatNames(format.Formats()) }

// formatNames lists formats for a sentence.
func formatNames(formats []format.Format) string {
	var names []string
	for _, f := range formats {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}

// checkTargets returns an error for a target that cannot be written.
func checkTargets(p *cli.Program, targets []target) error {
	for _, t := range targets {
		if t.path == "" {
			if t.format == format.Parquet && p.Width("") > 0 {
				return cli.Invalid(errors.New("--format: parquet is binary, and the output is a terminal"),
					"name a file, as in --out results.parquet")
			}
			continue
		}
		if err := cli.CheckOut("--out", t.path); err != nil {
			return err
		}
	}
	return nil
}

// shown reports whether the answer goes to standard output as text.
func shown(targets []target) bool {
	return slices.ContainsFunc(targets, func(t target) bool {
		return t.path == "" && (t.format == format.Table || t.format == format.Wide)
	})
}

// write calls in to write every target in its format. Files always include the details.
func (o *outputs) write(p *cli.Program, in func(io.Writer, format.Format, format.Options) error,
	targets []target) error {
	for _, t := range targets {
		options := format.Options{Width: p.Width(t.path), Details: o.details || t.path != "", Color: p.Colors(t.path),
			NoRuns: o.noRuns, Metrics: o.metrics}
		output := p.Output
		if t.format == format.Parquet {
			output = p.Binary
		}
		err := output(t.path, func(w io.Writer) error { return in(w, t.format, options) })
		if err != nil {
			return err
		}
		if t.path != "" {
			fmt.Fprintf(p.Stderr, "report written to %s\n", t.path)
		}
	}
	return nil
}

// writes reports whether the file at path is one of the targets.
func (f *evalFlags) writes(path string) bool {
	targets, err := f.targets()
	return err == nil && slices.ContainsFunc(targets, func(t target) bool {
		return t.path != "" && cli.SameFile(path, t.path) && !cli.IsDevice(t.path)
	})
}
