package chart

import (
	"fmt"
	"sync"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// Words are the look of a line of text: Liberation Sans of a size in pixels, moved from its
// point by shares of its width and height.
type words struct {
	size           float64
	bold           bool
	colour         colour
	alignX, alignY float64
}

// The alignments of words: which of their sides is at the point. The left side is the default.
const (
	byCentre, byRight         = -0.5, -1.0
	byBottom, byMiddle, byTop = 0.0, -0.5, -1.0
)

// A typeface measures text in units of its design.
type typeface struct {
	font            *opentype.Font
	perEm           fixed.Int26_6
	ascent, descent float64
}

// typefaces are Liberation Sans, regular and bold.
var typefaces = sync.OnceValue(func() [2]*typeface {
	return [2]*typeface{newTypeface(liberationsansregular.TTF), newTypeface(liberationsansbold.TTF)}
})

// newTypeface reads a font of this program; one that cannot be read is a fault of its build.
func newTypeface(data []byte) *typeface {
	f, err := opentype.Parse(data)
	if err != nil {
		panic(fmt.Sprintf("chart: the embedded font: %v", err))
	}
	perEm := fixed.Int26_6(f.UnitsPerEm())
	m, err := f.Metrics(&sfnt.Buffer{}, perEm, font.HintingNone)
	if err != nil {
		panic(fmt.Sprintf("chart: the embedded font: %v", err))
	}
	return &typeface{f, perEm, float64(m.Ascent), float64(m.Descent)}
}

func (w words) face() *typeface {
	if w.bold {
		return typefaces()[1]
	}
	return typefaces()[0]
}

// scale is the pixels of a unit of design.
func (w words) scale() float64 { return w.size / float64(w.face().perEm) }

// ascent is the height of w above its baseline.
func (w words) ascent() float64 { return float64(w.face().ascent * w.scale()) }

// descent is the depth of w below its baseline.
func (w words) descent() float64 { return float64(w.face().descent * w.scale()) }

// height is that of a line.
func (w words) height() float64 { return w.ascent() + w.descent() }

// width returns the width of s.
func (w words) width(s string) float64 {
	f := w.face()
	var buffer sfnt.Buffer
	sum, last := fixed.Int26_6(0), sfnt.GlyphIndex(0)
	for i, r := range s {
		glyph, err := f.font.GlyphIndex(&buffer, r)
		if err != nil {
			continue
		}
		if i > 0 {
			if kern, err := f.font.Kern(&buffer, last, glyph, f.perEm, font.HintingNone); err == nil {
				sum += kern
			}
		}
		if advance, err := f.font.GlyphAdvance(&buffer, glyph, f.perEm, font.HintingNone); err == nil {
			sum += advance
		}
		last = glyph
	}
	return float64(float64(sum) * w.scale())
}
