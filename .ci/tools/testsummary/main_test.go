package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSummary: the last result of a test counts, a package that fails without a failing test
// counts as one failure, and skipped tests are grouped by their reason.
func TestSummary(t *testing.T) {
	for _, x := range []struct{ name, events, want string }{
		{"passed", `{"Action":"pass","Package":"p","Test":"A"}
{"Action":"pass","Package":"p"}`, "tests: 1 passed, 0 failed, 0 skipped"},
		{"tried again", `{"Action":"fail","Package":"p","Test":"A"}
{"Action":"fail","Package":"p"}
{"Action":"pass","Package":"p","Test":"A"}
{"Action":"pass","Package":"p"}`, "tests: 1 passed, 0 failed, 0 skipped"},
		{"failed", `{"Action":"fail","Package":"p","Test":"A"}
{"Action":"fail","Package":"p"}`, "tests: 0 passed, 1 failed, 0 skipped"},
		{"does not build", `# p
{"Action":"fail","Package":"p"}`, "tests: 0 passed, 1 failed, 0 skipped"},
		{"skipped", `{"Action":"output","Package":"p","Test":"A","Output":"    a_test.go:7: needs x\n"}
{"Action":"skip","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Test":"B","Output":"    b_test.go:8: needs x\n"}
{"Action":"skip","Package":"p","Test":"B"}
{"Action":"output","Package":"p","Test":"C","Output":"--- SKIP: C (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"C"}
{"Action":"skip","Package":"p"}`, "tests: 0 passed, 0 failed, 3 skipped (1 × no reason is given; 2 × needs x)"},
	} {
		t.Run(x.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "events.json")
			if err := os.WriteFile(file, []byte(x.events), 0o644); err != nil {
				t.Fatal(err)
			}
			s, err := summarise([]string{file})
			if err != nil {
				t.Fatal(err)
			}
			if s.String() != x.want {
				t.Errorf("%s, want %s", s, x.want)
			}
		})
	}
	dir := t.TempDir()
	var files []string
	for i, action := range []string{"skip", "pass", "skip"} {
		files = append(files, filepath.Join(dir, string(rune('a'+i))+".json"))
		if err := os.WriteFile(files[i], []byte(`{"Action":"`+action+`","Package":"p","Test":"A"}`), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := summarise(files); err != nil || s.String() != "tests: 1 passed, 0 failed, 0 skipped" {
		t.Errorf("a test that is skipped in two of three files: %v, %v", s, err)
	}
	if _, err := summarise([]string{"nowhere.json"}); err == nil || !strings.Contains(err.Error(), "nowhere.json") {
		t.Errorf("a file that is missing: %v", err)
	}
}
