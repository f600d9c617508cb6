package format

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// hostileNames are names that act on a terminal, add lines, cells and code, or link to people, issues and pages.
var hostileNames = []string{
	"a\x1b[2J\r\nall is well\n|x|", "=1+cmd|x", "@octocat", "x @octocat/team", "see #12", "GH-7", "https://example.com", "www.example.com",
	"[a](mailto:x)", "![a](/b)", "`a`", "```", "<img src=x>", "</details>", "a\u202eb\u200b", "a\x00\xffb", "~~gone~~", `\`, "&#64;octocat",
}

// linked matches what GitHub shows as a link, a mention or HTML.
var linked = regexp.MustCompile(`(^|[^\w\\])@\w|#\d|\w://|(?i:www\.)\w|GH-\d|[^\\]\]\(|<img|</details>.|&#|(^|[^\\])~~`)

// withoutCode returns Markdown without what is shown as code.
func withoutCode(text string) (out string) {
	for {
		at := regexp.MustCompile("(^|[^\\\\`])(`+)").FindStringSubmatchIndex(text)
		if at == nil {
			return out + text
		}
		fence := text[at[4]:at[5]]
		end := regexp.MustCompile("[^`]" + fence + "([^`]|$)").FindStringIndex(text[at[5]:])
		if end == nil {
			return out + text
		}
		out, text = out+text[:at[4]], text[at[5]+end[0]+1+len(fence):]
	}
}

// TestHostileNames: whatever a scenario is called, no format lets its name act, and each remains one that its readers read.
func TestHostileNames(t *testing.T) {
	r := reportOf(t, 1, nil, hostileNames...)
	r.Config.Invocation = "spotter eval " + strings.Join(hostileNames, " ")
	for _, f := range Formats() {
		if f == Parquet {
			continue
		}
		var out bytes.Buffer
		if err := Write(&out, r, f, Options{Details: true}); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		text := out.String()
		if strings.Contains(text, "\nall is well") && f != CSV { // a cell of CSV is in quotes
			at := strings.Index(text, "\nall is well")
			t.Errorf("%s has a line of its own: %q", f, text[max(0, at-200):at+30])
		}
		switch f {
		case Markdown, Comment:
			if at := linked.FindString(withoutCode(text)); at != "" {
				t.Errorf("%s has %q", f, at)
			}
		case JSON:
			if !json.Valid(out.Bytes()) {
				t.Errorf("the JSON is invalid")
			}
		case YAML:
			var any any
			if err := yaml.Unmarshal(out.Bytes(), &any); err != nil {
				t.Errorf("YAML: %v", err)
			}
		case JUnit:
			d := xml.NewDecoder(&out)
			for {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("JUnit: %v", err)
				}
			}
		case CSV:
			rows, err := csv.NewReader(&out).ReadAll()
			if err != nil {
				t.Fatalf("CSV: %v", err)
			}
			for _, row := range rows {
				for _, cell := range row {
					if cell != "" && strings.ContainsRune("=+@", rune(cell[0])) {
						t.Errorf("CSV has the formula %q", cell)
					}
				}
			}
		}
	}
}
