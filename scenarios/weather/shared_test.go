package weather

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestSharedConstants: docs/fidelity.md, which lists the constants that policies use
// too, has the values of this package.
func TestSharedConstants(t *testing.T) {
	page, err := os.ReadFile("../../docs/fidelity.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Constants that drawing and deciding share")
	list := func(x []float64) string { return strings.ReplaceAll(numbers(x, "%g"), "/", ", ") }
	p := DefaultParams()
	for _, c := range []struct {
		name  string
		value any
	}{
		{"BandMonthly", list(p.BandMonthly[:])}, {"bands", bands}, {"FrailtySigma", p.FrailtySigma}, {"ShortageShare", list(p.ShortageShare[:])},
		{"TakeWindow", p.TakeWindow}, {"DepthWhole", p.DepthWhole}, {"LengthShape", p.LengthShape}, {"LengthScale", p.LengthScale},
		{"GapShape", p.GapShape}, {"RecommendedPrecision", p.RecommendedPrecision}, {"SlotsCPU", p.SlotsCPU}, {"SlotsGPU", p.SlotsGPU},
	} {
		if want := fmt.Sprintf("`%s = %v`", c.name, c.value); !strings.Contains(section, want) {
			t.Errorf("docs/fidelity.md does not say %s", want)
		}
	}
	for _, truth := range Truths()[1:] {
		if family, _, cut := strings.Cut(truth.Name, "-"); !strings.Contains(section, "`"+truth.Name+"`") &&
			!(cut && strings.Contains(section, "`"+family+"-…`")) {
			t.Errorf("docs/fidelity.md does not say what the truth %v parts", truth)
		}
	}
}
