package main

import (
	"fmt"
	"maps"
	"net/http/httptest"
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
	"github.com/spotter-dev/spotter/live/azure/fake"
	"github.com/spotter-dev/spotter/live/karpenter"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// aksNodeClassCRD is AKSNodeClass with the fields of its real definition left open.
func aksNodeClassCRD() *apiextensionsv1.CustomResourceDefinition {
	keep := true
	d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "aksnodeclasses.karpenter.azure.com"}}
	d.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "karpenter.azure.com", Scope: apiextensionsv1.ClusterScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "aksnodeclasses", Singular: "aksnodeclass", Kind: "AKSNodeClass", ListKind: "AKSNodeClassList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1beta1", Served: true, Storage: true,
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object",
				XPreserveUnknownFields: &keep}}}},
	}
	return d
}

// An aks is a cluster of AKS with node auto-provisioning: what its API server has, and a server with
// Azure's prices.
type aks struct {
	*stage
	prices *fake.Server
}

const (
	aksSize  = "Standard_D8s_v5"
	aksZone  = "westeurope-2"
	aksNodes = 3
)

// newAKS returns the cluster with nodes of a NodePool of Spot, and a Deployment on them.
func newAKS(t *testing.T) *aks {
	t.Helper()
	if testing.Short() {
		t.Skip("starts an API server and processes")
	}
	env := testenv.New(t, testenv.Options{ControllerManager: true, Scheduler: true, Kwok: true, PodDelete: 300 * time.Millisecond,
		CRDs: append(slices.Clone(karpenterapis.CRDs), aksNodeClassCRD())})
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &aks{&stage{env: env, namespace: env.Namespace(t), binary: binary}, fake.New(fake.Region("westeurope", 0.2, time.Now().AddDate(0, -2, 0))...)}
	web := httptest.NewServer(c.prices)
	t.Cleanup(web.Close)
	t.Setenv("SPOTTER_AZURE_PRICES_URL", web.URL+fake.Path)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	if err := karpenter.AddToScheme(env.Scheme); err != nil {
		t.Fatal(err)
	}
	c.provision(t)
	for i := range aksNodes {
		c.addNode(t, fmt.Sprintf("aks-default-%d", i))
	}
	c.deploy(t)
	return c
}

// provision makes the node class and the NodePool.
func (c *aks) provision(t *testing.T) {
	t.Helper()
	class := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"osDiskSizeGB": int64(128)}}}
	class.SetAPIVersion("karpenter.azure.com/v1beta1")
	class.SetKind("AKSNodeClass")
	class.SetName("default")
	createForTest(t, c.env, class)
	class.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	if err := c.env.Client.Status().Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	n := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	n.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.azure.com", Kind: "AKSNodeClass", Name: "default"}
	requirement := func(key string, values ...string) karpv1.NodeSelectorRequirementWithMinValues {
		return karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	n.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
		requirement(karpv1.CapacityTypeLabelKey, "spot", "on-demand"), requirement(corev1.LabelArchStable, "amd64"),
		requirement(corev1.LabelOSStable, "linux"), requirement("karpenter.azure.com/sku-family", "D"),
	}
	createForTest(t, c.env, n)
}

// addNode makes a NodeClaim and its Node with the labels that Karpenter writes on AKS.
func (c *aks) addNode(t *testing.T, name string) {
	t.Helper()
	labels := map[string]string{
		corev1.LabelInstanceTypeStable: aksSize, corev1.LabelTopologyRegion: "westeurope", corev1.LabelTopologyZone: aksZone,
		corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux", karpv1.CapacityTypeLabelKey: "spot",
		karpv1.NodePoolLabelKey: "default", "karpenter.azure.com/sku-family": "D", "karpenter.azure.com/sku-name": aksSize,
		"kubernetes.azure.com/scalesetpriority": "spot", "kubernetes.azure.com/mode": "user", "karpenter.sh/initialized": "true",
		"karpenter.sh/registered": "true", "pool": "web",
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	n.Spec.ProviderID = "azure:///subscriptions/x/resourceGroups/mc/providers/Microsoft.Compute/virtualMachines/" + name
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("7820m"),
		corev1.ResourceMemory: resource.MustParse("26Gi"), corev1.ResourcePods: resource.MustParse("250")}
	n.Status.Capacity = n.Status.Allocatable
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(labels)}}
	claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.azure.com", Kind: "AKSNodeClass", Name: "default"}
	claim.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{{Key: corev1.LabelInstanceTypeStable,
		Operator: corev1.NodeSelectorOpIn, Values: []string{aksSize}}}
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
func (c *aks) deploy(t *testing.T) {
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
func (c *aks) podsOn(t *testing.T, node string) (names []string) {
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
func (c *aks) pool(t *testing.T) {
	t.Helper()
	createForTest(t, c.env, &v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v1alpha1.CapacityPoolSpec{
		Backend: v1alpha1.Backend{Karpenter: &v1alpha1.KarpenterBackend{NodeClassName: "default"}}, Mode: v1alpha1.ModeActive,
		Template: v1alpha1.NodeTemplate{Labels: map[string]string{"pool": "web"}},
		Markets:  v1alpha1.Markets{Regions: []string{"westeurope"}, Families: []string{"Dsv5", "Esv5"}},
	}})
}

// TestAzureShadow: on AKS a controller in shadow decides with Azure's prices, finds the node class,
// and writes nothing but what shadow may.
func TestAzureShadow(t *testing.T) {
	c := newAKS(t)
	c.kubeconfig = testenv.Kubeconfig(t, c.env.User(t, "spotter", shadowRules...))
	c.pool(t)
	mark := c.env.Mark()
	r := c.start(t, "mode: shadow", "policies: portfolio", "prices: {azureRegions: [westeurope]}")
	c.leads(t, r)
	testenv.Eventually(t, "the pool is served with Azure's prices", func() error {
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
	testenv.Eventually(t, "the metrics have the prices", func() error {
		body := get(t, r.metric)
		if !strings.Contains(body, "azure-prices") {
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
	if code != cli.ExitOK || strings.Contains(stdout, "synthetic") || !strings.Contains(stdout, "about $201 a month for 3 nodes, all Spot") {
		t.Errorf("try: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// TestAzureEvictionDrains: in active mode the pods of a node that Azure will take in 30 seconds leave
// it in that time, as those of a node under a notice do, and the other nodes keep theirs.
func TestAzureEvictionDrains(t *testing.T) {
	c := newAKS(t)
	c.kubeconfig = testenv.Kubeconfig(t, c.env.User(t, "spotter", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}))
	c.pool(t)
	r := c.start(t, "mode: active", "policies: portfolio", "prices: {azureRegions: [westeurope]}")
	c.leads(t, r)
	victim := ""
	for i := range aksNodes {
		if name := fmt.Sprintf("aks-default-%d", i); len(c.podsOn(t, name)) > 0 {
			victim = name
		}
	}
	var n corev1.Node
	if err := c.env.Client.Get(t.Context(), client.ObjectKey{Name: victim}, &n); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "PreemptionScheduled", Status: corev1.ConditionTrue,
		Reason: "SpotEvictionIncoming", LastTransitionTime: metav1.Now(), LastHeartbeatTime: metav1.Now(),
		Message: "Preempt Scheduled: " + deadline.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT") + ". DurationInSeconds: -1."})
	if err := c.env.Client.Status().Update(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
	for left := 1; left > 0; time.Sleep(200 * time.Millisecond) {
		if left = len(c.podsOn(t, victim)); left > 0 && time.Now().After(deadline) {
			t.Fatalf("%d pods are on %s at the deadline", left, victim)
		}
	}
	t.Logf("the node was empty %v before its deadline", time.Until(deadline).Round(time.Second))
}
