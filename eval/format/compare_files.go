package format

import (
	"bytes"
	"io"

	"github.com/spotter-dev/spotter/eval"
)

// WriteComparison writes c as text of a width, in columns; 0 means 120.
func WriteComparison(w io.Writer, c *eval.Comparison, width int) error {
	var b bytes.Buffer
	if width <= 0 {
		width = defaultWidth
	}
	p := &printer{&b, width}
	p.comparison(c)
	p.list("Warnings", comparison{c}.warnings())
	_, err := w.Write(bytes.TrimLeft(b.Bytes(), "\n"))
	return err
}

// ComparisonTitle says with what c compares, over which seeds.
func ComparisonTitle(c *eval.Comparison) string { return comparison{c}.title() }
