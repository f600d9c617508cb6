package charts

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRoads: of each system that Spotter replaces docs/deployment.md says how Spotter is installed in
// its place: the chart takes the values, and the tests that are named there exist.
func TestRoads(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "deployment.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(text)
	}
	h, roads, rendered := newHelm(t, ""), map[string]bool{}, 0
	for _, row := range regexp.MustCompile(`(?m)^\| \[[^]]+]\(migration\.md#(\S+)\) \|(.*)\|$`).FindAllStringSubmatch(string(page), -1) {
		roads[row[1]] = true
		named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(row[2], -1)
		if len(named) == 0 {
			t.Errorf("no test holds the road from %s", row[1])
		}
		for _, name := range named {
			if !strings.Contains(tests.String(), "func "+name[1]+"(t *testing.T)") {
				t.Errorf("there is no %s, which is to hold the road from %s", name[1], row[1])
			}
		}
		var args []string
		for _, set := range regexp.MustCompile(`--set ('[^']+'|\S+?)[ `+"`"+`]`).FindAllStringSubmatch(row[2], -1) {
			args = append(args, "--set", strings.Trim(set[1], "'"))
		}
		if len(args) > 0 {
			h.render(t, "spotter", args...)
			rendered++
		}
	}
	for _, system := range []string{"spotvortex", "karpetrack", "k8s-spot-rescheduler", "gpu-budget-operator", "leftover-operator"} {
		if !roads[system] {
			t.Errorf("there is no road from %s", system)
		}
	}
	if rendered < 3 {
		t.Errorf("only %d roads have values of the chart", rendered)
	}
}
