package cli_test

import (
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
)

// TestWrappedColumns: the last column continues below itself, between words; without a width,
// and where every line fits, nothing is broken.
func TestWrappedColumns(t *testing.T) {
	rows := [][]string{{"✓ a", "1", "one two three four five six"}, {}, {"", "12", "seven"},
		{"– long", "", "averylongwordthatnolinecanhold x"}}
	for width, want := range map[int]string{
		0:  "NAME    N   ABOUT\n✓ a     1   one two three four five six\n        12  seven\n– long      averylongwordthatnolinecanhold x\n",
		39: "NAME    N   ABOUT\n✓ a     1   one two three four five six\n        12  seven\n– long      averylongwordthatnolinecanhold\n            x\n",
		38: "NAME    N   ABOUT\n✓ a     1   one two three four five\n            six\n        12  seven\n– long      averylongwordthatnolinecanhold\n            x\n",
		10: "NAME    N   ABOUT\n✓ a     1   one two three four\n            five six\n        12  seven\n– long      averylongwordthatnolinecanhold\n            x\n",
	} {
		var b strings.Builder
		if err := cli.WrappedColumns(&b, width, []string{"NAME", "N", "ABOUT"}, rows); err != nil || b.String() != want {
			t.Errorf("width %d: %v\n%s\nwant\n%s", width, err, b.String(), want)
		}
	}
}
