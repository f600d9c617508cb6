package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/test/nightly"
)

// copied returns a bundle that may be spoilt.
func copied(t *testing.T) string {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(bundle(t))); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestModelsVerify(t *testing.T) {
	withONNX(t)
	dir := bundle(t)
	code, out, stderr := call(t, "models", "verify", dir)
	if code != cli.ExitOK || !strings.Contains(out, "5 files and 2 graphs are as the manifest says") ||
		!strings.Contains(out, "they answer under ONNX Runtime 1.") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	formsOf(t, "onnx_runtime", "models", "verify", dir)
	for file, spoil := range map[string]func(path string) error{
		"rl_policy.onnx.data": os.Remove,
		"tft.onnx": func(path string) error {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			data[len(data)/2] ^= 1
			return os.WriteFile(path, data, 0o600)
		},
	} {
		spoilt := copied(t)
		if err := os.Chmod(filepath.Join(spoilt, file), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := spoil(filepath.Join(spoilt, file)); err != nil {
			t.Fatal(err)
		}
		if code, out, stderr := call(t, "models", "verify", spoilt); code != cli.ExitFailed || out != "" || !strings.Contains(stderr, file+": ") {
			t.Errorf("%s spoilt: exit %d: %s%s", file, code, out, stderr)
		}
		wrongCallIs(t, file+": ", "sim", "web-week", "--policy", "spotvortex:bundle="+spoilt)
	}
	if code, _, stderr := call(t, "models", "verify", dir, "--cloud", "gcp"); code != cli.ExitFailed ||
		!strings.Contains(stderr, `for "aws" and not for "gcp"`) {
		t.Errorf("another cloud: exit %d: %s", code, stderr)
	}
	wrongCallIs(t, "MODEL_MANIFEST.json", "models", "verify", t.TempDir())
	wrongCallIs(t, "nowhere", "models", "info", "nowhere")
	wrongCallIs(t, "--ticks", "models", "bench", dir, "--ticks", "0")
	wrongCallIs(t, "--markets", "models", "bench", dir, "--markets", "-1")
}

func TestModelsInfoAndBench(t *testing.T) {
	withONNX(t)
	dir := bundle(t)
	code, out, stderr := call(t, "models", "info", dir)
	for _, want := range []string{"2026-03-11", "input [1 12 10]", "q_values [any 6]", "spotvortex-market/1", "m7i-flex",
		"the manifest does not say"} {
		if code != cli.ExitOK || !strings.Contains(out, want) {
			t.Errorf("exit %d, %q is missing: %s%s", code, want, out, stderr)
		}
	}
	code, out, stderr = call(t, "models", "bench", dir, "--markets", "20", "--ticks", "3")
	if code != cli.ExitOK || !strings.HasPrefix(out, "20 markets, 3 ticks\n") || !strings.Contains(out, " ms in the median") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	if code, out, _ := call(t, "models", "bench", dir, "--markets", "20", "--ticks", "3", "-o", "yaml",
		"-q"); code != cli.ExitOK || !strings.Contains(out, "tick_ms_p99: ") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// TestModelsWithout works without ONNX Runtime: files are verified, policies
// that need it are skipped with the command that enables them, and others run.
func TestModelsWithout(t *testing.T) {
	without(t)
	dir := bundle(t)
	code, out, stderr := call(t, "eval", "zone-outage", "--seeds", "1", "--baseline", "on-demand",
		"--policies", "static,spotvortex:bundle="+dir, "--format", "csv")
	if code != cli.ExitOK || !strings.Contains(stderr, "skipped spotvortex:bundle="+dir) || !strings.Contains(stderr, "make onnxruntime") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if !strings.Contains(out, ",static,") || strings.Contains(out, ",spotvortex:bundle="+dir+",") {
		t.Errorf("what ran:\n%s", out)
	}
	wrongCallIs(t, "no policy is left", "eval", "zone-outage", "--policies", "model:bundle="+dir)
	wrongCallIs(t, "ONNX Runtime is not available", "sim", "zone-outage", "--policy", "model:bundle="+dir)
	wrongCallIs(t, "ONNX Runtime is not available", "models", "verify", dir)
	wrongCallIs(t, "bundle is missing", "sim", "zone-outage", "--policy", "model")
	wrongCallIs(t, `"bundle"`, "sim", "zone-outage", "--policy", "static:bundle="+dir)
}

// TestSimWithBundle runs each policy that reads forecasts with those of a
// bundle: twice the same, in the same weather as without, otherwise than without,
// and what is recorded can be decided again without the bundle.
func TestSimWithBundle(t *testing.T) {
	withONNX(t)
	dir := bundle(t)
	weather := lineOf(t, "weather ", "spot")
	for _, spec := range []string{"model:bundle=" + dir, "spotvortex:compat=true:bundle=" + dir, "spotvortex:bundle=" + dir} {
		steps := filepath.Join(t.TempDir(), "steps")
		if got := lineOf(t, "weather ", spec, "--record", steps); got != weather {
			t.Errorf("%s: %s, want %s", spec, got, weather)
		}
		first, second := lineOf(t, "hash ", spec), lineOf(t, "hash ", spec)
		if first != second {
			t.Errorf("%s: two runs differ", spec)
		}
		if plain, _, _ := strings.Cut(spec, ":bundle="); plain != "model" && lineOf(t, "hash ", plain) == first {
			t.Errorf("%s decides as without the bundle", spec)
		}
		without(t)
		if code, out, stderr := call(t, "replay", steps); code != cli.ExitOK {
			t.Errorf("%s: replay: exit %d: %s%s", spec, code, out, stderr)
		}
		t.Setenv("SPOTTER_ONNXRUNTIME", "")
		withONNX(t)
	}
}

// lineOf runs a scenario under a policy and returns the first line of the output with a prefix.
func lineOf(t *testing.T, begins, spec string, more ...string) string {
	t.Helper()
	code, out, stderr := call(t, append([]string{"sim", "zone-outage", "--policy", spec}, more...)...)
	if code != cli.ExitOK {
		t.Fatalf("%s: exit %d: %s", spec, code, stderr)
	}
	for _, line := range strings.Split(out, "\n") {
		if strings.HasPrefix(line, begins) {
			return line
		}
	}
	t.Fatalf("%s: no line begins with %q:\n%s", spec, begins, out)
	return ""
}

// TestOutOfScopeIsSaid counts what the bundle was not trained for: the agent's
// bundles know no GPU family.
func TestOutOfScopeIsSaid(t *testing.T) {
	withONNX(t)
	dir := bundle(t)
	code, _, stderr := call(t, "sim", "gpu-training", "--policy", "spotvortex:bundle="+dir)
	if code != cli.ExitOK || !strings.Contains(stderr, ": the bundle scored 0 of ") || !strings.Contains(stderr, "out of its scope") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	spec := "spotvortex:bundle=" + dir
	code, _, stderr = call(t, "eval", "gpu-training", "--seeds", "2", "--policies", spec, "--format", "csv")
	if code != cli.ExitOK || strings.Count(stderr, "warning: "+spec+": the bundle scored 0 of ") != 1 {
		t.Errorf("eval: exit %d: %s", code, stderr)
	}
}

// TestTwoBundles refuses a scenario whose manifests request two forecasts of one market.
func TestTwoBundles(t *testing.T) {
	withONNX(t)
	a, b := bundle(t), copied(t)
	r := runner.New()
	if _, err := r.Forecaster("portfolio:bundle="+a, "spotvortex:bundle="+b); err == nil || !strings.Contains(err.Error(), "two bundles") {
		t.Error(err)
	}
	if _, err := r.Forecaster("portfolio:bundle="+a, "spotvortex:compat=true:bundle="+a); err == nil ||
		!strings.Contains(err.Error(), "compat=true") {
		t.Error(err)
	}
	if _, err := r.Forecaster("portfolio:bundle="+a, "spotvortex", "model:bundle="+a); err != nil {
		t.Error(err)
	}
}

// TestBuiltinBundle runs a policy with the bundle of the program: twice the same,
// and otherwise than without it.
func TestBuiltinBundle(t *testing.T) {
	withONNX(t)
	if code, out, stderr := call(t, "models", "verify", "builtin"); code != cli.ExitOK || !strings.Contains(out, "they answer") {
		t.Fatalf("exit %d: %s%s", code, out, stderr)
	}
	spec := "portfolio:bundle=builtin"
	first, second := lineOf(t, "hash ", spec), lineOf(t, "hash ", spec)
	if first != second || first == lineOf(t, "hash ", "portfolio") {
		t.Errorf("%s and %s, and without the bundle %s", first, second, lineOf(t, "hash ", "portfolio"))
	}
}

// TestBuiltinActionsRun runs the policy model with the network that the program
// ships, which values the actions of every pool.
func TestBuiltinActionsRun(t *testing.T) {
	withONNX(t)
	code, out, stderr := call(t, "sim", "zone-outage", "--policy", "model:bundle=builtin-actions")
	if code != cli.ExitOK || strings.Contains(stderr, "valued the actions") || !strings.Contains(out, "model:bundle=builtin-actions") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	wrongCallIs(t, "has no forecaster", "sim", "zone-outage", "--policy", "portfolio:bundle=builtin-actions")
}

// TestActionsGate holds the network that the program ships against the baseline in three
// scenarios: it saves more, and has no more outage in the mean but for a tenth of a minute a
// week, since in batch-night the baseline has none in any of the 36.
func TestActionsGate(t *testing.T) {
	if raced {
		t.Skip("it plays whole worlds one after another")
	}
	withONNX(t)
	scenariosOf := []string{"mixed-pool", "web-week", "batch-night"}
	for _, scenario := range scenariosOf[:nightly.Count(1, len(scenariosOf))] {
		code, out, stderr := call(t, "eval", scenario, "--seeds", "3", "--policies", "model:bundle=builtin-actions",
			"--baseline", "spotvortex", "--gate", "net_profit_improvement_pct.median >= 2", "--gate", "outage_delta.mean <= 0.1")
		if code != cli.ExitOK || !strings.Contains(out, "2 gates passed") {
			t.Errorf("%s: exit %d: %s%s", scenario, code, out, stderr)
		}
	}
}
