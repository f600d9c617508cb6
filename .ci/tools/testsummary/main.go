// Command testsummary prints one line that says how many tests of several runs passed and
// failed, and which were skipped and why. Its arguments are files of events as go test -json
// writes them. The last result of a test in a file counts, so that one that passed when it was
// tried again has passed; of several files a failure counts, and then a pass. It exits with 1 where a test failed or none was run.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

func main() {
	s, err := summarise(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsummary:", err)
		os.Exit(2)
	}
	fmt.Println(s)
	if s.failed > 0 || s.passed == 0 {
		os.Exit(1)
	}
}

// A summary counts tests. A test of which only cases were skipped has passed; the cases are
// counted as skipped.
type summary struct {
	passed, failed, skipped int
	reasons                 map[string]int
}

// An event is one line of go test -json.
type event struct {
	Action, Package, Test, Output string
}

// A test is one in one package; the result is pass, fail or skip.
type test struct{ result, reason string }

// summarise reads all files.
func summarise(files []string) (*summary, error) {
	s := &summary{reasons: map[string]int{}}
	all := map[string]*test{}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		tests, err := read(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for key, t := range tests {
			if have := all[key]; have == nil || rank[t.result] > rank[have.result] {
				all[key] = t
			}
		}
	}
	for _, t := range all {
		s.add(t)
	}
	return s, nil
}

// rank orders results: of several runs of a test a failure counts, then a pass.
var rank = map[string]int{"skip": 1, "pass": 2, "fail": 3}

func (s *summary) add(t *test) {
	switch t.result {
	case "pass":
		s.passed++
	case "fail":
		s.failed++
	case "skip":
		s.skipped++
		s.reasons[cmp.Or(t.reason, "no reason is given")]++
	}
}

// said is a line by which a test says why it was skipped, behind the place in its source.
var said = regexp.MustCompile(`^\s*\S+\.go:\d+: (.*)`)

// read returns the tests of one file, and packages that failed without one.
func read(r io.Reader) (map[string]*test, error) {
	tests := map[string]*test{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // not an event: what a build prints
		}
		key := e.Package + "\x00" + e.Test
		t := tests[key]
		if t == nil {
			t = &test{}
			tests[key] = t
		}
		switch e.Action {
		case "output":
			if m := said.FindStringSubmatch(e.Output); m != nil {
				t.reason = strings.TrimSpace(m[1])
			}
		case "fail":
			t.result = e.Action
		case "pass", "skip":
			if e.Test != "" { // packages are no tests
				t.result = e.Action
			} else if t.result == "fail" {
				t.result = "" // it passed when it was tried again
			}
		}
	}
	for key, t := range tests {
		if strings.HasSuffix(key, "\x00") && t.result == "fail" && failedIn(tests, key) {
			t.result = "" // counted by its tests
		}
	}
	return tests, lines.Err()
}

// failedIn reports whether a test of the package with this key failed.
func failedIn(tests map[string]*test, pkg string) bool {
	for key, t := range tests {
		if key != pkg && strings.HasPrefix(key, pkg) && t.result == "fail" {
			return true
		}
	}
	return false
}

// String returns the line: "tests: 12 passed, 0 failed, 3 skipped (2 × reason; 1 × reason)".
func (s *summary) String() string {
	text := fmt.Sprintf("tests: %d passed, %d failed, %d skipped", s.passed, s.failed, s.skipped)
	var why []string
	for reason, n := range s.reasons {
		why = append(why, fmt.Sprintf("%d × %s", n, reason))
	}
	slices.Sort(why)
	if len(why) > 0 {
		text += " (" + strings.Join(why, "; ") + ")"
	}
	return text
}
