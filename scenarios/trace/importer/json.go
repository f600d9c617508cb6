package importer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// A spotPrice is an entry of a response of DescribeSpotPriceHistory.
type spotPrice struct {
	AvailabilityZone   string
	AvailabilityZoneID string `json:"AvailabilityZoneId"`
	InstanceType       string
	ProductDescription string
	SpotPrice          string
	Timestamp          string
}

// json reads responses of DescribeSpotPriceHistory, one or several after each
// other, as the AWS CLI prints them.
func (im *importer) json(r *bufio.Reader) error {
	lines := &lineCounter{r: r}
	d := json.NewDecoder(lines)
	entries := 0
	for {
		n, err := im.response(d, lines)
		entries += n
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return jsonError(err, lines, d)
		}
	}
	im.took("JSON of DescribeSpotPriceHistory")
	return nil
}

// errShape is returned for JSON that is something else.
var errShape = fmt.Errorf("%w: JSON of an unknown kind; %s", trace.ErrFormat, Understood)

// anyJSON finds out by the names of its first members what r holds, of which
// head is the begin, and reads it.
func (im *importer) anyJSON(r *bufio.Reader, head []byte) error {
	for _, name := range memberNames(head) {
		switch name {
		case "SpotPriceHistory":
			return im.json(r)
		case "regions":
			return im.percentiles(r)
		case "metadata", "data":
			return im.samples(r)
		case "default", "series", "repeat_last":
			return im.script(r)
		}
	}
	return im.json(r)
}

// memberNames returns the names of the members of the JSON object of which
// head is the begin, as far as they stand in it.
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

// wholeMax bounds the recordings that are read at once.
const wholeMax = 256 << 20

// whole decodes all of r, which is one JSON value, into v. Strict refuses
// members that v does not have.
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

func jsonError(err error, lines *lineCounter, d *json.Decoder) error {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, errShape), errors.Is(err, trace.ErrBadRows):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: the JSON was cut short after line %d", trace.ErrCorrupt, lines.line(d.InputOffset()))
	case errors.As(err, &syntax):
		return fmt.Errorf("%w: near line %d: %w", trace.ErrCorrupt, lines.line(syntax.Offset), err)
	}
	return fmt.Errorf("near line %d: %w", lines.line(d.InputOffset()), err)
}

// response reads one object and returns how many entries it has; io.EOF when
// there is no more.
func (im *importer) response(d *json.Decoder, lines *lineCounter) (entries int, err error) {
	open, err := d.Token()
	if err != nil {
		return 0, err
	}
	if open != json.Delim('{') {
		return 0, errShape
	}
	found := false
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return entries, inside(err)
		}
		if key != "SpotPriceHistory" {
			var ignored json.RawMessage
			if err := d.Decode(&ignored); err != nil {
				return entries, inside(err)
			}
			continue
		}
		found = true
		if open, err := d.Token(); err != nil {
			return entries, inside(err)
		} else if open != json.Delim('[') {
			return entries, errShape
		}
		for ; d.More(); entries++ {
			if err := im.entry(d, lines); err != nil {
				return entries, inside(err)
			}
		}
		if _, err := d.Token(); err != nil {
			return entries, inside(err)
		}
	}
	if _, err := d.Token(); err != nil {
		return entries, inside(err)
	}
	if !found {
		return entries, errShape
	}
	return entries, nil
}

// inside tells an end within an object from that of the input.
func inside(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// entry reads one element of the list.
func (im *importer) entry(d *json.Decoder, lines *lineCounter) error {
	var p spotPrice
	var mismatch *json.UnmarshalTypeError
	err := d.Decode(&p)
	line := lines.line(d.InputOffset()) // where the entry ends
	im.report.Rows++
	if errors.As(err, &mismatch) {
		return im.bad(line, fmt.Errorf("%s is a %s", mismatch.Field, mismatch.Value))
	}
	if err != nil {
		return err
	}
	zone := p.AvailabilityZone
	if zone == "" {
		zone = p.AvailabilityZoneID
	}
	e, err := im.priced(rawEvent{
		usual: catalog.AWS,
		time:  []byte(p.Timestamp), zone: []byte(zone), kind: []byte(p.InstanceType),
		product: []byte(p.ProductDescription), spot: []byte(p.SpotPrice),
	})
	if err != nil {
		return im.bad(line, err)
	}
	im.add(e)
	return nil
}

// A lineCounter knows the line of each byte that was read through it.
type lineCounter struct {
	r     io.Reader
	read  int64
	ends  []int64 // offsets of line ends not yet passed
	lines int     // line ends passed
}

// Read reads from the reader below.
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

// line returns the line of the byte at offset, from 1. Offsets must not fall.
func (l *lineCounter) line(offset int64) int {
	n := 0
	for n < len(l.ends) && l.ends[n] < offset {
		n++
	}
	l.ends = l.ends[n:]
	l.lines += n
	return l.lines + 1
}
