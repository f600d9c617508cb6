package eval

import (
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/scenarios"
)

// The name all means every embedded scenario except those for measuring speed.
func TestAllScenarios(t *testing.T) {
	names, all := scenariosOf([]string{"all"})
	if !all {
		t.Error("all is not all")
	}
	for _, name := range scenarios.Names() {
		if slices.Contains(names, name) == strings.HasPrefix(name, "bench-") {
			t.Errorf("%s among all: %v", name, slices.Contains(names, name))
		}
	}
	if names, all := scenariosOf(nil); all || len(names) != 1 || names[0] != input.DefaultScenario {
		t.Errorf("none is %v", names)
	}
}
