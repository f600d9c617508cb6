package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/bundles"
	"github.com/spotter-dev/spotter/internal/cli"
)

// TestModelsTrain trains for a moment: the bundle is whole, and equal commands
// give equal bytes however many scenarios are played at once.
func TestModelsTrain(t *testing.T) {
	small := []string{"--rounds", "1", "--worlds", "2", "--steps", "2", "--held-out", "1", "--traces", "1"}
	var manifests []string
	for _, parallel := range []string{"1", "2"} {
		dir := filepath.Join(t.TempDir(), "bundle")
		code, out, stderr := call(t, append([]string{"models", "train", "--out", dir, "--parallel", parallel}, small...)...)
		if code != cli.ExitOK || !strings.Contains(out, "learned from 2 worlds") || !strings.Contains(stderr, "round 1 of 1") {
			t.Fatalf("exit %d: %s%s", code, out, stderr)
		}
		text, err := os.ReadFile(filepath.Join(dir, "MODEL_MANIFEST.json"))
		if err != nil {
			t.Fatal(err)
		}
		manifests = append(manifests, string(text)) // it holds the SHA-256 of the graph
		if _, err := bundles.Read(dir, bundles.Cloud); err != nil {
			t.Error(err)
		}
		wrongCallIs(t, "is not empty", "models", "train", "--out", dir)
	}
	if manifests[0] != manifests[1] {
		t.Errorf("two trainings differ:\n%s\n%s", manifests[0], manifests[1])
	}
	wrongCallIs(t, "--out is missing", "models", "train")
	wrongCallIs(t, "rounds 0 is not from 1", "models", "train", "--out", filepath.Join(t.TempDir(), "x"), "--rounds", "0")
	wrongCallIs(t, "held -1 is not from 1", "models", "train", "--out", filepath.Join(t.TempDir(), "x"), "--held-out", "-1")
}
