package gpubudget

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// TestRule12Controllers has the real controllers make pods against a gate: evicted pods do not come
// back before it opens, and a suspended Job has no pods until it resumes.
func TestRule12Controllers(t *testing.T) {
	env := testenv.New(t, testenv.Options{ControllerManager: true, Scheduler: true, Kwok: true})
	installGate(t, env)
	ns := gatedNamespace(t, env)
	node := testenv.Node("gpu-1", "16", "64Gi")
	node.Status.Allocatable[gpu] = resource.MustParse("8")
	env.AddNode(t, node)
	b := newBudget(t, env, ns, "b", metav1.LabelSelector{MatchLabels: label("team", "ml")})
	k := newEnforcer(t, testingclock.NewFakeClock(time.Now()), env.Client, true)

	two, spec := int32(2), gpuPod(ns, nil).Spec
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: label("team", "ml")}, Spec: spec}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: &two, Selector: &metav1.LabelSelector{MatchLabels: label("team", "ml")}, Template: template,
	}}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "train"}}
	job.Spec.Template = *template.DeepCopy()
	job.Spec.Template.Labels = label("team", "train")
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	for _, o := range []client.Object{web, job} {
		if err := env.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	pods := func(team string, want int) (names []string) {
		t.Helper()
		testenv.Eventually(t, fmt.Sprintf("%d pods of %s run", want, team), func() error {
			var list corev1.PodList
			names = nil
			if err := env.Client.List(t.Context(), &list, client.InNamespace(ns), client.MatchingLabels{"team": team}); err != nil {
				return err
			}
			for i := range list.Items {
				if list.Items[i].Status.Phase == corev1.PodRunning {
					names = append(names, ns+"/"+list.Items[i].Name)
				}
			}
			if len(names) != want || len(list.Items) != want {
				return fmt.Errorf("%d of %d run", len(names), len(list.Items))
			}
			return nil
		})
		return names
	}
	running := pods("ml", 2)
	pods("train", 1)

	s := &policy.Snapshot{Now: policy.Time(time.Now().UnixMilli()), Pods: []policy.Pod{{Name: running[0]}, {Name: running[1]}},
		Workloads: []policy.Workload{{Name: ns + "/train", Kind: policy.KindJob}}}
	if err := k.Gate(t.Context(), s, &policy.Gate{Budget: ns + "/b", Closed: true}); err != nil {
		t.Fatal(err)
	}
	refused(t, env, gpuPod(ns, label("team", "ml")))
	for i := range running {
		if err := k.Evict(t.Context(), s, &policy.Evict{Pod: policy.PodID(i), Budget: ns + "/b"}); err != nil {
			t.Fatal(err)
		}
	}
	pods("ml", 0)
	setAction(t, env, b, v1alpha1.EnforcePause)
	testenv.Eventually(t, "the Job is paused, though its controller writes to it as well", func() error {
		return k.Pause(t.Context(), s, &policy.Pause{Budget: ns + "/b", Paused: true})
	})
	pods("train", 0)
	testenv.Eventually(t, "the controller says why it makes no pod", func() error {
		out, err := env.Kubectl("get", "events", "-n", ns, "-o", "custom-columns=M:.message")
		if err != nil || !strings.Contains(out, "GPUBudget "+ns+"/b is spent") {
			return fmt.Errorf("the events are %s: %w", out, err)
		}
		return nil
	})
	pods("ml", 0)
	if err := k.Gate(t.Context(), s, &policy.Gate{Budget: ns + "/b"}); err != nil {
		t.Fatal(err)
	}
	pods("ml", 2)
	testenv.Eventually(t, "the Job is resumed", func() error {
		return k.Pause(t.Context(), s, &policy.Pause{Budget: ns + "/b"})
	})
	pods("train", 1)
	out, err := env.Kubectl("get", "gpub", "-n", ns)
	if err != nil || !strings.Contains(out, "Open") || !strings.Contains(out, b.Name) {
		t.Errorf("%v: %s", err, out)
	}
}
