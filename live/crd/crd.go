// Package crd holds what an API server must know before a controller of ours runs:
// the definitions of our kinds, made of the types in policy/v1alpha1 by
// controller-gen, and the admission policy that is the gate of budgets.
package crd

import (
	"bytes"
	"embed"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed spotter.dev_*.yaml
var files embed.FS

//go:embed budget-gate.yaml
var gate []byte

// Gate returns the admission policy that keeps pods out while the gate of their
// budget is closed, and its binding. An API server takes them at any time, with or
// without the definitions.
func Gate() (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	first, second, _ := bytes.Cut(gate, []byte("\n---\n"))
	policy, binding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
	for _, x := range []struct {
		data []byte
		into any
	}{{first, policy}, {second, binding}} {
		if err := yaml.UnmarshalStrict(x.data, x.into); err != nil {
			panic(fmt.Sprintf("crd: budget-gate.yaml, which is embedded: %v", err))
		}
	}
	return policy, binding
}

// GateFile returns the manifest of [Gate].
func GateFile() []byte { return bytes.Clone(gate) }

// Objects returns the definitions of CapacityPool, GPUBudget and SpotNode, in the
// order of their names. The caller may change them.
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

// Files returns the names of the manifests, in order.
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

// File returns a manifest by its name.
func File(name string) []byte {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(fmt.Sprintf("crd: no manifest %q is embedded", name))
	}
	return data
}
