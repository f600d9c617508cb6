package chart

import (
	"image"
	"math"

	"github.com/golang/freetype/raster"
	"golang.org/x/image/font"
	"golang.org/x/image/math/fixed"
)

// pngScale is the number of PNG pixels per CSS pixel. It keeps text sharp in enlarged pictures.
const pngScale = 2

// A pngSurface draws on a bitmap.
type pngSurface struct {
	image   *image.RGBA
	painter *raster.RGBAPainter
	raster  *raster.Rasterizer
}

func newPNG(width, height float64) *pngSurface {
	w, h := int(width*pngScale+0.5), int(height*pngScale+0.5)
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	r := raster.NewRasterizer(w, h)
	r.UseNonZeroWinding = true
	return &pngSurface{img, raster.NewRGBAPainter(img), r}
}

func dots26(length float64) fixed.Int26_6 { return fixed.Int26_6(math.Round(length * pngScale * 64)) }

func place26(p point) fixed.Point26_6 { return fixed.Point26_6{X: dots26(p.x), Y: dots26(p.y)} }

func (s *pngSurface) fill(c colour, outlines ...[]point) {
	for _, o := range outlines {
		s.raster.AddPath(trace(append(o[:len(o):len(o)], o[0])))
	}
	s.paint(c)
}

// circle fills a polygon that approximates a circle.
func (s *pngSurface) circle(c colour, centre point, radius float64) {
	corners := make([]point, 64)
	for i := range corners {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(len(corners)))
		corners[i] = point{centre.x + float64(radius*cos), centre.y + float64(radius*sin)}
	}
	s.fill(c, corners)
}

func (s *pngSurface) dots(c colour, at []point) {
	var squares [][]point
	for _, p := range at {
		squares = append(squares, area{p.x - dotRadius, p.y - dotRadius, p.x + dotRadius, p.y + dotRadius}.corners())
	}
	s.fill(c, squares...)
}

func (s *pngSurface) stroke(p pen, line []point) {
	for _, dash := range dashed(line, p.dashes) {
		s.raster.AddStroke(trace(dash), dots26(p.width), raster.ButtCapper, raster.RoundJoiner)
	}
	s.paint(p.colour)
}

// paint fills the shapes in the rasterizer with c, and clears it.
func (s *pngSurface) paint(c colour) {
	s.painter.SetColor(c)
	s.raster.Rasterize(s.painter)
	s.raster.Clear()
}

func trace(points []point) raster.Path {
	var p raster.Path
	p.Start(place26(points[0]))
	for _, to := range points[1:] {
		p.Add1(place26(to))
	}
	return p
}

// dashed splits a line into the dashes of a pattern.
func dashed(line []point, pattern []float64) [][]point {
	if len(pattern) == 0 {
		return [][]point{line}
	}
	var all [][]point
	at, left := 0, pattern[0]
	dash := []point{line[0]}
	for i := 1; i < len(line); i++ {
		from, to := line[i-1], line[i]
		for rest := math.Hypot(to.x-from.x, to.y-from.y); rest > 0; {
			step := min(left, rest)
			from.x += float64((to.x - from.x) * step / rest)
			from.y += float64((to.y - from.y) * step / rest)
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
	at.x -= map[anchor]float64{middle: 0.5, end: 1}[w.anchor] * w.width(text)
	d := font.Drawer{Dst: s.painter.Image, Src: image.NewUniform(w.colour), Face: w.face(), Dot: place26(at)}
	d.DrawString(text)
}

func (s *pngSurface) group(paint func()) { paint() }

func (s *pngSurface) clip(a area, paint func()) {
	part := image.Rect(int(a.left*pngScale), int(a.top*pngScale), int(a.right*pngScale+1), int(a.bottom*pngScale+1))
	s.painter.Image = s.image.SubImage(part).(*image.RGBA)
	paint()
	s.painter.Image = s.image
}
