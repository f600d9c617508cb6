package draw

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/rivo/uniseg"
)

// Clean returns s as a canvas shows it, so that text written without a canvas cannot control the
// terminal.
func Clean(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == 0 { // a blank on a canvas
			r = ' '
		}
		if r, w := fitting(r); w > 0 {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// fitting returns the rune that a cell contains for r and its number of columns. A rune that
// terminals combine with its neighbours or interpret (control characters, halves of flags, jamo,
// modifiers) would shift the rest of the line and is replaced by a dot. Combining marks have no
// columns and are dropped.
func fitting(r rune) (rune, int) {
	switch {
	case r == 0 || r == ' ':
		return r, 1
	case r > ' ' && r < 0x7f:
		return r, 1
	case isDrawing(r):
		return r, 1
	case r < ' ' || r == 0x7f || r == utf8.RuneError:
		return '·', 1
	case unicode.In(r, unicode.M, unicode.Cf, unicode.Zl, unicode.Zp):
		return r, 0
	}
	if joins(r) {
		return '·', 1
	}
	switch ansi.StringWidth(string(r)) {
	case 1:
		return r, 1
	case 2:
		return r, 2
	}
	return '·', 1
}

// joins reports whether r may form one character with an adjacent rune.
func joins(r rune) bool {
	switch {
	case r >= 0x1100 && r < 0x1200, r >= 0xa960 && r < 0xa980, r >= 0xd7b0 && r < 0xd800: // jamo
		return true
	case r >= 0x1f1e6 && r < 0x1f200: // halves of flags
		return true
	case r >= 0x80 && r < 0xa0: // control characters
		return true
	}
	return uniseg.GraphemeClusterCount("a"+string(r)+"a") != 3
}

// isWide reports whether r takes two columns.
func isWide(r rune) bool { return r >= 0x1100 && !isDrawing(r) && runeWidth(r) == 2 }

// isDrawing reports whether r is one of the boxes, blocks, shapes and braille that widgets draw
// with, all of one column.
func isDrawing(r rune) bool { return r >= 0x2500 && r < 0x25fd || r >= 0x2800 && r < 0x2900 }

// runeWidth returns the number of columns of r on a canvas.
func runeWidth(r rune) int {
	if r >= ' ' && r < 0x7f {
		return 1
	}
	_, w := fitting(r)
	return w
}

// Width returns the number of columns of s on a canvas, which replaces runes that terminals
// interpret or combine by dots.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// Cut returns s in at most w columns. If it is shortened, it ends in an ellipsis.
func Cut(s string, w int) string {
	if len(s) <= w {
		return s
	}
	return ansi.Truncate(Clean(s), max(w, 0), "…")
}

// CutMiddle returns s in at most w columns. If it is shortened, the middle is replaced by an
// ellipsis: both ends of a node's name matter.
func CutMiddle(s string, w int) string {
	if w < 5 || len(s) <= w {
		return Cut(s, w)
	}
	s = Clean(s)
	n := Width(s)
	if n <= w {
		return s
	}
	tail := ansi.TruncateLeft(s, n-(w-1)/2, "")
	return ansi.Truncate(s, w-1-Width(tail), "") + "…" + tail
}

// Wrap returns s in lines of at most w columns, broken at spaces and after hyphens where possible.
// An empty s is one empty line.
func Wrap(s string, w int) []string {
	if w <= 0 {
		return nil
	}
	if s = strings.Join(strings.Fields(s), " "); len(s) <= w {
		return []string{s}
	}
	// Wrap alone may leave several hyphens beyond the end of a line.
	return strings.Split(ansi.Hardwrap(ansi.Wrap(Clean(s), w, ""), w, false), "\n")
}
