package charts

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kwokapis "sigs.k8s.io/karpenter/kwok/apis"
	karpenterapis "sigs.k8s.io/karpenter/pkg/apis"
	"sigs.k8s.io/yaml"

	"github.com/spotter-dev/spotter/live/aws/fake"
	"github.com/spotter-dev/spotter/live/karpenter"
	"github.com/spotter-dev/spotter/live/rights"
	"github.com/spotter-dev/spotter/live/rights/rightstest"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// gitOpsBlocks returns the manifests that docs/gitops.md shows: those for Flux, those
// for Argo CD, and the pools.
func gitOpsBlocks(t *testing.T) (flux, argo, pools string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "gitops.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 3 {
		t.Fatalf("docs/gitops.md shows %d blocks of manifests, want three", len(blocks))
	}
	return blocks[0][1], blocks[1][1], blocks[2][1]
}

// TestGitOpsValues: the charts that the examples name are there, and take the values
// that the examples give them.
func TestGitOpsValues(t *testing.T) {
	h := newHelm(t, "")
	flux, argo, _ := gitOpsBlocks(t)
	charts := map[string]int{}
	for _, o := range append(objects(t, flux), objects(t, argo)...) {
		at, values := []string{"spec", "chart", "spec", "chart"}, []string{"spec", "values"}
		switch o.GetKind() {
		case "Application":
			at, values = []string{"spec", "source", "path"}, []string{"spec", "source", "helm", "valuesObject"}
		case "HelmRelease":
		default:
			continue
		}
		path, _, err := unstructured.NestedString(o.Object, at...)
		if err != nil {
			t.Fatal(err)
		}
		chart, ours := strings.CutPrefix(strings.TrimPrefix(path, "./"), "charts/")
		if !ours {
			continue // the pools of the reader
		}
		charts[chart]++
		given, _, err := unstructured.NestedMap(o.Object, values...)
		if err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(given)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "values.yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, made := h.render(t, chart, "--values", file)
		has := slices.ContainsFunc(made, func(o *unstructured.Unstructured) bool { return o.GetKind() == "CustomResourceDefinition" })
		if has != (chart == "spotter-crds") {
			t.Errorf("%s %s: the chart %s makes definitions: %t", o.GetKind(), o.GetName(), chart, has)
		}
	}
	if charts["spotter"] != 2 || charts["spotter-crds"] != 2 {
		t.Errorf("the examples install %v", charts)
	}
}

// A repository holds manifests in git, which a GitOps tool applies as the field manager manager.
type repository struct {
	env     *testenv.Env
	manager string
	file    string
}

// put writes the manifests and applies them as Flux and Argo CD do: on the server, by
// force, and refusing fields that no definition has.
func (r *repository) put(t *testing.T, manifests string, flags ...string) error {
	t.Helper()
	if err := os.WriteFile(r.file, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := r.env.Kubectl(append([]string{"apply", "--server-side", "--force-conflicts", "--validate=strict",
		"--field-manager=" + r.manager, "-f", r.file}, flags...)...)
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// versions returns the versions of what the manifests name.
func (r *repository) versions(t *testing.T, manifests string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, o := range objects(t, manifests) {
		if err := r.env.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		all[o.GetKind()+" "+o.GetName()] = o.GetResourceVersion()
	}
	return all
}

// TestGitOps applies the examples of docs/gitops.md to an API server that has the
// definitions of Flux, Argo CD and Karpenter, twice: the second time nothing changes.
// Then a controller is active on the NodePool that it has adopted, and neither undoes
// what the other wrote; where git has the same fields the controller gives way.
func TestGitOps(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server and a process")
	}
	env := testenv.New(t, testenv.Options{CRDs: slices.Concat(others(t), karpenterapis.CRDs, kwokapis.CRDs)})
	for _, name := range []string{"flux-system", "argocd", "spotter"} {
		if out, err := env.Kubectl("create", "namespace", name); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	flux, argo, pools := gitOpsBlocks(t)
	for manager, manifests := range map[string]string{"flux-client-side-apply": flux, "argocd-controller": argo,
		"kustomize-controller": pools} {
		r := &repository{env, manager, filepath.Join(t.TempDir(), "all.yaml")}
		if err := r.put(t, manifests); err != nil {
			t.Fatalf("%s: %v", manager, err)
		}
		before := r.versions(t, manifests)
		if err := r.put(t, manifests); err != nil {
			t.Fatalf("%s: %v", manager, err)
		}
		for name, version := range r.versions(t, manifests) {
			if version != before[name] {
				t.Errorf("%s: applied once more, %s changes", manager, name)
			}
		}
	}
	for _, c := range [][2]string{{"sourceRef:", "source:"}, {"mode: enabled", "mode: on"},
		{"jsonPointers:", "pointers:"}, {"spotShare: {min: 0.3}", "spotShare: {min: 3}"}, {"prune: true", "prune: 1"}} {
		broken := strings.ReplaceAll(flux+"---\n"+argo+"---\n"+pools, c[0], c[1])
		if err := (&repository{env, "x", filepath.Join(t.TempDir(), "broken.yaml")}).put(t, broken, "--dry-run=server"); err == nil {
			t.Errorf("%q in place of %q is taken", c[1], c[0])
		}
	}
	adopted(t, env, pools)
}

// adoptable returns the manifests of the pools for the node class of the cluster, which
// the CapacityPool chooses by a label.
func adoptable(t *testing.T, env *testenv.Env, pools string) string {
	t.Helper()
	class := &unstructured.Unstructured{}
	class.SetGroupVersionKind(schema.GroupVersionKind{Group: "karpenter.kwok.sh", Version: "v1alpha1", Kind: "KWOKNodeClass"})
	class.SetName("default")
	class.SetLabels(map[string]string{"team": "general"})
	if err := env.Client.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	other := pools
	for from, to := range map[string]string{
		"group: karpenter.k8s.aws, kind: EC2NodeClass": "group: karpenter.kwok.sh, kind: KWOKNodeClass",
		"karpenter: {nodeClassName: default}":          "karpenter: {nodeClassSelector: {matchLabels: {team: general}}}",
	} {
		if !strings.Contains(other, from) {
			t.Fatalf("docs/gitops.md does not say %s", from)
		}
		other = strings.ReplaceAll(other, from, to)
	}
	// What a node pool refers to cannot be changed.
	if out, err := env.Kubectl("delete", "nodepool/general", "capacitypool/general"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return other
}

// adopted runs a controller while a repository syncs the same pools.
func adopted(t *testing.T, env *testenv.Env, pools string) {
	t.Helper()
	pools = adoptable(t, env, pools)
	git := &repository{env, "kustomize-controller", filepath.Join(t.TempDir(), "pools.yaml")}
	if err := git.put(t, pools); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC().Truncate(time.Hour)
	prices := httptest.NewServer(fake.New(fake.Draw(fake.Shape{
		Seed: 1, Regions: []string{"us-east-1"}, Zones: 2, Types: []string{"m5.large",
			"c5.xlarge"}, From: now.Add(-48 * time.Hour), Until: now, PerDay: 3,
	}), fake.Faults{}))
	t.Cleanup(prices.Close)
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_ENDPOINT_URL": prices.URL, "AWS_PROFILE": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull} {
		t.Setenv(name, value)
	}
	s := &site{env: env, binary: build(t)}
	c := s.start(t, []string{"run", "--config=/etc/spotter/config/config.yaml", "--mode=active", "--leader-elect=false",
		"--namespace=spotter", "--policies=static:share=0.5", "--region=us-east-1",
		"--log-format=text"}, settings("stepInterval: 2s", `metrics: {bindAddress: ":8443", secure: false}`, `health: {bindAddress: ":8081"}`), rightful(t, env))
	mark := env.Mark()
	testenv.Eventually(t, "the controller writes the weight of the adopted NodePool",
		func() error { return held(t.Context(), env, "spotter") })
	testenv.Eventually(t, "a sync changes nothing", func() error {
		before := git.versions(t, pools)["NodePool general"]
		if err := git.put(t, pools); err != nil {
			t.Fatal(err)
		}
		if after := git.versions(t, pools)["NodePool general"]; after != before {
			return fmt.Errorf("the NodePool was at %s and is at %s", before, after) // the controller may have written, too
		}
		return held(t.Context(), env, "spotter")
	})
	insist := strings.Replace(pools, "spec:                                 # neither",
		"spec:\n  weight: 77\n  limits: {cpu: 7}\n                                      # neither", 1)
	if insist == pools {
		t.Fatal("docs/gitops.md shows the NodePool in another way")
	}
	if err := git.put(t, insist); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the controller says that git has the fields", func() error {
		var p v1alpha1.CapacityPool
		if err := env.Client.Get(t.Context(), client.ObjectKey{Name: "general"}, &p); err != nil {
			return err
		}
		x := meta.FindStatusCondition(p.Status.Conditions, karpenter.ConditionFieldConflict)
		if x == nil || x.Status != "True" || !strings.Contains(x.Message, "kustomize-controller") {
			return fmt.Errorf("the condition is %+v", x)
		}
		return nil
	})
	if err := held(t.Context(), env, "kustomize-controller"); err != nil {
		t.Errorf("the controller has taken what git has: %v", err)
	}
	c.stop(t)
	used := map[string]bool{}
	for _, e := range env.Audit(t, mark, func(e testenv.AuditEvent) bool { return e.User == "spotter" }) {
		if e.Code == 403 {
			t.Errorf("denied: %v %s", e, e.URI)
		}
		used[grant{e.Group, e.Resource, "", e.Verb}.String()] = true
	}
	for _, right := range []string{"patch nodepools.karpenter.sh", "list kwoknodeclasses.karpenter.kwok.sh"} {
		if !used[right] {
			t.Errorf("it was not asked for: %s", right)
		}
	}
}

// rightful returns a file by which a process is a user with the rights of an active
// controller on Karpenter, and no others.
func rightful(t *testing.T, env *testenv.Env) string {
	t.Helper()
	setup := rights.Setup{Active: true, Parts: []rights.Part{rights.Karpenter}}
	return testenv.Kubeconfig(t, env.User(t, "spotter", append(rightstest.Rules(setup, rights.Cluster),
		rightstest.Rules(setup, rights.OwnNamespace)...)...))
}

// held returns nil where a manager, and no other, has applied the weight and the limits
// of the adopted NodePool.
func held(ctx context.Context, env *testenv.Env, manager string) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"})
	if err := env.Client.Get(ctx, client.ObjectKey{Name: "general"}, u); err != nil {
		return err
	}
	if _, found, _ := unstructured.NestedInt64(u.Object, "spec", "weight"); !found {
		return errors.New("it has no weight")
	}
	var holders []string
	for _, m := range u.GetManagedFields() {
		if m.FieldsV1 != nil && strings.Contains(string(m.FieldsV1.Raw), `"f:weight"`) {
			holders = append(holders, m.Manager)
		}
	}
	if len(holders) != 1 || holders[0] != manager {
		return fmt.Errorf("the weight is held by %v", holders)
	}
	return nil
}
