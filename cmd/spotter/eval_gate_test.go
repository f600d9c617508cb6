package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/test/nightly"
)

// breaks is the variable that says which of the breakages a broken build has.
const breaks = "SPOTTER_BREAKS"

// An edit changes one line of a file of this module, for one breakage.
type edit struct{ file, from, to string }

// brokenFile is added to each package that is edited. Its function is reports which breakage is
// active, so that one build has them all.
const brokenFile = "package %s\n\nimport \"os\"\n\nfunc is(name string) bool { return os.Getenv(%q) == name }\n\n" +
	"func or[T any](name string, broken, whole T) T {\n\tif is(name) {\n\t\treturn broken\n\t}\n\treturn whole\n}\n"

// overlaid builds the program with edits to the text of files, and does not change the files.
func overlaid(t *testing.T, edits []edit) string {
	t.Helper()
	dir := t.TempDir()
	replace, texts := map[string]string{}, map[string]string{}
	for _, e := range edits {
		path, err := filepath.Abs(filepath.Join("..", "..", e.file))
		if err != nil {
			t.Fatal(err)
		}
		if texts[path] == "" {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[path] = string(text)
		}
		if strings.Count(texts[path], e.from) != 1 {
			t.Fatalf("%s has not one line %q to break: name the one that is there now", e.file, e.from)
		}
		texts[path] = strings.Replace(texts[path], e.from, e.to, 1)
		of := filepath.Dir(path)
		texts[filepath.Join(of, "broken.go")] = fmt.Sprintf(brokenFile, filepath.Base(of), breaks)
	}
	if nightly.Count(0, 1) == 0 {
		t.Skip("the lines to break are there; make nightly builds the program with them broken")
	}
	for path, text := range texts {
		replace[path] = filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "spotter")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-overlay",
		filepath.Join(dir, "overlay.json"), "-o", path, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// TestGate breaks the program on purpose and compares it with the program as it is. A breakage
// that loses money or causes outages fails, and one whose decisions differ but are as good
// passes. The build itself does not cause the failures: without an active breakage it changes no
// result, and noise changes decisions too.
func TestGate(t *testing.T) {
	base := otherSpotter(t, "v1.0.0")
	broken := overlaid(t, []edit{
		{"policy/builtin/spotvortex/config.go", "MaxShare:       1,", `MaxShare: or("share", .05, 1.),`},
		{"policy/builtin/spotvortex/config.go", "r.Increase = Edge{SavingsMin: 0.249, PaybackMax: 6.372}",
			`r.Increase = Edge{SavingsMin: or("threshold", .95, .249), PaybackMax: 6.372}`},
		{"policy/builtin/spotvortex/config.go", "Calm:           30 * time.Minute,",
			`Calm: or("noise", 31, 30*time.Minute/time.Minute)*time.Minute,`},
		{"sim/cluster/pdb.go", "return x.Allowed > 0\n", "return x.Allowed > 0 || is(\"budgets\")\n"},
	})
	cases := []struct {
		name, breaks, scenario string
		code                   int
		want                   string
	}{
		{"disruption budgets ignored", "budgets", "squeeze", cli.ExitFailed, "fail"},
		{"nothing", "", "squeeze", cli.ExitOK, "no change"},
		{"next to nothing on spot", "share", "web-week", cli.ExitFailed, "fail"},
		{"savings that are never enough", "threshold", "web-week", cli.ExitFailed, "fail"},
		{"noise", "noise", "asg-web", cli.ExitOK, "pass"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "r.json")
			run := exec.CommandContext(t.Context(), broken, "eval", c.scenario, "--trace", "synthetic", "--start", "on-demand",
				"--policies", "spotvortex", "--seeds", "10",
				"--seeds-from", "gate", "--compare", base, "--out", out)
			run.Env = append(os.Environ(), breaks+"="+c.breaks)
			said, err := run.CombinedOutput()
			if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			var report struct {
				Comparison struct {
					Verdict, Headline string
					Changes           []struct {
						Policy  string
						Changed int
					}
				}
			}
			data, err := os.ReadFile(out)
			if err == nil {
				err = json.Unmarshal(data, &report)
			}
			got := report.Comparison
			if err != nil || run.ProcessState.ExitCode() != c.code || got.Verdict != c.want {
				t.Fatalf("exit %d, %s (%s), want %d and %s: %v\n%s", run.ProcessState.ExitCode(), got.Verdict, got.Headline, c.code, c.want, err, said)
			}
			changed := 0
			for _, x := range got.Changes {
				changed += x.Changed
			}
			if (changed > 0) != (c.breaks != "") {
				t.Errorf("%d runs changed", changed)
			}
			if c.code == cli.ExitFailed && !strings.Contains(string(said), "worse than") {
				t.Errorf("it does not say why it fails: %s", said)
			}
			t.Log(got.Headline)
		})
	}
}
