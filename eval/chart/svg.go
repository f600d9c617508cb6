package chart

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strings"
)

// An svgSurface writes the elements of an SVG whose y points up.
type svgSurface struct{ out bytes.Buffer }

func newSVG(height float64) *svgSurface {
	s := &svgSurface{}
	fmt.Fprintf(&s.out, "<g transform=\"scale(1, -1) translate(0, -%.5g)\">\n", height)
	return s
}

// end returns the elements, with the end of the SVG.
func (s *svgSurface) end() []byte {
	s.out.WriteString("</g>\n</svg>\n")
	return s.out.Bytes()
}

func (s *svgSurface) fill(p path, c colour) {
	s.path(p, declarations("fill:"+hex(c), opacity("fill-opacity", c)))
}

func (s *svgSurface) stroke(o outline, p pen) {
	width, dashes := "", make([]string, len(p.dashes))
	if p.width != 1 { // the default
		width = fmt.Sprintf("stroke-width:%.5g", p.width)
	}
	for i, d := range p.dashes {
		dashes[i] = fmt.Sprintf("%.5g", d)
	}
	array := ""
	if len(dashes) > 0 {
		array = "stroke-dasharray:" + strings.Join(dashes, ",")
	}
	s.path(path{o}, declarations("fill:none", "stroke:"+hex(p.colour), opacity("stroke-opacity", p.colour), width, array))
}

func (s *svgSurface) path(p path, style string) {
	s.out.WriteString(`<path d="`)
	for _, o := range p {
		if o.radius > 0 {
			s.circle(o.points[0], o.radius)
		} else {
			command := 'M'
			for _, at := range o.points {
				fmt.Fprintf(&s.out, "%c%.5g,%.5g", command, at.X, at.Y)
				command = 'L'
			}
		}
		if o.closed {
			s.out.WriteByte('Z')
		}
	}
	fmt.Fprintf(&s.out, "\" style=\"%s\" />\n", style)
}

// circle writes two halves, since an arc does not end where it begins.
func (s *svgSurface) circle(c point, radius float64) {
	const half = "A%.5g,%.5g 0 1 1 %.5g,%.5g"
	fmt.Fprintf(&s.out, "M%.5g,%.5g"+half+half, c.X+radius, c.Y, radius, radius, c.X-radius, c.Y, radius, radius, c.X+radius, c.Y)
}

func (s *svgSurface) write(w words, at point, text string) {
	weight := "normal"
	if w.bold {
		weight = "bold"
	}
	fmt.Fprintf(&s.out, "<text x=\"%.5g\" y=\"%.5g\" transform=\"scale(1, -1)\"\n\t"+
		"style=\"font-family:Liberation Sans;font-variant:normal;font-weight:%s;font-style:normal;font-size:%.5gpx;fill:%s\">%s</text>\n",
		at.X, -at.Y, weight, w.size, hex(w.colour), html.EscapeString(text))
}

// declarations joins those that are not empty.
func declarations(all ...string) string {
	var b strings.Builder
	for _, d := range all {
		if d != "" && b.Len() > 0 {
			b.WriteByte(';')
		}
		b.WriteString(d)
	}
	return b.String()
}

func hex(c colour) string { return fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B) }

func opacity(property string, c colour) string {
	if c.A == math.MaxUint8 {
		return ""
	}
	return fmt.Sprintf("%s:%.5g", property, float64(c.A)/math.MaxUint8)
}
