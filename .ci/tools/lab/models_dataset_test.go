package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
)

// TestModelsDataset makes a small data set, judges the bundle of the program on
// it and refuses what cannot be meant.
func TestModelsDataset(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	small := []string{"models", "dataset", "--generated", "2", "--days", "2", "--generated-share", "0.02", "-o", dir}
	code, out, stderr := call(t, small...)
	if code != cli.ExitOK || !strings.Contains(out, "report ") || !strings.Contains(out, "CPU generated") || !strings.Contains(out, "SHA-256 ") {
		t.Fatalf("exit %d: %s%s", code, out, stderr)
	}
	wrongCallIs(t, "is not empty", small...)
	wrongCallIs(t, "-o is missing", "models", "dataset")
	other := filepath.Join(t.TempDir(), "other")
	wrongCallIs(t, "days: 1", "models", "dataset", "--days", "1", "-o", other)
	wrongCallIs(t, "--train-until", "models", "dataset", "--train-until", "noon", "-o", other)
	wrongCallIs(t, "us-east-1 is a region to train on", "models", "dataset", "--hold-out", "us-east-1", "-o", other)
	wrongCallIs(t, "nowhere", "models", "dataset", "--recorded", "nowhere", "-o", other)
	if _, err := os.Stat(other); err == nil {
		t.Error("a call that is wrong wrote something")
	}

	withONNX(t)
	code, out, stderr = call(t, "models", "evaluate", dir)
	if code != cli.ExitOK || !strings.Contains(out, "CPU generated, runtime_6h") || !strings.Contains(out, "over closed form") || !strings.Contains(out, "over logistic") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	wrongCallIs(t, "no such file", "models", "evaluate", other)
	wrongCallIs(t, "is fed spotvortex-market/1 and not spotter-market/2", "models", "evaluate", dir, "--bundle", bundle(t))
	wrongCallIs(t, "part of the program", "models", "evaluate", dir, "--write")
}
