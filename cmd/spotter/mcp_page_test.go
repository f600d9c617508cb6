package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/test/golden"
)

// transcriptOf matches the transcript of docs/mcp.md.
var transcriptOf = regexp.MustCompile(`(?s)(<!-- transcript, by go test [^>]*-->\n).*?(<!-- end of transcript -->)`)

// A transcript is calls of tools and what is said about their results.
type transcript struct {
	t     *testing.T
	agent *agent
	text  bytes.Buffer
}

// says writes what is said by the user or the agent.
func (x *transcript) says(who, format string, args ...any) {
	fmt.Fprintf(&x.text, "\n**%s:** %s\n", who, fmt.Sprintf(format, args...))
}

// calls calls a tool with arguments in JSON, reads its result into out, and writes the call and
// the first lines of the text of its result, and then what shown returns as JSON, each on a line.
func (x *transcript) calls(tool, arguments string, out any, shown func() []any) {
	x.t.Helper()
	r := x.agent.asks(x.t, tool, json.RawMessage(arguments))
	if r.IsError {
		x.t.Fatalf("%s %s: %s", tool, arguments, textOf(x.t, r, 0))
	}
	if err := json.Unmarshal([]byte(textOf(x.t, r, 1)), out); err != nil {
		x.t.Fatal(err)
	}
	fmt.Fprintf(&x.text, "\n```\n%s %s\n\n", tool, arguments)
	for line := range strings.Lines(textOf(x.t, r, 0) + "\n") {
		if strings.HasPrefix(line, "command: ") || strings.HasPrefix(line, "decision id") {
			x.text.WriteString(line)
		}
	}
	for _, v := range shown() {
		if err := json.NewEncoder(&plainJSON{&x.text}).Encode(v); err != nil {
			x.t.Fatal(err)
		}
	}
	x.text.WriteString("```\n")
}

// A plainJSON undoes the escapes that JSON has for HTML.
type plainJSON struct{ w *bytes.Buffer }

func (p *plainJSON) Write(b []byte) (int, error) {
	p.w.WriteString(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(b)))
	return len(b), nil
}

// A shownPolicy is the figures of a policy that the transcript has.
type shownPolicy struct {
	Policy  string                `json:"policy"`
	Metrics map[string]shownValue `json:"metrics"`
}

// A shownValue is the statistics of a metric that the transcript has.
type shownValue struct {
	N      int     `json:"n"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// A shownEntry is the fields of what was done that the transcript has.
type shownEntry struct {
	Step int64  `json:"step"`
	At   string `json:"at"`
	Line string `json:"line"`
}

// TestMCPPage: the calls and results on the page are those that the tools return now.
func TestMCPPage(t *testing.T) {
	path, err := filepath.Abs(filepath.Join("..", "..", "docs", "mcp.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := document(t, "mcp.md")
	t.Chdir(t.TempDir())
	if code, _, stderr := call(t, "sim", "web-week", "--policy", "portfolio", "--seed", "7", "--record", "steps"); code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	x := &transcript{t: t, agent: inMemory(t, nil)}
	x.says("You", "What would Spot save me on web-week? And why was node general-59 moved? Its decisions are in `steps`.")
	var report struct {
		Groups []struct{ Policies []shownPolicy }
	}
	x.calls("eval", `{"scenarios": ["web-week"], "policies": ["portfolio"], "windows": 2, "seeds": 2, "metrics": ["net_savings_pct", "outage_minutes"]}`,
		&report, func() (out []any) {
			for _, p := range report.Groups[0].Policies {
				out = append(out, p)
			}
			return out
		})
	var list []shownEntry
	x.calls("explain", `{"run": "steps", "node": "general-59"}`, &list, func() (out []any) {
		for _, e := range list {
			out = append(out, e)
		}
		return out
	})
	if len(list) == 0 {
		t.Fatal("nothing was done about the node")
	}
	var decision struct {
		Explanation []string `json:"explanation"`
	}
	x.calls("explain", fmt.Sprintf(`{"run": "steps", "step": %d, "node": "general-59"}`, list[0].Step), &decision, func() (out []any) {
		for _, line := range decision.Explanation {
			out = append(out, line)
		}
		return out
	})
	policies := report.Groups[0].Policies
	last := policies[len(policies)-1]
	saved, outage := last.Metrics["net_savings_pct"], last.Metrics["outage_minutes"]
	x.says("Agent", "With `%s`, %.1f%% of the on-demand bill, net of the cost of outages (%.1f to %.1f%% in %d runs), with %.0f outage "+
		"minutes a run (at most %.0f). Two weeks with two seeds each are too few for an interval: shall I run twelve? The node was "+
		"moved to make it cheaper: at %s, in decision %d, Spotter launched its replacement, and drained it once that was ready (%s).",
		last.Policy, saved.Median, saved.Min, saved.Max, saved.N, outage.Median, outage.Max, list[0].At, list[0].Step,
		regexp.MustCompile(`\$\S+/h → \$[^/]+/h`).FindString(list[0].Line))
	if !transcriptOf.MatchString(page) {
		t.Fatal("docs/mcp.md has no transcript")
	}
	want := transcriptOf.ReplaceAllStringFunc(page, func(old string) string {
		m := transcriptOf.FindStringSubmatch(old)
		return m[1] + x.text.String() + "\n" + m[2]
	})
	golden.Hold(t, path, want)
}
