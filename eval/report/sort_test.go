package report

import "testing"

// What a cell is sorted by stands in its text where that is rounded from it, and is said
// where not.
func TestSortOf(t *testing.T) {
	for _, c := range []struct {
		v    float64
		text string
		want string
	}{
		{6.5, "6.5", ""},
		{-1234.4, "−$1,234", ""},
		{1.890539, "$1.89", ""},
		{0.9920970271164021, "99.210%", ""},
		{99.2, "99.2%", "99.2"},
		{2.25, "+2.3", ""},
		{131.33, "2m11s", "131.33"},
		{1e9, "1.0k", "1e+09"},
		{7, "6.4", "7"},
		{0, "–", "0"},
	} {
		if got := sortOf(c.v, c.text); got != c.want {
			t.Errorf("%v as %q is sorted by %q, want %q", c.v, c.text, got, c.want)
		}
	}
}
