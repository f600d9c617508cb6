package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	evalcmd "github.com/spotter-dev/spotter/cmd/spotter/internal/eval"
	"github.com/spotter-dev/spotter/internal/cli"
)

// TestCIDocument: the workflows of docs/ci.md are YAML, and name only inputs and
// outputs that the action has and flags that eval has.
func TestCIDocument(t *testing.T) {
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	var action struct{ Inputs, Outputs map[string]any } // yaml refuses a duplicate key
	if err := yaml.Unmarshal([]byte(read("action.yml")), &action); err != nil {
		t.Fatal(err)
	}
	doc := read("docs/ci.md")
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(doc, -1)
	if len(blocks) != 2 {
		t.Fatalf("%d workflows, want one for GitHub and one for GitLab", len(blocks))
	}
	var github struct {
		Jobs map[string]struct {
			Steps []struct {
				Uses string
				With map[string]any
			}
		}
	}
	if err := yaml.Unmarshal([]byte(blocks[0][1]), &github); err != nil {
		t.Fatal(err)
	}
	inputs := 0
	for _, s := range github.Jobs["spot"].Steps {
		for name := range s.With {
			if strings.HasPrefix(s.Uses, "spotter-dev/") {
				inputs++
				if _, ok := action.Inputs[name]; !ok {
					t.Errorf("the action has no input %q", name)
				}
			}
		}
	}
	outputs := regexp.MustCompile(`steps\.spotter\.outputs\.([a-z-]+)`).FindAllStringSubmatch(doc, -1)
	for _, m := range outputs {
		if _, ok := action.Outputs[m[1]]; !ok {
			t.Errorf("the action has no output %q", m[1])
		}
	}
	if inputs == 0 || len(outputs) == 0 {
		t.Errorf("%d inputs and %d outputs are shown", inputs, len(outputs))
	}
	var gitlab map[string]struct{ Script []string }
	if err := yaml.Unmarshal([]byte(blocks[1][1]), &gitlab); err != nil {
		t.Fatal(err)
	}
	script := strings.Join(gitlab["spot"].Script, "\n")
	flags := evalcmd.Command(&cli.Program{}).Flags()
	_, call, _ := strings.Cut(script, "spotter eval")
	found := regexp.MustCompile(` --([a-z-]+)`).FindAllStringSubmatch(call, -1)
	for _, m := range found {
		if flags.Lookup(m[1]) == nil {
			t.Errorf("eval has no flag --%s", m[1])
		}
	}
	if len(found) < 3 {
		t.Errorf("eval is called with %d flags", len(found))
	}
}
