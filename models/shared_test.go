package models

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestSharedConstants: docs/fidelity.md, which lists the constants that the market is
// drawn by too, has the values of this package.
func TestSharedConstants(t *testing.T) {
	page, err := os.ReadFile("../docs/fidelity.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Constants that drawing and deciding share")
	list := func(x []float64) string { return strings.ReplaceAll(strings.Trim(fmt.Sprint(x), "[]"), " ", ", ") }
	c := DefaultConfig()
	for _, x := range []struct {
		name  string
		value any
	}{
		{"PriorReclaims", c.PriorReclaims}, {"PooledReclaims", c.PooledReclaims},
		{"FactorMax", c.FactorMax}, {"Horizon", c.Horizon}, {"refusals", list(refusals[:])}, {"ShortageDepth",
			c.ShortageDepth}, {"RefusalMemory", c.RefusalMemory},
	} {
		if want := fmt.Sprintf("`%s = %v`", x.name, x.value); !strings.Contains(section, want) {
			t.Errorf("docs/fidelity.md does not say %s", want)
		}
	}
}
