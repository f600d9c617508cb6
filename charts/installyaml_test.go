package charts

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/test/testenv"
)

// installYAML renders install.yaml as `make install-yaml` does, and returns its file.
func installYAML(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "install.yaml")
	cmd := exec.Command(filepath.Join("..", "build", "install-yaml"), append([]string{"spotter", file}, arguments...)...)
	cmd.Env = append(os.Environ(), "HELM="+tool(t, "helm"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return file, errors.Join(err, errors.New(string(out)))
	}
	return file, nil
}

// TestInstallYAML requires that install.yaml has exactly the objects of the chart and a
// namespace, and installs it on a real API server, twice.
func TestInstallYAML(t *testing.T) {
	h := newHelm(t, "")
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	file, err := installYAML(t, digest)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	own, rest, _ := strings.Cut(string(text), "---\n")
	want := h.must(t, "template", "spotter", "spotter", "--namespace", "spotter", "--no-hooks", "--set", "image.digest="+digest)
	if "---\n"+rest != want {
		t.Error("install.yaml is not what the chart makes")
	}
	ns := objects(t, own)
	if len(ns) != 1 || ns[0].GetKind() != "Namespace" || ns[0].GetName() != "spotter" {
		t.Fatalf("install.yaml begins with %v", ns)
	}
	all := objects(t, rest)
	for _, o := range all {
		if n := o.GetNamespace(); n != "" && n != "spotter" {
			t.Errorf("%s %s is in the namespace %s", o.GetKind(), o.GetName(), n)
		}
		if o.GetAnnotations()["helm.sh/hook"] != "" {
			t.Errorf("%s %s is a hook, and would be run by nobody or at once", o.GetKind(), o.GetName())
		}
	}
	d := as[appsv1.Deployment](t, find(t, all, "Deployment", "spotter"))
	if image := d.Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix(image, "@"+digest) {
		t.Errorf("the image is %s", image)
	}
	if testing.Short() {
		t.Skip("starts an API server")
	}
	applied(t, file, append(ns, all...), d)
}

// applied applies install.yaml and finds all that it has. Its pods are let into its
// namespace, which lets in none that could do more.
func applied(t *testing.T, file string, all []*unstructured.Unstructured, d *appsv1.Deployment) {
	t.Helper()
	env := testenv.New(t, testenv.Options{})
	for range 2 {
		if out, err := env.Kubectl("apply", "--server-side", "-f", file); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, o := range all {
		got := &unstructured.Unstructured{}
		got.SetGroupVersionKind(o.GroupVersionKind())
		if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(o), got); err != nil {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
	pod := &corev1.Pod{Spec: *d.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = "spotter", "one"
	if err := env.Client.Create(t.Context(), pod.DeepCopy(), client.DryRunAll); err != nil {
		t.Errorf("a pod of the controller: %v", err)
	}
	yes := true
	pod.Spec.Containers[0].SecurityContext.Privileged, pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = &yes, &yes
	if err := env.Client.Create(t.Context(), pod, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "PodSecurity") {
		t.Errorf("a privileged pod: %v", err)
	}
}

// TestInstallYAMLCalls refuses what is wrongly called, and leaves nothing behind.
func TestInstallYAMLCalls(t *testing.T) {
	for _, digest := range []string{"latest", "sha256:12", "sha256:" + strings.Repeat("g", 64)} {
		file, err := installYAML(t, digest)
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(err.Error(), digest) {
			t.Errorf("DIGEST %s: %v", digest, err)
		}
		if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) > 0 {
			t.Errorf("DIGEST %s: %v is left: %v", digest, left, err)
		}
	}
}
