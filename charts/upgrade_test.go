package charts

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/crd"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// specOf matches the schema of a spec up to its fields, in the template of a definition.
var specOf = regexp.MustCompile(`(?m)^          spec:\n(?:            .*\n)*?            properties:\n`)

// chartVersion matches the version of a chart.
var chartVersion = regexp.MustCompile(`(?m)^version: .*$`)

// newerChart returns a chart of a later version, whose kinds have one field more in
// their spec, "later", and are stored in the next version.
func newerChart(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "spotter")
	if err := os.CopyFS(dir, os.DirFS("spotter")); err != nil {
		t.Fatal(err)
	}
	change := func(name string, to func(string) string) {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		changed := to(string(text))
		if changed == string(text) {
			t.Fatalf("%s is not what it was thought to be", name)
		}
		if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	change("Chart.yaml", func(text string) string { return chartVersion.ReplaceAllString(text, "version: 99.0.0") })
	for _, kind := range []string{"capacitypools", "gpubudgets"} {
		change(filepath.Join("templates", "crd-"+kind+".yaml"), func(text string) string {
			text = strings.NewReplacer("\n    storage: true\n", "\n    storage: false\n", "\n    storage: false\n",
				"\n    storage: true\n").Replace(text)
			return specOf.ReplaceAllString(text, "${0}              later:\n                type: string\n")
		})
	}
	return dir
}

// newer upgrades to a chart whose kinds have a field more, stores it in the objects
// that there are, and has the controller decide while they have it.
func (s *site) newer(t *testing.T) {
	t.Helper()
	head := s.head(t.Context())
	s.helm.must(t, append([]string{"upgrade", release, newerChart(t), "--set", "mode=active"}, installed...)...)
	for _, o := range s.stored() {
		if err := s.env.Client.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"later":"yes"}}`))); err != nil {
			t.Fatal(err)
		}
	}
	s.later(t, "yes")
	c := s.controller(t)
	s.decided(t, head, v1alpha1.ModeActive)
	s.migrate(t)
	c.stop(t)
	s.later(t, "yes")
}

// migrate rewrites the stored objects in the version of the newer chart, while the controller
// runs.
func (s *site) migrate(t *testing.T) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), s.binary, "crds", "migrate", "--kubeconfig",
		s.env.Kubeconfig).CombinedOutput(); err != nil {
		t.Fatalf("crds migrate: %v\n%s", err, out)
	}
	for _, kind := range []string{"capacitypools", "gpubudgets"} {
		var d apiextensionsv1.CustomResourceDefinition
		if err := s.env.Client.Get(t.Context(), client.ObjectKey{Name: kind + ".spotter.dev"}, &d); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(d.Status.StoredVersions, crd.Versions[1:]) {
			t.Errorf("%s are stored as %v, want %v", kind, d.Status.StoredVersions, crd.Versions[1:])
		}
	}
}

// stored returns the objects of Spotter's kinds in the cluster, with their names only.
func (s *site) stored() []*unstructured.Unstructured {
	pool, budget := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	pool.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("CapacityPool"))
	pool.SetName("web")
	budget.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("GPUBudget"))
	budget.SetNamespace("default")
	budget.SetName("notebooks")
	return []*unstructured.Unstructured{pool, budget}
}

// later holds the objects to what their newer field says; empty is that they have none.
func (s *site) later(t *testing.T, want string) {
	t.Helper()
	for _, o := range s.stored() {
		if err := s.env.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		if got, _, _ := unstructured.NestedString(o.Object, "spec", "later"); got != want {
			t.Errorf("%s %s: the newer field is %q, want %q", o.GetKind(), o.GetName(), got, want)
		}
	}
}
