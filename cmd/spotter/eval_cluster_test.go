package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/spotter-dev/spotter/internal/cli"
)

// TestOnKubernetesRefused: what a cluster cannot do is refused by its name, before one is
// asked.
func TestOnKubernetesRefused(t *testing.T) {
	on := []string{"eval", "tiny", "--on", "kubernetes", "--parts", "s3://b/p", "--kubeconfig", file(t, "config", "{}")}
	for want, args := range map[string][]string{
		`--on: "nomad" is unknown`:                          {"--on", "nomad"},
		"--on: it does not go with --shard":                 {"--shard", "1/2"},
		"--on: it does not go with --compare":               {"--compare", "x"},
		`--parts: "" is not of the form s3://BUCKET/PREFIX`: {"--parts", ""},
		"--shards: 0 is not in 1…10000":                     {"--shards", "0"},
		"--parallelism: 0 is not positive":                  {"--parallelism", "0"},
		"--attach: x already defines what is compared":      {"--attach", "x"},
		"no cluster:": nil,
	} {
		wrongCallIs(t, want, append(append([]string{}, on...), args...)...)
	}
}

// TestExamples: what the examples call is a call of spotter, and each makes all parts of one
// plan and merges them.
func TestExamples(t *testing.T) {
	example := func(name string) string { return document(t, filepath.Join("examples", name)) }
	var w struct {
		Spec struct {
			Entrypoint string
			Templates  []struct {
				Name      string
				Container *struct{ Args []string }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(example("argo-workflows.yaml")), &w); err != nil {
		t.Fatal(err)
	}
	calls := map[string][]string{}
	for _, x := range w.Spec.Templates {
		if x.Container != nil {
			calls[x.Name] = x.Container.Args
		}
	}
	python := regexp.MustCompile(`\["eval", "web-week".*?\]`).FindString(example("airflow.py"))
	var dag []string
	for _, m := range regexp.MustCompile(`f?"([^"]*)"|PARTS`).FindAllStringSubmatch(python, -1) {
		dag = append(dag, m[1])
	}
	parts := t.TempDir() + "/"
	for name, args := range map[string][]string{"Argo": calls["part"], "Airflow": dag} {
		if len(args) < 5 {
			t.Fatalf("%s calls %q", name, args)
		}
		var words []string // with what takes long cut down
		for _, a := range args {
			switch {
			case a == "web-week":
				a = "tiny"
			case a == "100":
				a = "1"
			case a == "" || strings.HasPrefix(a, "{{workflow.parameters.parts"):
				a = parts
			}
			words = append(words, strings.NewReplacer("{{inputs.parameters.i}}", "1", "{i}", "1", "{N}", "20").Replace(a))
		}
		if code, _, stderr := call(t, words...); code != cli.ExitOK || !strings.Contains(stderr, parts+"part-00001-of-00020.parquet") {
			t.Errorf("%s: %q ends with %d: %s", name, words, code, stderr)
		}
	}
	if merge := calls["merge"]; len(merge) != 3 || merge[0]+merge[1] != "evalmerge" ||
		!strings.Contains(example("airflow.py"), `arguments=["eval", "merge", PARTS]`) {
		t.Errorf("Argo merges by %q", merge)
	}
	if path, err := exec.LookPath("python3"); err == nil {
		compiled := filepath.Join(t.TempDir(), "x.pyc")
		if out, err := exec.Command(path, "-c",
			"import py_compile, sys; py_compile.compile(sys.argv[1], cfile=sys.argv[2], doraise=True)", filepath.Join("..",
				"..", "docs", "examples", "airflow.py"), compiled).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
}
