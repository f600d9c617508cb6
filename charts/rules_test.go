package charts

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestAlerts has promtool check the alerts and play the series of testdata, in which
// each alert fires and does not.
func TestAlerts(t *testing.T) {
	promtool := tool(t, "promtool")
	for _, args := range [][]string{
		{"check", "rules", "--lint=all", "--lint-fatal", filepath.Join("spotter", "files", "rules.yaml")},
		{"test", "rules", filepath.Join("testdata", "rules_test.yaml")},
	} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// An alertFile is what is read of the file of alerts.
type alertFile struct {
	Groups []struct {
		Rules []struct {
			Alert, Expr string
			Labels      map[string]string
			Annotations map[string]string
		}
	}
}

func readAlerts(t *testing.T) alertFile {
	t.Helper()
	var r alertFile
	text, err := os.ReadFile(filepath.Join("spotter", "files", "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestEveryAlertIsTested: the series of testdata name each alert as one that fires and
// as one that does not, and the runbook has a section on it.
func TestEveryAlertIsTested(t *testing.T) {
	series, err := os.ReadFile(filepath.Join("testdata", "rules_test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	runbook, err := os.ReadFile(filepath.Join("..", "docs", "runbook.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, g := range readAlerts(t).Groups {
		for _, r := range g.Rules {
			n++
			if !strings.Contains(string(series), "alertname: "+r.Alert+"}") {
				t.Errorf("%s is not held to be silent when all is well", r.Alert)
			}
			if !strings.Contains(string(series), `alertname="`+r.Alert+`"`) {
				t.Errorf("%s is not held to fire", r.Alert)
			}
			if !strings.Contains(string(runbook), "\n## "+r.Alert+"\n") {
				t.Errorf("docs/runbook.md has no section on %s", r.Alert)
			}
			if !strings.HasSuffix(r.Annotations["runbook_url"], "docs/runbook.md#"+strings.ToLower(r.Alert)) {
				t.Errorf("%s leads to %q", r.Alert, r.Annotations["runbook_url"])
			}
			if !slices.Contains([]string{"info", "warning", "critical"}, r.Labels["severity"]) {
				t.Errorf("%s has the severity %q", r.Alert, r.Labels["severity"])
			}
		}
	}
	if n == 0 {
		t.Error("there are no alerts")
	}
}

// metricsTold returns the names of all metrics, as the reference has them, which is made
// of what the controller registers.
func metricsTold(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "docs", "reference-metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z]+) \\|").FindAllStringSubmatch(string(page), -1) {
		names[m[1]] = true
		if m[2] == "histogram" {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				names[m[1]+suffix] = true
			}
		}
	}
	if len(names) < 60 {
		t.Fatalf("the reference has %d metrics", len(names))
	}
	return names
}

// TestMetricsAreThere: alerts and dashboards use only metrics that the controller publishes.
func TestMetricsAreThere(t *testing.T) {
	there := metricsTold(t)
	asked := 0
	hold := func(where, expr string) {
		for _, name := range regexp.MustCompile(`spotter_[a-z_]+`).FindAllString(expr, -1) {
			asked++
			if !there[name] {
				t.Errorf("%s asks for %s, which is not told", where, name)
			}
		}
	}
	for _, g := range readAlerts(t).Groups {
		for _, r := range g.Rules {
			hold(r.Alert, r.Expr)
		}
	}
	boards, err := filepath.Glob(filepath.Join("spotter", "files", "dashboards", "*.json"))
	if err != nil || len(boards) == 0 {
		t.Fatalf("dashboards: %v %v", boards, err)
	}
	for _, path := range boards {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var board struct {
			Title      string
			Templating struct {
				List []struct{ Name, Query string }
			}
			Panels []struct {
				ID      int
				Title   string
				GridPos struct{ X, Y, W, H int }
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(text, &board); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, v := range board.Templating.List {
			hold("the variable "+v.Name, v.Query)
		}
		ids := map[int]bool{}
		for i, p := range board.Panels {
			if ids[p.ID] {
				t.Errorf("%s: two panels have the number %d", path, p.ID)
			}
			ids[p.ID] = true
			for _, target := range p.Targets {
				hold(p.Title, target.Expr)
			}
			for _, q := range board.Panels[:i] {
				a, b := p.GridPos, q.GridPos
				if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
					t.Errorf("%s: the panels %q and %q lie on each other", path, p.Title, q.Title)
				}
			}
		}
	}
	if asked < 40 {
		t.Errorf("only %d names are asked for", asked)
	}
}

// TestPromQL has promtool read every expression of the dashboards.
func TestPromQL(t *testing.T) {
	promtool := tool(t, "promtool")
	text, err := os.ReadFile(filepath.Join("spotter", "files", "dashboards", "spotter.json"))
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	// A rule is the one thing that promtool reads offline: each expression becomes one.
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var all []rule
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			all = append(all, rule{Record: "x", Expr: strings.ReplaceAll(target.Expr, "$pool", ".*")})
		}
	}
	file, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": all}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(promtool, "check", "rules", "--lint=none", path).CombinedOutput(); err != nil || len(all) < 20 {
		t.Errorf("%d expressions: %v\n%s", len(all), err, out)
	}
}
