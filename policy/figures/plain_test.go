package figures

import (
	"encoding/json"
	"testing"
	"unicode"
)

// TestPlain: whatever does not show is written by its number, in a form that JSON reads back; everything else stays.
func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"web-7f9c/α ▸ 日本 🙂":                 "web-7f9c/α ▸ 日本 🙂",
		"a\x1b[2J\r\nb\tc":                  `a\u001b[2J\u000d\u000ab\u0009c`,
		"\x7f\u009b31m":                     `\u007f\u009b31m`,
		"a\u202eb\u2066\u200bc\u2028\ufeff": `a\u202eb\u2066\u200bc\u2028\ufeff`,
		"\U000e0041":                        `\udb40\udc41`,
		"a\xffb":                            "a\ufffdb",
		"":                                  "",
	} {
		if got := Plain(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	if got := PlainText("a\n\tb\r\n"); got != "a\n\tb\\u000d\n" {
		t.Errorf("text becomes %q", got)
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		s := string(r)
		if got := Plain(s); got != s && s != "\ufffd" {
			var back string
			if err := json.Unmarshal([]byte(`"`+got+`"`), &back); err != nil || back != s {
				t.Fatalf("%U becomes %q, which JSON reads as %q, %v", r, got, back, err)
			}
		}
	}
}
