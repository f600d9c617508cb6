package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
)

const runtimeJSON = `{
  "target_spot_ratio": 0.4,
  "deterministic_policy": {"feature_buckets": {"source": "config/bounds.yaml"}}
}`

const boundsYAML = `
workloads: {anything: {goes: here}}
workload_profile_bounds:
  overall:
    pod_startup_time: {count: 9, min: 3, p05: 6, p50: 31, p95: 205, max: 500}
    outage_penalty_hours: {min: 0.3, p05: 0.4, p50: 1.1, p95: 12.5, max: 67}
    cluster_utilization_typical: {min: 0.3, p05: 0.5, p50: 0.7, p95: 0.9, max: 1}
`

// runtimeFolder lays a runtime file and its bounds out as the agent has them:
// both in config/, the source named from the folder above.
func runtimeFolder(t *testing.T, runtime, bounds string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "config")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"runtime.json": runtime, "bounds.yaml": bounds} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "runtime.json")
}

func TestReadRuntime(t *testing.T) {
	c, err := runner.New().ReadRuntime(runtimeFolder(t, runtimeJSON, boundsYAML))
	if err != nil {
		t.Fatal(err)
	}
	if want := []float64{3, 6, 31, 205, 500}; !reflect.DeepEqual(c.Rules.Buckets.Startup, want) {
		t.Errorf("startup buckets %v, want %v", c.Rules.Buckets.Startup, want)
	}
	if c.TargetShare != 0.4 {
		t.Errorf("target share %v, want 0.4", c.TargetShare)
	}
}

func TestReadRuntimeErrors(t *testing.T) {
	for name, c := range map[string]struct{ runtime, bounds, want string }{
		"unknown key":  {`{"target_ratio": 1}`, boundsYAML, `unknown key "target_ratio"`},
		"no block":     {runtimeJSON, "workloads: {}\n", "workload_profile_bounds.overall"},
		"not YAML":     {runtimeJSON, "a: [1\n", "bounds.yaml"},
		"missing file": {strings.ReplaceAll(runtimeJSON, "bounds.yaml", "none.yaml"), boundsYAML, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := runner.New().ReadRuntime(runtimeFolder(t, c.runtime, c.bounds))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "runtime.json") {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}
