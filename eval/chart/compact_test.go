package chart

import (
	"testing"
)

// A drawing for a page points down, has each line relative, neighbours of one style in one
// path, unless they are see-through, dots as such, and no point of a curve that says nothing.
func TestCompact(t *testing.T) {
	const drawing = `<g transform="scale(1, -1) translate(0, -100)">
<path d="M10,20L10,95" style="stroke:a" />
<path d="M30,20L30,95.5" style="stroke:a" />
<text x="5" y="-35.373" transform="scale(1, -1)"
	style="fill:b">1 &lt; 2</text>
<path d="M0,0L2,50L4,50.05L6,50L8,60" style="stroke:c" />
<path d="M0,0L0.5,0L0.5,1.25L0,1.25Z" style="fill:d;fill-opacity:0.5" />
<path d="M0,0L2,0L2,1.23L0,1.23Z" style="fill:d;fill-opacity:0.5" />
<path d="M1,2A3,3 0 0 1 4,5Z" style="fill:e" />
<path d="M1,1L3,1L3,3L1,3ZM11,11L13,11L13,13L11,13ZM1,1L3,1L3,3L1,3Z" style="fill:f;fill-opacity:0.5" />
</g>
</svg>
`
	const want = `<path d="M10,80v-75M30,80v-75.5" style="stroke:a"/><text x="5" y="64.6" style="fill:b">1 &lt; 2</text><path d="M0,100l2-50h4l2-10" style="stroke:c"/><path d="M0,100h.5v-1.25h-.5z" style="fill:d;fill-opacity:0.5"/><path d="M0,100h2v-1.2h-2z" style="fill:d;fill-opacity:0.5"/><path d="M1,2A3,3 0 0 1 4,5Z" transform="matrix(1 0 0 -1 0 100)" style="fill:e"/><path d="M2,98h0m10-10h0" style="fill:none;stroke:f;stroke-opacity:0.5;stroke-linecap:square;stroke-width:2"/></svg>
`
	if got := string(compact([]byte(drawing), 100)); got != want {
		t.Errorf("it is\n%swant\n%s", got, want)
	}
}

// A curve without the points that were left out passes near them.
func TestThin(t *testing.T) {
	var points []spot
	for i := range 200 {
		x := float64(i)
		points = append(points, spot{x, 40 + float64(x*x)/900})
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
}
