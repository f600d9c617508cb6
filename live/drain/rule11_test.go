package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
)

// TestRule11Ownership holds that what a person does to a node is respected.
func TestRule11Ownership(t *testing.T) {
	for _, x := range []struct {
		name   string
		person func(*corev1.Node)
		closed bool // unschedulable at the end
	}{
		{"uncordoned", func(n *corev1.Node) { n.Spec.Unschedulable = false }, false},
		{"cordon taken over", func(n *corev1.Node) { delete(n.Annotations, AnnotationCordon); annotate(n, "test/cordoned", "x") }, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			inFixture(t, func(t *testing.T, w *fixture) {
				w.node("a")
				w.app("web", "a")
				w.change("a", func(n *corev1.Node) {
					n.Spec.Taints = []corev1.Taint{{Key: "theirs", Effect: corev1.TaintEffectNoSchedule}}
				})
				w.faulty(on("evict", 1, 0, apierrors.NewTooManyRequests("no", 0)))
				l := &log{}
				p := w.pipeline(withLog(l))
				stop := w.running(p)
				w.begin(p, "a")
				time.Sleep(10 * time.Second)
				if n := w.read("a"); !n.Spec.Unschedulable || len(n.Spec.Taints) != 2 {
					t.Fatalf("not cordoned: %v", n.Spec)
				}
				w.change("a", x.person)
				time.Sleep(5 * time.Second)
				stop()
				n := w.read("a")
				if n.Spec.Unschedulable != x.closed || len(n.Spec.Taints) != 1 || n.Spec.Taints[0].Key != "theirs" {
					t.Errorf("it is left as %+v", n.Spec)
				}
				if len(l.results) != 1 || l.results[0].Reason != "TakenOver" {
					t.Errorf("it ended as %+v", l.results)
				}
				w.clean("after the person")
			})
		})
	}
}

// TestRule11NoticeOnCordonedNode holds that a person's cordon stays theirs also
// where the provider takes the node and then does not.
func TestRule11NoticeOnCordonedNode(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.pod("stuck", "a", func(p *corev1.Pod) {
			p.Annotations[stopsAfter] = "1h"
			long := int64(4000)
			p.Spec.TerminationGracePeriodSeconds = &long
		})
		w.app("web", "a")
		w.budget("x", "web", 0)
		w.change("a", func(n *corev1.Node) { n.Spec.Unschedulable = true; annotate(n, "test/cordoned", "x") })
		p := w.pipeline()
		stop := w.running(p)
		w.begin(p, "a", notice(time.Minute), func(n *policy.Node, _ *policy.Drain) { n.ActedBy = policy.ActorPerson })
		time.Sleep(5 * time.Second)
		if _, ours := w.read("a").Annotations[AnnotationCordon]; ours {
			t.Error("a cordon of somebody else is claimed")
		}
		time.Sleep(15 * time.Minute)
		stop()
		if !w.read("a").Spec.Unschedulable {
			t.Error("a person's cordon was taken away")
		}
		w.clean("after the notice")
	})
}

// TestRule11Conflict holds that taints and cordons that others write at the same
// time survive: the list of taints is one.
func TestRule11Conflict(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		n := 0
		w.faulty(func(op string) error {
			switch {
			case op == "evict":
				return apierrors.NewTooManyRequests("no", 0)
			case op == "patch Node" && n < 7:
				n++
				w.change("a", func(x *corev1.Node) {
					x.Spec.Taints = append(x.Spec.Taints, corev1.Taint{Key: fmt.Sprintf("theirs-%d", n), Effect: corev1.TaintEffectNoSchedule})
				})
			}
			return nil
		})
		w.app("web", "a")
		p := w.pipeline()
		w.begin(p, "a")
		for range 10 {
			w.tick()
			_ = p.Pass(context.Background())
			time.Sleep(time.Second)
		}
		p.cfg.Authority = &fakeAuthority{decision: permit.Stopped}
		_, err := p.settled(context.Background())
		w.must(err)
		if x := w.read("a"); n != 7 || len(x.Spec.Taints) != n {
			t.Errorf("of %d taints %v are left", n, x.Spec.Taints)
		}
		w.clean("after the conflicts")
	})
}

// TestRule14Fence holds that nothing is written once another process may lead.
func TestRule14Fence(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.node("b")
		w.app("web", "a", "b")
		lost := errors.New("the lease is gone")
		p := w.pipeline(func(c *Config) { c.Authority = &fakeAuthority{err: lost} })
		w.begin(p, "a")
		w.begin(p, "b")
		for range 5 {
			if err := p.Pass(context.Background()); !errors.Is(err, lost) {
				t.Errorf("the pass says %v", err)
			}
		}
		if len(w.evicted()) > 0 || len(w.releaser.called()) > 0 {
			t.Errorf("evicted %v, called %v", w.evicted(), w.releaser.called())
		}
		w.clean("behind the fence")
	})
}

// TestRule20Halt holds what the kill switch undoes and what it leaves.
func TestRule20Halt(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		for _, name := range []string{"empty", "notice", "stuck", "waiting"} {
			w.node(name)
		}
		w.app("web", "stuck", "notice", "waiting")
		w.budget("x", "web", 1)
		w.releaser.keep(backend.ReplacementWaiting, "t1")
		w.faulty(on("evict", 1, 0, apierrors.NewTooManyRequests("no", 0)))
		authority := &fakeAuthority{decision: permit.Active}
		p := w.pipeline(func(c *Config) { c.Authority = authority })
		w.must(p.adopt(t.Context()))
		ctx := context.Background()
		w.begin(p, "empty")
		w.begin(p, "notice", notice(2*time.Minute))
		w.begin(p, "stuck")
		w.begin(p, "waiting", after("t1"))
		for range 3 {
			w.must(p.Pass(ctx))
			time.Sleep(time.Second)
		}
		authority.say(permit.Stopped)
		s, err := p.settled(ctx)
		w.must(err)
		if want := []string{"stuck", "waiting"}; !slices.Equal(s.Undone, want) {
			t.Errorf("undone %v, want %v", s.Undone, want)
		}
		want := []string{"empty: it is empty and was released", "notice: the provider reclaims it"}
		if !slices.Equal(s.Left, want) {
			t.Errorf("left %v, want %v", s.Left, want)
		}
		if !w.read("notice").Spec.Unschedulable || w.read("stuck").Spec.Unschedulable || w.read("waiting").Spec.Unschedulable {
			t.Error("the wrong nodes are cordoned")
		}
		w.faulty(nil)
		before := len(w.evicted())
		w.must(p.Pass(ctx))
		if len(w.evicted()) != before {
			t.Error("a pod was evicted behind the kill switch")
		}
		authority.say(permit.Active)
		time.Sleep(urgentRetry)
		w.must(p.Pass(ctx))
		if len(w.evicted()) != before+1 {
			t.Error("the node under notice was forgotten")
		}
		w.begin(p, "stuck")
	})
}

// TestRule20Shutdown holds that a graceful end finishes what is empty and undoes
// the rest.
func TestRule20Shutdown(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("empty")
		w.node("full")
		w.app("web", "full")
		w.faulty(on("evict", 1, 0, apierrors.NewTooManyRequests("no", 0)))
		p := w.pipeline()
		w.begin(p, "full")
		w.must(p.Pass(context.Background()))
		w.begin(p, "empty")
		s, err := p.Shutdown(context.Background())
		w.must(err)
		if !slices.Equal(s.Undone, []string{"full"}) || !slices.Equal(s.Left, []string{"empty: it is empty and was released"}) {
			t.Errorf("settled %+v", s)
		}
		w.releaser.take()
		time.Sleep(6 * time.Second)
		w.releaser.take()
		w.clean("after the end")
	})
}
