package fixed_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spotter-dev/spotter/policy/policytest"
	"github.com/spotter-dev/spotter/sim/fixed"
	"github.com/spotter-dev/spotter/test/nightly"
	"github.com/spotter-dev/spotter/test/testenv"
)

// realOptions have nodes take pods at once, though no kubelet has reported.
var realOptions = testenv.Options{Scheduler: true,
	Args: map[string][]string{testenv.APIServer: {"--disable-admission-plugins=TaintNodesByCondition"}}}

// TestAgreesWithKubeScheduler gives a drawn cluster to kube-scheduler and to Schedule. Pods without a
// node must be the same, with the same reasons: which these are depends on no tie.
func TestAgreesWithKubeScheduler(t *testing.T) {
	env := testenv.Start(t, realOptions)
	rng := rand.New(rand.NewPCG(testenv.Seed(t), 0))
	d := draw(rng, nightly.Count(120, 600), nightly.Count(700, 3500), env.Namespace(t))
	create(t, env, d)
	want := settled(t, env, d)
	got := ours(t, d)
	if len(want.reasons) < 6 {
		t.Errorf("only %d pods have no node, and that tests little", len(want.reasons))
	}
	pods := map[string]bool{}
	maps.Copy(pods, got.set())
	maps.Copy(pods, want.set())
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		if got.reasons[name] != want.reasons[name] {
			t.Errorf("%s:\n  has the reason %q,\n  in kube-scheduler %q", name, got.reasons[name], want.reasons[name])
		}
	}
	if got.preempted != want.preempted {
		t.Errorf("%d pods were preempted, by kube-scheduler %d", got.preempted, want.preempted)
	}
}

// TestPublishedInput compares the pods without a node on the input of a published benchmark with those
// of two runs of kube-scheduler, which takes any of several best nodes: the pods without a node in both
// must have none, and no others than those without a node in one.
func TestPublishedInput(t *testing.T) {
	if nightly.Count(0, 1) == 0 {
		t.Skip("takes minutes: set " + nightly.Variable)
	}
	var texts [][]byte
	for _, name := range []string{"nodes-1200.yaml.gz", "pods-1200.yaml.gz"} {
		texts = append(texts, unzip(t, policytest.Recording(t, filepath.Join("k8s-sims", name))))
	}
	d := parse(t, texts)
	got := ours(t, d).reasons
	var runs []map[string]string
	for range 2 {
		env := testenv.New(t, realOptions)
		d.namespace(t, env)
		create(t, env, d)
		runs = append(runs, settled(t, env, d).reasons)
	}
	for _, p := range d.pods {
		name, without := p.Namespace+"/"+p.Name, 0
		for _, run := range runs {
			if _, is := run[name]; is {
				without++
			}
		}
		if _, is := got[name]; is && without == 0 || !is && without == len(runs) {
			t.Errorf("%s has no node in %d of %d runs of kube-scheduler, and in ours: %v", name, without, len(runs), is)
		}
	}
	t.Logf("without a node are %d pods, by kube-scheduler %d and %d", len(got), len(runs[0]), len(runs[1]))
}

// A drawn is a cluster.
type drawn struct {
	classes []*schedulingv1.PriorityClass
	nodes   []*corev1.Node
	pods    []*corev1.Pod
}

var drawnZones = []string{"hall-1", "hall-2", "hall-3"}

// draw returns nodes with room for nearly all pods, and pods for which it is certain whether a node
// takes them.
func draw(rng *rand.Rand, nodes, pods int, namespace string) *drawn {
	prefix := fmt.Sprintf("m%d", rng.IntN(1000))
	d := &drawn{classes: []*schedulingv1.PriorityClass{{ObjectMeta: metav1.ObjectMeta{Name: prefix + "-urgent"}, Value: 1000},
		{ObjectMeta: metav1.ObjectMeta{Name: prefix + "-patient"}, Value: 1000, PreemptionPolicy: new(corev1.PreemptNever)}}}
	quantity := func(n int) resource.Quantity { return resource.MustParse(strconv.Itoa(n)) }
	for i := range nodes {
		name := fmt.Sprintf("%s-%04d", prefix, i)
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name,
			corev1.LabelTopologyZone: drawnZones[i%3], "role": "general"}}}
		n.Status.Allocatable = corev1.ResourceList{
			corev1.ResourceCPU: quantity(16 + 16*rng.IntN(3)), corev1.ResourceMemory: resource.MustParse(fmt.Sprintf("%dGi",
				64+32*rng.IntN(3))), corev1.ResourcePods: quantity(110),
		}
		switch i % 12 {
		case 0:
			n.Labels["role"] = "full" // whose pods have a lower priority
			n.Status.Allocatable[corev1.ResourceCPU] = quantity(4)
		case 1:
			n.Labels["role"] = "single"
		case 2:
			n.Labels["role"] = "gpu"
			n.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
			n.Status.Allocatable["nvidia.com/gpu"], n.Status.Allocatable["example.com/link"] = quantity(8), quantity(1)
		case 3:
			n.Labels["role"] = "closed"
			n.Spec.Unschedulable = true
		}
		n.Status.Capacity = n.Status.Allocatable
		d.nodes = append(d.nodes, n)
	}
	d.crowd(nodes/12, namespace)
	for i := len(d.pods); i < pods; i++ {
		d.add(rng, fmt.Sprintf("p%04d", i), namespace)
	}
	return d
}

// drawnPod returns a pod that requests resources of nodes of a role.
func drawnPod(name, namespace, role string, requests corev1.ResourceList) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"role": role}}}
	p.Spec = corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "pause",
		Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits(requests)}}},
		NodeSelector: map[string]string{"role": role}, TerminationGracePeriodSeconds: new(int64)}
	return p
}

// limits are equal to requests for extended resources, as the API server requires.
func limits(requests corev1.ResourceList) corev1.ResourceList {
	l := maps.Clone(requests)
	maps.DeleteFunc(l, func(name corev1.ResourceName, _ resource.Quantity) bool { return !strings.Contains(string(name), "/") })
	return l
}

func requests(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

// crowd adds pods for groups of n nodes each: more of those that repel each other, or need one port,
// than there are nodes, and urgent ones for nodes that are full of others.
func (d *drawn) crowd(n int, namespace string) {
	var full []string
	for _, x := range d.nodes {
		if x.Labels["role"] == "full" {
			full = append(full, x.Name)
		}
	}
	for i := range 4 * n {
		p := drawnPod(fmt.Sprintf("low-%d", i), namespace, "full", requests("cpu", "1"))
		p.Spec.NodeName = full[i/4]
		d.pods = append(d.pods, p)
	}
	for i := range n + 2 {
		p := drawnPod(fmt.Sprintf("single-%d", i), namespace, "single", requests("cpu", "100m"))
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}}}
		d.pods = append(d.pods, p)
	}
	for i := range n + 1 {
		p := drawnPod(fmt.Sprintf("port-%d", i), namespace, "single", requests("cpu", "100m"))
		p.Labels["role"] = "port"
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080}}
		d.pods = append(d.pods, p)
	}
	patient := drawnPod("patient", namespace, "full", requests("cpu", "3"))
	patient.Spec.PriorityClassName = d.classes[1].Name
	d.pods = append(d.pods, patient)
	for i := range n / 2 {
		p := drawnPod(fmt.Sprintf("urgent-%d", i), namespace, "full", requests("cpu", "2"))
		p.Spec.PriorityClassName = d.classes[0].Name
		d.pods = append(d.pods, p)
	}
}

// add adds one pod for which any node of its role has room, or none.
func (d *drawn) add(rng *rand.Rand, name, namespace string) {
	var p *corev1.Pod
	switch rng.IntN(16) {
	case 0:
		p = drawnPod(name, namespace, "general", requests("cpu", "60", "memory", "200Gi"))
	case 1:
		p = drawnPod(name, namespace, "gpu", requests("nvidia.com/gpu", "1")) // without its toleration
	case 2:
		p = drawnPod(name, namespace, "gpu", requests("nvidia.com/gpu", "9", "example.com/link", "2"))
		p.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
	case 3:
		p = drawnPod(name, namespace, "closed", requests("cpu", "100m"))
	case 4:
		p = drawnPod(name, namespace, "none", nil)
	case 5:
		p = drawnPod(name, namespace, "general", requests("cpu", "100m"))
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "example.com/row",
			WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}
	case 6:
		p = drawnPod(name, namespace, "general", requests("cpu", "100m"))
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"role": "absent"}}}}}}
	case 7:
		p = drawnPod(name, namespace, "gpu", requests("cpu", "100m"))
		p.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpEqual, Value: "yes"}}
	default:
		p = drawnPod(name, namespace, "general", requests("cpu", fmt.Sprintf("%dm", 100+100*rng.IntN(4)), "memory",
			fmt.Sprintf("%dMi", 128+128*rng.IntN(4))))
	}
	d.pods = append(d.pods, p)
}

// objects returns the objects of a cluster, nodes first.
func (d *drawn) objects() (all []client.Object) {
	for _, c := range d.classes {
		all = append(all, c)
	}
	for _, n := range d.nodes {
		all = append(all, n)
	}
	for _, p := range d.pods {
		all = append(all, p)
	}
	return all
}

// create creates the objects one after the other, so that kube-scheduler tries pods in this order.
func create(t *testing.T, env *testenv.Env, d *drawn) {
	t.Helper()
	for _, o := range d.objects() {
		o := o.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of an object
		if err := env.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// An outcome is what became of pods: the reasons of those without a node, and how many were
// preempted.
type outcome struct {
	reasons   map[string]string
	preempted int
}

func (o *outcome) set() map[string]bool {
	out := map[string]bool{}
	for name := range o.reasons {
		out[name] = true
	}
	return out
}

// settled waits until kube-scheduler has tried all pods, and twice found no more places.
func settled(t *testing.T, env *testenv.Env, d *drawn) *outcome {
	t.Helper()
	last, since := "", time.Now()
	for deadline := time.Now().Add(20 * time.Minute); ; time.Sleep(time.Second) {
		var list corev1.PodList
		if err := env.Client.List(t.Context(), &list, client.InNamespace(d.pods[0].Namespace)); err != nil {
			t.Fatal(err)
		}
		o := &outcome{reasons: map[string]string{}, preempted: len(d.pods) - len(list.Items)}
		untried := 0
		for i := range list.Items {
			p := &list.Items[i]
			if p.Spec.NodeName != "" {
				continue
			}
			reason := ""
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
					reason = c.Message
				}
			}
			if reason == "" {
				untried++
			}
			o.reasons[p.Namespace+"/"+p.Name] = reason
		}
		now := fmt.Sprint(o)
		if now != last || untried > 0 {
			last, since = now, time.Now()
		}
		switch {
		case time.Since(since) > 15*time.Second: // longer than the backoff of a pod
			return o
		case time.Now().After(deadline):
			t.Fatalf("kube-scheduler has not settled: %d pods are not tried, %d have no node", untried, len(o.reasons))
		}
	}
}

// ours schedules the same objects.
func ours(t *testing.T, d *drawn) *outcome {
	t.Helper()
	c := fixed.NewCluster()
	var text bytes.Buffer
	for _, o := range d.objects() {
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // typeOf states it
		one, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "---\n%s%s", typeOf(o), one)
	}
	if err := c.Add("drawn.yaml", text.Bytes()); err != nil {
		t.Fatal(err)
	}
	r, err := c.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	out := &outcome{reasons: map[string]string{}, preempted: len(r.Preempted)}
	for _, x := range r.Pending {
		for _, name := range x.Pods {
			out.reasons[name] = x.Reason
		}
	}
	return out
}

func typeOf(o client.Object) string {
	switch o.(type) {
	case *corev1.Node:
		return "apiVersion: v1\nkind: Node\n"
	case *corev1.Pod:
		return "apiVersion: v1\nkind: Pod\n"
	}
	return "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\n"
}

// parse reads nodes and pods.
func parse(t *testing.T, texts [][]byte) *drawn {
	t.Helper()
	d := &drawn{}
	for _, text := range texts {
		r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
		for {
			one, err := r.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			var kind metav1.TypeMeta
			var into client.Object
			if err == nil {
				err = yaml.Unmarshal(one, &kind)
			}
			if kind.Kind == "Node" {
				n := &corev1.Node{}
				d.nodes, into = append(d.nodes, n), n
			} else {
				p := &corev1.Pod{}
				d.pods, into = append(d.pods, p), p
			}
			if err = errors.Join(err, yaml.Unmarshal(one, into)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return d
}

// namespace creates the namespace of the pods, which is one.
func (d *drawn) namespace(t *testing.T, env *testenv.Env) {
	t.Helper()
	name := d.pods[0].Namespace
	for _, o := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: name}}} {
		if err := env.Client.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

func unzip(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
