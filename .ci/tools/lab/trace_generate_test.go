package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/tracetest"
)

// The same command writes the same bytes, another seed others, and what is
// written says that it is synthetic and how it was made.
func TestGenerateRepeats(t *testing.T) {
	dir := t.TempDir()
	draw := func(name, seed string) string {
		path := filepath.Join(dir, name)
		code, out, errs := call(t, "trace", "generate", "--preset", "aws-2024", "--seed", seed, "--markets", "9", "--days", "3", "--out", path)
		if code != 0 || !strings.Contains(out, "9 markets") || !strings.Contains(out, "spotter trace info "+path) {
			t.Fatalf("exit code %d: %s%s", code, out, errs)
		}
		return path
	}
	a, b, c := tracetest.Files(t, draw("a", "5")), tracetest.Files(t, draw("b", "5")), tracetest.Files(t, draw("c", "6"))
	if len(a) != 3 {
		t.Errorf("%d files for three days", len(a))
	}
	for name, text := range a {
		if b[name] != text {
			t.Errorf("%s differs between two equal calls", name)
		}
		if c[name] == text {
			t.Errorf("%s is the same with another seed", name)
		}
		if !strings.Contains(text, "momentum") || !strings.Contains(text, "seed") {
			t.Errorf("%s does not say its parameters", name)
		}
	}
	if tr, err := trace.Open(filepath.Join(dir, "a"), trace.ReadOptions{}); err != nil || !tr.Synthetic ||
		!strings.Contains(tr.About, "seed 5") {
		t.Errorf("%+v, %v", tr, err)
	}
}

// TestGenerateLike: a trace drawn like another has its span and its markets, or the requested ones.
func TestGenerateLike(t *testing.T) {
	dir := t.TempDir()
	first, like, more := filepath.Join(dir, "first"), filepath.Join(dir, "like"), filepath.Join(dir, "more")
	for _, args := range [][]string{
		{"--preset", "aws-2021", "--markets", "6", "--days", "4", "--out", first},
		{"--like", first, "--out", like},
		{"--like", first, "--markets", "8", "--days", "2", "--from", "2030-01-01", "--availability", "--out", more},
	} {
		if code, out, errs := call(t, append([]string{"trace", "generate"}, args...)...); code != 0 {
			t.Fatalf("%v: exit code %d: %s%s", args, code, out, errs)
		}
	}
	for dir, want := range map[string][]string{
		like: {"2021-03-01 00:00 to 2021-03-05 00:00", "6 of", "imitate first"},
		more: {"2030-01-01 00:00 to 2030-01-03 00:00", "8 of"},
	} {
		tr, err := trace.Open(dir, trace.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		out := fmt.Sprintf("%s to %s, %d of, %s", cli.Minute(tr.From), cli.Minute(tr.To), len(tr.Series), tr.About)
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("no %q in %s", w, out)
			}
		}
	}
}

func TestGenerateWrongCalls(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	for name, x := range map[string]struct {
		args []string
		want []string
	}{
		"nothing to imitate": {[]string{"--out", out}, []string{"neither --preset nor --like", "aws-2024", "rackspace-2026"}},
		"both":               {[]string{"--preset", "aws-2024", "--like", "embedded", "--out", out}, []string{"exclude each other"}},
		"no target":          {[]string{"--preset", "aws-2024"}, []string{"--out is missing"}},
		"unknown preset":     {[]string{"--preset", "aws-1999", "--out", out}, []string{`"aws-1999"`, "aws-2021"}},
		"too many":           {[]string{"--preset", "aws-2024", "--markets", "9000000", "--out", out}, []string{"9000000", "the catalog has"}},
		"too long":           {[]string{"--preset", "aws-2024", "--days", "99999", "--out", out}, []string{"--days: 99999"}},
		"no date":            {[]string{"--preset", "aws-2024", "--from", "soon", "--out", out}, []string{`--from: "soon"`}},
		"no such trace":      {[]string{"--like", filepath.Join(dir, "none"), "--out", out}, []string{"none"}},
		"unknown embedded":   {[]string{"--like", "embedded:none", "--out", out}, []string{"none", "rackspace"}},
	} {
		code, _, errs := call(t, append([]string{"trace", "generate"}, x.args...)...)
		for _, w := range x.want {
			if code != 2 || !strings.Contains(errs, w) {
				t.Errorf("%s: exit code %d, no %q in: %s", name, code, w, errs)
			}
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("something was written")
	}
	code, list, _ := call(t, "trace", "generate", "--preset", "help")
	if code != 0 || strings.Count(list, "\n") != 9 {
		t.Errorf("exit code %d: %s", code, list)
	}
}
