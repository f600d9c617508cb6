package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterapis "sigs.k8s.io/karpenter/pkg/apis"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/live/karpenter"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// A place is where a cluster of Karpenter's provider for a cloud has its nodes, and what its API
// server and its nodes have because of the provider.
type place struct {
	region, zone, size string

	// class is the node class. plural is the name of its kind.
	class  *unstructured.Unstructured
	plural string

	// required is the requirement of the NodePool on machine types, labels are those of each node.
	required karpv1.NodeSelectorRequirementWithMinValues
	labels   map[string]string

	// idPrefix precedes the name of a machine in its provider ID. annotations are those of each node.
	idPrefix    string
	annotations map[string]string

	// families are the machine families of the CapacityPool.
	families []string
}

// definition is the kind of the node class with the fields of its real definition left open.
func (p *place) definition() *apiextensionsv1.CustomResourceDefinition {
	keep, kind := true, p.class.GroupVersionKind()
	d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: p.plural + "." + kind.Group}}
	d.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: kind.Group, Scope: apiextensionsv1.ClusterScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: p.plural, Singular: strings.ToLower(kind.Kind), Kind: kind.Kind,
			ListKind: kind.Kind + "List"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: kind.Version, Served: true, Storage: true,
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object",
				XPreserveUnknownFields: &keep}}}},
	}
	return d
}

// nodeClassOf returns a node class named default.
func nodeClassOf(apiVersion, kind string, spec map[string]any) *unstructured.Unstructured {
	class := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	class.SetAPIVersion(apiVersion)
	class.SetKind(kind)
	class.SetName("default")
	return class
}

// A cloudCluster is a cluster of a provider of Karpenter: what its API server has.
type cloudCluster struct {
	*stage
	place
}

// cloudNodes is the number of nodes of a cluster.
const cloudNodes = 3

// newCloudCluster returns a cluster with nodes of a NodePool of Spot, and a Deployment on them.
func newCloudCluster(t *testing.T, p place) *cloudCluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts an API server and processes")
	}
	env := testenv.New(t, testenv.Options{ControllerManager: true, Scheduler: true, Kwok: true, PodDelete: 300 * time.Millisecond,
		CRDs: append(slices.Clone(karpenterapis.CRDs), p.definition())})
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &cloudCluster{&stage{env: env, namespace: env.Namespace(t), binary: binary}, p}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	if err := karpenter.AddToScheme(env.Scheme); err != nil {
		t.Fatal(err)
	}
	c.provision(t)
	for i := range cloudNodes {
		c.addNode(t, fmt.Sprintf("default-%d", i))
	}
	c.deploy(t)
	return c
}

// ref returns the reference to the node class.
func (c *cloudCluster) ref() *karpv1.NodeClassReference {
	return &karpv1.NodeClassReference{Group: c.class.GroupVersionKind().Group, Kind: c.class.GetKind(), Name: "default"}
}

// provision makes the node class and the NodePool.
func (c *cloudCluster) provision(t *testing.T) {
	t.Helper()
	createForTest(t, c.env, c.class)
	c.class.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	if err := c.env.Client.Status().Update(t.Context(), c.class); err != nil {
		t.Fatal(err)
	}
	n := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	n.Spec.Template.Spec.NodeClassRef = c.ref()
	requirement := func(key string, values ...string) karpv1.NodeSelectorRequirementWithMinValues {
		return karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	n.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
		requirement(karpv1.CapacityTypeLabelKey, "spot", "on-demand"), requirement(corev1.LabelArchStable, "amd64"),
		requirement(corev1.LabelOSStable, "linux"), c.required,
	}
	createForTest(t, c.env, n)
}

// addNode makes a NodeClaim and its Node with the labels that Karpenter writes.
func (c *cloudCluster) addNode(t *testing.T, name string) {
	t.Helper()
	labels := map[string]string{
		corev1.LabelInstanceTypeStable: c.size, corev1.LabelTopologyRegion: c.region, corev1.LabelTopologyZone: c.zone,
		corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux", karpv1.CapacityTypeLabelKey: "spot",
		karpv1.NodePoolLabelKey: "default", "karpenter.sh/initialized": "true", "karpenter.sh/registered": "true", "pool": "web",
	}
	maps.Copy(labels, c.labels)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: maps.Clone(c.annotations)}}
	n.Spec.ProviderID = c.idPrefix + name
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("7820m"),
		corev1.ResourceMemory: resource.MustParse("26Gi"), corev1.ResourcePods: resource.MustParse("110")}
	n.Status.Capacity = n.Status.Allocatable
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(labels), Annotations: maps.Clone(c.annotations)}}
	claim.Spec.NodeClassRef = c.ref()
	claim.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{{Key: corev1.LabelInstanceTypeStable,
		Operator: corev1.NodeSelectorOpIn, Values: []string{c.size}}}
	createForTest(t, c.env, claim)
	claim.Status.ProviderID, claim.Status.NodeName = n.Spec.ProviderID, name
	for _, kind := range []string{karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized} {
		claim.StatusConditions().SetTrue(kind)
	}
	if err := c.env.Client.Status().Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	c.env.AddNode(t, n)
}

// deploy makes a Deployment whose pods fit on two of the three nodes, and waits until they run.
func (c *cloudCluster) deploy(t *testing.T) {
	t.Helper()
	replicas, labels := int32(6), map[string]string{"app": "web"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: c.namespace}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"pool": "web"},
			Containers: []corev1.Container{{Name: "main", Image: "i", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}}}},
		}}}}
	if err := c.env.Client.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the pods run", func() error {
		if n := len(c.podsOn(t, "")); n != int(replicas) {
			return fmt.Errorf("%d run", n)
		}
		return nil
	})
}

// podsOn returns the running pods on a node, or on all.
func (c *cloudCluster) podsOn(t *testing.T, node string) (names []string) {
	t.Helper()
	var pods corev1.PodList
	if err := c.env.Client.List(t.Context(), &pods, client.InNamespace(c.namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil && (node == "" || p.Spec.NodeName == node) {
			names = append(names, p.Name)
		}
	}
	return names
}

// pool makes the CapacityPool of the nodes.
func (c *cloudCluster) pool(t *testing.T) {
	t.Helper()
	createForTest(t, c.env, &v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v1alpha1.CapacityPoolSpec{
		Backend: v1alpha1.Backend{Karpenter: &v1alpha1.KarpenterBackend{NodeClassName: "default"}}, Mode: v1alpha1.ModeActive,
		Template: v1alpha1.NodeTemplate{Labels: map[string]string{"pool": "web"}},
		Markets:  v1alpha1.Markets{Regions: []string{c.region}, Families: c.families},
	}})
}

// shadowed runs a controller in shadow with prices as configured, until it has decided with them, and
// fails if it writes anything but what shadow may. It returns what try prints about the cluster.
func (c *cloudCluster) shadowed(t *testing.T, feed, prices string) string {
	t.Helper()
	c.kubeconfig = testenv.Kubeconfig(t, c.env.User(t, "spotter", shadowRules...))
	c.pool(t)
	mark := c.env.Mark()
	r := c.start(t, "mode: shadow", "policies: portfolio", prices)
	c.leads(t, r)
	c.serves(t)
	testenv.Eventually(t, "the metrics have the prices", func() error {
		body := get(t, r.metric)
		if !strings.Contains(body, feed) {
			return fmt.Errorf("no metric names the feed")
		}
		return nil
	})
	for _, e := range c.env.Audit(t, mark, func(e testenv.AuditEvent) bool { return e.User == "spotter" && e.Writes() }) {
		what := e.Resource
		if e.Subresource != "" {
			what += "/" + e.Subresource
		}
		if what += " " + strings.TrimPrefix(e.Namespace+"/", "/") + e.Name; !shadowWrites.MatchString(what) {
			t.Errorf("in shadow it wrote %s", what)
		}
	}
	dir := filepath.Join(t.TempDir(), "try")
	reader := testenv.Kubeconfig(t, c.env.User(t, "reader", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}))
	code, stdout, stderr := call(t, "try", "--dir", dir, "--kubeconfig", reader)
	if code != cli.ExitOK || strings.Contains(stdout, "synthetic") {
		t.Errorf("try: exit code %d\n%s%s", code, stdout, stderr)
	}
	return stdout
}

// serves waits until the pool is served with the provider's prices and its node class.
func (c *cloudCluster) serves(t *testing.T) {
	t.Helper()
	testenv.Eventually(t, "the pool is served with the provider's prices", func() error {
		var p v1alpha1.CapacityPool
		if err := c.env.Client.Get(t.Context(), client.ObjectKey{Name: "default"}, &p); err != nil {
			return err
		}
		for _, kind := range []string{"PricesRead", "KarpenterReady"} {
			i := slices.IndexFunc(p.Status.Conditions, func(x metav1.Condition) bool { return x.Type == kind })
			if i < 0 || p.Status.Conditions[i].Status != metav1.ConditionTrue {
				return fmt.Errorf("%s: %+v", kind, p.Status.Conditions)
			}
		}
		if p.Status.LastDecisionID == "" {
			return fmt.Errorf("it has taken no decision: %+v", p.Status)
		}
		return nil
	})
}

// drained starts a controller in active mode with prices as configured, sets a condition on a node
// with pods, and waits until the pods have left it, but no longer than until the deadline. It returns
// the deadline and the time at which the controller expected the reclaim.
func (c *cloudCluster) drained(t *testing.T, prices string, lead time.Duration,
	condition func(deadline time.Time) corev1.NodeCondition) (deadline, expected time.Time) {
	t.Helper()
	c.kubeconfig = testenv.Kubeconfig(t, c.env.User(t, "spotter", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}))
	c.pool(t)
	c.leads(t, c.start(t, "mode: active", "policies: portfolio", prices))
	c.serves(t)
	victim := ""
	for i := range cloudNodes {
		if name := fmt.Sprintf("default-%d", i); len(c.podsOn(t, name)) > 0 {
			victim = name
		}
	}
	var n corev1.Node
	if err := c.env.Client.Get(t.Context(), client.ObjectKey{Name: victim}, &n); err != nil {
		t.Fatal(err)
	}
	deadline = time.Now().Add(lead)
	n.Status.Conditions = append(n.Status.Conditions, condition(deadline))
	if err := c.env.Client.Status().Update(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
	for left := 1; left > 0; time.Sleep(200 * time.Millisecond) {
		if left = len(c.podsOn(t, victim)); left > 0 && time.Now().After(deadline) {
			t.Fatalf("%d pods are on %s at the deadline", left, victim)
		}
		var state struct{ ReclaimAt policy.Time }
		err := c.env.Client.Get(t.Context(), client.ObjectKey{Name: victim}, &n)
		if text := n.Annotations[drain.AnnotationDrain]; err == nil && text != "" {
			if err := json.Unmarshal([]byte(text), &state); err != nil {
				t.Fatal(err)
			}
			expected = state.ReclaimAt.Std()
		}
	}
	t.Logf("the node was empty %v before its deadline", time.Until(deadline).Round(time.Second))
	return deadline, expected
}
