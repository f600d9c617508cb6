package drain

import (
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/test/testenv"
)

// TestOwnersOnCluster drains a node gently, with pods of every kind of owner: each owner
// is asked how many pods it wants. It has only the rights that the pipeline names.
func TestOwnersOnCluster(t *testing.T) {
	c := newCluster(t, "spotter-owners")
	c.nodes("owners-a")
	template := func(app string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{appLabel: app}}, Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"test": c.ns}, Containers: []corev1.Container{{Name: "c", Image: "c"}},
		}}
	}
	two, alone := int32(2), template("replicationcontroller")
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: c.ns, Name: name} }
	selector := func(app string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: app}}
	}
	for _, o := range []client.Object{
		&appsv1.Deployment{ObjectMeta: meta("deployment"), Spec: appsv1.DeploymentSpec{Replicas: &two,
			Selector: selector("deployment"), Template: template("deployment")}},
		&appsv1.ReplicaSet{ObjectMeta: meta("replicaset"), Spec: appsv1.ReplicaSetSpec{Replicas: &two,
			Selector: selector("replicaset"), Template: template("replicaset")}},
		&appsv1.StatefulSet{ObjectMeta: meta("statefulset"), Spec: appsv1.StatefulSetSpec{Replicas: &two,
			Selector: selector("statefulset"), Template: template("statefulset")}},
		&corev1.ReplicationController{ObjectMeta: meta("replicationcontroller"), Spec: corev1.ReplicationControllerSpec{
			Replicas: &two, Selector: map[string]string{appLabel: "replicationcontroller"}, Template: &alone,
		}},
	} {
		c.must(c.env.Client.Create(t.Context(), o))
	}
	ready := func(node string) func() error {
		return func() error {
			var all corev1.PodList
			err := c.mgr.GetClient().List(t.Context(), &all, client.InNamespace(c.ns))
			n := 0
			for i := range all.Items {
				if p := &all.Items[i]; p.Spec.NodeName == node && p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning {
					n++
				}
			}
			if n != 8 {
				err = errors.Join(err, fmt.Errorf("%d of 8 pods run on %s", n, node))
			}
			return err
		}
	}
	testenv.Eventually(t, "all pods run, also in the cache", ready("owners-a"))
	c.ranked("owners-a", "deployment")
	c.nodes("owners-b")
	p := c.pipeline()
	defer c.run(p)()
	mark := c.env.Mark()
	s, d := planned("owners-a", func(_ *policy.Node, d *policy.Drain) { d.Gentle = true })
	c.must(p.Start(t.Context(), s, d))
	c.gone("owners-a")
	testenv.Eventually(t, "all pods run on the other node", ready("owners-b"))
	asked := map[string]bool{}
	for _, e := range c.env.Audit(t, mark, func(e testenv.AuditEvent) bool { return e.User == "spotter-owners" && e.Verb == "get" }) {
		asked[e.Resource] = true
	}
	for _, resource := range []string{"deployments", "replicasets", "statefulsets", "replicationcontrollers"} {
		if !asked[resource] {
			t.Errorf("no %s was asked for", resource)
		}
	}
	c.onlyEvictions(mark, "spotter-owners")
}

// ranked has the pods of a Deployment on a node go first when it shrinks.
func (c *cluster) ranked(node, app string) {
	c.t.Helper()
	var all corev1.PodList
	c.must(c.mgr.GetClient().List(c.t.Context(), &all, client.InNamespace(c.ns), client.MatchingLabels{appLabel: app}))
	s := &policy.Snapshot{
		Pools:     []policy.Pool{{Name: "web"}},
		Nodes:     []policy.Node{{Name: node, Phase: policy.NodeInitialized}},
		Workloads: []policy.Workload{{Name: c.ns + "/" + app, Kind: policy.KindDeployment}},
		Templates: []policy.Template{{Workload: 0}},
	}
	for i := range all.Items {
		s.Pods = append(s.Pods, policy.Pod{ID: policy.PodID(i), Name: c.ns + "/" + all.Items[i].Name, Phase: policy.PodReady})
	}
	k := NewRanker(c.mgr.GetClient())
	testenv.Eventually(c.t, "the pods have their cost", func() error { // one may be written meanwhile
		if err := errors.Join(k.DeletionCost(c.t.Context(), s, &policy.DeletionCost{Node: 0, Cost: -10}), k.Pass(c.t.Context())); err != nil {
			return err
		}
		c.must(c.env.Client.List(c.t.Context(), &all, client.InNamespace(c.ns), client.MatchingLabels{appLabel: app}))
		for i := range all.Items {
			if cost, _ := Cost(&all.Items[i]); cost != -10 {
				return fmt.Errorf("pod %s has the cost %d", all.Items[i].Name, cost)
			}
		}
		return nil
	})
}
