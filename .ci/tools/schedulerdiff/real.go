package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/ptr"
)

type resync = time.Duration

// A realScheduler is kube-scheduler with its default profile on objects in memory.
type realScheduler struct {
	*scheduler.Scheduler
	fwk  framework.Framework
	api  *api
	pods map[string]*corev1.Pod

	podInformer, nodeInformer, claimInformer, volumeInformer *informer

	version int

	// next is the time at which the next pod is bound.
	next time.Time
}

// An api answers the calls of preemption and records what they request.
type api struct {
	deleted []string // pods, "namespace/name"
	cleared []string // pods whose nomination is taken from them
}

func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	parts := strings.Split(r.URL.Path, "/") // /api/v1/namespaces/NS/pods/NAME[/status]
	if len(parts) < 7 || parts[5] != "pods" {
		return nil, fmt.Errorf("unexpected call: %s %s", r.Method, r.URL)
	}
	pod := path.Join(parts[4], parts[6])
	switch r.Method {
	case http.MethodDelete:
		a.deleted = append(a.deleted, pod)
	case http.MethodPatch:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if bytes.Contains(body, []byte(`"nominatedNodeName":null`)) {
			a.cleared = append(a.cleared, pod)
		}
	default:
		return nil, fmt.Errorf("unexpected call: %s %s", r.Method, r.URL)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(`{"kind":"Pod","apiVersion":"v1"}`)), Request: r,
	}, nil
}

// newReal returns the real scheduler of the cluster of st. It considers every node, and
// runs preemption within the scheduling cycle of the pod and not asynchronously, so that
// the result is known when the cycle ends.
func newReal(ctx context.Context, st *state) (*realScheduler, error) {
	if err := utilfeature.DefaultMutableFeatureGate.Set("SchedulerAsyncPreemption=false"); err != nil {
		return nil, err
	}
	r := &realScheduler{api: &api{}, pods: map[string]*corev1.Pod{}, next: time.Unix(1<<30, 0)}
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://memory", Transport: r.api, QPS: -1})
	if err != nil {
		return nil, err
	}
	f := informers.NewSharedInformerFactory(client, 0)
	fill := r.informers(f)
	r.Scheduler, err = scheduler.New(ctx, client, f, nil,
		func(string) events.EventRecorder { return &events.FakeRecorder{} },
		scheduler.WithPercentageOfNodesToScore(ptr.To[int32](100)), scheduler.WithParallelism(1))
	if err != nil {
		return nil, err
	}
	r.fwk = r.Profiles[corev1.DefaultSchedulerName]
	return r, fill(st)
}

// informers prepares what the scheduler watches, and returns what fills it.
func (r *realScheduler) informers(f informers.SharedInformerFactory) func(*state) error {
	in := func(x runtime.Object) *informer { return replaceInformer(f, x) }
	namespaces, csiNodes, classes := in(&corev1.Namespace{}), in(&storagev1.CSINode{}), in(&storagev1.StorageClass{})
	services, replicaSets, statefulSets := in(&corev1.Service{}), in(&appsv1.ReplicaSet{}), in(&appsv1.StatefulSet{})
	budgets := in(&policyv1.PodDisruptionBudget{})
	r.podInformer, r.nodeInformer = in(&corev1.Pod{}), in(&corev1.Node{})
	r.claimInformer, r.volumeInformer = in(&corev1.PersistentVolumeClaim{}), in(&corev1.PersistentVolume{})
	return func(st *state) error {
		return errors.Join(
			addAll(namespaces, st.Namespaces), addAll(csiNodes, st.CSINodes), addAll(classes, st.StorageClasses),
			addAll(services, st.Services), addAll(replicaSets, st.ReplicaSets), addAll(statefulSets, st.StatefulSets),
			addAll(budgets, st.Budgets), addAll(r.volumeInformer, st.Volumes), addAll(r.claimInformer, st.Claims),
			addAll(r.nodeInformer, st.Nodes), r.addPods(st.Pods),
		)
	}
}

func addAll[T any](i *informer, list []T) error {
	for k := range list {
		if err := i.set(nil, &list[k]); err != nil {
			return err
		}
	}
	return nil
}

func (r *realScheduler) addPods(pods []corev1.Pod) error {
	for i := range pods {
		p := pods[i].DeepCopy()
		r.pods[key(p)] = p
		if err := r.podInformer.set(nil, p); err != nil {
			return err
		}
	}
	return nil
}

func key(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

// change replaces a pod by what with makes of a copy of it.
func (r *realScheduler) change(name string, with func(*corev1.Pod)) error {
	old := r.pods[name]
	p := old.DeepCopy()
	with(p)
	r.version++
	p.ResourceVersion = strconv.Itoa(r.version) // an update with the same version is ignored
	r.pods[name] = p
	return r.podInformer.set(old, p)
}

func (r *realScheduler) remove(name string) error {
	old := r.pods[name]
	delete(r.pods, name)
	return r.podInformer.set(old, nil)
}

// A choice is what a scheduler does for a pod.
type choice struct {
	// feasible are the nodes that pass all filters. scores are those of the nodes that
	// are scored, less the best, and best the nodes with the best score; both are
	// empty where the pod is nominated or has one node only.
	feasible []string
	scores   map[string]int64
	best     []string

	// node is where the pod goes; empty if nowhere.
	node string

	// nominated is the node that preemption makes room on, and victims are the pods
	// that end there and were not ending yet, sorted.
	nominated string
	victims   []string
}

// schedule runs one cycle for a pod, up to binding or preemption.
func (r *realScheduler) schedule(ctx context.Context, name string) (choice, error) {
	pod := r.pods[name]
	state := framework.NewCycleState()
	result, err := r.SchedulePod(ctx, r.fwk, state, pod)
	if err == nil {
		c, err := r.explain(ctx, pod)
		if err != nil {
			return c, err
		}
		c.node = result.SuggestedHost
		if len(c.best) > 0 && !slices.Contains(c.best, c.node) {
			return c, fmt.Errorf("kube-scheduler chose %s, which is not among the best, %v", c.node, c.best)
		}
		return c, nil
	}
	var misfit *framework.FitError
	if !errors.As(err, &misfit) {
		return choice{}, err
	}
	return r.preempt(ctx, state, pod, misfit)
}

// explain returns the feasible nodes and their scores by the real plugins.
func (r *realScheduler) explain(ctx context.Context, pod *corev1.Pod) (c choice, err error) {
	state := framework.NewCycleState()
	all, err := r.fwk.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return c, err
	}
	only, status, _ := r.fwk.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		return c, status.AsError()
	}
	var feasible []fwk.NodeInfo
	for _, n := range all {
		if !only.AllNodes() && !only.NodeNames.Has(n.Node().Name) {
			continue
		}
		if r.fwk.RunFilterPluginsWithNominatedPods(ctx, state, pod, n).IsSuccess() {
			feasible = append(feasible, n)
			c.feasible = append(c.feasible, n.Node().Name)
		}
	}
	slices.Sort(c.feasible)
	if len(feasible) < 2 || slices.Contains(c.feasible, pod.Status.NominatedNodeName) {
		return c, nil
	}
	if status := r.fwk.RunPreScorePlugins(ctx, state, pod, feasible); !status.IsSuccess() {
		return c, status.AsError()
	}
	scores, status := r.fwk.RunScorePlugins(ctx, state, pod, feasible)
	if !status.IsSuccess() {
		return c, status.AsError()
	}
	c.rank(scores)
	return c, nil
}

func (c *choice) rank(scores []fwk.NodePluginScores) {
	most := scores[0].TotalScore
	for i := range scores {
		most = max(most, scores[i].TotalScore)
	}
	c.scores = map[string]int64{}
	for i := range scores {
		c.scores[scores[i].Name] = scores[i].TotalScore - most
		if scores[i].TotalScore == most {
			c.best = append(c.best, scores[i].Name)
		}
	}
	slices.Sort(c.best)
}

// preempt runs the PostFilter plugins, which follow a cycle that found no node, and applies
// what they request to the cluster.
func (r *realScheduler) preempt(ctx context.Context, state fwk.CycleState, pod *corev1.Pod,
	misfit *framework.FitError) (c choice, err error) {
	r.api.deleted, r.api.cleared = nil, nil
	result, status := r.fwk.RunPostFilterPlugins(ctx, state, pod, misfit.Diagnosis.NodeToStatus)
	if status.Code() == fwk.Error {
		return c, status.AsError()
	}
	if result == nil {
		return c, nil
	}
	c.nominated, c.victims = result.NominatedNodeName, slices.Sorted(slices.Values(r.api.deleted))
	for _, v := range c.victims {
		if err := r.terminate(v, true); err != nil {
			return c, err
		}
	}
	for _, name := range r.api.cleared {
		if err := r.change(name, func(p *corev1.Pod) { p.Status.NominatedNodeName = "" }); err != nil {
			return c, err
		}
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return c, err
	}
	r.SchedulingQueue.AddNominatedPod(klog.FromContext(ctx), info, result.NominatingInfo)
	return c, r.change(key(pod), func(p *corev1.Pod) { p.Status.NominatedNodeName = c.nominated })
}

// terminate requests the deletion of a pod.
func (r *realScheduler) terminate(name string, preempted bool) error {
	return r.change(name, func(p *corev1.Pod) {
		p.DeletionTimestamp = &metav1.Time{Time: r.next}
		if preempted {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
			})
		}
	})
}

// bind puts a pod onto a node; it starts a second after the one before.
func (r *realScheduler) bind(name, node string) error {
	r.next = r.next.Add(time.Second)
	return r.change(name, func(p *corev1.Pod) {
		p.Spec.NodeName, p.Status.NominatedNodeName = node, ""
		p.Status.StartTime = &metav1.Time{Time: r.next}
	})
}

// cordon closes or opens a node.
func (r *realScheduler) cordon(old *corev1.Node, closed bool) (*corev1.Node, error) {
	n := old.DeepCopy()
	n.Spec.Unschedulable = closed
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints,
		func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
	if closed {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable,
			Effect: corev1.TaintEffectNoSchedule})
	}
	return n, r.nodeInformer.set(old, n)
}
