package chart

import (
	"fmt"
	"sync"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
)

// Words are the look of a line of text, in Liberation Sans.
type words struct {
	size   float64 // pixels
	bold   bool
	colour colour
	anchor anchor
}

// An anchor is the part of a line of text that is at its point.
type anchor string

const (
	start  anchor = ""
	middle anchor = "middle"
	end    anchor = "end"
)

// fonts are Liberation Sans, regular and bold. One that cannot be read is a fault of the build.
var fonts = sync.OnceValue(func() (all [2]*opentype.Font) {
	for i, data := range [][]byte{liberationsansregular.TTF, liberationsansbold.TTF} {
		var err error
		if all[i], err = opentype.Parse(data); err != nil {
			panic(fmt.Sprintf("chart: the embedded font: %v", err))
		}
	}
	return all
})

// face returns the font of w at the size that a PNG has it in. Only one goroutine may use it.
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

// width returns the width of s.
func (w words) width(s string) float64 {
	return float64(font.MeasureString(w.face(), s)) / 64 / pngScale
}
