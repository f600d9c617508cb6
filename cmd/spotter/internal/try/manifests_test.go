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
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/cli/clitest"
	"github.com/spotter-dev/spotter/internal/input"
)

// trialOf returns a trial of a file, or of the demonstration, with what it prints.
func trialOf(t *testing.T, file string) (x *trial, out, log *bytes.Buffer) {
	t.Helper()
	alone(t)
	out, log = &bytes.Buffer{}, &bytes.Buffer{}
	p := &cli.Program{Version: "test", Stdout: out, Stderr: log}
	return &trial{p: p, f: &call{file: file, demo: file == ""}, folder: folder{dir: t.TempDir()}, began: time.Now(), patient: few()}, out, log
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

// TestManifests tries workloads without nodes: the on-demand packing is used as the current cost,
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
	if !strings.Contains(text, "\nThis is of the manifests in "+file) ||
		!strings.Contains(text, "\nThe on-demand packing costs about $") || strings.Contains(text, "you pay") {
		t.Errorf("what stands for what is paid is not said:\n%s", text)
	}
	_, row, _ := strings.Cut(text, "\non demand only")
	if row, _, _ = strings.Cut(row, "\n"); !strings.Contains(row, " 0% ") {
		t.Errorf("on demand only is %q\n%s", row, text)
	}
}

// TestPlainManifests tries a Deployment and nothing else, in a folder of the folder that is named:
// what a run needs and it lacks is added, said, and written with it.
func TestPlainManifests(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "chart")
	web := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 4\n  selector: {matchLabels: {a: b}}\n" +
		"  template:\n    metadata: {labels: {a: b}}\n    spec: {containers: [{name: main, image: x, resources: {requests: {cpu: 600m, memory: 1Gi}}}]}\n"
	files := map[string]string{
		"templates/web.yaml": web,
		"templates/stuck.yml": strings.NewReplacer("web", "stuck", "a: b", "a: c", "    spec: {",
			"    spec: {nodeSelector: {disk: fast}, ").Replace(web),
		"templates/service.json": "{\"apiVersion\": \"v1\", \"kind\": \"Service\", \"metadata\": {\"name\": \"web\"}, \"spec\": {\"ports\": [{\"port\": 80}]}}",
		"values.txt":             "not read",
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	x, out, log := trialOf(t, dir)
	if _, err := x.source(t.Context()); err == nil || !strings.Contains(err.Error(), "no file that ends with .yaml") {
		t.Errorf("without -R: %v", err)
	}
	x.f.sources.Recursive = true
	c := &cobra.Command{}
	if x.f.form.RegisterDetails(c); c.Flags().Set("details", "true") != nil {
		t.Fatal("there are no details to ask for")
	}
	text, said, written, err := printed(t, x, out, log, func() (*staged, error) { return x.source(t.Context()) })
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	for _, want := range []string{"\nThe on-demand packing costs about $", "\nthe on-demand packing ",
		"\nits pools, consolidated (as-is) ", "on recorded Spot prices", "Assumed: no Scenario: ", "no pool: a NodePool"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if !strings.Contains(said, "skipped: Service 1\n") {
		t.Errorf("what is skipped is not said:\n%s", said)
	}
	results, err := os.ReadFile(filepath.Join(written, resultsFile))
	for _, said := range []string{text, string(results)} {
		if strings.Count(said, "the pods of default/stuck (4) stay pending and do not count in outages") == 0 ||
			strings.Contains(said, "longest 168h") {
			t.Errorf("%v: pods that fit nowhere:\n%s", err, said)
		}
	}
	if _, err := input.LoadScenario(t.Context(), filepath.Join(written, scenarioFile)); err != nil {
		t.Errorf("the scenario that was written: %v", err)
	}
	x.f.sources.Strict = true
	if _, err := x.source(t.Context()); err == nil || !strings.Contains(err.Error(),
		"service.json:1: field \"kind\": \"Service\" is not simulated") {
		t.Errorf("--strict: %v", err)
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
	items = append(items, []byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"front"}}`),
		[]byte(`{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"wrong"},"spec":{"limits":{"cpu":"many"}}}`))
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() // with a list, and a manifest of its own
	second := []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "all.json"), text, 0o600),
		os.WriteFile(filepath.Join(dir, "z.yaml"), second, 0o600)); err != nil {
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
	if !strings.Contains(log.String(), "skipped: Service 1\n") {
		t.Errorf("what is skipped is not said:\n%s", log)
	}
	x.f.sources.Strict = true
	if _, err := x.source(t.Context()); err == nil || !strings.Contains(err.Error(), "not simulated: Service 1") {
		t.Errorf("--strict: %v", err)
	}
	if left := strings.Join(s.taken.Left, "\n"); !strings.Contains(left,
		"NodePool wrong with its 0 nodes and the pods on them, 0.0% of the cost of all nodes: it cannot be read") {
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
	if err := x.answer().Write(&out, format.Options{}); err != nil ||
		!strings.Contains(out.String(), "$1,100 (−72.5%)") || !strings.HasSuffix(out.String(), "a folder for each in all\n") {
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
	const elsewhere = `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: tea}, spec: {replicas: 3, selector: {matchLabels: {app: tea}},
  template: {metadata: {labels: {app: tea}}, spec: {containers: [{name: pot, resources: {requests: {cpu: 700m, memory: 600Mi}}}]}}}}
---
{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: dublin}, spec: {template: {spec: {
  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: dublin},
  requirements: [{key: topology.kubernetes.io/zone, operator: In, values: [eu-west-1b]}]}}}}
`
	if err := os.WriteFile("elsewhere.yaml", []byte(elsewhere), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"with `spotter eval PATH --trace DIR`":                 {"try", "-f", "elsewhere.yaml"},
		"each names something else to try":                     {"try", "--demo", "--context", "a"},
		"a context is empty or named twice":                    {"try", "--kubeconfig", "config", "--context", "a,a"},
		"the API server at http://127.0.0.1:1 does not answer": {"try", "--kubeconfig", "config", "--context", "a,b"},
		"\"none\" is neither a file nor embedded":              {"try", "-f", "none"},
	} {
		program := clitest.Program(func(p *cli.Program) []*cobra.Command { return []*cobra.Command{Command(p)} })
		if code, out, log := program.Call(t, args...); code != cli.ExitInvalid || out != "" || !strings.Contains(log, want) {
			t.Errorf("%q: exit code %d, want %d and %s\n%s%s", args, code, cli.ExitInvalid, want, out, log)
		}
	}
}

// TestQueuesOfDump tries a cluster with Kueue: train runs, and three jobs wait for its quota in all
// policies.
func TestQueuesOfDump(t *testing.T) {
	x, out, log := trialOf(t, filepath.Join("testdata", "queues.yaml"))
	_, _, dir, err := printed(t, x, out, log, func() (*staged, error) { return x.source(t.Context()) })
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	text, err := os.ReadFile(filepath.Join(dir, resultsFile))
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Runs []struct {
			Policy string
			Queues []struct {
				Name     string
				Admitted int
				Wait     float64 `json:"wait_p50_s"`
			}
		}
	}
	if err := json.Unmarshal(text, &report); err != nil || len(report.Runs) == 0 {
		t.Fatalf("%v, %d runs", err, len(report.Runs))
	}
	for _, r := range report.Runs {
		if len(r.Queues) != 1 || r.Queues[0].Name != "everyone" || r.Queues[0].Admitted != 3 || r.Queues[0].Wait < 7200 {
			t.Errorf("%s: queues %+v; want three admitted, one after the other", r.Policy, r.Queues)
		}
	}
}
