package charts

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"

	"github.com/spotter-dev/spotter/test/testenv"
)

// TestConform holds every profile against the schemas of a real API server, and takes
// no field that these do not know.
func TestConform(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	kubeconform := tool(t, "kubeconform")
	h := newHelm(t, "")
	defined := others(t)
	env := testenv.New(t, testenv.Options{CRDs: defined})
	schemas := t.TempDir()
	testenv.Eventually(t, "the API server has schemas of all definitions", func() error {
		if n := writeSchemas(t, env, schemas); n < 100 {
			return fmt.Errorf("it has %d kinds", n)
		}
		return haveSchemas(schemas, defined)
	})
	conform := func(manifests string) (string, error) {
		cmd := exec.Command(kubeconform, "-strict", "-summary",
			"-schema-location", filepath.Join(schemas, "{{.Group}}_{{.ResourceAPIVersion}}_{{.ResourceKind}}.json"))
		cmd.Stdin = strings.NewReader(manifests)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, p := range profiles() {
		text, all := h.render(t, "spotter", p.set...)
		if out, err := conform(text); err != nil || !strings.Contains(out, fmt.Sprintf("%d resources found", len(all))) {
			t.Errorf("%s: %v\n%s", p.name, err, out)
		}
	}
	text, _ := h.render(t, "spotter-crds")
	if out, err := conform(text); err != nil {
		t.Errorf("spotter-crds: %v\n%s", err, out)
	}
	wrong, _ := h.render(t, "spotter", "--set", "metrics.serviceMonitor.enabled=true", "--set", "metrics.prometheusRule.enabled=true")
	for _, c := range [][2]string{
		{"replicas: 2", "replica: 2"}, {"runAsNonRoot: true", "runAsNonRoot: 1"},
		{"bearerTokenFile:", "tokenFile:"}, {"interval: 30s", "interval: 30"}, {"scheme: https",
			"scheme: tls"}, {"- alert: SpotterNoLeader", "- name: SpotterNoLeader"},
	} {
		broken := strings.Replace(wrong, c[0], c[1], 1)
		if out, err := conform(broken); err == nil || broken == wrong {
			t.Errorf("%q in place of %q is taken:\n%s", c[1], c[0], out)
		}
	}
}

// others returns the definitions of other projects whose kinds we make or show.
func others(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(tool(t, "crds"), "*.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("definitions: %v %v", files, err)
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, d); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, d)
	}
	return all
}

// haveSchemas fails while a definition has no schema in dir: the API server publishes
// those of definitions some time after it serves their kinds.
func haveSchemas(dir string, defined []*apiextensionsv1.CustomResourceDefinition) error {
	for _, d := range defined {
		for _, v := range d.Spec.Versions {
			name := fmt.Sprintf("%s_%s_%s.json", d.Spec.Group, v.Name, strings.ToLower(d.Spec.Names.Kind))
			if _, err := os.Stat(filepath.Join(dir, name)); v.Served && err != nil {
				return err
			}
		}
	}
	return nil
}

// writeSchemas writes a schema of each kind that the API server knows, and returns
// how many there are. Nothing is fetched from elsewhere.
func writeSchemas(t *testing.T, env *testenv.Env, dir string) int {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	paths, err := d.OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for path, group := range paths {
		if !strings.HasPrefix(path, "api") {
			continue
		}
		text, err := group.Schema("application/json")
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		var doc struct {
			Components struct{ Schemas map[string]map[string]any }
		}
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, s := range doc.Components.Schemas {
			closed(s)
		}
		schemas, err := json.Marshal(doc.Components.Schemas)
		if err != nil {
			t.Fatal(err)
		}
		for name, s := range doc.Components.Schemas {
			kinds, _ := s["x-kubernetes-group-version-kind"].([]any)
			if len(kinds) != 1 {
				continue // such as DeleteOptions, which many groups share
			}
			k := kinds[0].(map[string]any)
			group := k["group"]
			if group == "" {
				group = k["version"] // so kubeconform calls the group of pods
			}
			file := filepath.Join(dir, fmt.Sprintf("%s_%s_%s.json", group, k["version"], strings.ToLower(k["kind"].(string))))
			n++
			if _, err := os.Stat(file); err == nil {
				continue // the definitions of others come later, one by one
			}
			if err := os.WriteFile(file, fmt.Appendf(nil, `{"$ref": "#/components/schemas/%s", "components": {"schemas": %s}}`,
				name, schemas), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return n
}

// closed has a schema, and all below it, take no properties but those that it names.
// Where the API server keeps what it does not know, such as in a definition's own
// schema, anything goes.
func closed(s map[string]any) {
	properties, named := s["properties"].(map[string]any)
	if _, open := s["additionalProperties"]; named && !open && s["x-kubernetes-preserve-unknown-fields"] != true {
		s["additionalProperties"] = false
	}
	for _, p := range properties {
		if below, ok := p.(map[string]any); ok {
			closed(below)
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if below, ok := s[key].(map[string]any); ok {
			closed(below)
		}
	}
}
