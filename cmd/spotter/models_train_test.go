package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/cli"
	"github.com/spotter-dev/spotter/eval"
)

// TestModelsTrain trains for a moment: the bundle is whole, and equal commands
// give equal bytes however many worlds are played at once.
func TestModelsTrain(t *testing.T) {
	small := []string{"--rounds", "1", "--worlds", "2", "--steps", "2", "--held-out", "1", "--traces", "1"}
	var manifests []string
	for _, parallel := range []string{"1", "2"} {
		dir := filepath.Join(t.TempDir(), "bundle")
		code, out, stderr := call(t, append([]string{"models", "train", "-o", dir, "--parallel", parallel}, small...)...)
		if code != cli.ExitOK || !strings.Contains(out, "learned from 2 worlds") || !strings.Contains(stderr, "round 1 of 1") {
			t.Fatalf("exit %d: %s%s", code, out, stderr)
		}
		text, err := os.ReadFile(filepath.Join(dir, "MODEL_MANIFEST.json"))
		if err != nil {
			t.Fatal(err)
		}
		manifests = append(manifests, string(text)) // it holds the SHA-256 of the graph
		if code, out, stderr := call(t, "models", "verify", dir); code != cli.ExitOK {
			t.Errorf("verify: exit %d: %s%s", code, out, stderr)
		}
		wrongCallIs(t, "is not empty", "models", "train", "-o", dir)
	}
	if manifests[0] != manifests[1] {
		t.Errorf("two trainings differ:\n%s\n%s", manifests[0], manifests[1])
	}
	wrongCallIs(t, "-o is missing", "models", "train")
	wrongCallIs(t, "rounds 0 is not from 1", "models", "train", "-o", filepath.Join(t.TempDir(), "x"), "--rounds", "0")
	wrongCallIs(t, "held -1 is not from 1", "models", "train", "-o", filepath.Join(t.TempDir(), "x"), "--held-out", "-1")
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
// worlds: it saves more, and has no more outage in the mean.
func TestActionsGate(t *testing.T) {
	if raced {
		t.Skip("it plays whole worlds one after another")
	}
	withONNX(t)
	for _, world := range []string{"web-week", "mixed-pool", "batch-night"} {
		code, out, stderr := call(t, "eval", world, "--seeds", "3", "--policies", "model:bundle=builtin-actions",
			"--baseline", eval.StandingBaseline, "--gate", "net_profit_improvement_pct.median >= 2", "--gate", "outage_delta.mean <= 0")
		if code != cli.ExitOK || strings.Count(out, "✓") != 2 {
			t.Errorf("%s: exit %d: %s%s", world, code, out, stderr)
		}
	}
}
