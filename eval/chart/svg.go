package chart

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// The tags around a series, which scripts on a page can hide.
const (
	groupStart = `<g class="series">`
	groupEnd   = "</g>"
)

// An svgSurface writes a compact SVG, because pages may contain many pictures.
type svgSurface struct {
	theme Theme
	out   bytes.Buffer

	// data and style are those of a pending path, which may be joined with the next one.
	data, style string
}

// flush writes the pending path.
func (s *svgSurface) flush() {
	if s.data != "" {
		fmt.Fprintf(&s.out, `<path d="%s" style="%s"/>`, s.data, s.style)
	}
	s.data = ""
}

// path adds a path, and joins it with the pending one if the style is equal. Transparent paths are
// not joined, because a joined path would not be darker where its parts overlap.
func (s *svgSurface) path(data, style string) {
	if style != s.style || strings.Contains(style, "opacity") {
		s.flush()
	}
	s.data, s.style = s.data+data, style
}

func (s *svgSurface) fill(c colour, outlines ...[]point) {
	data := ""
	for _, o := range outlines {
		data += line(o, 100) + "z"
	}
	s.path(data, s.paint("fill", c))
}

func (s *svgSurface) circle(c colour, at point, radius float64) {
	s.flush()
	fmt.Fprintf(&s.out, `<circle cx="%s" cy="%s" r="%g" style="%s"/>`, decimal(units(at.x, 10), 10),
		decimal(units(at.y, 10), 10), radius, s.paint("fill", c))
}

// dots draws lines of length 0, which appear as squares because of their square caps. Dots at the
// same position are drawn once.
func (s *svgSurface) dots(c colour, at []point) {
	var b strings.Builder
	seen := map[string]bool{}
	for _, p := range at {
		if dot := line([]point{p}, 10) + "h0"; !seen[dot] {
			b.WriteString(dot)
			seen[dot] = true
		}
	}
	s.path(b.String(), fmt.Sprintf("fill:none;%s;stroke-linecap:square;stroke-width:%g", s.paint("stroke", c),
		2*dotRadius))
}

func (s *svgSurface) stroke(p pen, points []point) {
	style := fmt.Sprintf("fill:none;%s;stroke-width:%g", s.paint("stroke", p.colour), p.width)
	if len(p.dashes) > 0 {
		style += ";stroke-dasharray:" + strings.Trim(strings.ReplaceAll(fmt.Sprint(p.dashes), " ", ","), "[]")
	}
	s.path(line(thin(points), 10), style)
}

func (s *svgSurface) write(w words, at point, text string) {
	s.flush()
	fmt.Fprintf(&s.out, `<text x="%s" y="%s"`, decimal(units(at.x, 10), 10), decimal(units(at.y, 10), 10))
	if w.anchor != start {
		fmt.Fprintf(&s.out, ` text-anchor="%s"`, w.anchor)
	}
	style := fmt.Sprintf("font-size:%gpx;%s", w.size, s.paint("fill", w.colour))
	if w.bold {
		style += ";font-weight:bold"
	}
	if s.theme != Page || style != PageText {
		fmt.Fprintf(&s.out, ` style="%s"`, style)
	}
	fmt.Fprintf(&s.out, ">%s</text>", html.EscapeString(text))
}

func (s *svgSurface) group(paint func()) {
	if s.theme != Page {
		paint()
		return
	}
	s.within(groupStart, groupEnd, paint)
}

// clip draws within a nested SVG element, which clips its content.
func (s *svgSurface) clip(a area, paint func()) {
	x, y, w, h := a.left, a.top, a.right-a.left, a.bottom-a.top
	s.within(fmt.Sprintf(`<svg x="%.5g" y="%.5g" width="%.5g" height="%.5g" viewBox="%.5g %.5g %.5g %.5g">`, x, y, w, h,
		x, y, w, h), "</svg>", paint)
}

func (s *svgSurface) within(begin, end string, paint func()) {
	s.flush()
	s.out.WriteString(begin)
	paint()
	s.flush()
	s.out.WriteString(end)
}

// paint returns the CSS that sets a property to a colour. Pages use custom properties as colours.
func (s *svgSurface) paint(property string, c colour) string {
	solid := veil(c, math.MaxUint8)
	text := fmt.Sprintf("%s:#%02X%02X%02X", property, c.R, c.G, c.B)
	if s.theme == Page {
		for _, r := range s.theme.palette().roles() {
			if r.colour == solid {
				text = property + ":var(--chart-" + r.name + ")"
			}
		}
	}
	if c != solid {
		text += fmt.Sprintf(";%s-opacity:%.3g", property, float64(c.A)/math.MaxUint8)
	}
	return text
}

// thinMost is the maximum distance, in pixels, between a thinned curve and a removed point.
const thinMost = 0.15

// thin removes points that are nearly on the straight line between others, by the algorithm of
// Douglas and Peucker. A part whose x does not ascend remains unchanged.
func thin(points []point) []point {
	last := len(points) - 1
	a, b := points[0], points[last]
	at, most := 0, thinMost
	for i := 1; i < last; i++ {
		if points[i].x <= points[i-1].x || b.x <= points[i].x {
			return points
		}
		t := (points[i].x - a.x) / (b.x - a.x)
		if off := math.Abs(a.y + float64(t*(b.y-a.y)) - points[i].y); off > most {
			at, most = i, off
		}
	}
	if at > 0 {
		return append(thin(points[:at+1:at+1]), thin(points[at:])[1:]...)
	}
	return []point{a, b}[:min(last+1, 2)]
}

// line returns the path through points in relative coordinates, rounded to 1/scale pixels.
func line(points []point, scale int) string {
	var b strings.Builder
	var x, y int
	command := byte(0)
	for i, p := range points {
		dx, dy := units(p.x, scale)-x, units(p.y, scale)-y
		x, y = x+dx, y+dy
		switch {
		case i == 0:
			b.WriteString("M" + pair(dx, dy, scale))
		case dx == 0 && dy == 0 && len(points) > 2:
		case dy == 0:
			command = 'h'
			b.WriteString("h" + decimal(dx, scale))
		case dx == 0:
			command = 'v'
			b.WriteString("v" + decimal(dy, scale))
		default:
			if command != 'l' {
				b.WriteByte('l')
			} else if dx >= 0 {
				b.WriteByte(' ')
			}
			command = 'l'
			b.WriteString(pair(dx, dy, scale))
		}
	}
	return b.String()
}

// units returns a length in units of 1/scale pixels.
func units(x float64, scale int) int { return int(math.Round(x * float64(scale))) }

// pair formats two lengths. A minus sign separates them as well as a comma does.
func pair(x, y, scale int) string {
	if y < 0 {
		return decimal(x, scale) + decimal(y, scale)
	}
	return decimal(x, scale) + "," + decimal(y, scale)
}

// decimal formats n/scale pixels with as few characters as possible.
func decimal(n, scale int) string {
	s := strconv.FormatFloat(float64(n)/float64(scale), 'f', -1, 64)
	if rest, ok := strings.CutPrefix(s, "-0."); ok {
		return "-." + rest
	}
	if rest, ok := strings.CutPrefix(s, "0."); ok {
		return "." + rest
	}
	return s
}
