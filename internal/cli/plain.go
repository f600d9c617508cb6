package cli

import (
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/muesli/termenv"

	"github.com/spotter-dev/spotter/policy/figures"
)

// plain returns a writer to w that escapes control characters, so that names from a cluster or text
// from a file cannot control the terminal or hide content: see [figures.PlainText]. On a terminal
// with colours, the colours of answers are not escaped.
//
// Line breaks are not escaped, because they cannot be distinguished from those of the text.
// [figures.Plain] escapes values that may contain them where they are read or inserted.
func plain(w io.Writer) *plainWriter {
	if p, ok := w.(*plainWriter); ok {
		return p
	}
	f, ok := w.(*os.File)
	return &plainWriter{w: w, colors: ok && termenv.NewOutput(f).EnvColorProfile() != termenv.Ascii}
}

// File returns the file that text for w is written to, if it is one.
func File(w io.Writer) (*os.File, bool) {
	if p, ok := w.(*plainWriter); ok {
		w = p.w
	}
	f, ok := w.(*os.File)
	return f, ok
}

// A plainWriter escapes text. It is safe for concurrent use.
type plainWriter struct {
	w      io.Writer
	colors bool

	mu   sync.Mutex
	rest string // an incomplete character or colour sequence, which the next text continues
}

// color matches the colours of answers, partOfColor an incomplete one at the end of a text.
var color, partOfColor = regexp.MustCompile(`\x1b\[(0|3[1-3])m`), regexp.MustCompile(`\x1b(\[(0|3[1-3]?)?)?$`)

func (p *plainWriter) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	whole := p.rest + string(text)
	end := len(whole)
	if p.colors {
		if at := partOfColor.FindStringIndex(whole); at != nil {
			end = at[0]
		}
	}
	for i := max(0, len(whole)-utf8.UTFMax+1); i < end; i++ {
		if utf8.RuneStart(whole[i]) && !utf8.FullRuneInString(whole[i:]) {
			end = i
		}
	}
	p.rest = whole[end:]
	_, err := io.WriteString(p.w, p.escaped(whole[:end]))
	return len(text), err
}

// flush writes the incomplete sequence.
func (p *plainWriter) flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := io.WriteString(p.w, p.escaped(p.rest))
	p.rest = ""
	return err
}

// escaped returns the escaped text.
func (p *plainWriter) escaped(text string) string {
	if !p.colors {
		return figures.PlainText(text)
	}
	var b strings.Builder
	at := 0
	for _, c := range color.FindAllStringIndex(text, -1) {
		b.WriteString(figures.PlainText(text[at:c[0]]) + text[c[0]:c[1]])
		at = c[1]
	}
	return b.String() + figures.PlainText(text[at:])
}
