package charts

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/spotter-dev/spotter/test/golden"
)

// renderMixin returns, as JSON, what the mixin has in a field, with some settings changed.
func renderMixin(t *testing.T, field, settings string) []byte {
	t.Helper()
	var out, errs bytes.Buffer
	c := exec.Command(tool(t, "jsonnet"), "-e", "((import 'mixin/mixin.libsonnet') + { _config+:: "+settings+" })."+field)
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		t.Fatalf("jsonnet: %v\n%s", err, errs.String())
	}
	return out.Bytes()
}

// TestMixin: the chart ships the alerts and the dashboard of the mixin, as its default
// settings render them.
func TestMixin(t *testing.T) {
	alerts, err := yaml.JSONToYAML(renderMixin(t, "prometheusAlerts", "{}"))
	if err != nil {
		t.Fatal(err)
	}
	made := map[string][]byte{
		"rules.yaml": append([]byte("# Made of charts/mixin by go test ./charts -run TestMixin -rewrite; do not edit.\n"), alerts...),
	}
	var boards map[string]json.RawMessage
	if err := json.Unmarshal(renderMixin(t, "grafanaDashboards", "{}"), &boards); err != nil {
		t.Fatal(err)
	}
	for name, board := range boards {
		var text bytes.Buffer
		if err := json.Indent(&text, board, "", " "); err != nil {
			t.Fatal(err)
		}
		made[filepath.Join("dashboards", name)] = append(text.Bytes(), '\n')
	}
	for name, want := range made {
		golden.Hold(t, filepath.Join("spotter", "files", name), string(want))
	}
	if shipped, err := filepath.Glob(filepath.Join("spotter", "files", "dashboards", "*")); err != nil || len(shipped) != len(boards) {
		t.Errorf("the chart ships %q, the mixin has %d dashboards: %v", shipped, len(boards), err)
	}
}

// TestMixinSettings: every series in the expressions has the selector, thresholds and the runbook
// have the values of the settings, and promtool still reads the alerts.
func TestMixinSettings(t *testing.T) {
	settings := `{ selector: 'job="ours",cluster="a"', runbook: 'https://ours/', dashboardTags: ['ours'], stepSecondsMax: 71, priceAgeSecondsMax: 72, failedMax: 73 }`
	alerts, boards := renderMixin(t, "prometheusAlerts", settings), renderMixin(t, "grafanaDashboards", settings)
	asked := 0
	for _, text := range [][]byte{alerts, boards} {
		for _, line := range strings.Split(string(text), "\n") {
			if !regexp.MustCompile(`"(expr|query|definition)":.*spotter_`).MatchString(line) {
				continue
			}
			for _, m := range regexp.MustCompile(`spotter_[a-z_]+(\{[^}]*\})?`).FindAllStringSubmatch(line, -1) {
				asked++
				if !strings.Contains(m[1], `job=\"ours\",cluster=\"a\"}`) {
					t.Errorf("%s has not the selector, in %s", m[0], line)
				}
			}
		}
	}
	if asked < 60 {
		t.Errorf("only %d series are asked for", asked)
	}
	for _, want := range []string{"> 71", "> 72", "> 73 unless", "https://ours/spotternoleader"} {
		if !strings.Contains(string(alerts), want) {
			t.Errorf("the alerts have no %q", want)
		}
	}
	if !regexp.MustCompile(`"tags": \[\s*"ours"`).Match(boards) {
		t.Error("the dashboard has not the tags that are set")
	}
	path := filepath.Join(t.TempDir(), "rules.json")
	if err := os.WriteFile(path, alerts, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool(t, "promtool"), "check", "rules", "--lint=all", "--lint-fatal", path).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
	if rules := renderMixin(t, "prometheusRules", "{}"); !json.Valid(rules) {
		t.Errorf("prometheusRules is %s", rules)
	}
}

// TestMixinTeams: a team has what its namespaces saved in all pools, however often kube-state-metrics
// says whose they are, and what no team used is a line of its own; without the setting there is no panel.
func TestMixinTeams(t *testing.T) {
	exprs := func(settings string) (found []string) {
		var boards map[string]struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(renderMixin(t, "grafanaDashboards", settings), &boards); err != nil {
			t.Fatal(err)
		}
		for _, p := range boards["spotter.json"].Panels {
			for _, x := range p.Targets {
				if p.Title == "Saved by team" {
					found = append(found, strings.ReplaceAll(x.Expr, "$pool", ".*"))
				}
			}
		}
		return found
	}
	if found := exprs("{}"); found != nil {
		t.Errorf("without a label there is %q", found)
	}
	asked := exprs(`{ teamLabel: 'label_team', kubeSelector: 'cluster="a"', selector: 'cluster="a"' }`)
	if len(asked) != 2 {
		t.Fatalf("savings by team are %q", asked)
	}
	type sample struct {
		Labels string  `json:"labels"`
		Value  float64 `json:"value"`
	}
	series := map[string]string{
		`spotter_namespace_saved_dollars{pool="web",namespace="shop",cluster="a"}`:        "10",
		`spotter_namespace_saved_dollars{pool="gpu",namespace="shop",cluster="a"}`:        "5",
		`spotter_namespace_saved_dollars{pool="web",namespace="cart",cluster="a"}`:        "3",
		`spotter_namespace_saved_dollars{pool="gpu",namespace="ml",cluster="a"}`:          "4",
		`spotter_namespace_saved_dollars{pool="web",namespace="lone",cluster="a"}`:        "7",
		`spotter_namespace_saved_dollars{pool="web",namespace="(unused)",cluster="a"}`:    "-2",
		`spotter_namespace_saved_dollars{pool="web",namespace="shop",cluster="b"}`:        "100",
		`kube_namespace_labels{namespace="shop",label_team="a",instance="1",cluster="a"}`: "1",
		`kube_namespace_labels{namespace="shop",label_team="a",instance="2",cluster="a"}`: "1",
		`kube_namespace_labels{namespace="cart",label_team="a",instance="1",cluster="a"}`: "1",
		`kube_namespace_labels{namespace="ml",label_team="b",instance="1",cluster="a"}`:   "1",
		`kube_namespace_labels{namespace="shop",label_team="c",instance="1",cluster="b"}`: "1", `kube_namespace_labels{namespace="lone",instance="1",cluster="a"}`: "1",
	}
	var input []map[string]string
	for name, value := range series {
		input = append(input, map[string]string{"series": name, "values": value})
	}
	test := map[string]any{"tests": []any{map[string]any{"interval": "1m", "input_series": input, "promql_expr_test": []any{
		map[string]any{"expr": asked[0], "eval_time": "0m", "exp_samples": []sample{{`{label_team="a"}`, 18}, {`{label_team="b"}`, 4}}},
		map[string]any{"expr": asked[1], "eval_time": "0m", "exp_samples": []sample{{`{}`, 5}}},
	}}}}
	text, err := yaml.Marshal(test)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "teams.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool(t, "promtool"), "test", "rules", path).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}
