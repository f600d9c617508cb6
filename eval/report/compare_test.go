package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
)

// recordedOf writes r as JSON and reads it again.
func recordedOf(t *testing.T, name string, r *eval.Report) *eval.Recorded {
	t.Helper()
	var b bytes.Buffer
	if err := format.Write(&b, r, format.JSON, format.Options{}); err != nil {
		t.Fatal(err)
	}
	out, err := format.ReadReport(&b)
	if err != nil {
		t.Fatal(err)
	}
	out.Name = name
	return out
}

// The page about two reports says what changed, and shows both sides of each scenario.
func TestComparisonPage(t *testing.T) {
	cfg := shown("web-week", "batch-night")
	cfg.Gates = nil
	older := recordedOf(t, "old<b>.json", compared(t, cfg, fake{}))
	newer := recordedOf(t, "new.json", compared(t, cfg, fake{}))
	for i := range newer.Runs {
		if x := &newer.Runs[i]; x.Policy == "portfolio" && x.Scenario == "web-week" {
			x.Bill += x.Bill / 2
			x.Hash = strings.Repeat("ab", 32)
		}
	}
	c, err := eval.CompareRecorded(older, newer)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteComparison(&b, c, older, newer); err != nil {
		t.Fatal(err)
	}
	all := elements(t, b.String())
	if n := len(named(all, "svg")); n != 2 {
		t.Errorf("%d pictures, want one of each scenario", n)
	}
	for _, want := range []string{"new.json (spotter v0.1.0) against old&lt;b&gt;.json (spotter v0.1.0)",
		"This change: net savings −$", "Compared with old&lt;b&gt;.json, seeds ",
		"Before and after in web-week", "Before and after in batch-night", "portfolio, before: from ", "portfolio, after: from ", "11 of 12 pairs of a policy and a scenario did the same in every run"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(b.String(), "/week") || strings.Contains(b.String(), "a week<") || !strings.Contains(b.String(), "/month, outages") {
		t.Error("the page has another unit than a month")
	}
	old, now := tallyOf(older, "web-week", "portfolio"), tallyOf(newer, "web-week", "portfolio")
	other, same := tallyOf(older, "batch-night", "portfolio"), tallyOf(newer, "batch-night", "portfolio")
	if old.runs != 10 || now.month[0] >= old.month[0] || same.month[0] != other.month[0] {
		t.Errorf("the sides come to %+v and %+v", old, now)
	}
	if x := tallyRow("portfolio", &old, &now); x[3].Class != "bad" || !strings.HasPrefix(x[3].Text, "−$") {
		t.Errorf("the row is %+v", x)
	}
	// Where nothing changed there is no table of changes.
	if c, err = eval.CompareRecorded(older, older); err != nil {
		t.Fatal(err)
	}
	b.Reset()
	if err := WriteComparison(&b, c, older, older); err != nil || strings.Contains(b.String(),
		"<caption>Compared with") || !strings.Contains(b.String(), "No change: both sides") {
		t.Errorf("a page of no change, %v:\n%s", err, b.String())
	}
}
