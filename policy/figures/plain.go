package figures

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Plain returns a name or another value from outside such that it stays in its line and shows what
// it consists of: control characters, line breaks and tabs included, and invisible characters, such
// as those that reverse the direction of text, are written as \u001b. Bytes that are no UTF-8 become U+FFFD.
func Plain(s string) string { return escape(s, "") }

// PlainText is [Plain] of whole text, which keeps its line breaks and tabs.
func PlainText(s string) string { return escape(s, "\n\t") }

// escape writes the characters of s that do not show, other than those of keep, by their number. The form is one
// that JSON and JavaScript read back.
func escape(s, keep string) string {
	unsafe := func(r rune) bool { return hidden(r) && !strings.ContainsRune(keep, r) }
	if utf8.ValidString(s) && strings.IndexFunc(s, unsafe) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s { // of bytes that are no UTF-8, U+FFFD
		if !unsafe(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// hidden reports whether r changes how text around it is shown, and shows nothing itself.
func hidden(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
