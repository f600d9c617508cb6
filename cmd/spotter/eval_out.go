package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
)

// terminal is the file name that stands for standard output.
const terminal = "-"

// extensions are the formats of files that do not say theirs. The format table
// is text.
var extensions = map[string]eval.Format{
	".json": eval.JSON, ".md": eval.Markdown, ".markdown": eval.Markdown, ".csv": eval.CSV, ".xml": eval.JUnit,
	".sarif": eval.SARIF, ".txt": eval.Table,
}

// A target is a file that a report goes to, and the format in which.
type target struct {
	path   string // "" for standard output
	format eval.Format
}

// targets returns where the report goes: what each --out names, and standard
// output where there is none.
//
// The format of a file is that which stands before it, as in junit=out.txt;
// else the one of --format where it was given; else that of its extension;
// else a table.
func (f *evalFlags) targets() ([]target, error) {
	given := f.flags.Changed("format")
	if !slices.Contains(eval.Formats(), eval.Format(f.format)) {
		return nil, wrong(fmt.Errorf("--format: %q is unknown", f.format), "give one of "+formatList())
	}
	if len(f.out) == 0 {
		return []target{{format: eval.Format(f.format)}}, nil
	}
	var out []target
	for _, text := range f.out {
		t := target{text, eval.Format(f.format)}
		before, after, named := strings.Cut(text, "=")
		switch ext, known := extensions[strings.ToLower(filepath.Ext(text))]; {
		case named && slices.Contains(eval.Formats(), eval.Format(before)):
			t = target{after, eval.Format(before)}
		case named && !strings.ContainsAny(before, "./"):
			return nil, wrong(fmt.Errorf("--out: %s: format %q is unknown", text, before), "give one of "+formatList()+", or ./"+text+" for a file of that name")
		case !given && known:
			t.format = ext
		}
		if t.path == "" {
			return nil, wrong(fmt.Errorf("--out: %q names no file", text), "give FILE, FORMAT=FILE, or - for the terminal")
		}
		if t.path == terminal {
			t.path = ""
		}
		if slices.ContainsFunc(out, func(o target) bool { return o.path == t.path }) {
			return nil, wrong(fmt.Errorf("--out: %s is named twice", text), "give each output a file of its own")
		}
		out = append(out, t)
	}
	return out, nil
}

func formatList() string { return formatNames(eval.Formats()) }

// formatNames lists formats for a sentence.
func formatNames(formats []eval.Format) string {
	var names []string
	for _, f := range formats {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}

// checkTargets reports early what cannot be written.
func checkTargets(targets []target) error {
	for _, t := range targets {
		if t.path == "" {
			continue
		}
		if err := checkTarget(t.path); err != nil {
			return wrong(fmt.Errorf("--out: %w", err), "give a file in a folder that is there and can be written")
		}
	}
	return nil
}

// A comparison is what is written: a report, or a stress.
type comparison interface {
	Write(w io.Writer, f eval.Format, width int) error
}

// write writes report to every target.
func (p *program) write(report comparison, targets []target) error {
	for _, t := range targets {
		err := p.output(t.path, func(w io.Writer) error { return report.Write(w, t.format, p.width(t.path)) })
		if err != nil {
			return err
		}
		if t.path != "" {
			fmt.Fprintf(p.stderr, "report written to %s\n", t.path)
		}
	}
	return nil
}

// writes reports whether one of the targets is the file at path.
func (f *evalFlags) writes(path string) bool {
	targets, err := f.targets()
	return err == nil && slices.ContainsFunc(targets, func(t target) bool {
		return t.path != "" && sameFile(path, t.path) && !through(t.path)
	})
}
