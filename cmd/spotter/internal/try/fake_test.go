package try

import (
	"context"
	"fmt"
	"io"
	"maps"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/capture"
)

// node returns a node of m5.2xlarge that Karpenter made on demand.
func node(i int, pool string, labels map[string]string) *corev1.Node {
	zone := []string{"us-east-1a", "us-east-1b", "us-east-1c"}[i%3]
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i),
		UID: types.UID(fmt.Sprintf("node-%d", i)), Labels: map[string]string{
			corev1.LabelInstanceTypeStable: "m5.2xlarge", corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: "us-east-1",
			corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux", corev1.LabelHostname: fmt.Sprintf("node-%d", i),
			karpv1.NodePoolLabelKey: pool, karpv1.CapacityTypeLabelKey: karpv1.CapacityTypeOnDemand, karpv1.NodeInitializedLabelKey: "true",
		}}}
	maps.Copy(n.Labels, labels)
	n.Spec.ProviderID = "aws:///" + zone + "/i-" + n.Name
	n.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("58"),
	}
	n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// cluster returns nodes of one NodePool and Deployments whose pods fill two thirds of
// them.
func clusterOf(nodes, deployments, podsPerNode int) (out []client.Object) {
	for i := range nodes {
		out = append(out, node(i, "default", nil))
	}
	out = append(out, nodePoolOf("default", karpv1.CapacityTypeOnDemand))
	cpu := fmt.Sprintf("%dm", 5400/podsPerNode)
	for d := range deployments {
		name := fmt.Sprintf("app-%d", d)
		labels := map[string]string{"app": name}
		spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "i",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("256Mi"),
			}}}}}
		var pods []client.Object
		for i := d; i < nodes*podsPerNode; i += deployments {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%d", name, i), Namespace: "default", UID: types.UID(fmt.Sprintf("%s-%d", name, i)), Labels: labels,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name + "-1",
					UID: types.UID(name + "-1"), Controller: ptr(true)}},
			}, Spec: *spec.DeepCopy()}
			p.Spec.NodeName = fmt.Sprintf("node-%d", i/podsPerNode)
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			pods = append(pods, p)
		}
		replicas := int32(len(pods))
		selector := &metav1.LabelSelector{MatchLabels: labels}
		template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}
		out = append(out,
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)},
				Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: template}},
			&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
				Name: name + "-1", Namespace: "default", UID: types.UID(name + "-1"), Labels: labels,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: name,
					UID: types.UID(name), Controller: ptr(true)}},
			}, Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: selector, Template: template}})
		out = append(out, pods...)
	}
	class := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"amiSelectorTerms": []any{map[string]any{"alias": "bottlerocket@latest"}}},
		"status": map[string]any{"subnets": []any{map[string]any{"zone": "us-east-1a"},
			map[string]any{"zone": "us-east-1b"}, map[string]any{"zone": "us-east-1c"}}},
	}}
	class.SetGroupVersionKind(schema.GroupVersionKind{Group: "karpenter.k8s.aws", Version: "v1", Kind: "EC2NodeClass"})
	class.SetName("bottlerocket")
	return append(out, class, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
}

func ptr[T any](v T) *T { return &v }

// nodePoolOf returns a NodePool that allows capacity types.
func nodePoolOf(name string, types ...string) *karpv1.NodePool {
	p := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized
	p.Spec.Disruption.ConsolidateAfter = karpv1.MustParseNillableDuration("0s")
	p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "bottlerocket"}
	p.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
		{Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: types},
		{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64"}},
		{Key: "karpenter.k8s.aws/instance-category", Operator: corev1.NodeSelectorOpIn, Values: []string{"c", "m", "r"}},
		{Key: "karpenter.k8s.aws/instance-generation", Operator: corev1.NodeSelectorOpGt, Values: []string{"4"}},
	}
	return p
}

// A shelf is the objects of a cluster, as its API server lists them.
type shelf struct {
	client.Reader
	objects []client.Object

	// refuse may refuse a list.
	refuse func(client.ObjectList) error
}

// List fills in the objects of the kind of l.
func (s shelf) List(_ context.Context, l client.ObjectList, _ ...client.ListOption) error {
	if s.refuse != nil {
		if err := s.refuse(l); err != nil {
			return err
		}
	}
	if of, untyped := l.(*unstructured.UnstructuredList); untyped {
		kind := of.GroupVersionKind()
		for _, o := range s.objects {
			if u, is := o.(*unstructured.Unstructured); is && u.GroupVersionKind().Kind+"List" == kind.Kind &&
				u.GroupVersionKind().Version == kind.Version {
				of.Items = append(of.Items, *u)
			}
		}
		if len(of.Items) == 0 {
			return &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
		}
		return nil
	}
	items := reflect.ValueOf(l).Elem().FieldByName("Items")
	for _, o := range s.objects {
		if x := reflect.ValueOf(o).Elem(); x.Type() == items.Type().Elem() {
			items.Set(reflect.Append(items, x))
		}
	}
	return nil
}

// reader returns what reads the objects of s.
func (s shelf) reader(ctx context.Context) func(*capture.Options, io.Writer) (*capture.Cluster, error) {
	return func(o *capture.Options, log io.Writer) (*capture.Cluster, error) {
		return capture.ReadBy(ctx, s, o, log)
	}
}
