package chart

import (
	"fmt"
	"html"
	"image/png"
	"io"
)

// A Format is a file format.
type Format uint8

// The formats.
const (
	SVG Format = iota
	PNG
)

func (f Format) String() string { return [...]string{"svg", "png"}[f] }

// ParseFormat parses "svg" or "png".
func ParseFormat(s string) (Format, error) {
	for f := SVG; f <= PNG; f++ {
		if s == f.String() {
			return f, nil
		}
	}
	return 0, fmt.Errorf("%q is not a format of pictures: use svg or png", s)
}

// A Picture is a chart that can be drawn: *[Lines], *[Points], *[Bars], *[Boxes], *[Grid] or
// *[Raster].
type Picture interface {
	frame() *Frame
	compose() (*plot, error)
}

// Write draws p to w. It writes nothing if p cannot be drawn.
func Write(w io.Writer, format Format, p Picture) error {
	f := p.frame()
	width, height, err := f.size()
	if err != nil {
		return fmt.Errorf("chart %q: %w", f.Title, err)
	}
	drawn, err := p.compose()
	if err == nil {
		err = drawn.bound()
	}
	if err != nil {
		return fmt.Errorf("chart %q: %w", f.Title, err)
	}
	if format == PNG {
		s := newPNG(width, height)
		f.draw(s, drawn, width, height)
		return png.Encode(w, s.image)
	}
	s := &svgSurface{theme: f.Theme}
	inner := f.draw(s, drawn, width, height)
	s.flush()
	_, err = fmt.Fprintf(w, "%s%s</svg>\n", f.head(drawn, inner, width, height), s.out.Bytes())
	return err
}

// head returns the start of an SVG: the svg tag, title and description. Outside a page it sets a
// common font. In a page, which sets the font, it adds an attribute from which scripts read values:
// the left, right, lower and upper end of the axes in pixels, and the values at these ends.
func (f *Frame) head(p *plot, inner area, width, height float64) string {
	attributes, title, desc := ` xmlns="http://www.w3.org/2000/svg" font-family="'Liberation Sans',Arial,Helvetica,sans-serif"`, "<title>", "<desc>"
	if f.Theme == Page {
		attributes = fmt.Sprintf(` data-scale="%.5g %.5g %.5g %.5g %.10g %.10g %.10g %.10g"`, inner.left, inner.right,
			inner.bottom, inner.top,
			p.x.min, p.x.max, p.y.min, p.y.max)
	}
	if f.ID != "" {
		id := html.EscapeString(f.ID)
		title, desc = `<title id="`+id+`-t">`, `<desc id="`+id+`-d">`
		attributes += ` aria-labelledby="` + id + `-t" aria-describedby="` + id + `-d"`
	}
	detail := f.Detail
	if detail == "" {
		detail = f.Title + ". " + f.Note
	}
	return fmt.Sprintf("<svg%s width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" role=\"img\">\n%s%s</title>\n%s%s</desc>\n",
		attributes, width, height, width, height, title, html.EscapeString(f.Title), desc, html.EscapeString(detail))
}
