package chart

import (
	"bytes"
	"fmt"
	"html"
	"io"
)

// A Format is a kind of file.
type Format uint8

// The formats.
const (
	SVG Format = iota
	PNG
)

func (f Format) String() string { return [...]string{"svg", "png"}[f] }

// ParseFormat reads "svg" or "png".
func ParseFormat(s string) (Format, error) {
	for f := SVG; f <= PNG; f++ {
		if s == f.String() {
			return f, nil
		}
	}
	return 0, fmt.Errorf("%q is not a format of pictures: use svg or png", s)
}

// A Picture is something that can be drawn: *[Lines], *[Points], *[Bars],
// *[Boxes], *[Grid] or *[Raster].
type Picture interface {
	frame() *Frame

	// compose returns the plot and the entries of its legend.
	compose() (*plot, []key, error)
}

// Write draws p to w. Nothing is written when it cannot be drawn.
func Write(w io.Writer, format Format, p Picture) error {
	f := p.frame()
	width, height, err := f.size()
	if err != nil {
		return fmt.Errorf("chart %q: %w", f.Title, err)
	}
	drawn, keys, err := p.compose()
	if err == nil {
		err = f.bound(drawn)
	}
	if err != nil {
		return fmt.Errorf("chart %q: %w", f.Title, err)
	}
	page := area{Max: point{width, height}}
	if format == PNG {
		s := newPNG(width, height)
		f.draw(canvas{s, page}, keys, drawn)
		return s.writeTo(w)
	}
	s := newSVG(height)
	inner := f.draw(canvas{s, page}, keys, drawn)
	scale := ""
	if f.Theme == Page {
		scale = fmt.Sprintf(` data-scale="%.5g %.5g %.5g %.5g %.10g %.10g %.10g %.10g"`, inner.Min.X, inner.Max.X, height-inner.Min.Y, height-inner.Max.Y,
			drawn.x.min, drawn.x.max, drawn.y.min, drawn.y.max)
	}
	return f.svg(w, s.end(), scale, width, height)
}

// svg writes a drawing under a head of its own: with title and description,
// sized in pixels, and with names of typefaces that are found everywhere. In a page
// it has a scale too, from which scripts read values: the pixels of the left, right,
// lower and upper end of the axes, and the values there.
func (f *Frame) svg(w io.Writer, body []byte, scale string, width, height float64) error {
	detail := f.Detail
	if detail == "" {
		detail = f.Title + ". " + f.Note
	}
	if f.Theme == Page {
		body = compact(restyle(body), height)
	} else {
		body = bytes.ReplaceAll(body, []byte("font-family:Liberation Sans;"), []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"))
	}
	title, desc, labels := "<title>", "<desc>", ""
	if f.ID != "" {
		id := html.EscapeString(f.ID)
		title, desc = `<title id="`+id+`-t">`, `<desc id="`+id+`-d">`
		labels = scale + ` aria-labelledby="` + id + `-t" aria-describedby="` + id + `-d"`
	}
	namespace := ` xmlns="http://www.w3.org/2000/svg"`
	if f.Theme == Page { // a page knows it
		namespace = ""
	}
	_, err := fmt.Fprintf(w, `<svg%s width="%g" height="%g" viewBox="0 0 %g %g" role="img"%s>
%s%s</title>
%s%s</desc>
%s`, namespace, width, height, width, height, labels, title, html.EscapeString(f.Title), desc, html.EscapeString(detail), body)
	return err
}
