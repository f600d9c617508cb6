package figures

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Plain returns s, a name or another value from outside, such that it stays on one line and shows
// every character. Control characters, including line breaks and tabs, and invisible characters,
// such as those that reverse the direction of text, are escaped, such as \u001b. Bytes that are not
// valid UTF-8 become U+FFFD.
func Plain(s string) string { return escape(s, "") }

// PlainText is [Plain] for text of several lines: it keeps line breaks and tabs.
func PlainText(s string) string { return escape(s, "\n\t") }

// escape replaces the hidden characters of s, except those in keep, with escape sequences that JSON
// and JavaScript understand.
func escape(s, keep string) string {
	unsafe := func(r rune) bool { return hidden(r) && !strings.ContainsRune(keep, r) }
	if utf8.ValidString(s) && strings.IndexFunc(s, unsafe) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s { // invalid UTF-8 yields U+FFFD
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

// hidden reports whether r is invisible or changes how the text around it is shown.
func hidden(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
