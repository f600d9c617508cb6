// Command mutations breaks one line at a time and says whether a test notices. The lines
// and their tests are in mutations.yaml; words given as arguments choose those whose name
// holds one of them. No file of the checkout is written: the compiler takes the changed
// file in place of the one that is there (go build -overlay).
//
// With --random N it breaks N lines of guarding code that --seed draws, and runs the tests of their packages that need no
// control plane; --at repeats one.
//
// It exits with 1 where a mutation survives, of random ones more than a tenth, with 2 where the table does not fit the code:
// a text that is not there exactly once, a mutation that does not compile, tests that fail
// or are not there without any, and with 3 where something else failed.
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
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

	// plain leaves out the tests that need a control plane.
	plain bool
}

// errTable is wrapped by every fault of the table.
var errTable = errors.New("mutations.yaml does not fit the code")

// errCompile is wrapped where a mutation does not compile.
var errCompile = fmt.Errorf("%w: it does not compile", errTable)

func main() {
	random := flag.Int("random", 0, "try `N` random mutations of guarding lines")
	seed := flag.Uint64("seed", 1, "the random mutations are those of seed `S`")
	at := flag.String("at", "", "try the random mutations called `NAME[,NAME…]`")
	flag.Parse()
	var survived int
	var err error
	switch {
	case *at != "":
		survived, err = runRandom(0, *seed, strings.Split(*at, ","))
	case *random > 0:
		survived, err = runRandom(*random, *seed, nil)
	default:
		survived, err = run(flag.Args())
	}
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
	// The whole table is read before anything runs, so that all its faults are reported at once.
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
		m := &all[i]
		caught, _, err := try(m, folder, changed[i])
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", m.Name, err))
		} else if !caught {
			survived++
		}
	}
	fmt.Printf("%d mutations, %d survived\n", len(all), survived)
	return survived, errors.Join(faults...)
}

// try runs the tests of m on its changed file, prints the result, and reports whether one failed.
func try(m *mutation, folder string, changed []byte) (caught, compiles bool, err error) {
	begin := time.Now()
	by, err := m.test(folder, changed)
	if errors.Is(err, errCompile) && m.plain {
		return false, false, nil
	}
	result := "caught by " + strings.Join(by, ", ")
	switch {
	case err != nil:
		result = "not tried"
	case len(by) == 0:
		result = fmt.Sprintf("SURVIVED -run '%s' %s", m.Run, m.Packages)
	}
	fmt.Printf("%-40s %4.0f s  %s\n", m.Name, time.Since(begin).Seconds(), result)
	return len(by) > 0, true, err
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
	var patient []string // the tests of a whole package may take long, and are cached
	if m.plain {
		patient = []string{"-timeout", "15m"}
	}
	if by, out, err := m.goTest(patient...); err != nil {
		return nil, err
	} else if len(by) > 0 || bytes.Contains(out, []byte("[no tests to run]")) ||
		!m.plain && bytes.Contains(out, []byte("--- SKIP")) {
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
	limit := "2m"
	if m.plain { // all tests of a package
		limit = "5m"
	}
	args := slices.Concat([]string{"test", "-v", "-timeout", limit, "-run", m.Run}, flags, strings.Fields(m.Packages))
	cmd := exec.Command("go", args...)
	// A test that is skipped for want of a control plane would not notice anything, and
	// what fails here is not to be written down to be tried again.
	cmd.Env = append(os.Environ(), "SPOTTER_TESTENV=required", "RAPID_NOFAILFILE=true")
	if m.plain {
		cmd.Env = append(cmd.Env, "SPOTTER_TESTENV=", "KUBEBUILDER_ASSETS="+os.DevNull)
	}
	out, err = cmd.CombinedOutput()
	exit := new(exec.ExitError)
	switch {
	case err == nil:
		return nil, out, nil
	case !errors.As(err, &exit):
		return nil, out, err
	case bytes.Contains(out, []byte("[build failed]")), bytes.Contains(out, []byte("[setup failed]")):
		return nil, out, fmt.Errorf("%w:\n%s", errCompile, tail(out))
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
