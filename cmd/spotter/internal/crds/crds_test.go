package crds

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/crd"
	"github.com/spotter-dev/spotter/live/rights/rightstest"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// call runs the command and returns its exit code and what it printed.
func call(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	p := cli.Program{Name: "spotter", Args: append([]string{"crds"}, args...), Stdout: &out, Stderr: &out}
	code := p.Run(t.Context(), func(p *cli.Program) []*cobra.Command { return []*cobra.Command{Command(p)} })
	return code, out.String()
}

// TestStream: the stream has every definition and the gate, once each, and a file gets the
// same bytes.
func TestStream(t *testing.T) {
	code, text := call(t)
	if code != cli.ExitOK {
		t.Fatalf("exit %d\n%s", code, text)
	}
	var got, want []string
	for d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		var u unstructured.Unstructured
		err := d.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, u.GetKind()+"/"+u.GetName())
	}
	for _, o := range crd.Objects() {
		want = append(want, "CustomResourceDefinition/"+o.Name)
	}
	gate := rightstest.Admission(t, crd.GateFile())
	want = append(want, "ValidatingAdmissionPolicy/"+gate[0].GetName(), "ValidatingAdmissionPolicyBinding/"+gate[1].GetName())
	if !slices.Equal(got, want) {
		t.Errorf("the stream has %v, want %v", got, want)
	}
	file := filepath.Join(t.TempDir(), "all.yaml")
	code, said := call(t, "--out", file)
	if data, err := os.ReadFile(file); err != nil || code != cli.ExitOK || said != "" || string(data) != text {
		t.Errorf("--out: exit %d, %v, %q, and %d bytes of %d", code, err, said, len(data), len(text))
	}
}

// TestWrongCalls: what the user can fix ends with 2 and names it.
func TestWrongCalls(t *testing.T) {
	for _, args := range [][]string{{"--out", "/no/such/folder/x.yaml"}, {"--out", t.TempDir()}, {"more"}} {
		if code, text := call(t, args...); code != cli.ExitInvalid || !strings.Contains(text, strings.TrimPrefix(args[len(args)-1], "--")) {
			t.Errorf("%v: exit %d\n%s", args, code, text)
		}
	}
}

// TestApply: a server that lacks the definitions takes the stream, twice.
func TestApply(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	file := filepath.Join(t.TempDir(), "crds.yaml")
	if code, text := call(t, "--out", file); code != cli.ExitOK {
		t.Fatalf("exit %d\n%s", code, text)
	}
	for _, o := range crd.Objects() {
		if err := env.Client.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, "the definitions are gone", func() error {
		var all apiextensionsv1.CustomResourceDefinitionList
		if err := env.Client.List(t.Context(), &all); err != nil {
			return err
		}
		if len(all.Items) > 0 {
			return errors.New(all.Items[0].Name + " is left")
		}
		return nil
	})
	for range 2 {
		if text, err := env.Kubectl("apply", "--server-side", "-f", file); err != nil ||
			strings.Count(text, "serverside-applied") != len(crd.Objects())+2 {
			t.Errorf("%v\n%s", err, text)
		}
	}
}

// TestMigrate: after a release that stores the next version, the command has the objects
// stored in it, and the release after that no longer serves the first.
func TestMigrate(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	kubeconfig := []string{"migrate", "--kubeconfig", env.Kubeconfig}
	migrate := func(want string) {
		t.Helper()
		if code, text := call(t, kubeconfig...); code != cli.ExitOK || strings.Count(text, want) != len(crd.Objects()) {
			t.Fatalf("exit %d, and not %d times %q:\n%s", code, len(crd.Objects()), want, text)
		}
	}
	first, next := crd.Versions[0], crd.Versions[1]
	for i := range 3 {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"selector": map[string]any{},
			"quota": map[string]any{"gpuHours": int64(1), "windowHours": int64(24)}}}}
		o.SetAPIVersion("spotter.dev/" + first)
		o.SetKind("GPUBudget")
		o.SetNamespace("default")
		o.SetName(fmt.Sprint("b", i))
		if err := env.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	versions := func() map[string]string {
		t.Helper()
		var list v1alpha1.GPUBudgetList
		if err := env.Client.List(t.Context(), &list); err != nil || len(list.Items) != 3 {
			t.Fatalf("%d budgets: %v", len(list.Items), err)
		}
		all := map[string]string{}
		for i := range list.Items {
			all[list.Items[i].Name] = list.Items[i].ResourceVersion
		}
		return all
	}
	migrate("all objects are stored as " + first)
	change := func(f func(*apiextensionsv1.CustomResourceDefinition)) {
		t.Helper()
		for _, want := range crd.Objects() {
			testenv.Eventually(t, want.Name+" is changed", func() error {
				var d apiextensionsv1.CustomResourceDefinition
				if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(want), &d); err != nil {
					return err
				}
				f(&d)
				return env.Client.Update(t.Context(), &d)
			})
		}
	}
	change(func(d *apiextensionsv1.CustomResourceDefinition) {
		for i := range d.Spec.Versions {
			d.Spec.Versions[i].Storage = d.Spec.Versions[i].Name == next
		}
	})
	testenv.Eventually(t, "the definitions name both versions", func() error {
		for _, want := range crd.Objects() {
			var d apiextensionsv1.CustomResourceDefinition
			if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(want), &d); err != nil {
				return err
			}
			if !slices.Contains(d.Status.StoredVersions, next) {
				return fmt.Errorf("%s: %v", d.Name, d.Status.StoredVersions)
			}
		}
		return nil
	})
	before := versions()
	migrate("written again as " + next)
	for name, v := range versions() { // a write that leaves the same bytes in the store leaves the resourceVersion
		if v == before[name] {
			t.Errorf("%s is stored as it was", name)
		}
	}
	migrate("all objects are stored as " + next)
	change(func(d *apiextensionsv1.CustomResourceDefinition) { // refused while an object may be stored in it
		d.Spec.Versions = slices.DeleteFunc(d.Spec.Versions,
			func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == first })
	})
	testenv.Eventually(t, "the objects are read in the next version", func() error {
		text, err := env.Kubectl("get", "gpubudgets."+next+".spotter.dev", "--namespace", "default", "--output", "name")
		if err != nil || strings.Count(text, "/b") != 3 {
			return fmt.Errorf("%w: %s", err, text)
		}
		return nil
	})
}

// TestMigrateNothing: a cluster without the definitions gets a word about it.
func TestMigrateNothing(t *testing.T) {
	env := testenv.Start(t, testenv.Options{})
	for _, o := range crd.Objects() {
		if err := env.Client.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, "it is said that nothing is installed", func() error {
		if code, text := call(t, "migrate", "--kubeconfig", env.Kubeconfig); code != cli.ExitInvalid ||
			!strings.Contains(text, "is not installed") {
			return fmt.Errorf("exit %d\n%s", code, text)
		}
		return nil
	})
}
