package chart

import (
	"errors"
	"fmt"
	"strings"
)

// ErrValue is wrapped by errors about data that cannot be drawn.
var ErrValue = errors.New("cannot be drawn")

// A Frame contains the properties of all pictures: size, texts and axes.
type Frame struct {
	// Title describes the content of the picture, Note the source of the data, as in "synthetic,
	// preset aws-2024, seed 7". Detail is a description for screen readers; if empty, Title and
	// Note are used.
	Title, Note, Detail string

	X, Y  Axis
	Theme Theme

	// ID is the prefix of the IDs that link an SVG to its title and description. It is needed on
	// pages with several pictures. If empty, the SVG has no IDs.
	ID string

	// Width and Height are in CSS pixels; 0 means 720 and 420.
	Width, Height int
}

// An Axis describes the scale of one direction.
type Axis struct {
	// Label names the quantity with its unit, as in "$ per hour".
	Label string

	// Log selects a logarithmic scale, on which all values must be positive. Time treats values as
	// seconds since 1970 and labels them with UTC dates. Percent treats values as fractions and
	// labels them as percentages.
	Log, Time, Percent bool

	// From and To are the limits of the axis if From < To; otherwise the data determine them.
	From, To float64
}

const (
	defaultWidth  = 720
	defaultHeight = 420

	// sizeMax limits the memory of a picture, in case of a mistyped size.
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

// A key is an entry of the legend: a line with or without a glyph, a single glyph, or a filled box.
type key struct {
	name   string
	colour colour
	dashes []float64
	filled bool
	line   bool
	glyph  *glyph
}

// draw draws title, legend, plot and note, and returns the area of the data.
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
	// The label of the y axis is horizontal above the axis, where it is easier to read.
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

// legend draws the legend in rows and returns its height. A single entry is omitted, because the
// title describes it.
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
		if k.filled { // filled entries belong to parts of every series
			entry()
		} else {
			s.group(entry)
		}
		at.x += width + gap
	}
	return at.y + line - a.top + 2
}

// paint draws the symbol of k.
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

// wrap breaks s into lines between words, so that no line of several words is wider than room.
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
