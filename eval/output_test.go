package eval

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var rewrite = flag.Bool("rewrite-golden", false, "write the outputs that are there instead of comparing them")

func TestOutputs(t *testing.T) {
	two := shown()
	two.Cases = cases(1, "batch-night", "web-week")
	r, err := Run(context.Background(), shown(), fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	several, err := Run(context.Background(), two, fake{fail: func(j Job) bool { return j.Policy == "spot" && j.Seed == 3 }}.run)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		file   string
		report *Report
		format Format
		width  int
	}{
		{"report.txt", r, Table, 120},
		{"report-80.txt", r, Table, 80},
		{"report.md", r, Markdown, 0},
		{"report.csv", r, CSV, 0},
		{"several.txt", several, Table, 120},
	} {
		var out bytes.Buffer
		if err := x.report.Write(&out, x.format, x.width); err != nil {
			t.Fatalf("%s: %v", x.file, err)
		}
		golden(t, x.file, out.Bytes())
	}
}

// golden compares got with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *rewrite {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; write it anew with -rewrite-golden and read the difference. Got:\n%s", path, got)
	}
}
