package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spotter-dev/spotter/eval/tabular"
	"github.com/spotter-dev/spotter/internal/objects"
)

// fields maps the names of an object's fields, simplified by [plainName], to their values.
type fields map[string]json.RawMessage

// plainName returns the name of a field or column without case, punctuation and a suffix in
// brackets, so that Nodeclaim[1], NodeClaim and node_claim are one name.
func plainName(name string) string {
	name, _, _ = strings.Cut(name, "[")
	return tabular.Plain(name)
}

// decode decodes a field into v, which is unchanged if the field does not exist. An object may also
// be stored as a string that contains its JSON.
func (f fields) decode(name string, v any) error {
	raw := f[plainName(name)]
	if text := stringOf(raw); text != "" && strings.ContainsAny(text[:1], "{[") {
		raw = json.RawMessage(text)
	}
	if len(raw) == 0 || string(raw) == `""` {
		return nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// text returns a field that is a string, or the name in a field that is an object such as {"name":
// "default"}. It is empty for any other field.
func (f fields) text(name string) string {
	raw := f[plainName(name)]
	if s := stringOf(raw); s != "" {
		return s
	}
	var named struct {
		Name string `json:"name"`
	}
	if bytes.HasPrefix(raw, []byte("{")) {
		_ = json.Unmarshal(raw, &named) // it is part of a valid value
	}
	return named.Name
}

func (f fields) has(names ...string) bool {
	for _, name := range names {
		if _, has := f[plainName(name)]; !has {
			return false
		}
	}
	return true
}

func stringOf(raw json.RawMessage) (s string) {
	if bytes.HasPrefix(raw, []byte(`"`)) {
		_ = json.Unmarshal(raw, &s) // it is part of a valid value
	}
	return s
}

// An entryReader finds log entries in files, in whatever form a logging service exported them: a
// sequence or list of JSON values, lines with a prefix, and tables. Entries may be nested in
// objects, lists and strings of JSON.
type entryReader struct {
	// take reads an object. It returns false for an object that is not an entry but may contain
	// some. prefix is the text before it on its line.
	take func(f fields, prefix string) (bool, error)

	// found is the number of entries, and empty the number of files without any.
	found, empty int
}

// file reads one file, which may be compressed.
func (r *entryReader) file(f objects.File) (err error) {
	before := r.found
	defer func() {
		if r.found == before {
			r.empty++
		}
	}()
	b, err := tabular.Inflated(io.NewSectionReader(f, 0, f.Size()))
	if err != nil {
		return err
	}
	if isTable(b) {
		return r.table(f)
	}
	return r.stream(b)
}

// quotedObject matches the start of an object in a cell of CSV, in which quotes are doubled.
var quotedObject = regexp.MustCompile(`\{\s*""`)

// isTable reports whether a file starts as CSV whose cells contain JSON, or as the CSV of
// NodeClaims that LogParserForKarpenter writes.
func isTable(b *bufio.Reader) bool {
	head, _ := b.Peek(b.Size())
	first, rest, _ := bytes.Cut(head, []byte("\n"))
	if bytes.ContainsAny(first, "{") {
		return false
	}
	for name := range strings.SplitSeq(string(first), ",") {
		if plainName(name) == columnClaim {
			return true
		}
	}
	return quotedObject.Match(rest)
}

// table reads the rows of CSV, each as an object.
func (r *entryReader) table(f objects.File) error {
	var columns []string
	t := tabular.Reader{
		Want: func(names []string) ([]int, error) {
			all := make([]int, len(names))
			for i := range all {
				all[i] = i
			}
			columns = names
			return all, nil
		},
		Each: func(row tabular.Row) error {
			x := fields{}
			for i, name := range columns {
				x[plainName(name)], _ = json.Marshal(row.Text(i)) // marshalling a string cannot fail
			}
			return r.object(x, "", nil)
		},
	}
	return t.Read(f, f.Size())
}

// stream reads JSON, or lines that end with JSON.
func (r *entryReader) stream(b *bufio.Reader) error {
	if head, _ := b.Peek(3); bytes.Equal(head, []byte("\ufeff")) {
		_, _ = b.Discard(len(head))
	}
	head, err := b.Peek(1)
	for ; err == nil && len(bytes.TrimSpace(head)) == 0; head, err = b.Peek(1) {
		_, _ = b.Discard(1)
	}
	if errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return err
	}
	if isList(b) {
		_, _ = b.Discard(1)
		return r.values(b, true)
	}
	for n := 1; ; n++ {
		line, err := b.ReadBytes('\n')
		if n == 1 && line[0] == '{' && !json.Valid(line) { // it continues on the next lines
			return r.values(io.MultiReader(bytes.NewReader(line), b), false)
		}
		if err := r.line(line, nil); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// isList reports whether a JSON list starts here, and not a line such as "[pod/a] text".
func isList(b *bufio.Reader) bool {
	head, _ := b.Peek(b.Size())
	if head[0] != '[' {
		return false
	}
	inside := bytes.TrimSpace(head[1:])
	return len(inside) > 0 && bytes.ContainsAny(inside[:1], `{["]`)
}

// values reads JSON values that follow each other, or are in a list. It keeps no more than one of
// them in memory. With list, the opening bracket has already been consumed.
func (r *entryReader) values(b io.Reader, list bool) error {
	if list {
		b = io.MultiReader(strings.NewReader("["), b)
	}
	d := json.NewDecoder(b)
	if list {
		_, _ = d.Token()
	}
	for n := 1; ; n++ {
		var raw json.RawMessage
		var err error
		if list && !d.More() {
			if _, err = d.Token(); err == nil { // values may follow the list
				list = false
				continue
			}
		} else {
			err = d.Decode(&raw)
		}
		if errors.Is(err, io.EOF) && !list {
			return nil
		} else if err == nil {
			err = r.value(raw, nil)
		}
		if err != nil {
			return fmt.Errorf("value %d: %w", n, err)
		}
	}
}

// value reads a valid JSON value. outer is the time of the enclosing object: some services keep
// only that one.
func (r *entryReader) value(raw, outer json.RawMessage) error {
	switch raw[0] {
	case '{':
		x, err := fieldsOf(raw)
		if err != nil {
			return err
		}
		return r.object(x, "", outer)
	case '[':
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		for _, x := range list {
			if err := r.value(x, outer); err != nil {
				return err
			}
		}
	case '"':
		text := stringOf(raw)
		if inner := bytes.TrimSpace([]byte(text)); len(inner) > 0 && inner[0] != '"' && json.Valid(inner) {
			return r.value(inner, outer)
		}
		for line := range strings.Lines(text) {
			if err := r.line([]byte(line), outer); err != nil {
				return err
			}
		}
	}
	return nil
}

func fieldsOf(raw []byte) (fields, error) {
	var m map[string]json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&m); err != nil { // text may follow it
		return nil, err
	}
	x := make(fields, len(m))
	for _, name := range sorted(m) {
		x[plainName(name)] = m[name]
	}
	return x, nil
}

// entrySigns are strings that occur in lines with an entry. Such a line must be readable.
var entrySigns = []string{`audit.k8s.io/`, `nodeclaim`, `NodeClaim`}

// line reads a line that ends with an object. Lines of other components are skipped.
func (r *entryReader) line(text []byte, outer json.RawMessage) error {
	at := bytes.Index(text, []byte(`{"`))
	if at < 0 {
		return nil
	}
	x, err := fieldsOf(text[at:])
	if err == nil {
		return r.object(x, string(text[:at]), outer)
	}
	if at == 0 {
		return err
	}
	for _, sign := range entrySigns {
		if bytes.Contains(text[at:], []byte(sign)) {
			return err
		}
	}
	return nil
}

// fieldTime is the field with the time of an entry. Some services use another name.
const fieldTime = "time"

// object reads an object, and its fields if it is not an entry itself.
func (r *entryReader) object(x fields, prefix string, outer json.RawMessage) error {
	for _, at := range []json.RawMessage{x["timestamp"], x["ts"], outer} {
		if _, has := x[fieldTime]; !has && len(at) > 0 {
			x[fieldTime] = at
		}
	}
	if taken, err := r.take(x, prefix); taken || err != nil {
		r.found++
		return err
	}
	if x.has("columns", "rows") {
		return r.rows(x)
	}
	for _, name := range sorted(x) {
		if err := r.value(x[name], x[fieldTime]); err != nil {
			return err
		}
	}
	return nil
}

// rows reads a table in JSON, the format of responses of Log Analytics.
func (r *entryReader) rows(x fields) error {
	var columns []struct {
		Name string `json:"name"`
	}
	var rows [][]json.RawMessage
	if err := errors.Join(x.decode("columns", &columns), x.decode("rows", &rows)); err != nil {
		return err
	}
	for n, row := range rows {
		if len(row) != len(columns) {
			return fmt.Errorf("rows[%d] has %d values, and there are %d columns", n, len(row), len(columns))
		}
		y := fields{}
		for i, c := range columns {
			y[plainName(c.Name)] = row[i]
		}
		if err := r.object(y, "", nil); err != nil {
			return fmt.Errorf("rows[%d]: %w", n, err)
		}
	}
	return nil
}
