package chart

import (
	"bytes"
	"fmt"
	"image/png"
	"math"
	"strings"
	"testing"
)

// Points outside the bounds of an axis are not drawn; the curve continues to the edge.
func TestClip(t *testing.T) {
	l := &Lines{Frame: Frame{X: Axis{From: 0, To: 10}, Y: Axis{From: 0, To: 10}}, Series: []Line{{X: []float64{-5, 15}, Y: []float64{-5, 15}}}}
	if svg := string(drawn(t, SVG, l)); strings.Count(svg, "<svg ") != 2 || strings.Count(svg, "</svg>") != 2 {
		t.Errorf("nothing clips a line:\n%s", svg)
	}
	img, err := png.Decode(bytes.NewReader(drawn(t, PNG, l)))
	if err != nil {
		t.Fatal(err)
	}
	hue, seen := Light.palette().series[0], 0
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if r, g, b, _ := img.At(x, y).RGBA(); uint8(r>>8) == hue.R && uint8(g>>8) == hue.G && uint8(b>>8) == hue.B {
				if seen++; x < 40 || y > img.Bounds().Dy()-60 {
					t.Fatalf("the line reaches %d, %d", x, y)
				}
			}
		}
	}
	if seen < 1000 {
		t.Errorf("the line has %d pixels", seen)
	}
	l.X.From, l.Y.From, l.X.To, l.Y.To = -5, -5, 15, 15
	if svg := string(drawn(t, SVG, l)); strings.Count(svg, "<svg ") != 1 {
		t.Error("what is shown whole is clipped")
	}
}

// Dashes have the lengths of their pattern also around corners, and end with the line.
func TestDashed(t *testing.T) {
	line := []point{{0, 0}, {10, 0}, {10, 10}}
	if got := fmt.Sprint(dashed(line, []float64{6, 3})); got != "[[{0 0} {6 0}] [{9 0} {10 0} {10 5}] [{10 8} {10 10}]]" {
		t.Errorf("dashes are %s", got)
	}
	if got := fmt.Sprint(dashed(line, nil)); got != "[[{0 0} {10 0} {10 10}]]" {
		t.Errorf("a line without a pattern is %s", got)
	}
}

// Text is as wide as its glyphs, kerned pairs are closer, and bold is wider.
func TestWidth(t *testing.T) {
	w := words{size: 10}
	if a, aa := w.width("a"), w.width("aa"); a <= 0 || math.Abs(aa-2*a) > 1e-9 {
		t.Errorf("a is %v wide and aa %v", a, aa)
	}
	if w.width("AV") >= w.width("A")+w.width("V") {
		t.Error("AV is not kerned")
	}
	if b := (words{size: 10, bold: true}); b.width("width") <= w.width("width") {
		t.Error("bold is not wider")
	}
	if w.width("") != 0 {
		t.Error("nothing has a width")
	}
	if got := strings.Join(wrap(w, "one two three", w.width("one two")), "|"); got != "one two|three" {
		t.Errorf("it is wrapped as %s", got)
	}
}

// An SVG has each line relative, neighbours of one style in one path, unless they are see-through,
// dots as such and once each, and no point of a curve that says nothing.
func TestSVGIsSmall(t *testing.T) {
	s := &svgSurface{theme: Page}
	c := Page.palette()
	grid := pen{colour: c.grid, width: 1}
	s.stroke(grid, []point{{10, 80}, {10, 5}})
	s.stroke(grid, []point{{30, 80}, {30, 4.5}})
	s.write(words{size: 11, colour: c.faint, anchor: end}, point{5, 64.63}, "1 < 2")
	s.stroke(pen{colour: c.ink, width: 1, dashes: []float64{6, 4}}, []point{{0, 100}, {2, 50}, {4, 49.95}, {6, 50}, {8, 40}})
	half := veil(c.hue(0), 0x80)
	s.fill(half, area{0, 1, 2, 2.234}.corners())
	s.fill(half, area{0, 3, 2, 4}.corners())
	s.dots(half, []point{{2, 98}, {12, 88}, {2, 98}})
	s.group(func() { s.circle(c.ink, point{1, 2}, 3) })
	const want = `<path d="M10,80v-75M30,80v-75.5" style="fill:none;stroke:var(--chart-grid);stroke-width:1"/><text x="5" y="64.6" text-anchor="end">1 &lt; 2</text>` +
		`<path d="M0,100l2-50h4l2-10" style="fill:none;stroke:var(--chart-ink);stroke-width:1;stroke-dasharray:6,4"/>` +
		`<path d="M0,1h2v1.23h-2z" style="fill:var(--chart-series-0);fill-opacity:0.502"/><path d="M0,3h2v1h-2z" style="fill:var(--chart-series-0);fill-opacity:0.502"/>` +
		`<path d="M2,98h0M12,88h0" style="fill:none;stroke:var(--chart-series-0);stroke-opacity:0.502;stroke-linecap:square;stroke-width:2.4"/>` +
		`<g class="series"><circle cx="1" cy="2" r="3" style="fill:var(--chart-ink)"/></g>`
	if got := s.out.String(); got != want {
		t.Errorf("it is\n%s\nwant\n%s", got, want)
	}
}

// A curve without the points that were left out passes near them; one whose x does not ascend
// is left alone.
func TestThin(t *testing.T) {
	var points []point
	for i := range 200 {
		x := float64(i)
		points = append(points, point{x, 40 + float64(x*x)/900})
	}
	kept := thin(points)
	if len(kept) > 40 || kept[0] != points[0] || kept[len(kept)-1] != points[len(points)-1] {
		t.Fatalf("%d of %d points are kept", len(kept), len(points))
	}
	k := 0
	for _, p := range points {
		for kept[k+1].x < p.x {
			k++
		}
		a, b := kept[k], kept[k+1]
		if off := a.y + (p.x-a.x)/(b.x-a.x)*(b.y-a.y) - p.y; off > thinMost || off < -thinMost {
			t.Errorf("at %v it is off by %v", p.x, off)
		}
	}
	steps := []point{{0, 0}, {1, 0}, {1, 5}, {2, 5}}
	if got := thin(steps); len(got) != 4 {
		t.Errorf("steps are thinned to %v", got)
	}
}
