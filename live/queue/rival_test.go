package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kube "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/queue"
	"github.com/spotter-dev/spotter/policy"
)

const ours = "https://sqs.eu-west-1.amazonaws.com/123456789012/spotter"

// deployment returns one whose only container is c.
func deployment(name string, c corev1.Container) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name},
		Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{c}}}},
	}
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}, Data: data}
}

// Whoever reads the queue is found by its environment, its arguments or its
// ConfigMap, by URL and by name; another queue is no matter.
func TestRule09RefusesTheQueueOfAnother(t *testing.T) {
	env := func(name, value string) corev1.Container {
		return corev1.Container{Env: []corev1.EnvVar{{Name: name, Value: value}}}
	}
	fromKey := corev1.Container{Env: []corev1.EnvVar{{Name: "INTERRUPTION_QUEUE", ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: "queue"},
	}}}}
	fromAll := corev1.Container{EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}}
	replica := corev1.Container{Args: []string{"run", "--mode=active", "--queue-url=" + ours}}
	elsewhere := func(name string, c corev1.Container) *appsv1.Deployment {
		d := deployment(name, c)
		d.Namespace = "spotter-system"
		return d
	}
	daemons := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "nth"},
		Spec:       appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{env("QUEUE_URL", ours)}}}},
	}
	for _, c := range []struct {
		name    string
		objects []client.Object
		others  []string
		who     string // empty: it is not refused
		actor   policy.Actor
	}{
		{name: "nobody", objects: []client.Object{deployment("app", env("QUEUE_NAME", "spotter"))}},
		{name: "Karpenter's name", objects: []client.Object{deployment("karpenter", env("INTERRUPTION_QUEUE", "spotter"))}, who: "Deployment kube-system/karpenter", actor: policy.ActorKarpenter},
		{name: "Karpenter's own", objects: []client.Object{deployment("karpenter", env("INTERRUPTION_QUEUE", "my-cluster"))}},
		{name: "Karpenter's key", objects: []client.Object{deployment("karpenter", fromKey), configMap("settings", map[string]string{"queue": "spotter"})}, who: "kube-system/karpenter", actor: policy.ActorKarpenter},
		{name: "a map", objects: []client.Object{deployment("k", fromAll), configMap("settings", map[string]string{"QUEUE_URL": ours})}, who: "kube-system/k", actor: policy.ActorNTH},
		{name: "a missing map", objects: []client.Object{deployment("k", fromAll)}},
		{name: "an old Karpenter", objects: []client.Object{deployment("karpenter", corev1.Container{Image: "public.ecr.aws/karpenter/controller:v0.30.0"}),
			configMap("karpenter-global-settings", map[string]string{"aws.interruptionQueueName": "spotter"})}, who: "karpenter", actor: policy.ActorKarpenter},
		{name: "an argument", objects: []client.Object{deployment("karpenter", corev1.Container{Args: []string{"--interruption-queue=spotter"}})}, who: "karpenter", actor: policy.ActorKarpenter},
		{name: "two arguments", objects: []client.Object{deployment("nth", corev1.Container{Command: []string{"nth", "--queue-url", ours + "/"}})}, who: "nth", actor: policy.ActorNTH},
		{name: "a DaemonSet", objects: []client.Object{daemons}, who: "DaemonSet kube-system/nth", actor: policy.ActorNTH},
		{name: "an older host", objects: []client.Object{deployment("nth", env("QUEUE_URL", "https://eu-west-1.queue.amazonaws.com/123456789012/spotter"))}, who: "nth", actor: policy.ActorNTH},
		{name: "another region", objects: []client.Object{deployment("nth", env("QUEUE_URL", "https://sqs.us-east-1.amazonaws.com/123456789012/spotter"))}},
		{name: "another account", objects: []client.Object{deployment("nth", env("QUEUE_URL", "https://sqs.eu-west-1.amazonaws.com/999999999999/spotter"))}},
		{name: "ourselves", objects: []client.Object{elsewhere("spotter", replica)}},
		{name: "another Spotter", objects: []client.Object{deployment("spotter", replica)}, who: "Deployment kube-system/spotter", actor: policy.ActorNTH},
		{name: "our neighbour", objects: []client.Object{elsewhere("nth", corev1.Container{Args: []string{"--queue-url", ours}})}, who: "Deployment spotter-system/nth", actor: policy.ActorNTH},
		{name: "configured", others: []string{"spotter"}, who: "the configuration"},
	} {
		config := queue.DefaultConfig()
		config.URL, config.Others, config.Namespace = ours, c.others, "spotter-system"
		q, err := queue.New(config, nil, kube.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(c.objects...).Build(), &sink{})
		if err != nil {
			t.Fatal(err)
		}
		err = q.Check(t.Context())
		if refused := errors.Is(err, queue.ErrRival); refused != (c.who != "") || refused && !strings.Contains(err.Error(), c.who) {
			t.Errorf("%s: error %v, want one that names %q", c.name, err, c.who)
		}
		if rivals := q.Rivals(); c.who != "" && (len(rivals) != 1 || rivals[0].Actor != c.actor) {
			t.Errorf("%s: rivals %+v, want one that is %v", c.name, rivals, c.actor)
		}
	}
}

// Where workloads may not be listed the queue is read all the same.
func TestRule09WithoutLeaveToLook(t *testing.T) {
	config := queue.DefaultConfig()
	config.URL = ours
	reader := kube.NewClientBuilder().WithScheme(scheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("forbidden")
		},
	}).Build()
	q, err := queue.New(config, nil, reader, &sink{})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Check(t.Context()); err != nil {
		t.Errorf("it is refused: %v", err)
	}
}

// While another reads the queue not one message is received; once it has gone they
// are.
func TestRule09ReadsNothingBesideARival(t *testing.T) {
	s := prepare(t, nil)
	objects := kube.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(
		deployment("karpenter", corev1.Container{Args: []string{"--interruption-queue", "spotter"}})).Build()
	config := queue.DefaultConfig()
	config.URL, config.Region, config.Endpoint = s.url, "eu-west-1", strings.TrimSuffix(s.url, "/123456789012/spotter")
	config.CheckEvery, config.Wait = 10*time.Millisecond, time.Second
	api, err := queue.Dial(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if s.queue, err = queue.New(config, api, objects, s.sink); err != nil {
		t.Fatal(err)
	}
	s.server.Send(interruption("1", "i-1", time.Now()))
	s.run(t)
	eventually(t, "it is refused", func() bool { return errors.Is(s.queue.Err(), queue.ErrRival) })
	if calls := s.server.Calls(); len(calls) != 0 {
		t.Errorf("requests were made: %+v", calls)
	}
	if err := objects.Delete(t.Context(), deployment("karpenter", corev1.Container{})); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is read", func() bool { return len(s.sink.told()) == 1 })
}
