package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/cli"
)

// piped makes a file standard input for the rest of the test.
func piped(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stdin
	os.Stdin = f
	t.Cleanup(func() {
		os.Stdin = before
		_ = f.Close()
	})
}

// What charts render runs from a pipe, without a Scenario or a pool in it.
func TestCharts(t *testing.T) {
	for name, want := range map[string][]string{
		"shop": {
			"skipped: ServiceAccount 11, Service 10, Ingress 1; run only by an installation: Pod 1",
			"no Scenario: one of 168h is taken; no pool: a NodePool of Karpenter is taken",
		},
		"gitops": {
			"ClusterRole 1, ClusterRoleBinding 1, ConfigMap 1, CustomResourceDefinition 1, Secret 1",
			"warning: PriorityClass platform is not given, and pods of it have the priority 0: gitops/gitops-server",
		},
		"monitoring": {
			"skipped: ConfigMap 2, Alertmanager 1, MutatingWebhookConfiguration 1",
			"warning: not simulated, though their controllers seem to run pods: Prometheus watch/main, Alertmanager watch/main",
			"warning: jobs without spotter.dev/duration are taken to run 10m0s: watch/prune",
		},
	} {
		for _, args := range [][]string{{"sim", "-", "--policy", "static"}, {"eval", "-", "--policies", "static", "--seeds", "1"}} {
			piped(t, filepath.Join("testdata", "manifests", name+".yaml"))
			code, stdout, stderr := call(t, args...)
			if code != cli.ExitOK || stdout == "" {
				t.Errorf("%s: %s ends with %d: %s", name, args[0], code, stderr)
			}
			for _, text := range want {
				if !strings.Contains(stderr, text) {
					t.Errorf("%s: %s does not say %q:\n%s", name, args[0], text, stderr)
				}
			}
		}
		piped(t, filepath.Join("testdata", "manifests", name+".yaml"))
		wrongCallIs(t, `is not simulated`, "scenario", "validate", "--strict", "-")
	}
}

// A folder is read like a file, its subfolders only with --recursive. Errors name the file and
// the line in it.
func TestFolderOfManifests(t *testing.T) {
	dir := t.TempDir()
	deployment := func(name, replicas string) string {
		return "# made by hand\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + "}\nspec:\n  replicas: " + replicas +
			"\n  selector: {matchLabels: {a: b}}\n  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, resources: {requests: {cpu: 1}}}]}}"
	}
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a.yaml", deployment("web", "2"))
	write("b/api.yml", deployment("api", "2"))
	write("values.yaml", "replicas: 3\n")
	write("notes.txt", "kind: none")
	if code, _, stderr := call(t, "scenario", "validate", dir); code != cli.ExitOK ||
		!strings.Contains(stderr, "skipped: document without a kind 1") {
		t.Fatalf("a folder ends with %d: %s", code, stderr)
	}
	write("b/api.yml", "---\n"+deployment("api", "some"))
	wrongCallIs(t, filepath.Join(dir, "b/api.yml")+`:7: field "spec.replicas": want an integer, got "some"`, "scenario", "validate", "-R", dir)
	write("b/api.yml", deployment("web", "1"))
	wrongCallIs(t, "Deployment default/web appears twice, first in "+filepath.Join(dir, "a.yaml")+":2", "scenario", "validate", "-R", dir)
	write("b/api.yml", "a: [1\n")
	wrongCallIs(t, filepath.Join(dir, "b/api.yml")+":", "scenario", "validate", "-R", dir)
	wrongCallIs(t, "there is no file that ends with .yaml, .yml or .json", "scenario", "validate", t.TempDir())
}

// Placeholders at a negative priority are preempted by pods that need their place. That does not
// count as an outage.
func TestPlaceholders(t *testing.T) {
	dir := t.TempDir()
	pods := func(name, class, replicas, annotations string) string {
		return "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + ", annotations: {" + annotations +
			"}}\nspec:\n  replicas: " + replicas +
			"\n  selector: {matchLabels: {a: " + name + "}}\n  template: {metadata: {labels: {a: " + name +
			"}}, spec: {priorityClassName: " + class +
			", containers: [{name: main, resources: {requests: {cpu: 1200m, memory: 1Gi}}}]}}\n"
	}
	text := "apiVersion: spotter.dev/v1alpha1\nkind: Scenario\nmetadata: {name: spare}\nspec: {duration: 24h}\n" +
		"---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: room}\nvalue: VALUE\n" +
		"---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: serving}\nvalue: 5\n" +
		pods("spare", "room", "2", "") + pods("web", "serving", "3", `spotter.dev/replica-schedule: "00:00=3 09:00=6 10:00=3"`)
	outages := func(value string) string {
		file := filepath.Join(dir, "spare.yaml")
		if err := os.WriteFile(file, []byte(strings.Replace(text, "VALUE", value, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := call(t, "sim", file, "--policy", "on-demand", "--check")
		if code != cli.ExitOK {
			t.Fatalf("it ends with %d: %s", code, stderr)
		}
		_, after, _ := strings.Cut(stdout, "outages ")
		line, _, _ := strings.Cut(after, "\n")
		return strings.TrimSpace(line)
	}
	if got := outages("-7"); got != "0 min in 0 incidents" {
		t.Errorf("of a negative priority: %s", got)
	}
	if got := outages("1"); strings.HasPrefix(got, "0 min") {
		t.Errorf("of a low priority: %s, want the outage of being preempted", got)
	}
}
