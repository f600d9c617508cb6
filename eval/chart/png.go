package chart

import (
	"image"
	"image/color"
	"image/png"
	"io"
	"math"

	"github.com/golang/freetype/raster"
	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// pngScale is how many pixels of a PNG one of a screen becomes, so that words
// stay sharp where pictures are enlarged.
const pngScale = 2

// A pngSurface draws pixels.
type pngSurface struct {
	height  float64
	image   *image.RGBA
	painter *raster.RGBAPainter
	raster  *raster.Rasterizer
	faces   map[words]font.Face
}

func newPNG(width, height float64) *pngSurface {
	w, h := int(width*pngScale+0.5), int(height*pngScale+0.5)
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	r := raster.NewRasterizer(w, h)
	r.UseNonZeroWinding = true
	return &pngSurface{height, img, raster.NewRGBAPainter(img), r, map[words]font.Face{}}
}

func (s *pngSurface) writeTo(w io.Writer) error { return png.Encode(w, s.image) }

// at returns p in pixels from the upper left corner.
func (s *pngSurface) at(p point) fixed.Point26_6 {
	return fixed.Point26_6{X: fixedDots(p.X), Y: fixedDots(s.height - p.Y)}
}

func fixedDots(length float64) fixed.Int26_6 {
	return fixed.Int26_6(math.Round(length * pngScale * 64))
}

func (s *pngSurface) fill(p path, c colour) {
	s.raster.Clear()
	for _, o := range p {
		s.raster.AddPath(s.trace(o.polygon(), true))
	}
	s.paint(c)
}

func (s *pngSurface) stroke(o outline, p pen) {
	s.raster.Clear()
	for _, line := range dashed(o.points, p.dashes) {
		s.raster.AddStroke(s.trace(line, false), fixedDots(p.width), raster.ButtCapper, raster.RoundJoiner)
	}
	s.paint(p.colour)
}

func (s *pngSurface) paint(c colour) {
	s.painter.SetColor(c)
	s.raster.Rasterize(s.painter)
}

// trace returns lines through points, closed by one more where they are an outline.
func (s *pngSurface) trace(points []point, closed bool) raster.Path {
	var p raster.Path
	p.Start(s.at(points[0]))
	for _, to := range points[1:] {
		p.Add1(s.at(to))
	}
	if closed {
		p.Add1(s.at(points[0]))
	}
	return p
}

// polygon returns the corners of o, of which a circle has so many that none is seen.
func (o outline) polygon() []point {
	if o.radius == 0 {
		return o.points
	}
	const corners = 64
	all := make([]point, corners)
	for i := range all {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / corners)
		all[i] = point{o.points[0].X + float64(o.radius*cos), o.points[0].Y + float64(o.radius*sin)}
	}
	return all
}

// dashed returns the dashes of a line.
func dashed(line []point, pattern []float64) [][]point {
	if len(pattern) == 0 {
		return [][]point{line}
	}
	var all [][]point
	at, left := 0, pattern[0]
	dash := []point{line[0]}
	for i := 1; i < len(line); i++ {
		from, to := line[i-1], line[i]
		for rest := math.Hypot(to.X-from.X, to.Y-from.Y); rest > 0; {
			step := min(left, rest)
			from.X += float64((to.X - from.X) * step / rest)
			from.Y += float64((to.Y - from.Y) * step / rest)
			rest -= step
			left -= step
			dash = append(dash, from)
			if left > 0 {
				continue
			}
			if at%2 == 0 {
				all = append(all, dash)
			}
			at = (at + 1) % len(pattern)
			left, dash = pattern[at], []point{from}
		}
	}
	if at%2 == 0 && len(dash) > 1 {
		all = append(all, dash)
	}
	return all
}

func (s *pngSurface) write(w words, at point, text string) {
	key := words{size: w.size, bold: w.bold}
	face := s.faces[key]
	if face == nil {
		var err error
		if face, err = opentype.NewFace(w.face().font, &opentype.FaceOptions{Size: w.size, DPI: 72 * pngScale}); err != nil {
			panic("chart: " + err.Error()) // sizes are constants
		}
		s.faces[key] = face
	}
	d := font.Drawer{Dst: s.image, Src: image.NewUniform(color.NRGBA(w.colour)), Face: face, Dot: s.at(at)}
	d.DrawString(text)
}
