package nearest

import "testing"

func TestOf(t *testing.T) {
	names := []string{"portfolio", "static", "spot", "Spare"}
	for word, want := range map[string]string{"portfolo": "portfolio", "SPARE": "Spare", "sto": "spot", "xxxxxxxx": "", "": ""} {
		if got, ok := Of(word, names); ok != (want != "") || ok && got != want {
			t.Errorf("%q meant %q, %v, and not %q", word, got, ok, want)
		}
	}
	if got, ok := Of("spot", nil); ok {
		t.Errorf("of no names %q was meant", got)
	}
}
