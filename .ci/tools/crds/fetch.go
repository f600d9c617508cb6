//go:build ignore

// Command fetch writes the definitions of other projects, against which examples and
// templates are validated, from the pinned modules below into a folder:
//
//	go run .ci/tools/crds/fetch.go bin/crds
//
// It keeps the part of each definition that validates a manifest. Descriptions, status and
// versions that are not served are left out; they are nine tenths of the text.
package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// A source is a definition in the archive of a module, or one that is generated from
// the types of a package where the module has none.
type source struct {
	module, version string
	path            string // in the archive; empty: generated
	pkg             string // to generate from
	file            string // below the folder
}

var sources = []source{
	{"github.com/argoproj/argo-cd/v3", "v3.5.7", "manifests/crds/application-crd.yaml", "",
		"argoproj.io_applications.yaml"},
	{"github.com/fluxcd/source-controller", "v1.9.6", "config/crd/bases/source.toolkit.fluxcd.io_gitrepositories.yaml",
		"", "source.toolkit.fluxcd.io_gitrepositories.yaml"},
	{"github.com/fluxcd/helm-controller/api", "v1.6.5", "", "github.com/fluxcd/helm-controller/api/v2",
		"helm.toolkit.fluxcd.io_helmreleases.yaml"},
	{"github.com/fluxcd/kustomize-controller/api", "v1.9.6", "", "github.com/fluxcd/kustomize-controller/api/v1",
		"kustomize.toolkit.fluxcd.io_kustomizations.yaml"},
	{"github.com/prometheus-operator/prometheus-operator", "v0.85.0",
		"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml", "", "monitoring.coreos.com_prometheusrules.yaml"},
	{"github.com/prometheus-operator/prometheus-operator", "v0.85.0",
		"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml", "", "monitoring.coreos.com_servicemonitors.yaml"},
}

const generator = "sigs.k8s.io/controller-tools/cmd/controller-gen@v0.20.1"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: fetch FOLDER")
		os.Exit(2)
	}
	made, err := os.MkdirTemp(filepath.Dir(os.Args[1]), "crds-")
	if err == nil {
		err = write(made)
	}
	if err == nil { // all of them or none
		err = errors.Join(os.Chmod(made, 0o755), os.RemoveAll(os.Args[1]), os.Rename(made, os.Args[1]))
	}
	if err != nil {
		os.RemoveAll(made)
		fmt.Fprintln(os.Stderr, "fetch:", err)
		os.Exit(3)
	}
}

func write(folder string) error {
	for _, s := range sources {
		if err := s.write(folder); err != nil {
			return fmt.Errorf("%s@%s: %w", s.module, s.version, err)
		}
	}
	return nil
}

// write writes the definition into the folder.
func (s *source) write(folder string) error {
	text, err := s.archived()
	if s.path == "" {
		text, err = s.generated()
	}
	if err != nil {
		return err
	}
	var d map[string]any
	if err := yaml.Unmarshal(text, &d); err != nil {
		return err
	}
	delete(d, "status")
	d["metadata"] = map[string]any{"name": d["metadata"].(map[string]any)["name"]}
	spec := d["spec"].(map[string]any)
	var served []any
	for _, v := range spec["versions"].([]any) {
		version := v.(map[string]any)
		if version["served"] != true || version["deprecated"] == true {
			continue
		}
		delete(version, "additionalPrinterColumns")
		schema := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
		properties := schema["properties"].(map[string]any)
		for _, key := range []string{"status", "operation"} {
			if properties[key] != nil {
				properties[key] = map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
			}
		}
		bare(schema)
		served = append(served, version)
	}
	spec["versions"] = served
	out, err := yaml.Marshal(d)
	if err != nil {
		return err
	}
	head := fmt.Sprintf("# Made by fetch.go of %s %s, under the Apache License 2.0, without descriptions.\n", s.module,
		s.version)
	return os.WriteFile(filepath.Join(folder, s.file), append([]byte(head), out...), 0o644)
}

// bare takes the descriptions from a schema and from all below it.
func bare(schema map[string]any) {
	delete(schema, "description")
	for _, key := range []string{"properties", "patternProperties"} {
		below, _ := schema[key].(map[string]any)
		for _, v := range below {
			if m, ok := v.(map[string]any); ok {
				bare(m)
			}
		}
	}
	for _, key := range []string{"items", "additionalProperties", "not"} {
		if m, ok := schema[key].(map[string]any); ok {
			bare(m)
		}
	}
	for _, key := range []string{"oneOf", "anyOf", "allOf"} {
		all, _ := schema[key].([]any)
		for _, v := range all {
			bare(v.(map[string]any))
		}
	}
}

// archived returns a file of the archive of the module.
func (s *source) archived() ([]byte, error) {
	if s.path == "" {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "definitions")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out, err := command(dir, "go", "mod", "download", "-json", s.module+"@"+s.version)
	if err != nil {
		return nil, err
	}
	var at struct{ Zip string }
	if err := json.Unmarshal(out, &at); err != nil {
		return nil, err
	}
	z, err := zip.OpenReader(at.Zip)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	f, err := z.Open(s.module + "@" + s.version + "/" + s.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// generated returns what the types of a package say.
func (s *source) generated() ([]byte, error) {
	dir, err := os.MkdirTemp("", "definitions")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for _, args := range [][]string{
		{"go", "mod", "init", "definitions"},
		{"go", "get", s.pkg + "@" + s.version},
		{"go", "run", generator, "crd", "paths=" + s.pkg, "output:crd:dir=" + dir},
	} {
		if _, err := command(dir, args...); err != nil {
			return nil, err
		}
	}
	return os.ReadFile(filepath.Join(dir, s.file))
}

func command(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", strings.Join(args, " "), err), errors.New(said.String()))
	}
	return out, nil
}
