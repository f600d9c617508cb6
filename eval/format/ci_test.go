package format

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/test/golden"
)

// ciReport has everything that CI reads: a gate that fails, one without a
// value, a run that broke, and a build that is worse in one of two scenarios.
func ciReport(t *testing.T) *eval.Report {
	t.Helper()
	c := shown()
	c.Cases = cases(1, "batch-night", "worlds/shop.yaml")
	c.Gates = append(c.Gates, mustGate(t, "spot:kept_out_usd.max <= 0"))
	r, err := eval.Run(t.Context(), c, fake{fail: func(j eval.Job) bool { return j.Policy == "static" && j.Seed == 3 }}.run)
	if err != nil {
		t.Fatal(err)
	}
	setAgainst(t, r, func(x *eval.OtherRun) float64 {
		if x.Scenario == "worlds/shop.yaml" {
			return 3
		}
		return 0
	})
	return r
}

// TestCIOutputs compares what CI reads with files that were looked at.
func TestCIOutputs(t *testing.T) {
	r := ciReport(t)
	for file, f := range map[string]Format{"ci.md": Markdown, "ci.txt": Table, "ci.xml": JUnit} {
		var out bytes.Buffer
		if err := Write(&out, r, f, Options{Width: 120, Details: true}); err != nil {
			t.Fatal(err)
		}
		golden.Hold(t, "testdata/golden/"+file, out.String())
	}
}

// TestCounts: the totals of the JUnit report are those of its tests, and every warning of the
// report is in every output.
func TestCounts(t *testing.T) {
	r := ciReport(t)
	var out bytes.Buffer
	if err := writeJUnit(&out, r); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	var suites junitSuites
	if err := xml.Unmarshal(out.Bytes(), &suites); err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]int{"<testcase ": suites.Tests, "<failure ": suites.Failures,
		"<error ": suites.Errors, "<skipped ": suites.Skipped} {
		if got := strings.Count(text, what); got != want || want == 0 {
			t.Errorf("%d %s, the total says %d", got, what, want)
		}
	}
	warnings := Warnings(r)
	if len(warnings) < 4 {
		t.Fatalf("warnings %q", warnings)
	}
	for _, f := range []Format{Table, Markdown, JSON, JUnit} {
		out.Reset()
		if err := Write(&out, r, f, Options{Width: 10_000, Details: true}); err != nil {
			t.Fatal(err)
		}
		plainText := strings.NewReplacer(`\_`, "_", "&gt;", ">", "&lt;", "<", `\u003c`, "<", `&#39;`, "'").Replace(out.String())
		for _, w := range warnings {
			if !strings.Contains(plainText, w) {
				t.Errorf("%s lacks the warning %q", f, w)
			}
		}
	}
}

// TestHostile: names that a user chose end no element or cell.
func TestHostile(t *testing.T) {
	const evil = "a%\r\n::error::b]]><script>|`*x*\x01\"'&,:"
	c := shown()
	c.Cases = cases(1, evil)
	r, err := eval.Run(t.Context(), c, fake{fail: func(j eval.Job) bool { return j.Policy == "spot" }}.run)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := writeJUnit(&out, r); err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(out.Bytes(), new(junitSuites)); err != nil {
		t.Errorf("JUnit: %v", err)
	}
	out.Reset()
	if err := AnswerOf(r).Markdown(&out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "<script>") && !strings.Contains(out.String(), "`") {
		t.Error("Markdown with an element of the user's")
	}
}

// TestMarkdownFits: however much was compared, the summary fits, and the
// result, failed gates and the command of the worst run are in it.
func TestMarkdownFits(t *testing.T) {
	for _, size := range []struct{ policies, scenarios, gates int }{{4, 1, 1}, {40, 30, 2}, {6, 400, 1}, {300, 2, 8}} {
		c := shown()
		c.Seeds, c.Gates = eval.DefaultSeeds(1), nil
		for i := range size.policies - 3 {
			c.Policies = append(c.Policies, fmt.Sprintf("static:share=0.%04d", i))
		}
		var names []string
		for i := range size.scenarios {
			names = append(names, fmt.Sprintf("scenario-%d", i))
		}
		c.Cases = cases(1, names...)
		for i := range size.gates {
			c.Gates = append(c.Gates, mustGate(t, fmt.Sprintf("outage_delta.max <= %d", -1-i)))
		}
		r, err := eval.Run(context.Background(), c, fake{}.run)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := AnswerOf(r).Markdown(&out); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		failed := figures.Integer(len(r.Gates)) + " of " + figures.Count(len(r.Gates), "gate") + " failed"
		worst := strings.TrimSpace(strings.SplitN(append(worstOutageLines(r), worstLines(r, &r.Groups[0])...)[0], "\n", 2)[1])
		if len(text) > MarkdownMax || !strings.Contains(text, failed) || !strings.Contains(text, "- ✗ spot") || !strings.Contains(text, worst) {
			t.Errorf("%+v: %d bytes:\n%.3000s", size, len(text), text)
		}
		if !strings.Contains(text, "## Notes") || !strings.Contains(text, "\n|:--|") {
			t.Errorf("%+v: neither notes nor a table are there", size)
		}
		if cut := strings.Contains(text, "left out to fit"); cut != (size.policies > 4 || size.scenarios > 1) {
			t.Errorf("%+v: %d bytes, cut %v", size, len(text), cut)
		}
	}
}

// TestMarkdownAllTooLong: where what failed is too long by itself, each list
// keeps its part of the room and the rest is left out.
func TestMarkdownAllTooLong(t *testing.T) {
	lines := make([]string, 2000)
	for i := range lines {
		lines[i] = fmt.Sprintf("line %d of many", i)
	}
	out := cutToFit("# head\n", blocks([]Section{{Heading: "Gates", Items: lines},
		{Heading: "Notes", Items: []string{"a note"}, rank: rankNote}, {Heading: "Worst outages", Items: lines}}, "## ", true), 8000)
	for _, want := range []string{"# head", "## Notes\n\n*1 of 1 lines left out to fit", "## Gates\n\n- line 0",
		"## Worst outages\n\n- line 0"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if len(out) > 8000 || strings.Contains(out, "a note") {
		t.Errorf("%d bytes:\n%s", len(out), out)
	}
}
