package cli

import (
	"bytes"
	"fmt"
	"testing"
)

// TestPlainWriter: text is escaped however it is cut into writes, and of the sequences of a terminal only the colours
// of answers pass, where there are colours.
func TestPlainWriter(t *testing.T) {
	const text = "▸ spot\x1b[32m 1\x1b[0m\n\ta\x1b[2J\x1b[31\r\u202eé\x1b"
	for colors, want := range map[bool]string{
		true:  "▸ spot\x1b[32m 1\x1b[0m\n\ta\\u001b[2J\\u001b[31\\u000d\\u202eé\\u001b",
		false: "▸ spot\\u001b[32m 1\\u001b[0m\n\ta\\u001b[2J\\u001b[31\\u000d\\u202eé\\u001b",
	} {
		for size := 1; size <= len(text); size++ {
			var out bytes.Buffer
			w := &plainWriter{w: &out, colors: colors}
			for rest := text; rest != ""; rest = rest[min(size, len(rest)):] {
				fmt.Fprint(w, rest[:min(size, len(rest))])
			}
			if err := w.flush(); err != nil || out.String() != want {
				t.Fatalf("colours %v, %d bytes at a time: %v\n%q, want\n%q", colors, size, err, &out, want)
			}
		}
	}
}
