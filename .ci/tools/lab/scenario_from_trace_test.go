package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/policy/policytest"
)

const demand = `USAGE_HOUR,REGION_NUM,INSTANCE_TYPE,NORM_USAGE
2021-02-01 00:00:00.000,2,A,17
2021-02-01 01:00:00.000,2,A,9
`

// What from-trace writes is a scenario, and two calls write
// the same bytes.
func TestScenarioFromTraceRuns(t *testing.T) {
	source := file(t, "demand.csv", demand)
	out := filepath.Join(t.TempDir(), "demand.yaml")
	code, stdout, stderr := call(t, "scenario", "from-trace", source, "--out", out)
	if code != cli.ExitOK || !strings.Contains(stdout, "1 service; at most 17 pods") || !strings.Contains(stdout, "spotter sim "+out) {
		t.Fatalf("exit code %d, output %s%s", code, stdout, stderr)
	}
	written, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if _, printed, _ := call(t, "scenario", "from-trace", source); printed != string(written) {
		t.Errorf("printed is not what was written:\n%s", printed)
	}
	if strings.Contains(string(written), filepath.Dir(source)) {
		t.Error("the scenario names the folder of its source")
	}
	if sc, err := input.LoadScenario(t.Context(), out); err != nil || sc.Duration <= 0 {
		t.Errorf("%+v, %v", sc, err)
	}
}

// Each recorded workload becomes a scenario.
func TestRecordedScenariosRun(t *testing.T) {
	for name, more := range map[string][]string{
		"openb_pod_list_default.csv":                 {"--days", "2"},
		"snowflake_vm_demand_2021-02_2022-12.csv.gz": {"--days", "2", "--scale", "0.02"},
		"alibaba_v2017_batch_sample_cloudsimpy.csv":  {"--scale", "0.002"},
		"AzureLLMInferenceTrace_conv.csv":            nil,
		"simkube_large_trace.json":                   nil,
		"simkube_traces/cronjob.sktrace":             nil,
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "world.yaml")
			args := append([]string{"scenario", "from-trace", policytest.Recording(t, "workload/"+name), "--out", out,
				"--workloads-max", "30"}, more...)
			if code, stdout, stderr := call(t, args...); code != cli.ExitOK {
				t.Fatalf("exit code %d, output %s%s", code, stdout, stderr)
			}
			if _, err := input.LoadScenario(t.Context(), out); err != nil {
				t.Error(err)
			}
		})
	}
}

// A wrong call or file has exit code 2, says what to do, and leaves what was
// there before.
func TestScenarioFromTraceRefuses(t *testing.T) {
	good := file(t, "demand.csv", demand)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no file":       {nil, " is missing"},
		"none there":    {[]string{filepath.Join(t.TempDir(), "none.csv")}, "no such file"},
		"a folder":      {[]string{t.TempDir()}, "is a folder"},
		"another text":  {[]string{file(t, "x.csv", "a,b\n1,2\n")}, "no recorded workload"},
		"a bad row":     {[]string{file(t, "y.csv", demand+"2021-02-01 02:00:00.000,2,A,-3\n")}, `y.csv:4: field "NORM_USAGE": -3`},
		"nothing left":  {[]string{good, "--scale", "0.01"}, "another part with --from"},
		"a bad scale":   {[]string{good, "--scale", "-1"}, "scale: -1"},
		"no such trace": {[]string{good, "--trace", filepath.Join(t.TempDir(), "none")}, "trace"},
	} {
		t.Run(name, func(t *testing.T) {
			out := file(t, "out.yaml", "before")
			code, _, stderr := call(t, append([]string{"scenario", "from-trace", "--out", out}, c.args...)...)
			if code != cli.ExitInvalid || !strings.Contains(stderr, c.want) {
				t.Errorf("exit code %d, want %d; %q is not in %s", code, cli.ExitInvalid, c.want, stderr)
			}
			if text, err := os.ReadFile(out); err != nil || string(text) != "before" {
				t.Errorf("the file is now %q, %v", text, err)
			}
			if entries, err := os.ReadDir(filepath.Dir(out)); err != nil || len(entries) != 1 {
				t.Errorf("left behind: %v, %v", entries, err)
			}
		})
	}
}
