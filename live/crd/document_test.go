package crd_test

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/live/crd"
)

var rewrite = flag.Bool("rewrite", false, "write docs/reference-crds.md anew")

const document = "../../docs/reference-crds.md"

// TestDocument: the reference is what the definitions say.
func TestDocument(t *testing.T) {
	want := crd.Document()
	if *rewrite {
		if err := os.WriteFile(document, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/reference-crds.md is not what live/crd says; run go test ./live/crd -run TestDocument -rewrite")
	}
}

// TestDocumentIsComplete holds the reference against the manifests as they are
// written, and not as they were read: it has a row for every name that stands under
// "properties", of every default and of every bound.
func TestDocumentIsComplete(t *testing.T) {
	text := string(crd.Document())
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\|")
	rows := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		parts := strings.FieldsFunc(m[1], func(r rune) bool { return strings.ContainsRune(".[]*", r) })
		rows[parts[len(parts)-1]] = true
		if strings.TrimSpace(m[2]) == "" {
			t.Errorf("%s has no type", m[1])
		}
	}
	found, defaults := 0, 0
	key := regexp.MustCompile(`^( *)([A-Za-z]+):`)
	for _, name := range crd.Files() {
		at := []int{-1} // the indents of the "properties" that a line is below
		_, fields, _ := bytes.Cut(crd.File(name), []byte("\n  versions:\n"))
		first, _, _ := strings.Cut(string(fields), "\n  - ")
		for _, line := range strings.Split(first, "\n") {
			m := key.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			indent := len(m[1])
			for indent <= at[len(at)-1] {
				at = at[:len(at)-1]
			}
			inside := at[len(at)-1] >= 0 && indent == at[len(at)-1]+2
			switch {
			case !inside && m[2] == "properties":
				at = append(at, indent)
			case !inside && m[2] == "default":
				defaults++
			case inside && !rows[m[2]] && at[len(at)-1] > 10: // at 10 stand apiVersion, kind and metadata
				t.Errorf("%s: %s is not in the reference", name, m[2])
			case inside:
				found++
			}
		}
	}
	if found < 140 || defaults < 10 {
		t.Errorf("%d fields and %d defaults are found", found, defaults)
	}
	reported := regexp.MustCompile("(?m)^\\| `[^`]+` \\| [^|]+ \\| `").FindAllString(text, -1)
	if len(reported) != defaults {
		t.Errorf("%d defaults are in the reference, and %d in the manifests", len(reported), defaults)
	}
	for _, want := range []string{"| `spec.mode` | string | `\"shadow\"` | one of", "at most 1000000000000", "`status.conditions[].reason`"} {
		if !strings.Contains(text, want) {
			t.Errorf("the reference lacks %s", want)
		}
	}
}
