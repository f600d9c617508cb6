package drain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/nightly"
)

// governed returns an authority that lets all be done, and what has a reconciler ask it.
func governed() (*fakeAuthority, func(*Config)) {
	a := &fakeAuthority{decision: permit.Active}
	return a, func(c *Config) { c.Authority = a }
}

// reach brings the drain of a node to a phase.
func (w *fixture) reach(p *Reconciler, node string, want Phase) {
	w.t.Helper()
	for range 120 {
		if phase(p, node) == want {
			return
		}
		w.must(p.Pass(context.Background()))
		if phase(p, node) == want {
			return
		}
		time.Sleep(time.Second)
		w.tick()
	}
	w.t.Fatalf("%s is %s and does not come to be %s", node, phase(p, node), want)
}

// TestModeAtEveryPhase: whatever keeps a pool from being changed stops its drains where
// they are. Within two seconds no pod is evicted any more, and all is taken back but of
// nodes that the provider or the backend takes.
func TestModeAtEveryPhase(t *testing.T) {
	for _, decision := range []permit.Decision{permit.Off, permit.Shadow, permit.Stopped, permit.Conflict, permit.Gone} {
		for _, at := range []Phase{PhaseChecking, PhaseWaiting, PhaseEvicting, PhaseDetaching, PhaseReleasing} {
			for _, urgent := range []bool{false, true} {
				if urgent && at == PhaseWaiting {
					continue // it does not wait
				}
				t.Run(fmt.Sprintf("%s/%s/urgent %t", decision, at, urgent), func(t *testing.T) {
					inFixture(t, func(_ *testing.T, w *fixture) { stoppedAt(w, decision, at, urgent) })
				})
			}
		}
	}
}

func stoppedAt(w *fixture, decision permit.Decision, at Phase, urgent bool) {
	authority, with := governed()
	w.node("a")
	w.node("b")
	w.app("web", "a", "a", "b")
	w.releaser.keep(backend.ReplacementReady, "t1")
	p := w.pipeline(quick, with)
	w.must(p.adopt(context.Background()))
	changes := []func(*policy.Node, *policy.Drain){after("t1")}
	if urgent {
		changes = append(changes, notice(time.Minute))
	}
	switch at {
	case PhaseWaiting:
		w.releaser.keep(backend.ReplacementWaiting, "t1")
	case PhaseEvicting:
		w.faulty(on("evict", 1, 0, apierrors.NewTooManyRequests("no", 0)))
	case PhaseDetaching:
		w.attach("a")
	case PhaseReleasing:
		w.releaser.notYet = 1000
	}
	w.begin(p, "a", changes...)
	w.reach(p, "a", at)
	w.faulty(nil)
	w.releaser.notYet = 0
	authority.say(decision)
	stop := w.running(p)
	time.Sleep(2 * time.Second)
	before, released := len(w.evicted()), strings.Join(w.releaser.called(), ",")
	time.Sleep(90 * time.Second)
	if urgent {
		w.reclaim("a")
		time.Sleep(30 * time.Second)
	}
	stop()
	if n := len(w.evicted()); n != before {
		w.t.Errorf("%d pods were evicted while the pool is %s", n-before, decision)
	}
	if strings.Count(strings.Join(w.releaser.called(), ","), "release a") != strings.Count(released, "release a") {
		w.t.Errorf("the node was given back while the pool is %s", decision)
	}
	w.clean("%s at %s", decision, at)
}

// TestStoppedUnderNotice: a node that the provider takes stays cordoned with its pods
// while its pool may not be changed, and is emptied as soon as it may again.
func TestStoppedUnderNotice(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		authority, with := governed()
		w.node("a")
		w.app("web", "a", "a")
		w.faulty(on("evict", 1, 0, apierrors.NewTooManyRequests("no", 0)))
		p := w.pipeline(with)
		w.begin(p, "a", notice(2*time.Minute))
		w.reach(p, "a", PhaseEvicting)
		w.faulty(nil)
		authority.say(permit.Stopped)
		stop := w.running(p)
		time.Sleep(20 * time.Second)
		if !w.read("a").Spec.Unschedulable || len(w.evicted()) > 0 {
			t.Errorf("cordoned %t, %d pods evicted", w.read("a").Spec.Unschedulable, len(w.evicted()))
		}
		authority.say(permit.Active)
		time.Sleep(2 * time.Second)
		stop()
		if len(w.evicted()) != 2 {
			t.Errorf("%d pods were evicted after the release, want 2", len(w.evicted()))
		}
	})
}

// TestSwitchUnreadable: while the kill switch cannot be read no pod is evicted. A drain
// waits for a minute, and is undone if it lasts longer.
func TestSwitchUnreadable(t *testing.T) {
	for _, lasts := range []time.Duration{30 * time.Second, 2 * time.Minute} {
		inFixture(t, func(t *testing.T, w *fixture) {
			authority, with := governed()
			w.node("a")
			w.node("b")
			w.app("web", "a", "a")
			w.faulty(on("evict", 1, 0, apierrors.NewTooManyRequests("no", 0)))
			p := w.pipeline(with)
			w.must(p.adopt(t.Context()))
			w.begin(p, "a")
			w.reach(p, "a", PhaseEvicting)
			w.faulty(nil)
			authority.say(permit.Unreadable)
			stop := w.running(p)
			time.Sleep(lasts)
			if n := len(w.evicted()); n > 0 {
				t.Errorf("%d pods were evicted", n)
			}
			if long := lasts > time.Minute; w.read("a").Spec.Unschedulable == long {
				t.Errorf("after %v the node is cordoned: %t", lasts, !long)
			}
			authority.say(permit.Active)
			time.Sleep(30 * time.Second)
			stop()
			if evicted := len(w.evicted()) > 0; evicted != (lasts < time.Minute) {
				t.Errorf("after %v the drain goes on: %t", lasts, evicted)
			}
		})
	}
}

// TestBudgetIsReserved: of eight drains at the same time, no more proceed than the pool may have
// nodes disrupted.
func TestBudgetIsReserved(t *testing.T) {
	for _, allowed := range []int{1, 3} {
		inFixture(t, func(t *testing.T, w *fixture) {
			authority, with := governed()
			n := intstr.FromInt32(int32(allowed))
			authority.budget = &n
			l := &log{}
			p := w.pipeline(with, func(c *Config) { c.Meter = l })
			s := &policy.Snapshot{Now: policy.TimeOf(time.Now()), Pools: []policy.Pool{{Name: "web"}}}
			stuck := func(p *corev1.Pod) {
				grace := int64(1 << 20)
				p.Annotations[stopsAfter], p.Spec.TerminationGracePeriodSeconds = "100h", &grace
			}
			for i := range 8 {
				name := string(rune('a' + i))
				w.node(name)
				w.pod("app-"+name, name, stuck)
				s.Nodes = append(s.Nodes, policy.Node{ID: policy.NodeID(i), Name: name, Phase: policy.NodeInitialized})
			}
			stop := w.running(p)
			time.Sleep(time.Second)
			for i := range s.Nodes {
				w.must(p.Start(t.Context(), s, &policy.Drain{Node: policy.NodeID(i)}))
			}
			time.Sleep(30 * time.Second)
			cordoned := 0
			for _, n := range w.nodes() {
				if n.Spec.Unschedulable {
					cordoned++
				}
			}
			if cordoned != allowed {
				t.Errorf("%d nodes are drained at once, want %d", cordoned, allowed)
			}
			for _, r := range l.results {
				if r.Reason != "DisruptionBudget" || r.Outcome != OutcomeHeld {
					t.Errorf("%+v", r)
				}
			}
			authority.say(permit.Off)
			time.Sleep(30 * time.Second)
			stop()
			w.clean("budget %d", allowed)
		})
	}
}

// TestFreezeHolds: a freeze that a pool came to state after the decision holds a drain by
// choice before its first mark, and none under notice.
func TestFreezeHolds(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		authority, with := governed()
		authority.freezes = []v1alpha1.Freeze{{From: metav1.NewTime(time.Now().Add(-time.Hour)),
			To: metav1.NewTime(time.Now().Add(24 * time.Hour)), Reason: "release"}}
		l := &log{}
		p := w.pipeline(with, func(c *Config) { c.Meter = l })
		s := &policy.Snapshot{Now: policy.TimeOf(time.Now()), Pools: []policy.Pool{{Name: "web"}}}
		for i, name := range []string{"a", "b"} {
			w.node(name)
			w.pod("app-"+name, name)
			s.Nodes = append(s.Nodes, policy.Node{ID: policy.NodeID(i), Name: name, Phase: policy.NodeInitialized})
		}
		s.Nodes[1].ReclaimAt = s.Now.Add(2 * time.Minute)
		stop := w.running(p)
		defer stop()
		time.Sleep(time.Second)
		for i := range s.Nodes {
			w.must(p.Start(t.Context(), s, &policy.Drain{Node: policy.NodeID(i), Deadline: s.Nodes[i].ReclaimAt}))
		}
		time.Sleep(30 * time.Second)
		for _, n := range w.nodes() {
			if n.Name == "a" && n.Spec.Unschedulable {
				t.Error("node a is drained in a freeze")
			}
		}
		if len(l.results) == 0 || l.results[0].Reason != "Closed" || l.results[0].Outcome != OutcomeHeld {
			t.Errorf("%+v", l.results)
		}
		for _, p := range w.pods() {
			if p.Name == "app-b" {
				t.Error("the node under notice is not emptied")
			}
		}
	})
}

// TestMarksAreLookedForAgain: what a process before left is found and taken back also
// where listing the nodes fails at the start.
func TestMarksAreLookedForAgain(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		p := w.pipeline()
		w.change("a", func(n *corev1.Node) { p.api.marks.cordon(n, state{Phase: PhaseEvicting, Pool: "web"}) })
		w.faulty(on("list NodeList", 1, 3, errors.New("unreachable")))
		stop := w.running(p)
		time.Sleep(10 * time.Second)
		stop()
		w.clean("after a start without nodes")
	})
}

// TestMarksOfOthersTime: marks that are written to a node while the controller runs, as by a
// process that was suspended, are removed as well.
func TestMarksOfOthersTime(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		p := w.pipeline()
		stop := w.running(p)
		time.Sleep(time.Minute)
		w.change("a", func(n *corev1.Node) { p.api.marks.cordon(n, state{Phase: PhaseEvicting, Pool: "web"}) })
		time.Sleep(10 * time.Second)
		stop()
		w.clean("after late marks")
	})
}

// A hangingReleaser prepares nothing until it is released, but for node x.
type hangingReleaser struct {
	*releaser
	release chan struct{}
}

func (g *hangingReleaser) NodeReleaser(string, policy.Provisioner) (backend.NodeReleaser, error) {
	return g, nil
}

func (g *hangingReleaser) Prepare(ctx context.Context, n *corev1.Node) error {
	if n.Name == "x" {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-g.release:
		return g.releaser.Prepare(ctx, n)
	}
}

// TestNoticeOvertakes: the drain of a node under notice starts at once although calls that hang
// occupy all ordinary slots, also for a node that is already being processed.
func TestNoticeOvertakes(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		hang := &hangingReleaser{releaser: w.releaser, release: make(chan struct{})}
		cfg := DefaultConfig()
		cfg.Parallel = 4
		p, err := New(cfg, w.client(), w.client(), hang)
		w.must(err)
		stop := w.running(p)
		for i := range 10 {
			name := fmt.Sprintf("n%d", i)
			w.node(name)
			w.app("app-"+name, name)
			w.begin(p, name)
		}
		time.Sleep(5 * time.Second)
		w.node("x")
		w.app("x", "x")
		p.Notice(Noticed{Node: "x", Pool: "web", ReclaimAt: policy.TimeOf(time.Now().Add(2 * time.Minute)), Text: "the provider says so"})
		time.Sleep(2 * time.Second)
		if n := len(w.evicted()); n != 1 {
			t.Errorf("%d pods were evicted 2 s after the notice, want 1", n)
		}
		close(hang.release)
		stop()
	})
}

// TestMassNotice: pods leave all nodes under notice at once though no call of the backend
// returns, and a node whose notice comes later finds a worker too.
func TestMassNotice(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		nodes := nightly.Count(50, 150)
		hang := &hangingReleaser{releaser: w.releaser, release: make(chan struct{})}
		p, err := New(DefaultConfig(), w.client(), w.client(), hang)
		w.must(err)
		stop := w.running(p)
		announce := func(name string) {
			w.node(name)
			w.pod("", name)
			p.Notice(Noticed{Node: name, Pool: "web", ReclaimAt: policy.TimeOf(time.Now().Add(2 * time.Minute)), Text: "the provider says so"})
		}
		for i := range nodes {
			announce(fmt.Sprintf("n%03d", i))
		}
		time.Sleep(2 * time.Second)
		if n := len(w.evicted()); n != nodes {
			t.Errorf("of %d nodes %d lost a pod within 2 s", nodes, n)
		}
		announce("late")
		time.Sleep(2 * time.Second)
		if n := len(w.evicted()); n != nodes+1 {
			t.Errorf("of the late node %d pods were evicted within 2 s, want 1", n-nodes)
		}
		close(hang.release)
		stop()
	})
}

// TestNoticeIsUnplanned: a drain that a notice ordered says so until a plan orders it, and
// one that a plan ordered first never does.
func TestNoticeIsUnplanned(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.node("b")
		p := w.pipeline()
		p.Notice(Noticed{Node: "a", Pool: "web", ReclaimAt: policy.TimeOf(time.Now().Add(time.Minute))})
		w.begin(p, "b")
		p.Notice(Noticed{Node: "b", Pool: "web", ReclaimAt: policy.TimeOf(time.Now().Add(time.Minute))})
		w.must(p.Pass(t.Context()))
		if s := p.table.status(); !s[0].Unplanned || s[1].Unplanned {
			t.Errorf("before a plan: %+v", s)
		}
		w.begin(p, "a", notice(time.Minute))
		w.must(p.Pass(t.Context()))
		if s := p.table.status(); s[0].Unplanned || s[1].Unplanned {
			t.Errorf("after a plan: %+v", s)
		}
	})
}
