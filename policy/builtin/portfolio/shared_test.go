package portfolio

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestSharedConstants: docs/fidelity.md, which lists the constants that the market is
// drawn and runs are measured by too, has the values of this package.
func TestSharedConstants(t *testing.T) {
	page, err := os.ReadFile("../../../docs/fidelity.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Constants that drawing and deciding share")
	c := DefaultConfig()
	for _, x := range []struct {
		name  string
		value any
	}{
		{"MarketRisk", c.MarketRisk}, {"TypeRisk", c.TypeRisk}, {"ZoneRisk", c.ZoneRisk}, {"Holding", c.Holding}, {"Lasting", c.Lasting},
		{"shockSpan", shockSpan}, {"shockPart", shockPart}, {"shockMemory", shockMemory}, {"probeFirst",
			probeFirst}, {"probeLongest", probeLongest},
		{"recommendedFor", recommendedFor}, {"cometrue", cometrue}, {"lossDelay", lossDelay}, {"usualStartup",
			usualStartup}, {"restartDelay", restartDelay},
	} {
		if want := fmt.Sprintf("`%s = %v`", x.name, x.value); !strings.Contains(section, want) {
			t.Errorf("docs/fidelity.md does not say %s", want)
		}
	}
}
