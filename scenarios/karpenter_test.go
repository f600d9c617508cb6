package scenarios

import (
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/scenarios/trace"
)

func TestKarpenterVersion(t *testing.T) {
	for text, want := range map[string]KarpenterVersion{"1.12": 12, "v1.14": 14, "1.14.1": 14, "v1.15.0": 15} {
		if v, err := ParseKarpenterVersion(text); err != nil || v != want {
			t.Errorf("%s: %d, %v", text, v, err)
		}
	}
	for _, text := range []string{"", "1", "1.", "1.11", "1.16", "2.14", "14", "latest", "1.x"} {
		if v, err := ParseKarpenterVersion(text); err == nil {
			t.Errorf("%q: %d", text, v)
		}
	}
	if got := KarpenterVersion(0).String() + " " + KarpenterVersion(12).String(); got != "1.15 1.12" {
		t.Error(got)
	}
}

// TestKarpenterVersionOfScenario: what the annotation states holds but where the call states
// another.
func TestKarpenterVersionOfScenario(t *testing.T) {
	text, err := Source("tiny")
	if err != nil {
		t.Fatal(err)
	}
	state := func(version string) (*Scenario, error) {
		return Parse("x.yaml", []byte(strings.Replace(string(text), "metadata: {name: tiny}",
			"metadata: {name: tiny, annotations: {spotter.dev/karpenter-version: \""+version+"\"}}", 1)))
	}
	if _, err := state("1.3"); err == nil || !strings.Contains(err.Error(),
		`x.yaml:6: field "metadata.annotations.spotter.dev/karpenter-version": "1.3" is not a version`) {
		t.Error(err)
	}
	sc, err := state("1.13")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trace.Synthetic()
	if err != nil {
		t.Fatal(err)
	}
	for call, want := range map[KarpenterVersion]KarpenterVersion{0: 13, 14: 14} {
		if w, err := Bind(sc, tr, BindOptions{Karpenter: call}); err != nil || w.Karpenter != want {
			t.Errorf("bound with %d it is %+v, %v", call, w, err)
		}
	}
}
