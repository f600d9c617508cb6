package crds

import (
	"bytes"
	"errors"
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

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/crd"
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
	policy, binding := crd.Gate()
	want = append(want, "ValidatingAdmissionPolicy/"+policy.Name, "ValidatingAdmissionPolicyBinding/"+binding.Name)
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
		if text, err := env.Kubectl("apply", "--server-side", "-f", file); err != nil || strings.Count(text, "serverside-applied") != len(crd.Objects())+2 {
			t.Errorf("%v\n%s", err, text)
		}
	}
}
