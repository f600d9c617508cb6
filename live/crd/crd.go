// Package crd contains the objects that an API server needs before Spotter's controller runs: the
// definitions of its kinds, generated from the types in policy/v1alpha1 by controller-gen, and the
// admission policy that implements the gate of GPU budgets.
package crd

import (
	"bytes"
	"embed"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed spotter.dev_*.yaml
var files embed.FS

//go:embed budget-gate.yaml
var gate []byte

// GateFile returns the manifest of the admission policy that rejects pods while the gate of their
// GPU budget is closed, and of its binding. It can be applied at any time, with or without the
// definitions.
func GateFile() []byte { return bytes.Clone(gate) }

// Objects returns the definitions of CapacityPool, GPUBudget, SpotNode and SpotPlan, in the order
// of their names. The caller may modify them.
func Objects() []*apiextensionsv1.CustomResourceDefinition {
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, name := range Files() {
		o := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(File(name), o); err != nil {
			panic(fmt.Sprintf("crd: %s, which is embedded: %v", name, err))
		}
		all = append(all, o)
	}
	return all
}

// Versions are the served versions of Spotter's kinds, the stored version first. All have the same
// fields, so that an API server converts between them without a webhook.
//
// v1beta1 replaces v1alpha1 over three releases, each of which can be rolled back to the one before
// it. The first, this one, serves both and stores v1alpha1. The second stores v1beta1 and is
// followed by `spotter crds migrate`, which causes every object to be written again. The third no
// longer serves v1alpha1.
var Versions = []string{"v1alpha1", "v1beta1"}

// Files returns the names of the manifests, sorted.
func Files() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(fmt.Sprintf("crd: reading what is embedded: %v", err))
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names
}

// File returns the manifest with a name, with all [Versions]. It panics if the manifest does not
// exist.
func File(name string) []byte {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(fmt.Sprintf("crd: no manifest %q is embedded", name))
	}
	return inAllVersions(boundSelectors(data))
}

// Patterns of label keys, whose prefix is optional, and label values.
const (
	keyPattern   = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`
	valuePattern = `^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$`
)

// boundSelectors adds limits to the label selectors in a manifest, since controller-gen reads no
// markers on their type.
func boundSelectors(manifest []byte) []byte {
	key := []string{"maxLength: 317", "pattern: '" + keyPattern + "'"}
	value := []string{"maxLength: 63", "pattern: '" + valuePattern + "'"}
	in := ""
	var out bytes.Buffer
	for line := range bytes.Lines(manifest) {
		out.Write(line)
		field := string(bytes.TrimSpace(line))
		var bounds []string
		switch {
		case field == "matchExpressions:":
			in, bounds = field, []string{"maxItems: 32"}
		case field == "key:" && in == "matchExpressions:":
			bounds = key
		case field == "values:" && in == "matchExpressions:":
			in, bounds = field, []string{"maxItems: 64"}
		case field == "items:" && in == "values:":
			bounds = value
		case field == "matchLabels:":
			in, bounds = field, []string{"maxProperties: 32"}
		case field == "additionalProperties:" && in == "matchLabels:":
			in, bounds = "", value
		}
		indent := len(line) - len(bytes.TrimLeft(line, " "))
		for _, b := range bounds {
			fmt.Fprintf(&out, "%*s%s\n", indent+2, "", b)
		}
	}
	return out.Bytes()
}

// inAllVersions returns a manifest of controller-gen with a copy of its only version, with which it
// ends, for each other version.
func inAllVersions(manifest []byte) []byte {
	_, stored, _ := bytes.Cut(manifest, []byte("\n  versions:\n"))
	all := bytes.Clone(manifest)
	for _, name := range Versions[1:] {
		next := bytes.Replace(stored, []byte("\n    name: "+Versions[0]+"\n"), []byte("\n    name: "+name+"\n"), 1)
		all = append(all, bytes.Replace(next, []byte("\n    storage: true\n"), []byte("\n    storage: false\n"), 1)...)
	}
	return all
}
