package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// An edit changes one line of a file of this module.
type edit struct{ file, from, to string }

// overlaid builds the program with edits in place of what stands in the files,
// which are left as they are.
func overlaid(t *testing.T, edits []edit) string {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for i, e := range edits {
		path, err := filepath.Abs(filepath.Join("..", "..", e.file))
		if err != nil {
			t.Fatal(err)
		}
		from := replace[path]
		if from == "" {
			from = path
		}
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Count(text, []byte(e.from)) != 1 {
			t.Fatalf("%s has not one line %q to break: name the one that is there now", e.file, e.from)
		}
		replace[path] = filepath.Join(dir, string(rune('a'+i))+".go")
		if err := os.WriteFile(replace[path], bytes.Replace(text, []byte(e.from), []byte(e.to), 1), 0o600); err != nil {
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
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-overlay", filepath.Join(dir, "overlay.json"), "-o", path, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// TestGate breaks the program on purpose and holds the breakage against the
// program as it is: what loses money or makes outages fails, and what only does
// other things as well as before passes. Nothing is chosen so that it fails:
// the unbroken program passes the same call (TestCompareWithItself), and the
// last case here changes decisions too.
func TestGate(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program four times")
	}
	base := otherSpotter(t, "v1.0.0")
	for _, c := range []struct {
		name, world string
		edits       []edit
		code        int
		want        string
	}{
		{"cooldown removed", "squeeze", []edit{
			{"policy/spotvortex/config.go", "Step:           10 * time.Minute,", "Step: time.Minute,"},
			{"policy/spotvortex/config.go", "Cooldown:       10 * time.Minute,", "Cooldown: 0,"},
		}, exitGate, "fail"},
		{"hysteresis 0", "squeeze", []edit{
			{"policy/spotvortex/config.go", "Calm:           30 * time.Minute,", "Calm: 0,"},
		}, exitGate, "fail"},
		{"disruption budgets ignored", "squeeze", []edit{
			{"sim/disruption.go", "return x.Allowed > 0\n", "return x.Allowed > -1\n"},
		}, exitGate, "fail"},
		{"noise", "asg-web", []edit{
			{"policy/spotvortex/config.go", "Calm:           30 * time.Minute,", "Calm: 31 * time.Minute,"},
		}, exitGood, "pass"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "r.json")
			run := exec.CommandContext(t.Context(), overlaid(t, c.edits), "eval", c.world, "--policies", "spotvortex", "--seeds", "10",
				"--seeds-from", "gate", "--compare", base, "--out", out)
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
			if changed == 0 {
				t.Errorf("nothing changed, so nothing was tried")
			}
			if c.code == exitGate && !strings.Contains(string(said), "worse than") {
				t.Errorf("it does not say why it fails: %s", said)
			}
			t.Log(got.Headline)
		})
	}
}
