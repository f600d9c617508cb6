package chart

import (
	"errors"
	"fmt"
	"image/color"
	"math"

	"golang.org/x/image/font"
	"gonum.org/v1/plot"
	plotfont "gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
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

	// ID begins the identifiers that tie an SVG to its title and description
	// where several stand in one page. Empty leaves them out.
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

func (f *Frame) size() (w, h vg.Length, err error) {
	width, height := f.Width, f.Height
	if width == 0 {
		width = defaultWidth
	}
	if height == 0 {
		height = defaultHeight
	}
	if width < 200 || height < 120 || width > sizeMax || height > sizeMax {
		return 0, 0, fmt.Errorf("%w: %d × %d pixels are not between 200 × 120 and %d × %d", ErrValue, width, height, sizeMax, sizeMax)
	}
	return vg.Length(width), vg.Length(height), nil
}

// A key is an entry of the legend: a line, or a filled box, or a glyph.
type key struct {
	name   string
	colour colour
	dashes []vg.Length
	filled bool
	glyph  draw.GlyphDrawer

	// mark is a glyph on the line.
	mark draw.GlyphDrawer
}

// style returns the style of words of a size.
func style(size float64, colour color.Color) text.Style {
	f := plotfont.From(plot.DefaultFont, vg.Length(size))
	f.Variant = "Sans"
	return text.Style{Color: colour, Font: f, YAlign: draw.YTop, Handler: plot.DefaultTextHandler}
}

// newPlot returns an empty plot in the colours and words of f.
func (f *Frame) newPlot() *plot.Plot {
	p, c := plot.New(), f.Theme.palette()
	p.BackgroundColor = nil
	for _, side := range [...]struct {
		axis *plot.Axis
		spec *Axis
	}{{&p.X, &f.X}, {&p.Y, &f.Y}} {
		a := side.axis
		tick := style(11, c.faint)
		tick.XAlign, tick.YAlign = a.Tick.Label.XAlign, a.Tick.Label.YAlign
		a.Tick.Label = tick
		a.LineStyle.Color, a.LineStyle.Width = c.faint, 0.75
		a.Tick.LineStyle.Color, a.Tick.LineStyle.Width = c.faint, 0.75
		a.Tick.Length = 4
		a.Padding = 6
		a.Tick.Marker = side.spec.ticks()
		if side.spec.Log {
			a.Scale = plot.LogScale{}
		}
	}
	return p
}

// bound applies the limits of the axes, after the data were added, and makes
// room where all values are one.
func (f *Frame) bound(p *plot.Plot) error {
	for _, side := range [...]struct {
		axis *plot.Axis
		spec *Axis
		name string
	}{{&p.X, &f.X, "x"}, {&p.Y, &f.Y, "y"}} {
		a := side.axis
		if side.spec.From < side.spec.To {
			a.Min, a.Max = side.spec.From, side.spec.To
		}
		if math.IsInf(a.Min, 0) || math.IsInf(a.Max, 0) || math.IsNaN(a.Min) || math.IsNaN(a.Max) {
			return fmt.Errorf("%w: the %s axis has no values", ErrValue, side.name)
		}
		if side.spec.Log && a.Min <= 0 {
			return fmt.Errorf("%w: %v on the logarithmic %s axis", ErrValue, a.Min, side.name)
		}
		if a.Min == a.Max {
			free := max(math.Abs(a.Min)/2, 0.5)
			if side.spec.Log {
				a.Max = a.Min * 2
				a.Min /= 2
			} else {
				a.Min, a.Max = a.Min-free, a.Max+free
			}
		}
	}
	return nil
}

// draw paints title, legend, plot and note onto c, and returns where the data lie.
func (f *Frame) draw(c draw.Canvas, keys []key, p *plot.Plot) vg.Rectangle {
	colours := f.Theme.palette()
	c.SetColor(colours.paper)
	c.Fill(c.Rectangle.Path())
	c = draw.Crop(c, margin, -margin, margin, -margin)
	if f.Title != "" && f.Theme != Page {
		title := style(15, colours.ink)
		title.Font.Weight = font.WeightBold
		for _, line := range wrap(title, f.Title, c.Max.X-c.Min.X) {
			c.FillText(title, vg.Point{X: c.Min.X, Y: c.Max.Y}, line)
			c.Max.Y -= 20
		}
	}
	c.Max.Y -= f.legend(c, keys)
	if f.Note != "" {
		note := style(10, colours.faint)
		note.YAlign = draw.YBottom
		lines := wrap(note, f.Note, c.Max.X-c.Min.X)
		for i := len(lines) - 1; i >= 0; i-- {
			c.FillText(note, vg.Point{X: c.Min.X, Y: c.Min.Y}, lines[i])
			c.Min.Y += 13
		}
		c.Min.Y += 4
	}
	c = draw.Crop(f.labels(c), 0, -8, 0, -4)
	p.Draw(c)
	return p.DataCanvas(c).Rectangle
}

// labels paints what the axes measure, that of y level above it, where it is
// read without turning the head, and returns what is left of c.
func (f *Frame) labels(c draw.Canvas) draw.Canvas {
	words := style(11, f.Theme.palette().ink)
	if f.Y.Label != "" {
		c.FillText(words, vg.Point{X: c.Min.X, Y: c.Max.Y}, f.Y.Label)
		c.Max.Y -= 17
	}
	if f.X.Label != "" {
		words.XAlign, words.YAlign = draw.XCenter, draw.YBottom
		c.FillText(words, vg.Point{X: c.Center().X, Y: c.Min.Y}, f.X.Label)
		c.Min.Y += 18
	}
	return c
}

// legend paints the entries in rows and returns the height that they take. One
// entry alone is what the title speaks of and needs none.
func (f *Frame) legend(c draw.Canvas, keys []key) vg.Length {
	if len(keys) < 2 {
		return 4
	}
	const swatch, gap, line = 22, 16, 18
	words := style(11, f.Theme.palette().ink)
	at := vg.Point{X: c.Min.X, Y: c.Max.Y - 2}
	height := vg.Length(line)
	for _, k := range keys {
		width := swatch + 6 + words.Width(k.name)
		if at.X > c.Min.X && at.X+width > c.Max.X {
			at = vg.Point{X: c.Min.X, Y: at.Y - line}
			height += line
		}
		entry := func() {
			k.paint(c, vg.Point{X: at.X, Y: at.Y - 7}, swatch)
			c.FillText(words, vg.Point{X: at.X + swatch + 6, Y: at.Y}, k.name)
		}
		if k.filled { // of parts that every series has
			entry()
		} else {
			f.group(c, entry)
		}
		at.X += width + gap
	}
	return height + 4
}

// paint draws the sign of k from its left end on.
func (k *key) paint(c draw.Canvas, left vg.Point, width vg.Length) {
	switch {
	case k.glyph != nil:
		c.DrawGlyphNoClip(draw.GlyphStyle{Color: k.colour, Radius: 4.5, Shape: k.glyph}, vg.Point{X: left.X + width/2, Y: left.Y})
	case k.filled:
		c.FillPolygon(k.colour, []vg.Point{
			{X: left.X, Y: left.Y - 5}, {X: left.X + width, Y: left.Y - 5}, {X: left.X + width, Y: left.Y + 5}, {X: left.X, Y: left.Y + 5},
		})
	default:
		c.StrokeLine2(stroke(k.colour, 2.5, k.dashes), left.X, left.Y, left.X+width, left.Y)
		if k.mark != nil {
			c.DrawGlyphNoClip(draw.GlyphStyle{Color: k.colour, Radius: 3, Shape: k.mark}, vg.Point{X: left.X + width/2, Y: left.Y})
		}
	}
}

func stroke(colour color.Color, width float64, dashes []vg.Length) draw.LineStyle {
	return draw.LineStyle{Color: colour, Width: vg.Length(width), Dashes: dashes}
}

// wrap breaks s between words where a line would be wider than room.
func wrap(sty text.Style, s string, free vg.Length) []string {
	var lines []string
	begin, space := 0, -1
	for i, r := range s {
		if r == ' ' {
			if space > begin && sty.Width(s[begin:i]) > free {
				lines = append(lines, s[begin:space])
				begin = space + 1
			}
			space = i
		}
	}
	if space > begin && sty.Width(s[begin:]) > free {
		lines = append(lines, s[begin:space])
		begin = space + 1
	}
	return append(lines, s[begin:])
}
