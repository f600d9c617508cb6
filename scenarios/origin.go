package scenarios

import (
	"bytes"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// originMark is the prefix of the comment that precedes each file in a joined text, so that errors
// can refer to the file and its lines.
const originMark = "# spotter: file "

// A SourceFile is one of several files that make up a scenario.
type SourceFile struct {
	Name string
	Text []byte
}

// Join joins files into one text in which errors still refer to the file and its line.
func Join(files []SourceFile) []byte {
	var b bytes.Buffer
	for _, f := range files {
		b.WriteString("---\n" + originMark + f.Name + "\n")
		b.Write(f.Text)
		if !bytes.HasSuffix(f.Text, []byte("\n")) {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

// WithoutOrigins removes the marks from a text of [Join], so that lines are counted from its first.
// It is for a text that is changed and written again.
func WithoutOrigins(text []byte) []byte {
	return bytes.ReplaceAll(text, []byte("\n"+originMark), []byte("\n# "))
}

// An origin states that the lines after line come from file.
type origin struct {
	file string
	line int
}

// origins are ascending by line; nil for a text of one file.
type origins []origin

func originsOf(data []byte) (all origins) {
	if !bytes.Contains(data, []byte(originMark)) {
		return nil
	}
	for i, line := range strings.Split(string(data), "\n") {
		if name, marked := strings.CutPrefix(line, originMark); marked {
			all = append(all, origin{strings.TrimSuffix(name, "\r"), i + 1})
		}
	}
	return all
}

// at returns the file of a line of the joined text, and the line number in that file. Other is the
// name of the text if it is a single file.
func (o origins) at(other string, line int) (file string, own int) {
	file, own = other, line
	for _, x := range o {
		if x.line < line {
			file, own = x.file, line-x.line
		}
	}
	return file, own
}

// rebase subtracts before from the line numbers of a document.
func rebase(n *yaml.Node, before int) {
	n.Line -= before
	for _, c := range n.Content {
		rebase(c, before)
	}
}

// syntaxError returns the error of the first file that is not valid YAML. Err is the error of the
// whole text, whose line may be in another file.
func (o origins) syntaxError(file string, data []byte, err error) error {
	lines := bytes.SplitAfter(data, []byte("\n"))
	for i, x := range o {
		end := len(lines)
		if i+1 < len(o) {
			end = o[i+1].line - 2 // before the line that separates documents
		}
		if _, own := split(x.file, bytes.Join(lines[x.line:end], nil)); own != nil {
			return own
		}
	}
	m := yamlLine().FindStringSubmatch(err.Error())
	if m == nil {
		return &FieldError{File: file, Line: 1, Problem: "not valid YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	line, _ := strconv.Atoi(m[1])
	return &FieldError{File: file, Line: line, Problem: "not valid YAML: " + m[2]}
}
