package drain

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
)

// lagging returns a pipeline whose cache shows what the functions say, where they are set,
// and that confirms by the API server.
func (w *fixture) lagging(node func(*corev1.Node), pods func(*corev1.PodList), changes ...func(*Config)) *Reconciler {
	cached := interceptor.NewClient(w.api, interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := w.client().Get(ctx, key, o, opts...)
			if n, is := o.(*corev1.Node); is && err == nil && node != nil {
				node(n)
			}
			return err
		},
		List: func(ctx context.Context, _ client.WithWatch, o client.ObjectList, opts ...client.ListOption) error {
			err := w.client().List(ctx, o, opts...)
			if list, is := o.(*corev1.PodList); is && err == nil && pods != nil {
				pods(list)
			}
			return err
		},
		SubResourceCreate: func(ctx context.Context, _ client.Client, sub string, o, body client.Object,
			opts ...client.SubResourceCreateOption) error {
			return w.client().SubResource(sub).Create(ctx, o, body, opts...)
		},
	})
	cfg := DefaultConfig()
	for _, change := range changes {
		change(&cfg)
	}
	p, err := New(cfg, cached, w.client(), w.releaser)
	w.must(err)
	return p
}

// TestOlderCache: a cache that shows the node that had the name before does not end the drain.
func TestOlderCache(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.node("b")
		w.app("web", "a")
		older := false
		l := &log{}
		p := w.lagging(func(n *corev1.Node) {
			if older && n.Name == "a" {
				n.UID, n.Annotations, n.Spec = "before", nil, corev1.NodeSpec{}
			}
		}, nil, withLog(l))
		w.faulty(on("evict", 1, 0, apierrors.NewTooManyRequests("no", 0)))
		w.begin(p, "a")
		w.reach(p, "a", PhaseEvicting)
		older = true
		for range 5 {
			w.must(p.Pass(t.Context()))
			time.Sleep(time.Second)
		}
		if got := phase(p, "a"); got != PhaseEvicting || len(l.results) > 0 {
			t.Errorf("the drain is %q, ended as %+v", got, l.results)
		}
	})
}

// TestEmptyByTheCacheAlone: a node is empty when the API server says so. Pods that the cache does
// not show yet are evicted, and the node is not released under them.
func TestEmptyByTheCacheAlone(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.node("b")
		w.app("web", "a", "a")
		p := w.lagging(nil, func(l *corev1.PodList) { l.Items = nil })
		stop := w.running(p)
		w.begin(p, "a")
		time.Sleep(3 * time.Second)
		if len(w.evicted()) != 2 {
			t.Errorf("%d pods were evicted, want 2", len(w.evicted()))
		}
		time.Sleep(time.Minute)
		stop()
		if w.read("a") != nil {
			t.Error("the node was not given back")
		}
		w.clean("after the drain")
	})
}

// TestUndoneUnderNotice: what was done to a node under notice is taken back in every mode of
// its pool, once the provider has not taken it.
func TestUndoneUnderNotice(t *testing.T) {
	for _, decision := range []permit.Decision{permit.Off, permit.Shadow, permit.Stopped, permit.Gone} {
		inFixture(t, func(t *testing.T, w *fixture) {
			authority, with := governed()
			w.node("a")
			w.app("web", "a")
			w.budget("x", "web", 0)
			l := &log{}
			p := w.pipeline(with, withLog(l))
			w.must(p.adopt(t.Context()))
			w.begin(p, "a", notice(time.Minute))
			w.reach(p, "a", PhaseEvicting)
			authority.say(decision)
			stop := w.running(p)
			time.Sleep(p.cfg.LateMax + 2*time.Minute)
			stop()
			if len(l.results) != 1 || l.results[0].Outcome != OutcomeUndone {
				t.Errorf("%s: it ended as %+v, and stands at %+v", decision, l.results, p.table.status())
			}
			w.clean("%s", decision)
		})
	}
}

// TestCordonedMeanwhile: a cordon that a person sets while a drain waits for its replacements
// stays theirs, and the drain is given up.
func TestCordonedMeanwhile(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.app("web", "a")
		w.releaser.keep(backend.ReplacementWaiting, "t1")
		l := &log{}
		p := w.pipeline(withLog(l))
		w.begin(p, "a", after("t1"))
		w.reach(p, "a", PhaseWaiting)
		w.change("a", func(n *corev1.Node) { n.Spec.Unschedulable = true; annotate(n, "test/cordoned", "x") })
		w.releaser.keep(backend.ReplacementReady, "t1")
		stop := w.running(p)
		time.Sleep(time.Minute)
		stop()
		if len(w.evicted()) > 0 || len(l.results) != 1 || l.results[0].Reason != "Cordoned" {
			t.Errorf("evicted %v, it ended as %+v", w.evicted(), l.results)
		}
		if !w.read("a").Spec.Unschedulable {
			t.Error("the person's cordon was removed")
		}
		w.clean("after the cordon")
	})
}

// TestBudgetCounts: a place in the disruption budget of a pool is given only once the nodes
// were counted and the marks of a process before this one were looked for; nodes that are
// drained under notice use places, and so does what the snapshot shows as down.
func TestBudgetCounts(t *testing.T) {
	node := func(name string, change func(*policy.Node)) policy.Node {
		n := policy.Node{Name: name, Phase: policy.NodeInitialized}
		if change != nil {
			change(&n)
		}
		return n
	}
	for _, x := range []struct {
		name   string
		listed bool
		other  func(*policy.Node)
		noted  bool // the other node is drained under a notice that no snapshot shows
		reason string
	}{
		{name: "free", listed: true},
		{name: "marks not looked for", reason: "not been counted"},
		{name: "another under notice", listed: true, noted: true, reason: "DisruptionBudget"},
		{name: "another not ready", listed: true, other: func(n *policy.Node) { n.NotReady = true }, reason: "DisruptionBudget"},
		{name: "another drained by Karpenter", listed: true,
			other: func(n *policy.Node) { n.ActedBy = policy.ActorKarpenter }, reason: "DisruptionBudget"},
		{name: "another cordoned by a person", listed: true, other: func(n *policy.Node) { n.ActedBy = policy.ActorPerson }},
		{name: "another being launched", listed: true, other: func(n *policy.Node) { n.Phase = policy.NodeLaunching }},
		{name: "no snapshot of the pool", listed: true, other: func(n *policy.Node) { n.Pool = policy.None }, reason: "not been counted"},
	} {
		t.Run(x.name, func(t *testing.T) {
			inFixture(t, func(t *testing.T, w *fixture) {
				authority, with := governed()
				one := intstr.FromInt32(1)
				authority.budget = &one
				p := w.pipeline(with)
				if x.listed {
					w.must(p.adopt(t.Context()))
				}
				s := &policy.Snapshot{Now: policy.TimeOf(time.Now()), Pools: []policy.Pool{{Name: "web"}},
					Nodes: []policy.Node{node("a", nil), node("b", x.other)}}
				if x.reason == "not been counted" && x.listed {
					s.Nodes = s.Nodes[1:]
				}
				p.table.count(s)
				if x.noted {
					p.Notice(Noticed{Node: "b", Pool: "web", ReclaimAt: s.Now.Add(time.Minute)})
				}
				d := p.newDrain("a")
				d.Pool = "web"
				err := p.table.reserve(t.Context(), d)
				if (err == nil) != (x.reason == "") || err != nil && !strings.Contains(err.Error(), x.reason) {
					t.Errorf("%v, want %q", err, x.reason)
				}
				if d.reserved != (x.reason == "") {
					t.Errorf("a place is reserved: %t", d.reserved)
				}
			})
		})
	}
}

// TestCacheBehindOurWrites: a cache that shows a node as it was before our last write neither
// ends the drain nor sets it back.
func TestCacheBehindOurWrites(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.node("b")
		w.app("web", "a")
		first := w.read("a")
		behind := true
		l := &log{}
		p := w.lagging(func(n *corev1.Node) {
			if behind && n.Name == "a" {
				first.DeepCopyInto(n)
			}
		}, nil, withLog(l))
		w.begin(p, "a")
		for range 4 {
			w.must(p.Pass(t.Context()))
			time.Sleep(time.Second)
		}
		behind = false
		stop := w.running(p)
		time.Sleep(time.Minute)
		stop()
		if len(l.results) != 1 || l.results[0].Outcome != OutcomeDone {
			t.Errorf("it ended as %+v", l.results)
		}
		w.clean("after the drain")
	})
}
