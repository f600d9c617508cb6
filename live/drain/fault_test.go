package drain

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/test/nightly"
)

// quick shortens the limits, so that a test waits for fewer seconds of its own.
func quick(c *Config) {
	c.DrainMax, c.CheckMax, c.EvictRetry = 100*time.Second, 20*time.Second, 5*time.Second
	c.Interval = 5 * time.Second
	c.VolumesMax, c.ReleaseMax, c.LateMax = 10*time.Second, 40*time.Second, 60*time.Second
}

var all = flag.Bool("all", false, "strike with every error, not with some at random")

// TestErrors makes every kind of call fail with every kind of error for three minutes, and then
// stops the faults. Whatever became of the drain, no mark of Spotter may be left, and nothing may
// crash.
func TestErrors(t *testing.T) {
	resource := schema.GroupResource{Resource: "things"}
	faults := map[string]error{
		"conflict":  apierrors.NewConflict(resource, "x", errors.New("changed")),
		"throttled": apierrors.NewTooManyRequests("later", 1),
		"internal":  apierrors.NewInternalError(errors.New("etcd")),
		"timeout":   context.DeadlineExceeded,
		"forbidden": apierrors.NewForbidden(resource, "x", errors.New("RBAC")),
		"gone":      apierrors.NewNotFound(resource, "x"),
		"held":      backend.Hold("Busy", "somebody else is at it"),
		"not yet":   fmt.Errorf("a volume: %w", backend.ErrNotYet),
	}
	calls := []string{
		"get Node", "list PodList", "list PodDisruptionBudgetList", "patch Node", "rehearse", "evict", "list VolumeAttachmentList",
		"get ReplicaSet", "get Deployment", "prepare", "replaced", "release", "undo", "settle",
	}
	rnd := rand.New(rand.NewPCG(rand.Uint64(), 0)) // a failure names its case
	for _, op := range calls {
		for _, name := range slices.Sorted(maps.Keys(faults)) {
			if op == "get Node" && name == "gone" {
				continue // it is gone, then
			}
			for _, nth := range []int{1, 3} {
				if nth > 1 && op != "patch Node" && op != "evict" {
					continue // the first call is like the others
				}
				if rnd.IntN(nightly.Count(10, 3)) > 0 && !*all {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%d", op, name, nth), func(t *testing.T) {
					inFixture(t, func(t *testing.T, w *fixture) { strike(w, on(op, nth, 0, faults[name])) })
				})
			}
		}
	}
}

// strike drains two nodes, one of them under a notice later, with a fault.
func strike(w *fixture, fault func(string) error) {
	w.node("a")
	w.node("b")
	w.node("c")
	w.app("web", "a", "a", "b")
	w.budget("x", "web", 1)
	w.releaser.keep(backend.ReplacementReady, "t1")
	p := w.pipeline(quick)
	stop := w.running(p)
	w.faulty(fault)
	for _, x := range []struct {
		node   string
		tokens []string
	}{{"a", []string{"t1"}}, {"b", nil}} {
		s, d := planned(x.node, after(x.tokens...), func(_ *policy.Node, d *policy.Drain) { d.Gentle = true })
		_ = p.Start(context.Background(), s, d)
	}
	time.Sleep(45 * time.Second)
	s, _ := planned("b", notice(time.Minute))
	p.Hurry(s)
	time.Sleep(time.Minute)
	w.reclaim("b")
	time.Sleep(75 * time.Second)
	w.faulty(nil)
	time.Sleep(100 * time.Second)
	stop()
	w.releaser.forgetUnordered(p, "t1")
	w.clean("after the fault")
	if len(p.table.status()) > 0 {
		w.t.Errorf("drains are left: %+v", p.table.status())
	}
}

// forgetUnordered drops the tokens of a drain that was refused before it was accepted: the error
// reported that, and the policy plans again.
func (g *releaser) forgetUnordered(p *Reconciler, tokens ...string) {
	if len(p.table.status()) == 0 && len(g.calls) == 0 {
		g.forget(tokens)
	}
}

// errDead is what the calls of a process answer that has been killed.
var errDead = errors.New("killed")

// A killer lets a process die at its nth call: before it is made, or after it was
// made and before the answer came.
type killer struct {
	nth  int
	late bool
	dead bool
	n    int
	last string // the call that it died at
}

func (k *killer) before(op string) error {
	if k.dead {
		return errDead
	}
	k.n++
	if k.n == k.nth {
		k.last = op
		if !k.late {
			k.dead = true
			return errDead
		}
	}
	return nil
}

func (k *killer) after(string) error {
	if k.late && k.n == k.nth {
		k.dead = true
		return errDead
	}
	return nil
}

// A crash is a point at which a process is killed, and what holds for the one that takes
// over.
type crash struct {
	urgent bool
	nth    int  // the call at which it dies
	late   bool // after the call has had its effect
	next   permit.Decision
}

// crashes returns the points of a drain, all of them or every nth.
func crashes(t *testing.T, every int) []crash {
	var all []crash
	for _, urgent := range []bool{false, true} {
		k := &killer{nth: -1}
		inFixture(t, func(_ *testing.T, w *fixture) { killedAt(w, k, crash{urgent: urgent, next: permit.Active}) })
		for nth := 1; nth <= k.n; nth++ {
			for _, late := range []bool{false, true} {
				for _, next := range []permit.Decision{permit.Active, permit.Off, permit.Stopped, permit.Gone} {
					all = append(all, crash{urgent, nth, late, next})
				}
			}
		}
	}
	some := all[:0]
	for i := range all {
		if i%every == 0 {
			some = append(some, all[i])
		}
	}
	return some
}

// TestRule11Killed kills the process at every call of a drain, before or after the call
// has had its effect, and lets another take over, which may change the pool or not: within
// a minute of its first look no node is left cordoned by us but one that the provider or
// the backend takes, and in the end nothing is left of either.
func TestRule11Killed(t *testing.T) {
	table := crashes(t, crashEvery)
	for _, c := range table {
		inFixture(t, func(t *testing.T, w *fixture) {
			if !killedAt(w, &killer{nth: c.nth, late: c.late}, c) {
				t.Errorf("call %d did not come", c.nth)
			}
		})
		if t.Failed() {
			t.Fatalf("%+v", c)
		}
	}
	t.Logf("%d points", len(table))
}

// killedAt drains node a until k kills the process, and has another settle it. It
// reports whether the process was killed before it was done.
func killedAt(w *fixture, k *killer, c crash) bool {
	ctx, where := context.Background(), func() string { return fmt.Sprintf("%+v, killed at %s", c, k.last) }
	w.node("a")
	w.node("b")
	w.app("web", "a", "a", "b")
	w.budget("x", "web", 1)
	w.attach("a")
	w.releaser.keep(backend.ReplacementReady, "t1")
	_, with := governed()
	p := w.pipeline(quick, with, func(c *Config) { c.Parallel = 1 })
	w.must(p.adopt(ctx))
	changes := []func(*policy.Node, *policy.Drain){after("t1")}
	if c.urgent {
		changes = append(changes, notice(90*time.Second))
	}
	w.begin(p, "a", changes...)
	w.fault, w.lost = k.before, k.after
	for range 80 {
		if k.dead || len(p.table.status()) == 0 {
			break
		}
		_ = p.Pass(ctx)
		time.Sleep(time.Second)
		w.tick()
	}
	w.fault, w.lost = nil, nil
	if !k.dead {
		w.clean("without a kill")
		return false
	}
	authority, with := governed()
	authority.say(c.next)
	next := w.pipeline(quick, with)
	stop := w.running(next)
	evicted := len(w.evicted())
	time.Sleep(time.Minute)
	if n := w.read("a"); n != nil && n.Spec.Unschedulable && phase(next, "a") != PhaseReleased && !c.urgent {
		w.t.Errorf("%s: the node is left cordoned, %+v", where(), next.table.status())
	}
	if c.next != permit.Active && len(w.evicted()) > evicted {
		w.t.Errorf("%s: a pod was evicted", where())
	}
	if c.urgent {
		time.Sleep(30 * time.Second)
		w.reclaim("a")
	}
	for i := 0; i < 20 && len(next.table.status()) > 0; i++ {
		time.Sleep(5 * time.Second)
	}
	stop()
	w.releaser.settleLaunched("t1")
	w.clean("%s", where())
	return true
}

// settleLaunched drops the token of a launch whose drain died before it was written down anywhere.
// Only the backend can find such a launch.
func (g *releaser) settleLaunched(token string) {
	if !slices.Contains(g.calls, "prepare a") {
		g.forget([]string{token})
	}
}

// TestRule11Recover holds that a new leader finishes what is under a notice,
// undoes the rest and says which.
func TestRule11Recover(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		for _, name := range []string{"empty", "notice", "stuck", "broken", "late", "theirs"} {
			w.node(name)
		}
		w.app("web", "stuck", "notice")
		w.faulty(on("evict", 1, 0, apierrors.NewTooManyRequests("no", 0)))
		w.releaser.notYet = 2
		p := w.pipeline()
		ctx := context.Background()
		w.begin(p, "notice", notice(2*time.Minute))
		w.begin(p, "stuck")
		w.begin(p, "empty")
		for range 2 {
			w.must(p.Pass(ctx))
		}
		taint := corev1.Taint{Key: TaintDraining, Effect: corev1.TaintEffectNoSchedule}
		w.change("broken", func(n *corev1.Node) {
			annotate(n, AnnotationDrain, "{")
			annotate(n, AnnotationCordon, "x")
			n.Spec.Unschedulable, n.Spec.Taints = true, []corev1.Taint{taint}
		})
		w.change("late", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{taint} })
		w.change("theirs", func(n *corev1.Node) { n.Spec.Unschedulable = true; annotate(n, "test/cordoned", "x") })

		next, start := w.pipeline(), time.Now()
		s, err := next.takeOver(ctx)
		w.must(err)
		if took := time.Since(start); took > time.Minute {
			t.Errorf("it took %v", took)
		}
		if want := []string{"broken", "late", "stuck"}; !slices.Equal(s.Undone, want) {
			t.Errorf("undone %v, want %v", s.Undone, want)
		}
		if want := []string{"empty: it is empty and was released", "notice: the provider reclaims it"}; !slices.Equal(s.Left, want) {
			t.Errorf("left %v, want %v", s.Left, want)
		}
		for _, name := range []string{"stuck", "broken", "late", "theirs"} {
			n := w.read(name)
			if _, ours := readState(n); ours || n.Spec.Unschedulable != (name == "theirs") {
				t.Errorf("node %s is left as %v, %+v", name, n.Annotations, n.Spec)
			}
		}
		w.faulty(nil)
		before := len(w.evicted())
		time.Sleep(urgentRetry)
		w.must(next.Pass(ctx))
		if len(w.evicted()) != before+1 {
			t.Error("the drain under a notice did not go on")
		}
	})
}

// TestRule11RecoverLater holds that an API server that is down at first, and a
// backend that fails, are waited for.
func TestRule11RecoverLater(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.app("web", "a")
		w.faulty(on("evict", 1, 0, apierrors.NewTooManyRequests("no", 0)))
		p := w.pipeline()
		ctx := context.Background()
		w.begin(p, "a")
		w.must(p.Pass(ctx))
		down, undo := 0, 0
		w.faulty(func(op string) error {
			switch op {
			case "list NodeList":
				if down++; down < 10 {
					return apierrors.NewInternalError(errors.New("down"))
				}
			case "undo":
				if undo++; undo < 3 {
					return errors.New("throttled")
				}
			}
			return nil
		})
		next := w.pipeline()
		s, err := next.takeOver(ctx)
		if err != nil || !slices.Equal(s.Undone, []string{"a"}) {
			t.Errorf("settled %+v, %v", s, err)
		}
		w.clean("after the recovery")
	})
}
