package try

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/capture"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/cli/clitest"
	"github.com/spotter-dev/spotter/scenarios"
)

// trialOf returns a trial of a file, or of the demonstration, with what it prints.
func trialOf(t *testing.T, file string) (x *trial, out, log *bytes.Buffer) {
	t.Helper()
	alone(t)
	out, log = &bytes.Buffer{}, &bytes.Buffer{}
	p := &cli.Program{Version: "test", Stdout: out, Stderr: log}
	return &trial{p: p, f: &call{file: file, demo: file == ""}, folder: folder{t.TempDir()}, began: time.Now(), patient: few()}, out, log
}

// TestDemo tries the demonstration, which says that it is one and pays for its ten nodes.
func TestDemo(t *testing.T) {
	x, out, log := trialOf(t, "")
	text, _, dir, err := printed(t, x, out, log, func() (*staged, error) { return x.source(t.Context()) })
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	for _, want := range []string{"This is of " + demonstration, " a month for 10 nodes: ", "\n  spotter try\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, pricesFile)); err == nil {
		t.Error("the embedded prices are written")
	}
}

// TestManifests tries workloads without nodes: the on-demand packing stands for what is paid,
// so that on demand only changes nothing.
func TestManifests(t *testing.T) {
	parts := strings.Split(string(demo), "\n  nodes:\n")
	_, rest, _ := strings.Cut(parts[1], "---\n")
	file := filepath.Join(t.TempDir(), "week.yaml")
	if err := os.WriteFile(file, []byte(parts[0]+"\n---\n"+rest), 0o600); err != nil {
		t.Fatal(err)
	}
	x, out, log := trialOf(t, file)
	text, _, _, err := printed(t, x, out, log, func() (*staged, error) { return x.source(t.Context()) })
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	if !strings.HasPrefix(text, "This is of the manifests in "+file) || !strings.Contains(text, "\nThe on-demand packing costs about $") || strings.Contains(text, "you pay") {
		t.Errorf("what stands for what is paid is not said:\n%s", text)
	}
	_, row, _ := strings.Cut(text, "\non demand only")
	if row, _, _ = strings.Cut(row, "\n"); !strings.Contains(row, " 0% ") {
		t.Errorf("on demand only is %q\n%s", row, text)
	}
}

// TestManifestsFolder tries a folder of workloads alone, which is completed as for other commands; what is
// written has no comment that errors read the names of files from.
func TestManifestsFolder(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: api}\nspec:\n  replicas: 2\n  selector: {matchLabels: {app: api}}\n" +
			"  template: {metadata: {labels: {app: api}}, spec: {containers: [{name: main, image: i, resources: {requests: {cpu: 1}}}]}}\n",
		"b.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	x, _, log := trialOf(t, dir)
	s, err := x.source(t.Context())
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	for _, want := range []string{"no Scenario: one of 168h is taken; no pool: a NodePool", "skipped: Secret 1"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in %s", want, log)
		}
	}
	if !bytes.Equal(s.text, scenarios.WithoutOrigins(s.text)) {
		t.Errorf("what is written has names of files:\n%s", s.text)
	}
	broken := filepath.Join(dir, "c.yaml")
	if err := os.WriteFile(broken, []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: z}\nspec: {replicas: -1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := x.source(t.Context()); err == nil || !strings.Contains(err.Error(), broken+":4") || !strings.Contains(err.Error(), "-1") {
		t.Errorf("a broken file: %v", err)
	}
}

// TestDump reads the cluster of other tests out of a file, as kubectl prints it.
func TestDump(t *testing.T) {
	scheme, err := capture.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	var items []json.RawMessage
	for _, o := range mixedShop("spot", "on-demand").objects {
		kind, err := apiutil.GVKForObject(o, scheme)
		if err != nil {
			t.Fatal(err)
		}
		o.GetObjectKind().SetGroupVersionKind(kind)
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, text)
	}
	items = append(items, []byte(`{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"wrong"},"spec":{"limits":{"cpu":"many"}}}`))
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() // with a list, and a manifest of its own
	second := []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "all.json"), text, 0o600), os.WriteFile(filepath.Join(dir, "z.yaml"), second, 0o600)); err != nil {
		t.Fatal(err)
	}
	x, _, log := trialOf(t, dir)
	s, err := x.source(t.Context())
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	if now := costNow(s.bound); now.Nodes != 12 || now.Spot != 3 || s.seen.withoutCluster {
		t.Errorf("%+v", now)
	}
	if left := strings.Join(s.taken.Left, "\n"); !strings.Contains(left, "NodePool wrong with its 0 nodes and the pods on them, 0.0% of the cost of all nodes: it cannot be read") {
		t.Errorf("left out: %s", left)
	}
}

// TestFleet adds up two clusters.
func TestFleet(t *testing.T) {
	one := func(name string, now, month float64) *result {
		return &result{Context: name, Now: cost{Of: paidToday, Month: now}, Files: []string{filepath.Join("all", name, scenarioFile)},
			Policies: []row{{Policy: portfolio, Month: month, Change: 100 * (month/now - 1)}}}
	}
	x := &fleet{Clusters: []*result{one("a", 1000, 500), one("b", 3000, 600)}}
	x.add()
	if x.Sum.Now != 4000 || x.Sum.Policies[0].Month != 1100 || fmt.Sprintf("%.1f", x.Sum.Policies[0].Change) != "-72.5" {
		t.Errorf("%+v", x.Sum)
	}
	var out bytes.Buffer
	if err := x.text(&out); err != nil || !strings.Contains(out.String(), "$1,100 (-72.5%)") || !strings.HasSuffix(out.String(), "a folder for each in all\n") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestCalls refuses what names nothing, or several things, to try.
func TestCalls(t *testing.T) {
	alone(t)
	t.Chdir(t.TempDir())
	config := "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\ncontexts: [{name: a, context: {cluster: a}}]\n"
	if err := os.WriteFile("config", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"each names something else to try":          {"try", "--demo", "--context", "a"},
		"a context is empty or named twice":         {"try", "--kubeconfig", "config", "--context", "a,a"},
		"context a: the cluster at http://127.0.0.": {"try", "--kubeconfig", "config", "--context", "a,b"},
		"\"none\" is neither a file nor embedded":   {"try", "-f", "none"},
	} {
		program := clitest.Program(func(p *cli.Program) []*cobra.Command { return []*cobra.Command{Command(p)} })
		if code, out, log := program.Call(t, args...); code != cli.ExitInvalid || out != "" || !strings.Contains(log, want) {
			t.Errorf("%q: exit code %d, want %d and %s\n%s%s", args, code, cli.ExitInvalid, want, out, log)
		}
	}
}
