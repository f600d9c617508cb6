package importer

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"

	"github.com/spotter-dev/spotter/scenarios/trace"
)

// rowsInData matches rows of prices in the member that contains numbers in samples of availability.
var rowsInData = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"data"\s*:\s*\[\s*[\[{]`) })

// anyJSON reads r in the format that its first members indicate. Head is the start of r.
func (im *importer) anyJSON(r *bufio.Reader, head []byte) error {
	for _, name := range memberNames(head) {
		switch name {
		case "regions":
			return im.percentiles(r)
		case "preemptionHistory", "priceHistory":
			return im.capacityHistories(r)
		case "metadata", "data":
			if !rowsInData().Match(head) {
				return im.samples(r)
			}
		case "default", "series", "repeat_last":
			return im.script(r)
		}
	}
	return im.json(r)
}

// json reads rows of prices from anywhere in one or more consecutive JSON values: responses of
// DescribeSpotPriceHistory as the AWS CLI prints them, arrays, or lines.
func (im *importer) json(r io.Reader) error {
	lines := &lineCounter{r: r}
	p := &jsonParser{records: im.newRecords("JSON"), d: json.NewDecoder(lines), lines: lines}
	p.d.UseNumber()
	for {
		token, err := p.d.Token()
		if errors.Is(err, io.EOF) {
			return p.close()
		}
		var v scalar
		if err == nil {
			v, err = p.value(token, "", false)
		}
		if v.present {
			err = notUnderstood("JSON with a value that is not a row")
		}
		if err != nil {
			return jsonError(err, lines, p.d)
		}
	}
}

// A jsonParser finds rows in JSON.
type jsonParser struct {
	*records
	d     *json.Decoder
	lines *lineCounter
}

// A scalar is the text of a JSON value. Present is false for an object or an array.
type scalar struct {
	text    string
	present bool
}

// value reads the value that starts with token. It is the member called name of an object, or an
// element of an array if listed is set.
func (p *jsonParser) value(token json.Token, name string, listed bool) (scalar, error) {
	switch v := token.(type) {
	case json.Delim:
		if v == '[' {
			return scalar{}, p.array(name, listed)
		}
		return p.object(name)
	case nil:
		return scalar{"", true}, nil
	case string:
		return scalar{v, true}, nil
	}
	return scalar{fmt.Sprint(token), true}, nil
}

// next returns the next token within a value. The end of the input is an error.
func (p *jsonParser) next() (json.Token, error) {
	token, err := p.d.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return token, err
}

// object reads an object, which is a row if it has the members of one. An object with a single
// member that is a type tag, as in database exports, is equivalent to the value of that member.
func (p *jsonParser) object(name string) (scalar, error) {
	var members []string
	var fields [][]byte
	for p.d.More() {
		key, err := p.next()
		if err != nil {
			return scalar{}, err
		}
		token, err := p.next()
		if err != nil {
			return scalar{}, err
		}
		member := fmt.Sprint(key)
		v, err := p.value(token, member, false)
		if err != nil {
			return scalar{}, err
		}
		if v.present {
			members, fields = append(members, member), append(fields, []byte(v.text))
		} else {
			p.see(member)
		}
	}
	if _, err := p.next(); err != nil {
		return scalar{}, err
	}
	if len(members) == 1 && isKind(members[0]) {
		return scalar{string(fields[0]), true}, nil
	}
	if p.column(name, members, fields) {
		return scalar{}, nil
	}
	return scalar{}, p.record(p.place(), members, fields)
}

// isKind reports whether name is a type tag of values in database exports.
func isKind(name string) bool { return name == "S" || name == "N" || len(name) > 1 && name[0] == '$' }

// array reads an array. An array of scalars is a row of a table if it is within another array, and
// otherwise the list of column names.
func (p *jsonParser) array(name string, listed bool) error {
	var fields [][]byte
	for p.d.More() {
		token, err := p.next()
		if err != nil {
			return err
		}
		v, err := p.value(token, "", true)
		if err != nil {
			return err
		}
		if v.present {
			fields = append(fields, []byte(v.text))
		}
	}
	if _, err := p.next(); err != nil {
		return err
	}
	switch {
	case len(fields) == 0:
		return nil
	case listed:
		return p.unnamed(p.place(), fields)
	case !p.column(name, nil, fields) && !p.names(fields):
		p.see(cmp.Or(name, "an array of values"))
	}
	return nil
}

// place returns the line at which the last token ends.
func (p *jsonParser) place() int { return p.lines.line(p.d.InputOffset()) }

// memberNames returns the member names of the JSON object that starts with head, without those that
// are not in head.
func memberNames(head []byte) []string {
	d := json.NewDecoder(bytes.NewReader(head))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	var names []string
	for depth, name := 0, true; ; {
		token, err := d.Token()
		if err != nil {
			return names
		}
		delim, nested := token.(json.Delim)
		switch {
		case nested && (delim == '{' || delim == '['):
			depth++
			continue
		case nested && depth == 0:
			return names
		case nested:
			depth--
		case depth == 0 && name:
			names = append(names, fmt.Sprint(token))
		}
		if depth == 0 {
			name = !name
		}
	}
}

// wholeMax is the maximum size in bytes of a recording that is read as a whole.
const wholeMax = 256 << 20

// whole decodes r, which must be a single JSON value, into v. If strict is set, unknown members are
// errors.
func whole(r io.Reader, v any, strict bool) error {
	data, err := io.ReadAll(io.LimitReader(r, wholeMax+1))
	if err != nil {
		return err
	}
	if len(data) > wholeMax {
		return fmt.Errorf("%w: more than %d MiB of JSON", trace.ErrFormat, wholeMax>>20)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if strict {
		d.DisallowUnknownFields()
	}
	err = d.Decode(v)
	line := func(offset int64) int { return 1 + bytes.Count(data[:min(offset, int64(len(data)))], []byte{'\n'}) }
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("%w: line %d: %w", trace.ErrCorrupt, line(syntax.Offset), err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: the JSON was cut short after line %d", trace.ErrCorrupt, line(int64(len(data))))
	case errors.As(err, &mismatch):
		return fmt.Errorf("%w: line %d: %s is a %s and must be a %v",
			trace.ErrFormat, line(mismatch.Offset), mismatch.Field, mismatch.Value, mismatch.Type)
	case err != nil:
		return fmt.Errorf("%w: %w", trace.ErrFormat, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: line %d: more follows behind the JSON", trace.ErrFormat, line(d.InputOffset()))
	}
	return nil
}

// jsonError adds the position in the source to err.
func jsonError(err error, lines *lineCounter, d *json.Decoder) error {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, trace.ErrFormat), errors.Is(err, trace.ErrBadRows):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: the JSON was cut short after line %d", trace.ErrCorrupt, lines.line(d.InputOffset()))
	case errors.As(err, &syntax):
		return fmt.Errorf("%w: near line %d: %w", trace.ErrCorrupt, lines.line(d.InputOffset()+1), err)
	}
	return fmt.Errorf("near line %d: %w", lines.line(d.InputOffset()), err)
}

// A lineCounter maps the offsets of bytes read through it to line numbers.
type lineCounter struct {
	r     io.Reader
	read  int64
	ends  []int64 // offsets of newlines not yet passed
	lines int     // number of newlines passed
}

// Read implements [io.Reader].
func (l *lineCounter) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	for at := 0; ; {
		i := bytes.IndexByte(p[at:n], '\n')
		if i < 0 {
			break
		}
		at += i + 1
		l.ends = append(l.ends, l.read+int64(at)-1)
	}
	l.read += int64(n)
	return n, err
}

// line returns the line number, from 1, of the byte at offset. Offsets must not decrease.
func (l *lineCounter) line(offset int64) int {
	n := 0
	for n < len(l.ends) && l.ends[n] < offset {
		n++
	}
	l.ends = l.ends[n:]
	l.lines += n
	return l.lines + 1
}
