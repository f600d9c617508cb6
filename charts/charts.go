// Package charts generates the parts of the Helm charts that follow from the program: the
// CustomResourceDefinitions, the ValidatingAdmissionPolicy that enforces GPU budgets, the rules of
// the RBAC roles, and the tables of values, which it takes from the comments of values.yaml. `make
// generate` writes them; a test fails if they are out of date.
package charts

//go:generate go run gen.go

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spotter-dev/spotter/live/crd"
	"github.com/spotter-dev/spotter/live/rights"
)

// A File is a generated file of a chart.
type File struct {
	// Path is relative to the folder of the charts.
	Path string
	Data []byte
}

// note is the first line of every file.
const note = "{{- /* Made by `make generate`; do not edit. */}}\n"

// Files returns all generated files in a fixed order. values and schema are the contents of the
// values.yaml and the values.schema.json of the chart spotter.
func Files(values, schema []byte) ([]File, error) {
	var all []File
	for _, name := range crd.Files() {
		base := "crd-" + strings.TrimPrefix(name, "spotter.dev_")
		all = append(all,
			File{filepath.Join("spotter-crds", "templates", base), []byte(note + definition(crd.File(name)))},
			File{filepath.Join("spotter", "templates", base), []byte(note + "{{- if .Values.crds.install }}\n" +
				definition(crd.File(name)) + "{{- end }}\n")},
		)
	}
	page, err := readme(values)
	if err != nil {
		return nil, err
	}
	table, err := reference(values, schema)
	if err != nil {
		return nil, err
	}
	return append(all,
		page,
		table,
		File{filepath.Join("spotter", "templates", "budgetgate.yaml"), []byte(note +
			"{{- if .Values.budgetGate.install }}\n" + labelled(crd.GateFile()) + "{{- end }}\n")},
		File{filepath.Join("spotter", "templates", "guard.yaml"), []byte(note + guard())},
		File{filepath.Join("spotter", "templates", "_rules.tpl"), rules()},
	), nil
}

// Write writes all generated files below dir, the folder of the charts.
func Write(dir string) error {
	values, err := os.ReadFile(filepath.Join(dir, "spotter", "values.yaml"))
	if err != nil {
		return err
	}
	schema, err := os.ReadFile(filepath.Join(dir, "spotter", "values.schema.json"))
	if err != nil {
		return err
	}
	all, err := Files(values, schema)
	if err != nil {
		return err
	}
	for _, f := range all {
		if err := os.WriteFile(filepath.Join(dir, f.Path), f.Data, 0o644); err != nil {
			return fmt.Errorf("writing a file of a chart: %w", err)
		}
	}
	return nil
}

// chartLabels are the labels of every object of the chart.
const chartLabels = "  labels:\n    {{- include \"spotter.labels\" . | nindent 4 }}\n"

// definition returns a CustomResourceDefinition as a template with the chart's labels. The template
// keeps the definition when the release is uninstalled, because deleting it would delete all
// objects of its kind.
func definition(manifest []byte) string {
	text := strings.TrimPrefix(string(manifest), "---\n")
	return strings.Replace(text, "  annotations:\n", chartLabels+"  annotations:\n    helm.sh/resource-policy: keep\n", 1)
}

// labelled returns manifests as a template, with the chart's labels.
func labelled(manifest []byte) string {
	return strings.ReplaceAll(string(manifest), "metadata:\n  name: ", "metadata:\n"+chartLabels+"  name: ")
}

// guard returns the template of the admission policies that restrict the controller's rights. The
// policy of the kill switch is rendered only if values.yaml names a kill switch.
func guard() string {
	text := labelled(rights.GuardFile(rights.Guarded{
		User:      `system:serviceaccount:{{ .Release.Namespace }}:{{ include "spotter.serviceAccountName" . }}`,
		Namespace: "{{ .Release.Namespace }}", KillSwitch: "{{ .Values.killSwitch }}",
	}))
	docs := strings.Split(text, "\n---\n")
	last := len(docs) - 2 // a policy and its binding
	return "{{- if .Values.admission.install }}\n" + strings.Join(docs[:last], "\n---\n") +
		"\n{{- if .Values.killSwitch }}\n---\n" + strings.Join(docs[last:], "\n---\n") + "{{- end }}\n{{- end }}\n"
}

// scopes lists the roles and the template of each role's rules.
var scopes = []struct {
	scope    rights.Scope
	template string
	about    string
}{
	{rights.Cluster, "spotter.rules.cluster", "What is granted in the whole cluster."},
	{rights.OwnNamespace, "spotter.rules.namespace", "What is granted in the release's namespace."},
}

// rules returns the templates of the rules of all roles.
func rules() []byte {
	var b bytes.Buffer
	b.WriteString(note)
	for _, s := range scopes {
		fmt.Fprintf(&b, "\n{{- /* %s */}}\n{{- define %q -}}\n", s.about, s.template)
		for _, r := range rights.Kubernetes() {
			if r.Scope == s.scope {
				rule(&b, &r)
			}
		}
		b.WriteString("{{- end }}\n")
	}
	return b.Bytes()
}

// rule writes one rule, inside a condition on the chart's values if it has one.
func rule(b *bytes.Buffer, r *rights.Right) {
	when := condition(r)
	if when != "" {
		fmt.Fprintf(b, "{{- if %s }}\n", when)
	}
	fmt.Fprintf(b, "# %s\n- apiGroups: [%q]\n  resources: [%s]\n", r.Why, r.Group, strings.Join(r.Resources, ", "))
	if len(r.Names) > 0 {
		fmt.Fprintf(b, "  resourceNames: [%s]\n", strings.Join(r.Names, ", "))
	}
	fmt.Fprintf(b, "  verbs: [%s]\n", strings.Join(r.Verbs, ", "))
	if when != "" {
		b.WriteString("{{- end }}\n")
	}
}

// parts maps a part of the controller to the values that enable it. A part that is missing here is
// always enabled.
var parts = map[rights.Part]string{
	rights.SecureMetrics: `.Values.metrics.secure`,
	rights.Karpenter:     `(has "karpenter" .Values.backends)`,
	rights.Groups:        `(has "asg" .Values.backends)`,
	rights.Rackspace:     `(has "rackspace" .Values.backends)`,
	rights.Queue:         `.Values.aws.queueURL`,
	rights.Prometheus:    `.Values.usage.prometheus.url`,
}

// condition returns the template expression under which a right is granted, or "" if it always is.
func condition(r *rights.Right) string {
	var all []string
	if r.Active {
		all = append(all, `(ne .Values.mode "shadow")`)
	}
	if when := parts[r.Part]; when != "" {
		all = append(all, when)
	}
	if r.Unless != "" {
		all = append(all, "(not "+parts[r.Unless]+")")
	}
	// Each group of node classes is from a different cloud, so no cluster has them all.
	if r.Part == rights.Karpenter && r.Group != "" && r.Group != "karpenter.sh" {
		all = append(all, fmt.Sprintf("(has %q .Values.karpenter.nodeClassGroups)", r.Group))
	}
	if len(all) > 1 {
		return "and " + strings.Join(all, " ")
	}
	return strings.Join(all, "")
}
