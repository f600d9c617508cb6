package report

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// styled matches an element of a picture up to its style.
var styled = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(<(?:path|text) [^>]*?)style="([^"]*)"`)
})

// usual is the style of most words in pictures: of the ticks of axes.
const usual = "font-size:11px;fill:var(--chart-faint)"

// shareStyles names the styles that elements of pictures have, in place of each, and returns
// the rules of these names. The usual one of words needs no name.
func shareStyles(page []byte) (shared []byte, rules trusted) {
	names := map[string]string{}
	var b strings.Builder
	fmt.Fprintf(&b, ".picture text{%s}\n", usual)
	shared = styled().ReplaceAllFunc(page, func(element []byte) []byte {
		m := styled().FindSubmatch(element)
		if string(m[2]) == usual {
			return bytes.TrimSpace(m[1])
		}
		name, known := names[string(m[2])]
		if !known {
			name = fmt.Sprintf("k%d", len(names))
			names[string(m[2])] = name
			fmt.Fprintf(&b, ".picture .%s{%s}\n", name, m[2])
		}
		return fmt.Appendf(nil, `%sclass="%s"`, m[1], name)
	})
	return shared, trusted(b.String())
}
