// Command mutations breaks one line at a time and says whether a test notices. The lines
// and their tests are in mutations.yaml; words given as arguments choose those whose name
// holds one of them. No file of the checkout is written: the compiler takes the changed
// file in place of the one that is there (go build -overlay).
//
// It exits with 1 where a mutation survives, with 2 where the table does not fit the code:
// a text that is not there exactly once, a mutation that does not compile, tests that fail
// or are not there without any, and with 3 where something else failed.
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

//go:embed mutations.yaml
var table []byte

// A mutation is one change of one file, and the tests that are to fail under it.
type mutation struct {
	Name string `json:"name"`
	File string `json:"file"`

	// Old is in the file exactly once. New takes its place; it may be empty.
	Old string `json:"old"`
	New string `json:"new"`

	// Packages are what go test is given, and Run is the pattern of its -run.
	Packages string `json:"packages"`
	Run      string `json:"run"`
}

// errTable is wrapped by every fault of the table.
var errTable = errors.New("mutations.yaml does not fit the code")

func main() {
	survived, err := run(os.Args[1:])
	switch {
	case err != nil:
		fmt.Fprintf(os.Stderr, "mutations: %v\n", err)
		if errors.Is(err, errTable) {
			os.Exit(2)
		}
		os.Exit(3)
	case survived > 0:
		os.Exit(1)
	}
}

func run(words []string) (survived int, err error) {
	all, err := chosen(words)
	if err != nil {
		return 0, err
	}
	// The whole table is read before anything runs, so that it is mended in one go.
	changed := make([][]byte, len(all))
	var faults []error
	for i := range all {
		var fault error
		changed[i], fault = all[i].apply()
		faults = append(faults, fault)
	}
	if err := errors.Join(faults...); err != nil {
		return 0, err
	}
	folder, err := os.MkdirTemp("", "mutations")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	for i := range all {
		m, begin := &all[i], time.Now()
		by, err := m.test(folder, changed[i])
		result := "caught by " + strings.Join(by, ", ")
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("%s: %w", m.Name, err))
			result = "not tried"
		case len(by) == 0:
			survived++
			result = fmt.Sprintf("SURVIVED -run '%s' %s", m.Run, m.Packages)
		}
		fmt.Printf("%-40s %4.0f s  %s\n", m.Name, time.Since(begin).Seconds(), result)
	}
	fmt.Printf("%d mutations, %d survived\n", len(all), survived)
	return survived, errors.Join(faults...)
}

// chosen returns the mutations whose names hold one of words, and all without words.
func chosen(words []string) ([]mutation, error) {
	var all []mutation
	if err := yaml.UnmarshalStrict(table, &all); err != nil {
		return nil, fmt.Errorf("%w: %w", errTable, err)
	}
	all = slices.DeleteFunc(all, func(m mutation) bool {
		return len(words) > 0 && !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(m.Name, w) })
	})
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: no name holds one of %q", errTable, words)
	}
	return all, nil
}

// apply returns the file of m as changed.
func (m *mutation) apply() ([]byte, error) {
	text, err := os.ReadFile(m.File)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errTable, m.Name, err)
	}
	if n := bytes.Count(text, []byte(m.Old)); n != 1 || m.Old == m.New {
		return nil, fmt.Errorf("%w: %s: %s has %q %d times, and it becomes %q", errTable, m.Name, m.File, m.Old, n, m.New)
	}
	return bytes.Replace(text, []byte(m.Old), []byte(m.New), 1), nil
}

// test returns the tests that fail under m, none where it survives. They pass without it:
// that is tried first, and is for free where nothing has changed since.
func (m *mutation) test(folder string, changed []byte) ([]string, error) {
	if by, out, err := m.goTest(); err != nil {
		return nil, err
	} else if len(by) > 0 || bytes.Contains(out, []byte("[no tests to run]")) || bytes.Contains(out, []byte("--- SKIP")) {
		return nil, fmt.Errorf("%w: its tests do not pass as the code is:\n%s", errTable, tail(out))
	}
	file, err := filepath.Abs(m.File)
	if err != nil {
		return nil, err
	}
	to, overlay := filepath.Join(folder, "changed.go"), filepath.Join(folder, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {file: to}})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.WriteFile(to, changed, 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
		return nil, err
	}
	by, _, err := m.goTest("-overlay", overlay, "-count", "1", "-failfast")
	return by, err
}

// goTest runs the tests of m and returns those that fail, or that one panicked or hung.
func (m *mutation) goTest(flags ...string) (failed []string, out []byte, err error) {
	args := slices.Concat([]string{"test", "-v", "-timeout", "2m", "-run", m.Run}, flags, strings.Fields(m.Packages))
	cmd := exec.Command("go", args...)
	// A test that is skipped for want of a control plane would not notice anything, and
	// what fails here is not to be written down to be tried again.
	cmd.Env = append(os.Environ(), "SPOTTER_TESTENV=required", "RAPID_NOFAILFILE=true")
	out, err = cmd.CombinedOutput()
	exit := new(exec.ExitError)
	switch {
	case err == nil:
		return nil, out, nil
	case !errors.As(err, &exit):
		return nil, out, err
	case bytes.Contains(out, []byte("[build failed]")), bytes.Contains(out, []byte("[setup failed]")):
		return nil, out, fmt.Errorf("%w: it does not compile:\n%s", errTable, tail(out))
	}
	for line := range strings.Lines(string(out)) {
		if rest, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			failed = append(failed, strings.Fields(rest)[0])
		}
	}
	if failed == nil {
		failed = []string{"a panic or the time limit"}
	}
	return failed, out, nil
}

// tail returns the last lines of what a command wrote.
func tail(out []byte) []byte {
	lines := bytes.SplitAfter(out, []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-20):], nil)
}
