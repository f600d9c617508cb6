package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/.ci/tools/lab/forecaster"
	"github.com/spotter-dev/spotter/internal/cli"
)

// TestModelsDataset makes a small data set, judges the bundle of the program on
// it and refuses what cannot be meant.
func TestModelsDataset(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	small := []string{"models", "dataset", "--generated", "2", "--days", "2", "--generated-share", "0.02", "--out", dir}
	code, out, stderr := call(t, small...)
	if code != cli.ExitOK || !strings.Contains(out, "report ") || !strings.Contains(out, "CPU generated") ||
		!strings.Contains(out, "SHA-256 ") {
		t.Fatalf("exit %d: %s%s", code, out, stderr)
	}
	wrongCallIs(t, "is not empty", small...)
	wrongCallIs(t, "--out is missing", "models", "dataset")
	other := filepath.Join(t.TempDir(), "other")
	wrongCallIs(t, "days: 1", "models", "dataset", "--days", "1", "--out", other)
	wrongCallIs(t, "--train-until", "models", "dataset", "--train-until", "noon", "--out", other)
	wrongCallIs(t, "us-east-1 is a region to train on", "models", "dataset", "--hold-out", "us-east-1", "--out", other)
	wrongCallIs(t, "nowhere", "models", "dataset", "--recorded", "nowhere", "--out", other)
	if _, err := os.Stat(other); err == nil {
		t.Error("a call that is wrong wrote something")
	}

	code, out, stderr = call(t, "models", "evaluate", dir, "--judge", "closed-form")
	if code != cli.ExitOK || !strings.Contains(out, "over constant") || strings.Contains(out, "over closed-form") ||
		strings.Contains(out, "NaN") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	if _, out, _ := call(t, "models", "evaluate", dir, "--judge", "constant"); strings.Count(out,
		"AUC 0.500")+strings.Count(out, "AUC –") != strings.Count(out, "AUC ") {
		t.Errorf("a constant that tells rows apart: %s", out)
	}
	if code, out, stderr := call(t, "models", "evaluate", dir, "--judge", "closed-form", "-o", "yaml",
		"-q"); code != cli.ExitOK || stderr != "" || !strings.Contains(out, "  label: runtime_6h\n") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	wrongCallIs(t, `"luck" is none of constant, band`, "models", "evaluate", dir, "--judge", "luck")
	wrongCallIs(t, "has no manifest", "models", "evaluate", dir, "--judge", "constant", "--write")

	withONNX(t)
	code, out, stderr = call(t, "models", "evaluate", dir)
	if code != cli.ExitOK || !strings.Contains(out, "CPU generated, runtime_6h") ||
		!strings.Contains(out, "over closed-form") || !strings.Contains(out, "over logistic") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	wrongCallIs(t, "no such file", "models", "evaluate", other)
	wrongCallIs(t, "is fed spotvortex-market/1 and not spotter-market/2", "models", "evaluate", dir, "--bundle", bundle(t))
	wrongCallIs(t, "part of the program", "models", "evaluate", dir, "--write")
}

// TestFiguresThatAreUnknown: an undefined area under the curve is replaced by the reason.
func TestFiguresThatAreUnknown(t *testing.T) {
	nan := math.NaN()
	for want, j := range map[string]forecaster.Judged{
		"0.750":                   {AUC: 0.75},
		"– (0 in all rows)":       {AUC: nan},
		"– (above 0 in all rows)": {AUC: nan, Observed: 0.5},
	} {
		if got := aucText(&j); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := withInterval([3]float64{nan, nan, nan}); got != "–" {
		t.Error(got)
	}
}
