package chart

import (
	"fmt"
	"sync"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
)

// words is the style of a line of text in Liberation Sans.
type words struct {
	size   float64 // pixels
	bold   bool
	colour colour
	anchor anchor
}

// An anchor is the part of a line of text that is placed at its position.
type anchor string

const (
	start  anchor = ""
	middle anchor = "middle"
	end    anchor = "end"
)

// fonts returns Liberation Sans, regular and bold. It panics if an embedded font cannot be parsed.
var fonts = sync.OnceValue(func() (all [2]*opentype.Font) {
	for i, data := range [][]byte{liberationsansregular.TTF, liberationsansbold.TTF} {
		var err error
		if all[i], err = opentype.Parse(data); err != nil {
			panic(fmt.Sprintf("chart: the embedded font: %v", err))
		}
	}
	return all
})

// face returns the font of w, scaled for PNG. It must not be used by several goroutines.
func (w words) face() font.Face {
	f := fonts()[0]
	if w.bold {
		f = fonts()[1]
	}
	face, err := opentype.NewFace(f, &opentype.FaceOptions{Size: w.size, DPI: 72 * pngScale})
	if err != nil {
		panic("chart: " + err.Error()) // sizes are constants
	}
	return face
}

// width returns the width of s in CSS pixels.
func (w words) width(s string) float64 {
	return float64(font.MeasureString(w.face(), s)) / 64 / pngScale
}
