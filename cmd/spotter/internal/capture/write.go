package capture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// A Run says on which prices a scenario is run, and when.
type Run struct {
	// Start is when metering begins, Duration how long it goes on and WarmUp how
	// long before it the cluster is as it was captured.
	Start            policy.Time
	Duration, WarmUp time.Duration

	// Trace is the file or folder of the prices, seen from that of the scenario.
	Trace string

	// Head are lines for the head of the file.
	Head []string
}

// The Scenario object, with its fields in the order in which people read them.
type manifest struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       spec     `json:"spec"`
}

type metadata struct {
	Name        string            `json:"name"`
	Annotations map[string]string `json:"annotations"`
}

type spec struct {
	Start       string       `json:"start"`
	Duration    string       `json:"duration"`
	WarmUp      string       `json:"warmUp"`
	Trace       string       `json:"trace"`
	Nodes       []seed       `json:"nodes,omitempty"`
	Commitments []commitment `json:"commitments,omitempty"`
}

// Write returns the scenario as a file: what was assumed and left out as comments at
// its head, then the Scenario object, then the manifests.
func (c *Captured) Write(r Run) ([]byte, error) {
	var b bytes.Buffer
	for _, line := range r.Head {
		comment(&b, line, "")
	}
	for _, a := range c.Assumed {
		comment(&b, a, "Assumed: ")
	}
	for _, l := range c.Left {
		comment(&b, l, "Left out: ")
	}
	mark := map[string]string{scenarios.AnnotationCaptured: c.at.Std().Format(time.RFC3339)}
	all := append([]any{&manifest{"spotter.dev/v1alpha1", "Scenario", metadata{c.name, mark}, spec{
		Start: r.Start.Std().Format(time.RFC3339), Duration: r.Duration.String(), WarmUp: r.WarmUp.String(), Trace: r.Trace,
		Nodes: c.seeds, Commitments: c.commitments,
	}}}, c.objects...)
	for i, o := range all {
		if i > 0 {
			b.WriteString("---\n")
		}
		if err := document(&b, o); err != nil {
			return nil, fmt.Errorf("writing a %T: %w", o, err)
		}
	}
	return b.Bytes(), nil
}

// comment writes a paragraph.
func comment(b *bytes.Buffer, text, label string) {
	const width = 110
	line := "# " + label
	for i, word := range strings.Fields(text) {
		if i > 0 && len(line)+1+len(word) > width {
			b.WriteString(line + "\n")
			line = "#  "
		}
		if !strings.HasSuffix(line, " ") {
			line += " "
		}
		line += word
	}
	b.WriteString(line + "\n")
}

// document writes one object. It goes through JSON, whose names of fields are those
// of manifests.
func document(b *bytes.Buffer, object any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil {
		return err
	}
	root := n.Content[0]
	tidy(root)
	drop(root, "status")
	front(root, "metadata")
	front(root, "kind")
	front(root, "apiVersion")
	e := yaml.NewEncoder(b)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return err
	}
	return e.Close()
}

// ambiguous are strings that a reader of YAML 1.1, as kubectl is, takes for a truth
// value or a number to the base of sixty.
var ambiguous = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(y|n|yes|no|on|off|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)$`)
})

// empties are the fields that mean something while they are empty.
var empties = []string{"selector", "labelSelector", "namespaceSelector", "podSelector"}

// tidy gives a tree the style of a manifest and takes out what says nothing.
func tidy(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" && ambiguous().MatchString(n.Value) {
		n.Style = yaml.DoubleQuotedStyle
	}
	if n.Kind != yaml.MappingNode {
		for _, c := range n.Content {
			tidy(c)
		}
		return
	}
	var kept []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		tidy(key)
		tidy(v)
		empty := v.Kind == yaml.MappingNode && len(v.Content) == 0
		if empty && !slices.Contains(empties, key.Value) || v.Tag == "!!null" {
			continue
		}
		kept = append(kept, key, v)
	}
	n.Content = kept
}

// drop takes out the field called key.
func drop(n *yaml.Node, key string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content = slices.Delete(n.Content, i, i+2)
			return
		}
	}
}

// front moves the field called key to the front.
func front(n *yaml.Node, key string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			pair := slices.Clone(n.Content[i : i+2])
			n.Content = slices.Concat(pair, n.Content[:i], n.Content[i+2:])
			return
		}
	}
}
