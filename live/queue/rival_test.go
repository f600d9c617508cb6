package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kube "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/live/queue"
	"github.com/spotter-dev/spotter/policy"
)

const (
	ours           = "https://sqs.eu-west-1.amazonaws.com/123456789012/spotter"
	nthImage       = "public.ecr.aws/aws-ec2/aws-node-termination-handler:v1.25.0"
	karpenterImage = "public.ecr.aws/karpenter/controller:1.14.1"
)

// template returns one of pods with one container c, that run as a ServiceAccount.
func template(account string, c corev1.Container) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{c}}}
}

// deployment returns one that runs as a ServiceAccount of its own name.
func deployment(namespace, name string, c corev1.Container) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{Template: template(name, c)}}
}

// daemonSet is deployment for a DaemonSet.
func daemonSet(namespace, name string, c corev1.Container) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DaemonSetSpec{Template: template(name, c)}}
}

// drainRole is a role as the chart of the Node Termination Handler has it.
func drainRole(name string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "patch", "update"}},
		{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
	}}
}

// bound returns a role and its binding to a subject.
func bound(role *rbacv1.ClusterRole, s rbacv1.Subject) []client.Object {
	return []client.Object{role, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Subjects: []rbacv1.Subject{s}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role.Name},
	}}
}

// mayDrain lets a ServiceAccount drain nodes.
func mayDrain(namespace, name string) []client.Object {
	return bound(drainRole("drain-"+namespace+"-"+name), rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: name})
}

// A consumer that reads a queue and may drain nodes is found by its environment or its arguments,
// by URL and by name. A workload that may not drain is not a rival, whatever its name, image and
// labels.
func TestRule09FindsOtherConsumers(t *testing.T) {
	env := func(image, name, value string) corev1.Container {
		return corev1.Container{Image: image, Env: []corev1.EnvVar{{Name: name, Value: value}}}
	}
	args := func(image string, args ...string) corev1.Container { return corev1.Container{Image: image, Args: args} }
	objects := func(all ...any) (list []client.Object) {
		for _, x := range all {
			switch x := x.(type) {
			case client.Object:
				list = append(list, x)
			case []client.Object:
				list = append(list, x...)
			}
		}
		return list
	}
	labelled := deployment("kube-system", "nth", env("mirror/handler", "QUEUE_URL", ours))
	labelled.Spec.Template.Labels = map[string]string{"app.kubernetes.io/name": "aws-node-termination-handler"}
	forged := deployment("tenant", "aws-node-termination-handler", env(nthImage, "QUEUE_URL", ours))
	forged.Spec.Template.Labels = labelled.Spec.Template.Labels
	noEviction, ofNames := drainRole("r"), drainRole("r")
	noEviction.Rules = noEviction.Rules[:1]
	ofNames.Rules[0].ResourceNames = []string{"node-1"}
	subject := rbacv1.Subject{Kind: "ServiceAccount", Namespace: "tenant", Name: "aws-node-termination-handler"}
	fromMap := corev1.Container{Image: nthImage, Env: []corev1.EnvVar{{Name: "QUEUE_URL", ValueFrom: &corev1.EnvVarSource{}}}}
	system := mayDrain("kube-system", "nth")
	karpenter := mayDrain("kube-system", "karpenter")
	for name, c := range map[string]struct {
		objects []client.Object
		actor   policy.Actor
		found   bool // a rival, of some queue
		shared  bool // Spotter's own
	}{
		"nobody":   {objects: objects(deployment("default", "app", env("app", "QUEUE_NAME", "spotter")))},
		"a tenant": {objects: objects(forged)},
		"a tenant, role in namespace": {objects: objects(forged,
			&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "r"},
				Subjects: []rbacv1.Subject{subject}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"}}, drainRole("r"))},
		"a tenant, no eviction":        {objects: objects(forged, bound(noEviction, subject))},
		"a tenant, one node":           {objects: objects(forged, bound(ofNames, subject))},
		"a tenant, account of another": {objects: objects(forged, mayDrain("kube-system", "aws-node-termination-handler"))},
		"Karpenter's name": {objects(deployment("kube-system", "karpenter",
			env(karpenterImage, "INTERRUPTION_QUEUE", "spotter")), karpenter), policy.ActorKarpenter, true, true},
		"Karpenter's own": {objects(deployment("kube-system", "karpenter",
			env(karpenterImage, "INTERRUPTION_QUEUE", "my-cluster")), karpenter), policy.ActorKarpenter, true, false},
		"Karpenter without a queue": {objects: objects(deployment("kube-system", "karpenter",
			env(karpenterImage, "INTERRUPTION_QUEUE", "")), karpenter)},
		"an argument": {objects(deployment("kube-system", "karpenter",
			args(karpenterImage, "--interruption-queue=spotter")), karpenter), policy.ActorKarpenter, true, true},
		"two arguments": {objects(deployment("kube-system", "nth", args(nthImage, "--queue-url", ours+"/")),
			system), policy.ActorNTH, true, true},
		"a DaemonSet": {objects(daemonSet("kube-system", "nth", env(nthImage, "QUEUE_URL", ours)), system),
			policy.ActorNTH, true, true},
		"a label": {objects(labelled, system), policy.ActorNTH, true, true},
		"a group of accounts": {objects(labelled, bound(drainRole("r"),
			rbacv1.Subject{Kind: "Group", Name: "system:serviceaccounts:kube-system"})), policy.ActorNTH, true, true},
		"an older host": {objects(deployment("kube-system", "nth",
			env(nthImage, "QUEUE_URL", "https://eu-west-1.queue.amazonaws.com/123456789012/spotter")), system), policy.ActorNTH, true, true},
		"another region": {objects(deployment("kube-system", "nth",
			env(nthImage, "QUEUE_URL", "https://sqs.us-east-1.amazonaws.com/123456789012/spotter")), system), policy.ActorNTH, true, false},
		"another account": {objects(deployment("kube-system", "nth",
			env(nthImage, "QUEUE_URL", "https://sqs.eu-west-1.amazonaws.com/999999999999/spotter")), system), policy.ActorNTH, true, false},
		"a queue of a ConfigMap": {objects(deployment("kube-system", "nth", fromMap), system), policy.ActorNTH, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, func(c *queue.Config) { c.URL = ours }, c.objects...)
			s.run(t)
			if c.found {
				eventually(t, "it is found", func() bool { return len(s.queue.Rivals()) == 1 })
			} else {
				time.Sleep(30 * time.Millisecond) // long enough for a look
			}
			rivals := s.queue.Rivals()
			if !c.found && len(rivals) != 0 || c.found && rivals[0].Actor != c.actor {
				t.Errorf("rivals %+v, want one that is %v: %t", rivals, c.actor, c.found)
			}
			if err := s.queue.Err(); errors.Is(err, queue.ErrRival) != c.shared || c.shared && !strings.Contains(err.Error(), rivals[0].Who) {
				t.Errorf("error %v, want one that names a rival: %t", err, c.shared)
			}
		})
	}
}

// Nothing in the cluster stops the reading: neither a Deployment of a tenant that claims
// to read our queue, nor one that does, nor a look that fails.
func TestRule09ReadsWhoeverElseReads(t *testing.T) {
	for name, objects := range map[string]func(url string) []client.Object{
		"a tenant": func(url string) []client.Object {
			return []client.Object{deployment("tenant", "app", corev1.Container{Image: nthImage,
				Env: []corev1.EnvVar{{Name: "QUEUE_URL", Value: url}}})}
		},
		"a rival": func(url string) []client.Object {
			return append(mayDrain("kube-system", "nth"), deployment("kube-system", "nth",
				corev1.Container{Image: nthImage, Args: []string{"--queue-url", url}}))
		},
	} {
		s := prepare(t, nil)
		for _, o := range objects(s.url) {
			if err := s.cluster.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		s.run(t)
		eventually(t, "the rival is found", func() bool { return name == "a tenant" || errors.Is(s.queue.Err(), queue.ErrRival) })
		s.server.Send(interruption("1", "i-1", time.Now()))
		eventually(t, "the queue is read together with "+name, func() bool { return len(s.sink.Noticed()) > 0 })
	}
	forbidden := kube.NewClientBuilder().WithScheme(scheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("forbidden")
		},
	}).Build()
	s := prepare(t, nil)
	s.reopen(t, forbidden, forbidden)
	s.run(t)
	s.server.Send(interruption("1", "i-1", time.Now()))
	eventually(t, "the queue is read without leave to look", func() bool { return len(s.sink.Noticed()) > 0 })
}

// node returns the node of an instance.
func node(instance string, change func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + instance},
		Spec: corev1.NodeSpec{ProviderID: "aws:///eu-west-1a/" + instance}}
	change(n)
	return n
}

// A node under notice is left for ClaimWait to the controller that is expected to drain it. If no
// controller has acted on the node by then, Spotter drains it. Its message is kept until then.
func TestRule09UnclaimedNodesAreOurs(t *testing.T) {
	nth := append(mayDrain("kube-system", "nth"), deployment("kube-system", "nth",
		corev1.Container{Image: nthImage, Args: []string{"--queue-url", "theirs"}}))
	karpenter := append(mayDrain("kube-system", "karpenter"), deployment("kube-system", "karpenter",
		corev1.Container{Image: karpenterImage, Args: []string{"--interruption-queue", "theirs"}}))
	taint := func(key string, added time.Time) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &metav1.Time{Time: added}}}
			n.Spec.Unschedulable = key == corev1.TaintNodeUnschedulable
		}
	}
	nodePool := func(n *corev1.Node) { n.Labels = map[string]string{"karpenter.sh/nodepool": "web"} }
	nothing := func(*corev1.Node) {}
	now := time.Now()
	for name, c := range map[string]struct {
		rivals    []client.Object
		node      func(*corev1.Node)
		groups    policy.Actor
		expected  policy.Actor
		unclaimed bool
	}{
		"nobody is expected": {nil, nothing, policy.ActorNone, policy.ActorNone, false},
		"NTH does nothing":   {nth, nothing, policy.ActorNone, policy.ActorNTH, true},
		"NTH cordons":        {nth, taint(corev1.TaintNodeUnschedulable, now), policy.ActorNone, policy.ActorNTH, false},
		"NTH has cordoned, no taint yet": {nth, func(n *corev1.Node) { n.Spec.Unschedulable = true },
			policy.ActorNone, policy.ActorNTH, false},
		"NTH taints": {nth, taint("aws-node-termination-handler/spot-itn", now),
			policy.ActorNone, policy.ActorNTH, false},
		"a person cordoned it yesterday": {nth, taint(corev1.TaintNodeUnschedulable, now.Add(-24*time.Hour)),
			policy.ActorNone, policy.ActorNTH, true},
		"we drain it":                              {nth, taint(drain.TaintDraining, now), policy.ActorNone, policy.ActorNTH, false},
		"both, a node of Karpenter's":              {slices.Concat(nth, karpenter), nodePool, policy.ActorNone, policy.ActorNTH, true},
		"Karpenter, its node, and it does nothing": {karpenter, nodePool, policy.ActorNone, policy.ActorKarpenter, true},
		"Karpenter, its node": {karpenter, func(n *corev1.Node) {
			taint("karpenter.sh/disrupted",
				now)(n)
			nodePool(n)
		}, policy.ActorNone, policy.ActorKarpenter, false},
		"Karpenter, another node": {karpenter, nothing, policy.ActorNone, policy.ActorNone, false},
		"EKS does nothing":        {nil, nothing, policy.ActorEKS, policy.ActorEKS, true},
		"EKS rather than NTH":     {nth, taint(corev1.TaintNodeUnschedulable, now), policy.ActorEKS, policy.ActorEKS, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := prepare(t, func(cfg *queue.Config) {
				cfg.ClaimWait = 1500 * time.Millisecond
				cfg.DrainedBy = func(backend.Notice) policy.Actor { return c.groups }
			}, append(slices.Clone(c.rivals), node("i-1", c.node))...)
			s.run(t)
			eventually(t, "rivals are found", func() bool { return len(c.rivals) == 0 || len(s.queue.Rivals()) == len(c.rivals)/3 })
			s.server.Send(interruption("1", "i-1", now), recommendation("2", "i-1", now))
			eventually(t, "both are published", func() bool { return len(s.sink.Noticed()) == 2 })
			if got := s.sink.Noticed(); got[0].ActedBy != c.expected || got[1].ActedBy != c.groups {
				t.Errorf("published %+v, want the first left to %v, the second to %v", got, c.expected, c.groups)
			}
			if s.server.Len() == 0 {
				t.Error("the message is deleted before the node can be marked")
			}
			s.emptied(t)
			unclaimed := s.sink.Noticed()[2:]
			if c.unclaimed != (len(unclaimed) == 1 && unclaimed[0].Unclaimed && unclaimed[0].ActedBy == policy.ActorNone) || len(unclaimed) > 1 {
				t.Errorf("afterwards %+v, want one unclaimed notice: %t", unclaimed, c.unclaimed)
			}
		})
	}
}

// A leader that dies before a warned node could be marked leaves the message to the next.
func TestWarningsOutliveTheLeader(t *testing.T) {
	s := prepare(t, func(c *queue.Config) { c.ClaimWait, c.Visibility = 10*time.Second, 10*time.Second })
	for i := range 25 {
		s.server.Send(interruption(fmt.Sprint(i), fmt.Sprintf("i-%d", i), time.Now()))
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.queue.Run(ctx) }()
	eventually(t, "all are read", func() bool { return len(s.sink.Noticed()) == 25 })
	stop()
	<-ended
	if n := s.server.Len(); n != 25 {
		t.Errorf("%d messages are left to the next leader, want 25", n)
	}
}
