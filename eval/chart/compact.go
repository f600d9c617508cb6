package chart

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// elements matches the elements of a drawing: a path with its style, or a text with its
// place, style and words.
var elements = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?s)` + groupStart + `|` + groupEnd + `|<path d="([^"]*)" style="([^"]*)" />|<text x="([^"]*)" y="([^"]*)" transform="scale\(1, -1\)"\s+style="([^"]*)">(.*?)</text>`)
})

// compact returns a drawing, whose y points up from the lower edge, in the coordinates of
// its page and in a third of the bytes: places are rounded to what is less than a screen
// shows, points of a curve that lie on it without being named are left out, and what
// follows each other in one style is one path.
func compact(drawing []byte, height float64) []byte {
	p := packer{height: height}
	open := false
	for _, m := range elements().FindAllSubmatch(drawing, -1) {
		switch string(m[0]) {
		case groupStart:
			open = true
			p.flush()
			p.out.WriteString(groupStart)
			continue
		case groupEnd: // and that of the whole drawing
			p.flush()
			if open {
				p.out.WriteString(groupEnd)
			}
			open = false
			continue
		}
		if m[1] != nil {
			p.path(string(m[1]), string(m[2]))
			continue
		}
		p.flush()
		x, _ := strconv.ParseFloat(string(m[3]), 64)
		y, _ := strconv.ParseFloat(string(m[4]), 64)
		fmt.Fprintf(&p.out, `<text x="%s" y="%s" style="%s">%s</text>`, short(10, units(10, x)), short(10, units(10, height+y)), m[5], m[6])
	}
	p.flush()
	p.out.WriteString("</svg>\n")
	return p.out.Bytes()
}

// A packer writes elements, with one path not yet written that the next may join.
type packer struct {
	height float64
	out    bytes.Buffer

	data, style string
}

func (p *packer) flush() {
	if p.data != "" {
		fmt.Fprintf(&p.out, `<path d="%s" style="%s"/>`, p.data, p.style)
	}
	p.data = ""
}

// path takes a path. What is see-through is not joined, since it is darker where it
// lies over itself.
func (p *packer) path(data, style string) {
	if size, centres := squares(data); size > 0 {
		data, style = dotted(centres, p.height), strings.NewReplacer("fill:", "fill:none;stroke:", "fill-opacity:", "stroke-opacity:").Replace(style)
		p.flush()
		p.data, p.style = data, style+";stroke-linecap:square;stroke-width:"+short(10, units(10, size))
		p.flush()
		return
	}
	packed, ok := p.pack(data)
	if !ok { // arcs
		p.flush()
		fmt.Fprintf(&p.out, `<path d="%s" transform="matrix(1 0 0 -1 0 %g)" style="%s"/>`, data, p.height, style)
		return
	}
	if p.data != "" && p.style == style && !strings.Contains(style, "opacity") {
		p.data += packed
		return
	}
	p.flush()
	p.data, p.style = packed, style
}

// A spot is a point of a path.
type spot struct{ x, y float64 }

// squares returns the side and the centres of the equal squares that a path consists of; 0
// where it does not.
func squares(data string) (size float64, centres []spot) {
	for _, part := range strings.Split(data, "M")[1:] {
		var x0, y0, x1, y1, x2, y2, x3, y3 float64
		if n, err := fmt.Sscanf(part, "%g,%gL%g,%gL%g,%gL%g,%gZ", &x0, &y0, &x1, &y1, &x2, &y2, &x3, &y3); n != 8 || err != nil || !strings.HasSuffix(part, "Z") || strings.Count(part, "L") != 3 {
			return 0, nil
		}
		side := max(x0, x1, x2) - min(x0, x1, x2)
		if size == 0 {
			size = side
		}
		if off := 0.02; math.Abs(side-size) > off || math.Abs(max(y0, y1, y2)-min(y0, y1, y2)-size) > off || math.Abs(x3-x0)+math.Abs(y3-y2) > off && math.Abs(x3-x2)+math.Abs(y3-y0) > off {
			return 0, nil
		}
		centres = append(centres, spot{(x0 + x2) / 2, (y0 + y2) / 2})
	}
	return size, centres
}

// dotted returns a path of lines without a length, which are dots where their ends are
// drawn. Dots in one place are one.
func dotted(centres []spot, height float64) string {
	var b strings.Builder
	seen := map[[2]int]bool{}
	var last [2]int
	for _, c := range centres {
		at := [2]int{units(10, c.x), units(10, height-c.y)}
		if seen[at] {
			continue
		}
		command, to := "m", [2]int{at[0] - last[0], at[1] - last[1]}
		if len(seen) == 0 {
			command, to = "M", at
		}
		b.WriteString(command + short(10, to[0]))
		if to[1] >= 0 {
			b.WriteByte(',')
		}
		b.WriteString(short(10, to[1]) + "h0")
		seen[at], last = true, at
	}
	return b.String()
}

// pack returns the data of a path of straight lines; false where it has others.
func (p *packer) pack(data string) (string, bool) {
	if strings.ContainsAny(data, "AQC") {
		return "", false
	}
	var b strings.Builder
	for _, part := range strings.Split(data, "M")[1:] {
		closed := strings.HasSuffix(part, "Z")
		var points []spot
		for _, text := range strings.Split(strings.TrimSuffix(part, "Z"), "L") {
			x, y, _ := strings.Cut(text, ",")
			left, err := strconv.ParseFloat(x, 64)
			up, err2 := strconv.ParseFloat(y, 64)
			if err != nil || err2 != nil {
				return "", false
			}
			points = append(points, spot{left, p.height - up})
		}
		scale := 10.0
		switch {
		case closed && narrow(points):
			scale = 100
		case !closed && len(points) > 2:
			points = thin(points)
		}
		line(&b, points, scale)
		if closed {
			b.WriteByte('z')
		}
	}
	return b.String(), true
}

// narrow reports whether an area is so thin somewhere that a tenth of a pixel shows.
func narrow(points []spot) bool {
	left, right, top, low := points[0].x, points[0].x, points[0].y, points[0].y
	for _, p := range points {
		left, right, top, low = min(left, p.x), max(right, p.x), min(top, p.y), max(low, p.y)
	}
	return right-left < 1 || low-top < 1
}

// thinMost is how far, in pixels, a curve may pass from a point that is left out.
const thinMost = 0.15

// thin leaves out the points of a curve that lie on the straight line between others, as
// Douglas and Peucker do. One whose x does not ascend is left alone.
func thin(points []spot) []spot {
	for i := 1; i < len(points); i++ {
		if points[i].x <= points[i-1].x {
			return points
		}
	}
	keep := make([]bool, len(points))
	keep[0], keep[len(points)-1] = true, true
	for spans := [][2]int{{0, len(points) - 1}}; len(spans) > 0; {
		a, b := spans[len(spans)-1][0], spans[len(spans)-1][1]
		spans = spans[:len(spans)-1]
		at, most := 0, thinMost
		for i := a + 1; i < b; i++ {
			t := (points[i].x - points[a].x) / (points[b].x - points[a].x)
			if off := math.Abs(points[a].y + float64(t*(points[b].y-points[a].y)) - points[i].y); off > most {
				at, most = i, off
			}
		}
		if at > 0 {
			keep[at] = true
			spans = append(spans, [2]int{a, at}, [2]int{at, b})
		}
	}
	var out []spot
	for i, k := range keep {
		if k {
			out = append(out, points[i])
		}
	}
	return out
}

// line writes points as one line, each relative to the one before, in parts of a pixel.
func line(b *strings.Builder, points []spot, scale float64) {
	var x, y int
	command := byte(0)
	for i, p := range points {
		px, py := units(scale, p.x), units(scale, p.y)
		dx, dy := px-x, py-y
		x, y = px, py
		switch {
		case i == 0:
			b.WriteString("M" + short(scale, px) + "," + short(scale, py))
			continue
		case dx == 0 && dy == 0 && len(points) > 2:
			continue
		case dy == 0:
			b.WriteString("h" + short(scale, dx))
			command = 'h'
			continue
		case dx == 0:
			b.WriteString("v" + short(scale, dy))
			command = 'v'
			continue
		case command != 'l':
			b.WriteByte('l')
			command = 'l'
		case dx >= 0:
			b.WriteByte(' ')
		}
		b.WriteString(short(scale, dx))
		if dy >= 0 {
			b.WriteByte(',')
		}
		b.WriteString(short(scale, dy))
	}
}

// units returns x in parts of a pixel.
func units(scale, x float64) int { return int(math.Round(x * scale)) }

// short writes so many parts of a pixel with the fewest letters.
func short(scale float64, n int) string {
	s := strconv.FormatFloat(float64(n)/scale, 'f', -1, 64)
	if rest, ok := strings.CutPrefix(s, "0."); ok {
		return "." + rest
	}
	if rest, ok := strings.CutPrefix(s, "-0."); ok {
		return "-." + rest
	}
	return s
}
