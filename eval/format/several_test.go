package format

import (
	"bytes"
	"strings"
	"testing"
)

// TestMarkdownOfSeveral: of several scenarios Markdown has one table of who is first
// where and a short one of each, best first, with equal policies in one row and those
// that do not keep the manifests last.
func TestMarkdownOfSeveral(t *testing.T) {
	r := acrossReport(t)
	var out bytes.Buffer
	if err := writeMarkdown(&out, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| POLICY | FIRST IN | WORST SHORTFALL, POINTS | WORST OUTAGE, MIN |\n",
		"| calm | spot, portfolio | 60.0 | ",
		"| rough | static | 20.0 | ",
		"| mixed | portfolio | 50.0 | ",
		"- spot `spotter sim rough --policy spot --seed 4 --from 2026-01-05T00:00:00Z --trace synthetic`\n",
		"\n## rough\n\n| POLICY | SAVED % [interval] | OUTAGE MIN med / max | INCIDENTS med / max |\n|:--|--:|--:|--:|\n" +
			"| static | 20.0 | 0 / 0 | 0 / 0 |\n| portfolio | 15.0 | 0 / 7 | 0 / 0 |\n| on-demand, spotvortex \\* | 0.0 | 0 / 0 | 0 / 0 |\n| spot | −30.0 | 0 / 44 | 0 / 0 |\n",
		"| on-demand, spotvortex \\* | 0.0 | 0 / 0 | 0 / 0 |\n| spot ! | 80.0 | 0 / 0 | 0 / 0 |\n",
		"\\* is the baseline, spotvortex: ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	for _, not := range []string{"Runs with outages", "Worst runs", "Moved are"} {
		if strings.Contains(out.String(), not) {
			t.Errorf("%q stands there:\n%s", not, out.String())
		}
	}
}
