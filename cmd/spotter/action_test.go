package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/spotter-dev/spotter/scenarios"
)

// actionFolder is where the steps of action.yml are.
var actionFolder = filepath.Join("..", "..", ".github", "action")

// step runs a step of the action as a runner does and returns what it printed
// and its outputs.
func step(t *testing.T, name string, env ...string) (said string, outputs map[string]string, code int) {
	t.Helper()
	for _, tool := range []string{"bash", "jq", "curl", "git"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the steps of the action need %s: %v", tool, err)
		}
	}
	dir := t.TempDir()
	out := filepath.Join(dir, "output")
	c := exec.CommandContext(t.Context(), "bash", filepath.Join(actionFolder, name+".sh")) //nolint:gosec // a file of this repository
	c.Env = append(os.Environ(), append([]string{"GITHUB_OUTPUT=" + out, "RUNNER_TEMP=" + dir}, env...)...)
	text, err := c.CombinedOutput()
	if err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	outputs = map[string]string{}
	data, _ := os.ReadFile(out) // it does not exist where the step had no output
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		key, value, _ := strings.Cut(line, "=")
		outputs[key] = value
	}
	return string(text), outputs, c.ProcessState.ExitCode()
}

// TestActionEval runs the step that compares, with a gate that holds, one that
// does not, and words that a shell would take for its own.
func TestActionEval(t *testing.T) {
	spotter := otherSpotter(t, "v1.0.0")
	evil := filepath.Join(t.TempDir(), "evil")
	for _, c := range []struct{ name, gates, scenario, code, outcome string }{
		{"good", "on-demand:outage_minutes.max <= 0\n\n  \n", "tiny", "0", "pass"},
		{"a gate fails", "on-demand:bill_usd.max <= 1", "tiny", "1", "fail"},
		{"a wrong call", "", "$(touch " + evil + ");`touch " + evil + "`", "2", "error"},
		{"a flag is no scenario", "", "--help", "2", "error"},
	} {
		summary := filepath.Join(t.TempDir(), "summary")
		said, out, code := step(t, "eval", "SPOTTER="+spotter, "BASE="+spotter, "BASE_COMMIT=41405d6",
			"SCENARIOS="+c.scenario, "POLICIES=on-demand",
			"BASELINE=on-demand", "SEEDS=6", "GATES="+c.gates, "GITHUB_STEP_SUMMARY="+summary)
		if code != 0 || out["code"] != c.code || out["verdict"] != c.outcome {
			t.Errorf("%s: exit %d, outputs %v\n%s", c.name, code, out, said)
			continue
		}
		if _, err := os.Stat(evil); err == nil {
			t.Fatalf("%s: an input was run", c.name)
		}
		if c.outcome == "error" {
			continue
		}
		md, err := os.ReadFile(summary)
		if err != nil || !strings.Contains(string(md), "Spotter: no change, $") || out["headline"] != "this change: none, every run is equal" ||
			out["net-savings"] != "0" || out["outages"] != "0" || !strings.Contains(said, "this change: none, every run is equal") {
			t.Errorf("%s: %v, outputs %v\n%s", c.name, err, out, said)
		}
		for _, key := range []string{"json", "markdown", "junit", "html", "comment"} {
			if info, err := os.Stat(out[key]); err != nil || info.Size() == 0 {
				t.Errorf("%s: output %s: %v", c.name, key, err)
			}
		}
	}
}

// TestActionWhatIf runs the step that says what changed pools cost, against those of the base and
// against those of the scenario, and one that cannot be run.
func TestActionWhatIf(t *testing.T) {
	spotter := otherSpotter(t, "v1.0.0")
	text, err := scenarios.Source("tiny")
	if err != nil {
		t.Fatal(err)
	}
	const pool = "{apiVersion: spotter.dev/v1alpha1, kind: CapacityPool, metadata: {name: %s}, spec: {backend: {karpenter: {nodeClassName: default}}, markets: {families: [%s]}}}\n"
	base, head := t.TempDir(), t.TempDir()
	for folder, pools := range map[string]string{base: fmt.Sprintf(pool, "general", "m5") + "---\n" +
		fmt.Sprintf(pool, "gone", "c5"), head: fmt.Sprintf(pool, "general", "r5")} {
		for name, text := range map[string]string{"pools/p.yaml": pools, "same/p.yaml": fmt.Sprintf(pool, "general", "m5"),
			"cluster.yaml": strings.Replace(string(text), "duration: 168h", "duration: 24h", 1)} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	script, err := filepath.Abs(actionFolder)
	if err != nil {
		t.Fatal(err)
	}
	old := actionFolder
	actionFolder = script
	t.Cleanup(func() { actionFolder = old })
	t.Chdir(head)
	for _, c := range []struct{ name, whatif, files, scenarios, code, outcome, comment string }{
		{"dearer pools", "pools", base, "cluster.yaml", "0", "warn", "### ⚠ Spotter: +$"},
		{"the same pools", "same", base, "cluster.yaml", "0", "pass", "<!-- spotter: nothing new -->\n### ✓ Spotter: no change"},
		{"two scenarios", "pools", base, "cluster.yaml\ncluster.yaml", "0", "warn", "### ⚠ Spotter: +$"},
		{"no base", "pools", "", "cluster.yaml", "0", "warn", "### ⚠ Spotter: +$"},
		{"no such folder", "nowhere", base, "cluster.yaml", "2", "error", ""},
		{"a flag is no scenario", "pools", base, "--help", "2", "error", ""},
	} {
		summary := filepath.Join(t.TempDir(), "summary")
		said, out, code := step(t, "eval", "SPOTTER="+spotter, "BASE_FILES="+c.files, "SCENARIOS="+c.scenarios,
			"WHATIF="+c.whatif, "TRACE=synthetic", "SEEDS=9", "GITHUB_STEP_SUMMARY="+summary)
		if code != 0 || out["code"] != c.code || out["verdict"] != c.outcome {
			t.Errorf("%s: exit %d, outputs %v\n%s", c.name, code, out, said)
			continue
		}
		if c.outcome == "error" {
			continue
		}
		md, err := os.ReadFile(out["comment"])
		sum, sumErr := os.ReadFile(summary)
		if err != nil || sumErr != nil || !bytes.Equal(md, sum) || !strings.HasPrefix(string(md), c.comment) ||
			strings.Count(string(md), "### ") != 1+strings.Count(c.scenarios, "\n") ||
			!strings.Contains(c.comment, strings.SplitAfter(out["headline"], ": ")[0]) {
			t.Errorf("%s: %v, %v, outputs %v\n%s\n%s", c.name, err, sumErr, out, said, md)
		}
		for _, key := range []string{"json", "markdown", "comment"} {
			if info, err := os.Stat(out[key]); err != nil || info.Size() == 0 || !strings.HasPrefix(out[key], out["folder"]) {
				t.Errorf("%s: output %s: %v", c.name, key, err)
			}
		}
	}
}

// TestActionBuild finds the program and what to compare it with: elsewhere than
// in Spotter's repository the same program in the files of the base.
func TestActionBuild(t *testing.T) {
	spotter := otherSpotter(t, "v1.0.0")
	repo := t.TempDir()
	git := func(args ...string) string {
		c := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com",
			"-C", repo}, args...)...)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(repo, "w.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", "w.yaml")
		git("commit", "-qm", "x")
	}
	write("old")
	base := git("rev-parse", "HEAD")
	write("new")
	script, err := filepath.Abs(actionFolder)
	if err != nil {
		t.Fatal(err)
	}
	old := actionFolder
	actionFolder = script
	t.Cleanup(func() { actionFolder = old })
	t.Chdir(repo)
	said, out, code := step(t, "build", "BINARY="+spotter, "BASE_SHA="+base, "COMPARE=")
	if code != 0 || out["commit"] != base || out["base"] != "" || out["spotter"] == "" {
		t.Fatalf("exit %d, %v\n%s", code, out, said)
	}
	if text, err := os.ReadFile(filepath.Join(out["files"], "w.yaml")); err != nil || string(text) != "old" {
		t.Errorf("the base has %q, %v", text, err)
	}
	if _, out, code = step(t, "build", "BINARY="+spotter, "BASE_SHA="+base, "COMPARE=none"); code != 0 ||
		out["files"] != "" || out["commit"] != "" {
		t.Errorf("compare none: exit %d, %v", code, out)
	}
	if said, _, code = step(t, "build", "BINARY="+spotter, "COMPARE=nowhere"); code != 2 ||
		!strings.Contains(said, "there is no commit nowhere") {
		t.Errorf("a commit that is not there: exit %d, %s", code, said)
	}
	if said, _, code = step(t, "build", "BINARY=/nowhere"); code != 2 || !strings.Contains(said, "is no program") {
		t.Errorf("a binary that is not there: exit %d, %s", code, said)
	}
}

// TestActionFile: inputs reach scripts by the environment alone, and every
// input and output that the file states is used.
func TestActionFile(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var action struct {
		Inputs  map[string]struct{ Description string }
		Outputs map[string]struct{ Value string }
		Runs    struct {
			Using string
			Steps []struct {
				ID, Run, Shell, Uses string
				Env                  map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &action); err != nil {
		t.Fatal(err)
	}
	scripts := ""
	for _, s := range action.Runs.Steps {
		if strings.Contains(s.Run, "${{") {
			t.Errorf("step %q takes an expression into its script", s.Run)
		}
		if (s.Run == "") == (s.Uses == "") || s.Run != "" && s.Shell == "" {
			t.Errorf("step %+v is none", s)
		}
		if m := regexp.MustCompile(`action/(\w+)\.sh`).FindStringSubmatch(s.Run); m != nil {
			script, err := os.ReadFile(filepath.Join(actionFolder, m[1]+".sh"))
			if err != nil {
				t.Error(err)
			}
			for name := range s.Env {
				if name != "ACTION_PATH" && !strings.Contains(string(script), name) {
					t.Errorf("%s.sh does not read %s", m[1], name)
				}
			}
			scripts += string(script)
		}
	}
	for name, in := range action.Inputs {
		if in.Description == "" || !strings.Contains(string(text), "inputs."+name) {
			t.Errorf("input %s is not used or not described", name)
		}
	}
	for name, out := range action.Outputs {
		if !strings.Contains(scripts, "put "+name+" ") || !strings.Contains(out.Value, "steps.eval.outputs."+name) {
			t.Errorf("output %s is never put out", name)
		}
	}
}

// TestWorkflowExamples: the workflows of docs/ci.md are YAML, and give the
// action inputs that it has.
func TestWorkflowExamples(t *testing.T) {
	var action struct{ Inputs map[string]any }
	text, err := os.ReadFile(filepath.Join("..", "..", "action.yml"))
	if err == nil {
		err = yaml.Unmarshal(text, &action)
	}
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(document(t, "ci.md"), -1)
	if len(blocks) != 2 {
		t.Fatalf("%d workflows, want one of GitHub and one of GitLab", len(blocks))
	}
	var github struct {
		Jobs map[string]struct {
			Steps []struct {
				Uses string
				With map[string]any
			}
		}
	}
	if err := yaml.Unmarshal([]byte(blocks[0][1]), &github); err != nil {
		t.Fatal(err)
	}
	used := false
	for _, s := range github.Jobs["spot"].Steps {
		if !strings.HasPrefix(s.Uses, "spotter-dev/spotter@") {
			continue
		}
		used = true
		for name := range s.With {
			if _, ok := action.Inputs[name]; !ok {
				t.Errorf("the action has no input %s", name)
			}
		}
	}
	if !used {
		t.Error("the workflow does not use the action")
	}
	var gitlab struct {
		Spot struct {
			Before []string `yaml:"before_script"`
			Script []string
			After  []string `yaml:"after_script"`
		}
	}
	if err := yaml.Unmarshal([]byte(blocks[1][1]), &gitlab); err != nil {
		t.Fatal(err)
	}
	if starter := gitlabStarter(t); !slices.Equal(gitlab.Spot.Before, starter.Before) {
		t.Errorf("spotter comes by %q, and by %q in what eval init writes", gitlab.Spot.Before, starter.Before)
	}
	if s := gitlab.Spot.Script; len(s) != 2 || understood(t, "docs/ci.md", s[1]) != 1 {
		t.Errorf("%q runs no command of spotter", s)
	}
	if len(gitlab.Spot.After) != 1 || understood(t, "docs/ci.md", gitlab.Spot.After[0]) != 1 {
		t.Errorf("%q posts no comment", gitlab.Spot.After)
	}
}
