package draw

import (
	"flag"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/muesli/termenv"
)

var pictures = flag.String("pictures", "", "folder to write the widgets to as web pages, in every theme, to be looked at")

// TestPictures writes each widget as a page if -pictures is set.
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("no -pictures")
	}
	for _, dark := range []bool{true, false} {
		for depth, name := range map[termenv.Profile]string{termenv.Ascii: "mono", termenv.ANSI: "16",
			termenv.ANSI256: "256", termenv.TrueColor: "true"} {
			ground := map[bool]string{true: "dark", false: "light"}[dark]
			for what, s := range specimens() {
				for _, size := range s.sizes {
					file := fmt.Sprintf("%s-%dx%d-%s-%s.html", what, size[0], size[1], name, ground)
					text := page(render(s.widget, size[0], size[1], NewTheme(depth, dark)), dark)
					if err := os.WriteFile(filepath.Join(*pictures, file), []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
}

var sixteen = [2][16]string{
	{"#000000", "#cd3131", "#0dbc79", "#c5a332", "#2472c8", "#bc3fbc", "#11a8cd", "#cccccc", "#767676", "#f14c4c",
		"#23d18b", "#f5f543", "#3b8eea", "#d670d6", "#29b8db", "#ffffff"},
	{"#000000", "#cd3131", "#00802f", "#949800", "#0451a5", "#bc05bc", "#0598bc", "#b0b0b0", "#666666", "#cd3131",
		"#14a35a", "#b5ba00", "#7ab4ff", "#d670d6", "#29b8db", "#ffffff"},
}

// page turns what is written for a terminal into a page that looks like it.
func page(s string, dark bool) string {
	fore, back, table := "#d4d8dd", "#0d1117", sixteen[0]
	if !dark {
		fore, back, table = "#1f2328", "#ffffff", sixteen[1]
	}
	var b strings.Builder
	fmt.Fprintf(&b,
		"<meta charset=utf-8><style>body{margin:8px;background:%s}pre{font:16px/19px 'DejaVu Sans Mono';color:%s;margin:0}span{display:inline-block;height:19px;vertical-align:top}b{display:inline-block;width:1ch;height:19px;overflow:hidden;font-size:13px;font-weight:normal;vertical-align:top}</style><pre>", back, fore)
	sequence := regexp.MustCompile("\x1b\\[([0-9;]*)m")
	for s != "" {
		at := sequence.FindStringSubmatchIndex(s)
		if at == nil {
			b.WriteString(text(s))
			break
		}
		b.WriteString(text(s[:at[0]]))
		if style := css(s[at[2]:at[3]], fore, back, table); style != "" {
			end := strings.Index(s[at[1]:], "\x1b")
			fmt.Fprintf(&b, "<span style='%s'>%s</span>", style, text(s[at[1]:at[1]+end]))
			s = s[at[1]+end:]
			continue
		}
		s = s[at[1]:]
	}
	return b.String()
}

// text escapes s and puts braille, which few fonts have in the width of their
// letters, into cells of its own.
func text(s string) string {
	return regexp.MustCompile("[\u2800-\u28ff]").ReplaceAllString(html.EscapeString(s), "<b style='width:9.63px'>$0</b>")
}

// css returns the style of the parameters of an SGR sequence.
func css(parameters, fore, back string, table [16]string) string {
	p := strings.Split(parameters, ";")
	if parameters == "" {
		return ""
	}
	weight, reverse, ground := "", false, ""
	for i := 0; i < len(p); i++ {
		n, _ := strconv.Atoi(p[i])
		switch {
		case n == 1:
			weight = "font-weight:bold;"
		case n == 7:
			reverse = true
		case n == 38, n == 48:
			var colour string
			if p[i+1] == "2" {
				colour = "rgb(" + p[i+2] + "," + p[i+3] + "," + p[i+4] + ")"
				i += 4
			} else {
				k, _ := strconv.Atoi(p[i+2])
				colour = cube(k)
				i += 2
			}
			if n == 38 {
				fore = colour
			} else {
				ground = colour
			}
		case n >= 30 && n < 38:
			fore = table[n-30]
		case n >= 90 && n < 98:
			fore = table[n-82]
		case n >= 40 && n < 48:
			ground = table[n-40]
		case n >= 100 && n < 108:
			ground = table[n-92]
		}
	}
	if ground == "" {
		ground = back
	}
	if reverse {
		fore, ground = ground, fore
	}
	return weight + "color:" + fore + ";background:" + ground
}

// cube returns the colour of one of the 240 after the first sixteen.
func cube(n int) string {
	if n >= 232 {
		v := 8 + (n-232)*10
		return fmt.Sprintf("rgb(%d,%d,%d)", v, v, v)
	}
	levels := []int{0, 95, 135, 175, 215, 255}
	n -= 16
	return fmt.Sprintf("rgb(%d,%d,%d)", levels[n/36], levels[n/6%6], levels[n%6])
}
