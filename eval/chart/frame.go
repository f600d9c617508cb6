package chart

import (
	"errors"
	"fmt"
	"strings"
)

// ErrValue is returned for numbers that cannot be drawn.
var ErrValue = errors.New("cannot be drawn")

// A Frame is what all pictures have: size, words and axes.
type Frame struct {
	// Title says what the picture shows, Note where the numbers come from, as
	// in "synthetic, preset aws-2024, seed 7". Detail is a description for
	// those who do not see the picture; empty means title and note.
	Title, Note, Detail string

	X, Y  Axis
	Theme Theme

	// ID is the prefix of the identifiers that tie an SVG to its title and description if a page
	// has several. Empty leaves them out.
	ID string

	// Width and Height are in pixels of a screen; 0 means 720 and 420.
	Width, Height int
}

// An Axis says how one direction is measured.
type Axis struct {
	// Label names the quantity with its unit, as in "$ per hour".
	Label string

	// Log spaces factors equally; no value may then be 0 or below. Time takes
	// values as seconds since 1970 and writes UTC dates. Percent takes shares
	// and writes percent.
	Log, Time, Percent bool

	// From and To bound the axis where From < To; else the values do.
	From, To float64
}

const (
	defaultWidth  = 720
	defaultHeight = 420

	// sizeMax keeps a slip of the keyboard from filling the memory.
	sizeMax = 10_000

	margin = 14
)

func (f *Frame) frame() *Frame { return f }

func (f *Frame) size() (w, h float64, err error) {
	width, height := f.Width, f.Height
	if width == 0 {
		width = defaultWidth
	}
	if height == 0 {
		height = defaultHeight
	}
	if width < 200 || height < 120 || width > sizeMax || height > sizeMax {
		return 0, 0, fmt.Errorf("%w: %d × %d pixels are not between 200 × 120 and %d × %d", ErrValue, width, height,
			sizeMax, sizeMax)
	}
	return float64(width), float64(height), nil
}

// A key is an entry of the legend: a line with or without a glyph, a glyph alone, or a filled box.
type key struct {
	name   string
	colour colour
	dashes []float64
	filled bool
	line   bool
	glyph  *glyph
}

// draw paints title, legend, plot and note, and returns the area of the data.
func (f *Frame) draw(s surface, p *plot, width, height float64) area {
	colours := f.Theme.palette()
	s.fill(colours.paper, area{0, 0, width, height}.corners())
	a := area{margin, margin, width - margin, height - margin}
	if f.Title != "" && f.Theme != Page {
		title := words{size: 15, bold: true, colour: colours.ink}
		for _, line := range wrap(title, f.Title, a.right-a.left) {
			s.write(title, point{a.left, a.top + 13}, line)
			a.top += 20
		}
	}
	a.top += f.legend(s, a, p.keys)
	if f.Note != "" {
		const line = 13
		note := words{size: 10, colour: colours.faint}
		lines := wrap(note, f.Note, a.right-a.left)
		a.bottom -= float64(len(lines) * line)
		for i, text := range lines {
			s.write(note, point{a.left, a.bottom + float64((i+1)*line) - 2}, text)
		}
		a.bottom -= 4
	}
	// That of y is level above its axis, where it is read without turning the head.
	label := words{size: 11, colour: colours.ink}
	if f.Y.Label != "" {
		s.write(label, point{a.left, a.top + 10}, f.Y.Label)
		a.top += 17
	}
	if f.X.Label != "" {
		label.anchor = middle
		s.write(label, point{(a.left + a.right) / 2, a.bottom - 2}, f.X.Label)
		a.bottom -= 18
	}
	a.top, a.right = a.top+4, a.right-8
	return p.draw(s, a, colours)
}

// legend paints the entries in rows and returns the height that they take. One
// entry alone is what the title speaks of and needs none.
func (f *Frame) legend(s surface, a area, keys []key) float64 {
	if len(keys) < 2 {
		return 4
	}
	const swatch, gap, line = 22, 16, 18
	label := words{size: 11, colour: f.Theme.palette().ink}
	at := point{a.left, a.top + 2}
	for _, k := range keys {
		width := swatch + 6 + label.width(k.name)
		if at.x > a.left && at.x+width > a.right {
			at = point{a.left, at.y + line}
		}
		entry := func() {
			k.paint(s, area{at.x, at.y + 2, at.x + swatch, at.y + 12})
			s.write(label, point{at.x + swatch + 6, at.y + 10}, k.name)
		}
		if k.filled { // of parts that every series has
			entry()
		} else {
			s.group(entry)
		}
		at.x += width + gap
	}
	return at.y + line - a.top + 2
}

// paint draws the sign of k.
func (k *key) paint(s surface, a area) {
	if k.filled {
		s.fill(k.colour, a.corners())
	}
	centre := point{(a.left + a.right) / 2, (a.top + a.bottom) / 2}
	radius := float64(glyphRadius)
	if k.line {
		s.stroke(pen{k.colour, 2.5, k.dashes}, []point{{a.left, centre.y}, {a.right, centre.y}})
		radius = markRadius
	}
	if k.glyph != nil {
		k.glyph.draw(s, k.colour, centre, radius)
	}
}

// wrap breaks s between words where a line would be wider than room.
func wrap(w words, s string, room float64) (lines []string) {
	line, rest, more := strings.Cut(s, " ")
	for more {
		var word string
		if word, rest, more = strings.Cut(rest, " "); w.width(line+" "+word) <= room {
			line += " " + word
			continue
		}
		lines, line = append(lines, line), word
	}
	return append(lines, line)
}
