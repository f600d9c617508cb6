package chart

import (
	"fmt"
	"math"
	"testing"
)

// A line is cut where it leaves a canvas and where it comes back, a polygon goes along the
// sides that it crosses.
func TestClip(t *testing.T) {
	c := canvas{nil, area{point{0, 0}, point{10, 10}}}
	for _, x := range []struct {
		line []point
		want string
	}{
		{[]point{{1, 1}, {9, 9}}, "[[{1 1} {9 9}]]"},
		{[]point{{-5, 5}, {15, 5}}, "[[{0 5} {10 5}]]"},
		{[]point{{5, 5}, {5, 15}, {8, 15}, {8, 5}}, "[[{5 5} {5 10}] [{8 10} {8 5}]]"},
		{[]point{{-5, -5}, {-1, 20}}, "[]"},
		{[]point{{3, 3}}, "[]"},
	} {
		if got := fmt.Sprint(c.clipLine(x.line)); got != x.want {
			t.Errorf("%v is cut to %s, want %s", x.line, got, x.want)
		}
	}
	if got := fmt.Sprint(c.clipPolygon(rectangle(-5, 2, 5, 20))); got != "[{0 2} {5 2} {5 10} {0 10}]" {
		t.Errorf("the polygon is cut to %s", got)
	}
	if got := c.clipPolygon(rectangle(20, 20, 30, 30)); len(got) != 0 {
		t.Errorf("a polygon outside is cut to %v", got)
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
}
