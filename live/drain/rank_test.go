package drain

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
)

// ranking returns a snapshot in which the pods of a Deployment stand on node a,
// with the costs that they have.
func ranking(w *fixture, cost int32) (*policy.Snapshot, *policy.DeletionCost) {
	s := &policy.Snapshot{
		Pools:     []policy.Pool{{Name: "web"}},
		Nodes:     []policy.Node{{Name: "a", Phase: policy.NodeInitialized}},
		Workloads: []policy.Workload{{Name: "default/web", Kind: policy.KindDeployment}},
		Templates: []policy.Template{{Workload: 0}},
	}
	for _, p := range w.pods() {
		have, fixed := Cost(&p)
		s.Pods = append(s.Pods, policy.Pod{
			ID: policy.PodID(len(s.Pods)), Name: p.Namespace + "/" + p.Name, Phase: policy.PodReady, DeletionCost: have, DeletionCostFixed: fixed,
		})
	}
	return s, &policy.DeletionCost{Node: 0, Cost: cost}
}

// cost returns the annotations of a pod.
func (w *fixture) cost(name string) (cost, owner string) {
	p := &corev1.Pod{}
	w.must(w.api.Get(context.Background(), client.ObjectKey{Namespace: space, Name: name}, p))
	return p.Annotations[AnnotationCost], p.Annotations[AnnotationCostOwner]
}

// TestRank gives pods a cost, and takes away what it gave. A user's own is never
// touched, also where it comes after ours.
func TestRank(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.node("b")
		plain := w.pod("web", "a").Name
		users := w.pod("web", "a", func(p *corev1.Pod) { p.Annotations[AnnotationCost] = "7" }).Name
		later := w.pod("web", "a").Name
		ctx := context.Background()
		k := NewRanker(w.client())
		rank := func(cost int32) {
			s, x := ranking(w, cost)
			w.must(k.DeletionCost(ctx, s, x))
			w.must(k.Pass(ctx))
		}
		rank(-5)
		if c, o := w.cost(plain); c != "-5" || o != "-5" {
			t.Errorf("a plain pod has the cost %q of %q", c, o)
		}
		if c, o := w.cost(users); c != "7" || o != "" {
			t.Errorf("a user's cost is %q of %q", c, o)
		}
		p := &corev1.Pod{}
		w.must(w.api.Get(ctx, client.ObjectKey{Namespace: space, Name: later}, p))
		p.Annotations[AnnotationCost] = "9"
		w.must(w.api.Update(ctx, p))
		rank(0)
		if c, o := w.cost(plain); c != "" || o != "" {
			t.Errorf("what was given was not taken away: %q of %q", c, o)
		}
		if c, _ := w.cost(later); c != "9" {
			t.Errorf("a user's later cost became %q", c)
		}
	})
}

// TestRankMoved holds that only the last request for a pod counts, that a pod which
// is on another node by now keeps what it has, and that a write which fails is
// reported and leaves the others alone.
func TestRankMoved(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		one, two := w.pod("web", "a").Name, w.pod("web", "a").Name
		moved := w.pod("web", "b").Name // the snapshot is older than its move
		ctx := context.Background()
		k := NewRanker(w.client())
		s, x := ranking(w, -5)
		w.must(k.DeletionCost(ctx, s, x))
		x.Cost = -6
		w.must(k.DeletionCost(ctx, s, x))
		w.faulty(on("patch Pod", 1, 1, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, one, errors.New("RBAC"))))
		if status := new(apierrors.StatusError); !errors.As(k.Pass(ctx), &status) || !apierrors.IsForbidden(status) {
			t.Errorf("the failure is reported as %v", status)
		}
		for name, want := range map[string]string{one: "", two: "-6", moved: ""} {
			if c, _ := w.cost(name); c != want {
				t.Errorf("pod %s has the cost %q, want %q", name, c, want)
			}
		}
	})
}

// TestRankPermit holds that a cost is written on behalf of the pool of the node.
func TestRankPermit(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.pod("web", "a")
		s, x := ranking(w, -5)
		s.Pools = []policy.Pool{{Name: "shop"}}
		authority := permit.New(permit.DefaultConfig(), interceptor.NewClient(w.api, interceptor.Funcs{
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil },
		}))
		k := NewRanker(interceptor.NewClient(w.api, interceptor.Funcs{
			Patch: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ client.Patch, _ ...client.PatchOption) error {
				return authority.Check(ctx)
			},
		}))
		w.must(k.DeletionCost(t.Context(), s, x))
		if denied := new(permit.Denied); !errors.As(k.Pass(t.Context()), &denied) || denied.Pool != "shop" {
			t.Errorf("it is written for pool %q", denied.Pool)
		}
	})
}
