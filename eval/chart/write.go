package chart

import (
	"bytes"
	"fmt"
	"html"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
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
	return 0, fmt.Errorf("%q is no format of pictures: there are svg and png", s)
}

// A Picture is something that can be drawn: *[Lines], *[Points], *[Bars],
// *[Boxes], *[Grid] or *[Raster].
type Picture interface {
	frame() *Frame

	// compose returns the plot and the entries of its legend.
	compose() (*plot.Plot, []key, error)
}

// pngScale is how many pixels of a PNG one of a screen becomes, so that words
// stay sharp where pictures are enlarged.
const pngScale = 2

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
	if format == PNG {
		// A point is 1/72 of an inch, so that 72 dots per inch are one each.
		c := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(72*pngScale))
		f.draw(draw.New(c), keys, drawn)
		_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(w)
		return err
	}
	c := vgsvg.New(width, height)
	area := f.draw(draw.New(c), keys, drawn)
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return err
	}
	scale := ""
	if f.Theme == Page {
		scale = fmt.Sprintf(` data-scale="%.5g %.5g %.5g %.5g %.10g %.10g %.10g %.10g"`, float64(area.Min.X), float64(area.Max.X), float64(height-area.Min.Y), float64(height-area.Max.Y),
			drawn.X.Min, drawn.X.Max, drawn.Y.Min, drawn.Y.Max)
	}
	return f.svg(w, b.Bytes(), scale, width, height)
}

// svg writes a drawing under a head of its own: with title and description,
// sized in pixels, and with names of typefaces that are found everywhere. In a page
// it has a scale too, from which scripts read values: the pixels of the left, right,
// lower and upper end of the axes, and the values there.
func (f *Frame) svg(w io.Writer, drawing []byte, scale string, width, height vg.Length) error {
	_, body, ok := bytes.Cut(drawing, []byte("xlink\">\n"))
	if !ok {
		return fmt.Errorf("chart %q: the drawing has no head", f.Title)
	}
	detail := f.Detail
	if detail == "" {
		detail = f.Title + ". " + f.Note
	}
	if f.Theme == Page {
		body = compact(restyle(body), float64(height))
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
%s`, namespace, float64(width), float64(height), float64(width), float64(height), labels, title, html.EscapeString(f.Title), desc, html.EscapeString(detail), body)
	return err
}
