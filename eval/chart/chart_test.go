package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"
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
			{Name: "b", X: []float64{begin, begin + 3e5}, Y: []float64{2, 1}, Dashed: true},
		}, false},
		"points": &Points{log, []Cloud{
			{Name: "a", X: []float64{0.25, 1, 30}, Y: []float64{0.9, 0.4, 0.02}, YLow: []float64{0.8, 0.3, 0.01},
				YHigh: []float64{1, 0.5, 0.04}, Joined: true},
			{Name: "b", X: []float64{0.3}, Y: []float64{0.5}, YLow: []float64{0.4}, YHigh: []float64{0.6}},
		}},
		"distinct": &Lines{frame, []Line{{Name: "a", X: []float64{1, 2}, Y: []float64{1, 2}},
			{Name: "b", X: []float64{1, 2}, Y: []float64{2, 1}, Colour: 6}}, true},
		"dots": &Points{frame, []Cloud{{Name: "a", X: []float64{1}, Y: []float64{1}, SmallX: []float64{0, 2},
			SmallY: []float64{0, 3}, Colour: 4}}},
		"bars": &Bars{frame, []string{"x", "y"}, []Bar{{"a", []float64{1, 2}}, {"b", []float64{2, 0}}}},
		"boxes": &Boxes{frame, []Box{{Name: "a", Least: -1, Q1: 0, Median: 1, Q3: 2, Greatest: 5,
			Dots: []float64{-1, 0, 1, 2, 5}}, {Name: "b"}}},
		"grid": &Grid{dates, []string{"r", "s"}, []float64{begin, begin + 1e5, begin + 2e5}, [][]int{{0, 1}, {7, -1}}},
		"raster": &Raster{dates, []string{"up", "down"}, []Strip{
			{"a", []Span{{begin, begin + 1e5, 0}, {begin + 1e5, begin + 2e6, 1}}}, {"b", []Span{{begin, begin + 2e6, 0}}},
		}},
		"one value": &Lines{frame, []Line{{Name: "a", X: []float64{3}, Y: []float64{2}}}, false},
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
		"nothing":        &Lines{Frame: frame},
		"only NaN":       &Lines{frame, []Line{{X: []float64{1}, Y: []float64{math.NaN()}}}, false},
		"lengths":        &Lines{frame, []Line{{X: []float64{1, 2}, Y: []float64{1}}}, false},
		"log of 0":       &Lines{log, []Line{{X: []float64{0, 1}, Y: []float64{1, 2}}}, false},
		"log of a bound": &Points{Frame{X: Axis{Log: true, From: 1, To: 10}}, []Cloud{{X: []float64{0, 2}, Y: []float64{1, 2}}}},
		"infinite":       &Lines{frame, []Line{{X: []float64{0, 1}, Y: []float64{1, math.Inf(1)}}}, false},
		"cloud":          &Points{frame, []Cloud{{X: []float64{1}, Y: []float64{1}, YLow: []float64{1, 2}}}},
		"cloud of half":  &Points{frame, []Cloud{{X: []float64{1}}}},
		"bars":           &Bars{frame, []string{"a"}, []Bar{{Y: []float64{1, 2}}}},
		"grid":           &Grid{frame, []string{"a"}, []float64{1, 2}, [][]int{{1, 2}}},
		"negative bar":   &Bars{frame, []string{"a"}, []Bar{{Y: []float64{-1}}}},
		"box":            &Boxes{frame, []Box{{Q1: 2, Q3: 1, Greatest: 3}}},
		"dots":           &Points{frame, []Cloud{{X: []float64{1}, Y: []float64{1}, SmallX: []float64{1}}}},
		"state":          &Raster{frame, []string{"up"}, []Strip{{"a", []Span{{0, 1, 1}}}}},
		"no spans":       &Raster{frame, []string{"up"}, []Strip{{"a", nil}}},
		"tiny":           &Lines{Frame{Width: 10}, []Line{{X: []float64{1, 2}, Y: []float64{1, 2}}}, false},
		"huge":           &Lines{Frame{Height: 1e6}, []Line{{X: []float64{1, 2}, Y: []float64{1, 2}}}, false},
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
	if _, err := ParseFormat("jpeg"); err == nil || !strings.Contains(err.Error(), "svg or png") {
		t.Error(err)
	}
}

func labels(ticks []tick) string {
	var all []string
	for _, t := range ticks {
		if t.label != "" {
			all = append(all, t.label)
		}
	}
	return strings.Join(all, " ")
}

// Ticks are at round numbers and dates, and there are few of them.
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
		{Axis{Percent: true}, 0, 1, "0% 20% 40% 60% 80% 100%"},
		{Axis{}, -3, 12_000, "0 2,000 4,000 6,000 8,000 10,000 12,000"},
		{Axis{}, 0.1, 0.13, "0.100 0.105 0.110 0.115 0.120 0.125 0.130"},
		{Axis{Log: true}, 0.0012, 8, "0.01 0.1 1"},
		{Axis{Log: true}, 0.3, 30, "0.5 1 2 5 10 20"},
		{Axis{Log: true}, 2.1, 2.4, "2.10 2.15 2.20 2.25 2.30 2.35 2.40"},
		{Axis{Time: true}, date(2026, 1, 1, 0), date(2026, 1, 8, 0), "Jan 1 Jan 2 Jan 3 Jan 4 Jan 5 Jan 6 Jan 7 Jan 8"},
		{Axis{Time: true}, date(2026, 1, 1, 1), date(2026, 1, 1, 7), "Jan 1 01:00 02:00 03:00 04:00 05:00 06:00 07:00"},
		{Axis{Time: true}, date(2026, 1, 1, 7), date(2026, 1, 2, 18), "Jan 1 12:00 18:00 Jan 2 06:00 12:00 18:00"},
		{Axis{Time: true}, date(2023, 11, 1, 0), date(2024, 10, 1, 0), "Nov 2023 Jan 2024 Mar 2024 May 2024 Jul 2024 Sep 2024"},
	} {
		got := labels(c.axis.ticks(c.low, c.high))
		if got != c.want {
			t.Errorf("%v…%v of %+v: %q", c.low, c.high, c.axis, got)
		}
	}
}

// A gap divides a line, and a step holds up to it.
func TestPieces(t *testing.T) {
	line := &Line{X: []float64{1, 2, 3, 4, 5}, Y: []float64{7, 8, math.NaN(), math.NaN(), 9}}
	if got := fmt.Sprint(line.pieces()); got != "[[{1 7} {2 8}] [{5 9}]]" {
		t.Error(got)
	}
	line.Step = true
	if got := fmt.Sprint(line.pieces()); got != "[[{1 7} {2 7} {2 8} {3 8}] [{5 9}]]" {
		t.Error(got)
	}
}

var property = regexp.MustCompile(`--chart-[a-z0-9-]+`)

// A picture of the theme Page has no colour and no typeface of its own: each is
// a property that both other themes define. It leads nowhere.
func TestPage(t *testing.T) {
	for name, p := range examples(Page) {
		p.frame().ID = `c"1`
		data := string(drawn(t, SVG, p))
		_, body, _ := strings.Cut(data, "</desc>")
		if found := regexp.MustCompile(`#[0-9A-Fa-f]{6}|font-family`).FindString(body); found != "" {
			t.Errorf("%s has %s of its own", name, found)
		}
		if strings.Contains(body, "Spot &amp; &lt;friends&gt;") {
			t.Errorf("%s repeats the title that the page has", name)
		}
		used := property.FindAllString(body, -1)
		if len(used) == 0 {
			t.Errorf("%s uses no property", name)
		}
		for _, theme := range []Theme{Light, Dark} {
			for _, u := range used {
				if !strings.Contains(theme.Properties(), u+":#") {
					t.Errorf("%s uses %s, which theme %d has not", name, u, theme)
				}
			}
		}
		for _, want := range []string{`aria-labelledby="c&#34;1-t"`, `<title id="c&#34;1-t">`,
			`aria-describedby="c&#34;1-d"`, `<desc id="c&#34;1-d">`} {
			if !strings.Contains(data, want) {
				t.Errorf("%s lacks %s", name, want)
			}
		}
		if regexp.MustCompile(`(href|src)\s*=|url\(|xlink`).MatchString(data) {
			t.Errorf("%s leads somewhere", name)
		}
	}
}

// luminance is the relative luminance of WCAG 2.
func luminance(c colour) float64 {
	part := func(v uint8) float64 {
		x := float64(v) / 255
		if x <= 0.03928 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	return 0.2126*part(c.R) + 0.7152*part(c.G) + 0.0722*part(c.B)
}

func contrast(a, b colour) float64 {
	x, y := luminance(a)+0.05, luminance(b)+0.05
	return max(x, y) / min(x, y)
}

// Words stand out from paper by 4.5:1, series by 3:1, and no two roles of a
// theme share a colour.
func TestContrast(t *testing.T) {
	for _, theme := range []Theme{Light, Dark} {
		p := theme.palette()
		for _, word := range []colour{p.ink, p.faint} {
			if got := contrast(word, p.paper); got < 4.5 {
				t.Errorf("theme %d: words in %v have a contrast of %.2f", theme, word, got)
			}
		}
		for i, hue := range p.series {
			if got := contrast(hue, p.paper); got < 3 {
				t.Errorf("theme %d: series %d in %v has a contrast of %.2f", theme, i, hue, got)
			}
		}
		roles := p.roles()
		for i, r := range roles {
			for _, other := range roles[:i] {
				if r.colour == other.colour {
					t.Errorf("theme %d: %s and %s are both %v", theme, r.name, other.name, r.colour)
				}
			}
		}
	}
}

// Lines and clouds of the places of the colours differ by more than colour.
func TestDistinct(t *testing.T) {
	p := &Lines{Series: make([]Line, len(dashes)), Distinct: true}
	seen := map[string]int{}
	for i := range p.Series {
		pattern := fmt.Sprint(p.pattern(i, i))
		if other, ok := seen[pattern]; ok {
			t.Errorf("lines %d and %d have the same dashes", other, i)
		}
		seen[pattern] = i
	}
	hues := len(Light.palette().series)
	for n := 2; n <= hues; n++ {
		if len(shapes)%n == 0 && hues%n == 0 {
			t.Errorf("%d shapes and %d hues repeat together after fewer than all pairs", len(shapes), hues)
		}
	}
}

// The colours of a grid rise with its amounts, the greatest has the last.
func TestGridLevels(t *testing.T) {
	g := &Grid{Frame{Title: "g", Theme: Page}, []string{"a"}, []float64{0, 1, 2, 3, 4}, [][]int{{0, 1, 5, 10}}}
	svg := string(drawn(t, SVG, g))
	_, body, _ := strings.Cut(svg, "9–10")
	got := regexp.MustCompile(`fill:var\(--chart-level-\d\)`).FindAllString(body, -1)
	if want := "[fill:var(--chart-level-0) fill:var(--chart-level-2) fill:var(--chart-level-4)]"; fmt.Sprint(got) != want {
		t.Errorf("cells are %v, want %s", got, want)
	}
	g.Values = [][]int{{0, 1, 2, 0}}
	if got := fmt.Sprint(g.steps()); got != "[{1 1} {2 4}]" {
		t.Errorf("steps of two counts are %v", got)
	}
}
