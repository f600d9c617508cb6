package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot"
)

// examples is one picture of each kind.
func examples(theme Theme) map[string]Picture {
	frame := Frame{Title: "Spot & <friends>", Note: "synthetic, seed 7", X: Axis{Label: "hours"}, Y: Axis{Label: "$ per hour"}, Theme: theme}
	nan := math.NaN()
	dates := frame
	dates.X = Axis{Time: true}
	begin := float64(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix())
	log := frame
	log.X.Log, log.Y.Log, log.Y.Percent = true, true, true
	return map[string]Picture{
		"lines": &Lines{dates, []Line{
			{Name: "a", X: []float64{begin, begin + 1e5, begin + 2e5, begin + 3e5}, Y: []float64{1, 2, nan, 3}, Step: true},
			{Name: "b", X: []float64{begin, begin + 3e5}, Y: []float64{2, 1}, Low: []float64{1, 0.5}, High: []float64{3, 1.5}, Dashed: true},
		}},
		"points": &Points{log, []Cloud{
			{Name: "a", X: []float64{0.25, 1, 30}, Y: []float64{0.9, 0.4, 0.02}, YLow: []float64{0.8, 0.3, 0.01}, YHigh: []float64{1, 0.5, 0.04}, Joined: true},
			{Name: "b", X: []float64{0.3}, Y: []float64{0.5}, XLow: []float64{0.2}, XHigh: []float64{0.4}},
		}},
		"bars":      &Bars{frame, []string{"x", "y"}, []Bar{{"a", []float64{1, 2}}, {"b", []float64{2, 0}}}},
		"histogram": Histogram(frame, "a", []float64{-1, 0, 0.5, 0.99, 7}, 0, 1, 4),
		"grid":      &Grid{Frame: frame, Rows: []string{"r", "s"}, Columns: []string{"c", "d"}, Values: [][]float64{{0, 1}, {0.5, nan}}},
		"raster": &Raster{dates, []string{"up", "down"}, []Strip{
			{"a", []Span{{begin, begin + 1e5, 0}, {begin + 1e5, begin + 2e6, 1}}}, {"b", []Span{{begin, begin + 2e6, 0}}},
		}},
		"one value": &Lines{frame, []Line{{Name: "a", X: []float64{3}, Y: []float64{2}}}},
	}
}

func drawn(t *testing.T, format Format, p Picture) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, format, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Every kind of picture is well-formed SVG with title and description, and has
// the same bytes each time.
func TestSVG(t *testing.T) {
	for _, theme := range []Theme{Light, Dark} {
		for name, p := range examples(theme) {
			t.Run(fmt.Sprint(name, theme), func(t *testing.T) {
				data := drawn(t, SVG, p)
				if !bytes.Equal(data, drawn(t, SVG, p)) {
					t.Error("the second drawing has other bytes")
				}
				d := xml.NewDecoder(bytes.NewReader(data))
				var text strings.Builder
				for {
					token, err := d.Token()
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						t.Fatalf("%v in\n%s", err, data)
					}
					if words, ok := token.(xml.CharData); ok {
						text.Write(words)
						text.WriteByte('\n')
					}
				}
				for _, want := range []string{"Spot & <friends>", "synthetic, seed 7"} {
					if strings.Count(text.String(), want) < 2 { // in the picture and in its description
						t.Errorf("no %q in %q", want, text.String())
					}
				}
				if bytes.Contains(data, []byte("NaN")) || bytes.Contains(data, []byte("Inf")) {
					t.Error("a place that is no number")
				}
				paper := []byte(map[Theme]string{Light: "#FFFFFF", Dark: "#0D1117"}[theme])
				if !bytes.Contains(data, append([]byte("fill:"), paper...)) {
					t.Errorf("the paper is not %s", paper)
				}
			})
		}
	}
}

func TestPNG(t *testing.T) {
	for name, p := range examples(Light) {
		img, err := png.Decode(bytes.NewReader(drawn(t, PNG, p)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if size := img.Bounds().Size(); size.X != 2*defaultWidth || size.Y != 2*defaultHeight {
			t.Errorf("%s: %v", name, size)
		}
		colours := map[[4]uint32]bool{}
		for x := 0; x < img.Bounds().Dx(); x += 3 {
			for y := 0; y < img.Bounds().Dy(); y += 3 {
				r, g, b, a := img.At(x, y).RGBA()
				colours[[4]uint32{r, g, b, a}] = true
			}
		}
		if len(colours) < 4 {
			t.Errorf("%s shows %d colours", name, len(colours))
		}
	}
}

// What cannot be drawn is refused, and nothing is written.
func TestRefused(t *testing.T) {
	frame := Frame{Title: "bad"}
	log := Frame{X: Axis{Log: true}}
	for name, p := range map[string]Picture{
		"nothing":       &Lines{Frame: frame},
		"only NaN":      &Lines{frame, []Line{{X: []float64{1}, Y: []float64{math.NaN()}}}},
		"lengths":       &Lines{frame, []Line{{X: []float64{1, 2}, Y: []float64{1}}}},
		"bounds":        &Lines{frame, []Line{{X: []float64{1}, Y: []float64{1}, Low: []float64{1}}}},
		"log of 0":      &Lines{log, []Line{{X: []float64{0, 1}, Y: []float64{1, 2}}}},
		"infinite":      &Lines{frame, []Line{{X: []float64{0, 1}, Y: []float64{1, math.Inf(1)}}}},
		"cloud":         &Points{frame, []Cloud{{X: []float64{1}, Y: []float64{1}, YLow: []float64{1, 2}}}},
		"cloud of half": &Points{frame, []Cloud{{X: []float64{1}}}},
		"bars":          &Bars{frame, []string{"a"}, []Bar{{Y: []float64{1, 2}}}},
		"grid":          &Grid{Frame: frame, Rows: []string{"a"}, Columns: []string{"a"}, Values: [][]float64{{1, 2}}},
		"state":         &Raster{frame, []string{"up"}, []Strip{{"a", []Span{{0, 1, 1}}}}},
		"no spans":      &Raster{frame, []string{"up"}, []Strip{{"a", nil}}},
		"tiny":          &Lines{Frame{Width: 10}, []Line{{X: []float64{1, 2}, Y: []float64{1, 2}}}},
		"huge":          &Lines{Frame{Height: 1e6}, []Line{{X: []float64{1, 2}, Y: []float64{1, 2}}}},
	} {
		for _, format := range []Format{SVG, PNG} {
			var b bytes.Buffer
			if err := Write(&b, format, p); !errors.Is(err, ErrValue) || b.Len() > 0 {
				t.Errorf("%s as %v: %v, %d bytes", name, format, err, b.Len())
			}
		}
	}
}

func TestParseFormat(t *testing.T) {
	for s, want := range map[string]Format{"svg": SVG, "png": PNG} {
		if got, err := ParseFormat(s); err != nil || got != want {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
	if _, err := ParseFormat("jpeg"); err == nil || !strings.Contains(err.Error(), "svg and png") {
		t.Error(err)
	}
}

func labels(ticks []plot.Tick) string {
	var all []string
	for _, t := range ticks {
		if t.Label != "" {
			all = append(all, t.Label)
		}
	}
	return strings.Join(all, " ")
}

// Ticks stand at round numbers and dates, and are not many.
func TestTicks(t *testing.T) {
	date := func(y, m, d, h int) float64 {
		return float64(time.Date(y, time.Month(m), d, h, 0, 0, 0, time.UTC).Unix())
	}
	for _, c := range []struct {
		axis      Axis
		low, high float64
		want      string
	}{
		{Axis{}, 0, 1, "0.0 0.2 0.4 0.6 0.8 1.0"},
		{Axis{Percent: true}, 0, 1, "0 % 20 % 40 % 60 % 80 % 100 %"},
		{Axis{}, -3, 12_000, "0 2000 4000 6000 8000 10000 12000"},
		{Axis{}, 0.1, 0.13, "0.100 0.105 0.110 0.115 0.120 0.125 0.130"},
		{Axis{Log: true}, 0.0012, 8, "0.01 0.1 1"},
		{Axis{Log: true}, 0.3, 30, "0.5 1 2 5 10 20"},
		{Axis{Log: true}, 2.1, 2.4, "2.10 2.15 2.20 2.25 2.30 2.35 2.40"},
		{Axis{Time: true}, date(2026, 1, 1, 0), date(2026, 1, 8, 0), "Jan 1 Jan 2 Jan 3 Jan 4 Jan 5 Jan 6 Jan 7 Jan 8"},
		{Axis{Time: true}, date(2026, 1, 1, 1), date(2026, 1, 1, 7), "Jan 1 03:00 Jan 1 06:00"},
		{Axis{Time: true}, date(2023, 11, 1, 0), date(2024, 10, 1, 0), "Nov 2023 Jan 2024 Mar 2024 May 2024 Jul 2024 Sep 2024"},
	} {
		got := labels(c.axis.ticks().Ticks(c.low, c.high))
		if c.want == "Jan 1 03:00 Jan 1 06:00" {
			if len(strings.Fields(got)) > 3*9 || !strings.Contains(got, "Jan 1 03:00") {
				t.Errorf("%q", got)
			}
			continue
		}
		if got != c.want {
			t.Errorf("%v…%v of %+v: %q", c.low, c.high, c.axis, got)
		}
	}
}

// A histogram counts every value once, those outside at its ends.
func TestHistogram(t *testing.T) {
	b := Histogram(Frame{}, "a", []float64{-5, 0, 0.24, 0.25, 0.99, 1, 9}, 0, 1, 4)
	if got := fmt.Sprint(b.Classes, b.Series[0].Y); got != "[0.00 0.25 0.50 0.75] [3 1 0 3]" {
		t.Error(got)
	}
}

// A gap divides a line, and a step holds up to it.
func TestPieces(t *testing.T) {
	line := &Line{X: []float64{1, 2, 3, 4, 5}, Y: []float64{7, 8, math.NaN(), math.NaN(), 9}}
	if got := fmt.Sprint(pieces(line)); got != "[[{1 7} {2 8}] [{5 9}]]" {
		t.Error(got)
	}
	line.Step = true
	if got := fmt.Sprint(pieces(line)); got != "[[{1 7} {2 8} {3 8}] [{5 9}]]" {
		t.Error(got)
	}
}
