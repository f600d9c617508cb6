package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
)

// init writes a scenario that runs, and never over a file that is there.
func TestEvalInit(t *testing.T) {
	dir := t.TempDir()
	scenario := filepath.Join(dir, "spotter", "scenario.yaml")
	code, stdout, stderr := call(t, "eval", "init", dir)
	if code != cli.ExitOK || !strings.Contains(stdout, "spotter eval "+scenario) {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	for _, args := range [][]string{{"scenario", "validate", scenario}, {"sim", scenario, "--policy", "on-demand"}} {
		if code, _, stderr := call(t, args...); code != cli.ExitOK {
			t.Errorf("spotter %s: exit code %d\n%s", cli.Shell(args), code, stderr)
		}
	}
	if err := os.Remove(scenario); err != nil {
		t.Fatal(err)
	}
	wrongCallIs(t, "spotter.yaml already exists", "eval", "init", dir)
	if _, err := os.Stat(scenario); err == nil {
		t.Error("it was refused and wrote a scenario")
	}
}

// What a project's file says is as if it had been given, unless it was; the report
// repeats it, and a slip in it is named.
func TestProjectFile(t *testing.T) {
	scenario := file(t, "tiny.yaml", tiny)
	t.Chdir(t.TempDir())
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(cli.ProjectFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("eval:\n  policies: static\n  seeds: 2\n  gate: ['net_savings_pct.median >= 200']\n")
	code, stdout, stderr := call(t, "eval", scenario, "--seeds", "1", "--format", "markdown")
	if code != cli.ExitFailed || !strings.Contains(stdout, "--seeds 1") || strings.Contains(stdout, "--seeds 2") ||
		!strings.Contains(stdout, "--policies static") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	write("eval:\n  polices: static\n")
	wrongCallIs(t, "eval.polices: there is no flag --polices; did you mean policies?", "eval", scenario)
	write("evl:\n  policies: static\n")
	wrongCallIs(t, `evl: is not one of eval, sim, plot, tui`, "eval", scenario)
	write("sim: {seed: -1}\n")
	wrongCallIs(t, `sim.seed: --seed: "-1" is not a whole number`, "sim", scenario)
	t.Setenv(cli.ProjectVariable, "off")
	if code, _, stderr := call(t, "sim", scenario); code != cli.ExitOK {
		t.Errorf("it is off: exit code %d\n%s", code, stderr)
	}
}

// A shell is offered scenarios, the next of a list of policies, and metrics.
func TestCompletion(t *testing.T) {
	kubeconfig := file(t, "kubeconfig", "apiVersion: v1\nkind: Config\ncontexts: [{name: other, context: {cluster: a}}]\n")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"web-week\n", []string{"eval", ""}},
		{"spot,portfolio\n", []string{"eval", "--policies", "spot,"}},
		{"outage_delta\n", []string{"eval", "--gate", "outage"}},
		{"spot:outage_delta.median\n", []string{"eval", "--gate", "spot:outage_delta."}},
		{"spot,portfolio:holding=\n", []string{"eval", "--policies", "spot,portfolio:"}},
		{"karpetrack:percentile=20:periodic=false\n", []string{"sim", "tiny", "--policy", "karpetrack:percentile=20:periodic="}},
		{"static:share=0.5\n", []string{"eval", "--baseline", "static:share="}},
		{"by-zone\n", []string{"sim", "tiny", "--truth", ""}},
		{"other\n", []string{"status", "--kubeconfig", kubeconfig, "--context", ""}},
		{"deployment/web.spec.replicas=\n", []string{"whatif", file(t, "tiny.yaml", tiny), "--set", "deployment/"}},
		{"general\n", []string{"explain", "--run", recordedRun(t, "static"), "--pool", ""}},
		{"scenario\t", []string{"help", "sc"}},
	} {
		if _, stdout, _ := call(t, append([]string{"__complete"}, c.args...)...); !strings.Contains(stdout, c.want) {
			t.Errorf("%q is not offered for %q:\n%s", c.want, c.args, stdout)
		}
	}
}
