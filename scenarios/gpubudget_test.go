package scenarios

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// TestVersionsOfOurKinds: pools and budgets are read in either version that a cluster
// serves, and no other.
func TestVersionsOfOurKinds(t *testing.T) {
	text, err := Source("gpu-budget")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.SplitAfter(string(text), "---\n")
	in := func(version string) string {
		changed := slices.Clone(parts)
		for i, p := range parts {
			if strings.Contains(p, "kind: CapacityPool\n") || strings.Contains(p, "kind: GPUBudget\n") {
				changed[i] = strings.Replace(p, "spotter.dev/v1alpha1", "spotter.dev/"+version, 1)
			}
		}
		return strings.Join(changed, "")
	}
	if sc, err := Parse("w.yaml", []byte(in("v1beta1"))); err != nil || len(sc.Warnings) > 0 {
		t.Errorf("v1beta1: %v, warnings %q", err, sc.Warnings)
	}
	if _, err := Parse("w.yaml", []byte(in("v2"))); err == nil || !strings.Contains(err.Error(), "apiVersion") {
		t.Errorf("v2: %v", err)
	}
}

// TestBudgetsOfAScenario reads the budgets of an embedded scenario, and warns of one
// that selects nothing.
func TestBudgetsOfAScenario(t *testing.T) {
	sc, err := Load("gpu-budget")
	if err != nil {
		t.Fatal(err)
	}
	w, err := Bind(sc, embeddedTrace(t, sc, "synthetic"), BindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var counted []string
	for i := range w.GPUBudgets {
		b := &w.GPUBudgets[i]
		for k := range w.Templates {
			if n := b.Counts(&w.Templates[k]); n > 0 {
				counted = append(counted, strings.Join([]string{b.Name, b.Action.String(), w.Templates[k].Name}, " "))
				if n != 1000 {
					t.Errorf("%s counts %d thousandths for a device of %s", b.Name, n, w.Templates[k].Name)
				}
			}
		}
	}
	want := "ml/notebooks Evict ml/notebook, ml/training Pause ml/train, ml/training Pause ml/tune, " +
		"ml/whole-team AlertOnly ml/notebook, ml/whole-team AlertOnly ml/train, ml/whole-team AlertOnly ml/tune"
	if got := strings.Join(counted, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if b := w.GPUBudgets[1]; b.Dollars != 40*policy.Dollar || b.HasGPUHours || b.Window != 24*time.Hour || b.OverQuotaDelay != 10*time.Minute {
		t.Errorf("%+v", b)
	}
	text, err := Source("gpu-budget")
	if err != nil {
		t.Fatal(err)
	}
	sc, err = Parse("w.yaml", []byte(strings.Replace(string(text), "{app: notebook}}\n  quota", "{app: notbook}}\n  quota", 1)))
	if err != nil || len(sc.Warnings) != 1 || !strings.Contains(sc.Warnings[0],
		"GPUBudget ml/notebooks selects no workload that requests nvidia.com/gpu") {
		t.Errorf("warnings %q, %v", sc.Warnings, err)
	}
	_, err = Parse("w.yaml", []byte(strings.Replace(string(text), "operator: In", "operator: Near", 1)))
	if err == nil || !strings.Contains(err.Error(), "spec.selector") {
		t.Errorf("an operator that there is not: %v", err)
	}
}
