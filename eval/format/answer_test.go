package format

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spotter-dev/spotter/eval"
)

// shortText returns the answer of r for a terminal of 80 columns.
func shortText(t *testing.T, r *eval.Report, o Options) string {
	t.Helper()
	o.Width = 80
	var out bytes.Buffer
	if err := Write(&out, r, Table, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// reportOf runs windows of scenarios.
func reportOf(t *testing.T, windows int, gates []eval.Gate, names ...string) *eval.Report {
	t.Helper()
	c := shown()
	c.Cases, c.Gates = cases(windows, names...), gates
	r, err := eval.Run(t.Context(), c, fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestAnswerFits: without gates that fail, verdict, table and next command are all on a terminal of
// 24 lines of 80 columns, and only commands are wider.
func TestAnswerFits(t *testing.T) {
	for _, r := range []*eval.Report{reportOf(t, 1, nil, "web-week"), reportOf(t, 12, nil, "web-week"),
		reportOf(t, 2, nil, "web-week", "batch-night")} {
		text := shortText(t, r, Options{})
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > 80 && !strings.HasPrefix(line, "  spotter ") {
				t.Errorf("%d columns: %s", n, line)
			}
		}
		if len(lines) > 22+4*(len(r.Groups)-1) || !strings.HasPrefix(lines[len(lines)-1], "  spotter ") || !strings.Contains(text, "\n▸ spot ") {
			t.Errorf("%d lines:\n%s", len(lines), text)
		}
	}
}

// TestAnswerVerdict: the first sentence has the amount a month that [eval.Report.OverBaseline] has,
// with its interval, and both worst outages.
func TestAnswerVerdict(t *testing.T) {
	r := reportOf(t, 12, nil, "web-week")
	g := &r.Groups[0]
	best := r.Best(g)
	over := r.OverBaseline(g, best)
	if over.N != 60 || over.MedianInterval == nil {
		t.Fatalf("%+v", over)
	}
	text := strings.Join(strings.Fields(shortText(t, r, Options{})), " ")
	want := monthly(&over, false) + " than spotvortex" + between(&over, false) + worstWords(&g.Policies[best], policyReport(r, "spotvortex"))
	if !strings.HasPrefix(text, "spot saves ") || !strings.Contains(text, want) {
		t.Errorf("it does not begin with %q:\n%s", want, text)
	}
	r.Config.Baseline = "spot" // as if the best were the baseline
	if got := found(r); !strings.HasPrefix(got, "No policy saves more than spot, the baseline: the next, ") ||
		!strings.Contains(got, " a month less") {
		t.Error(got)
	}
}

// TestAnswerGates: a gate that fails is shown once, in the answer and among the details, with the
// command of its worst run, and the verdict counts it.
func TestAnswerGates(t *testing.T) {
	r := reportOf(t, 2, []eval.Gate{mustGate(t, "spot:outage_delta.max <= 0"), mustGate(t, "static:outage_delta.max <= 0")}, "web-week")
	for _, details := range []bool{false, true} {
		text := shortText(t, r, Options{Details: details})
		if n := strings.Count(text, "✗ spot: outage_delta.max <= 0"); n != 1 || !strings.HasPrefix(text, "✗ spot saves ") ||
			!strings.Contains(text, "1 of 2 gates failed") {
			t.Errorf("details %v: %d times:\n%s", details, n, text)
		}
		if passed := strings.Contains(text, "✓ static: outage_delta.max <= 0"); passed != details {
			t.Errorf("details %v: the gate that holds is shown: %v", details, passed)
		}
	}
}

// TestAnswerColors: colours change nothing but colours.
func TestAnswerColors(t *testing.T) {
	r := reportOf(t, 12, nil, "web-week")
	plain, colored := shortText(t, r, Options{}), shortText(t, r, Options{Color: true})
	if !strings.Contains(colored, "\x1b[32m▸ spot\x1b[0m") || !strings.Contains(colored, "\x1b[31m+") {
		t.Errorf("winner and worse than baseline have no colour: %q", colored)
	}
	for _, code := range []string{"\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"} {
		colored = strings.ReplaceAll(colored, code, "")
	}
	if colored != plain {
		t.Errorf("%s\ndiffers from\n%s", colored, plain)
	}
}

// TestWarningsShown: at most three warnings, the gravest first, and how many more there are.
func TestWarningsShown(t *testing.T) {
	a := Answer{Warnings: []string{"one", "two", "three", "four", "five"}}
	for details, want := range map[bool]string{false: "⚠ one\n⚠ two\n⚠ three\nand 2 more, with --details\n",
		true: "⚠ three\n⚠ four\n⚠ five\n"} {
		var out bytes.Buffer
		if err := a.Write(&out, Options{Details: details}); err != nil || !strings.HasSuffix(out.String(), want) {
			t.Errorf("details %v, %v:\n%s", details, err, out.String())
		}
	}
}

// TestSeedsStep: the seeds of a command are replaced however they are written, and no other flag.
func TestSeedsStep(t *testing.T) {
	for _, command := range []string{"spotter eval a --seeds 2 --yes", "spotter eval a --seeds=1-9 --yes", "spotter eval a --yes"} {
		if got := seedsStep(command, 8).Command; got != "spotter eval a --yes --seeds 8" {
			t.Errorf("%s becomes %s", command, got)
		}
	}
	if got := seedsStep("spotter eval --seeds-from x", 8).Command; got != "spotter eval --seeds-from x --seeds 8" {
		t.Error(got)
	}
}
