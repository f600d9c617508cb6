package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
)

const oldPool = `apiVersion: gpu.devplatforms.io/v1alpha1
kind: LeftoverNodePool
metadata: {name: gpus}
spec: {region: us-east-1, nodeClassName: gpu, families: [p4], minGPUs: 1, requeueMinutes: 7}
`

// What is converted is a manifest that a scenario takes, with the warnings on
// the standard error and in the file.
func TestConvertIntoScenario(t *testing.T) {
	old := file(t, "old.yaml", oldPool)
	out := filepath.Join(t.TempDir(), "pools.yaml")
	code, stdout, stderr := call(t, "convert", "-f", old, "--out", out)
	if code != cli.ExitOK || stdout != "" || !strings.Contains(stderr, "warning: "+old+":4: spec.requeueMinutes: 7 omitted") {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	text, err := os.ReadFile(out)
	if err != nil || !strings.Contains(string(text), "requeueMinutes: 7") {
		t.Fatalf("%v\n%s", err, text)
	}
	_, printed, _ := call(t, "convert", old)
	if printed != string(text) {
		t.Errorf("the terminal gets\n%s\nand the file\n%s", printed, text)
	}
	pool := string(text)
	scenario := file(t, "world.yaml", "apiVersion: spotter.dev/v1alpha1\nkind: Scenario\nmetadata: {name: w}\nspec: {duration: 24h}\n---\n"+
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 1\n  selector: {matchLabels: {app: web}}\n"+
		"  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: web, resources: {requests: {cpu: 1}}}]}\n---\n"+pool)
	if code, _, stderr := call(t, "scenario", "validate", scenario); code != cli.ExitOK {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

// The agent's two files are read with the file of buckets that one of them
// names, seen from its folder.
func TestConvertReadsBuckets(t *testing.T) {
	config := file(t, "config.yaml", "controller: {maxDrainRatio: 0.1}\n")
	dir := filepath.Dir(config)
	for name, text := range map[string]string{
		"runtime.json": `{"min_spot_ratio": 0.167, "deterministic_policy": {"feature_buckets": {"source": "config/loads.yaml"}}}`,
		"loads.yaml":   "workload_profile_bounds: {overall: {pod_startup_time: {min: 1}, outage_penalty_hours: {min: 1}, cluster_utilization_typical: {min: 0.1}}}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wrongCallIs(t, `field "deterministic_policy.feature_buckets.source": "config/loads.yaml" cannot be read`,
		"convert", "-f", config, "-f", filepath.Join(dir, "runtime.json"), "--pools", "a,b")
	text := `{"deterministic_policy": {"feature_buckets": {"source": "loads.yaml"}}}`
	if err := os.WriteFile(filepath.Join(dir, "runtime.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := call(t, "convert", "-f", config, filepath.Join(dir, "runtime.json"), "--pools", "a,b")
	if code != cli.ExitOK || strings.Contains(stderr, "cannot be read") ||
		strings.Count(stdout, "runtime: runtime.json") != 2 {
		t.Errorf("a source that is there: exit code %d\n%s%s", code, stdout, stderr)
	}
}

func TestConvertWrong(t *testing.T) {
	old := file(t, "old.yaml", strings.Replace(oldPool, "minGPUs", "minGpus", 1))
	out := filepath.Join(t.TempDir(), "pools.yaml")
	wrongCallIs(t, `old.yaml:4: field "spec.minGpus": unknown key; did you mean "minGPUs"?; its value is "1"`, "convert",
		"-f", old, "--out", out)
	empty(t, filepath.Dir(out))
	wrongCallIs(t, "-f is missing", "convert")
	wrongCallIs(t, "none.yaml", "convert", "-f", "none.yaml")
	wrongCallIs(t, "it is a folder", "convert", "-f", t.TempDir())
	wrongCallIs(t, `unknown flag: --spot-node-lable, with value "a"`, "convert", "--from-flags", "--spot-node-lable=a")
	wrongCallIs(t, "--out:", "convert", "-f", file(t, "good.yaml", oldPool), "--out", filepath.Join(out, "x"))
}
