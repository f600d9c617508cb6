package drain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
)

// forge writes the annotation of a drain as another actor would.
func (w *fixture) forge(node string, s state) {
	w.t.Helper()
	text, err := json.Marshal(s)
	w.must(err)
	w.change(node, func(n *corev1.Node) { annotate(n, AnnotationDrain, string(text)) })
}

// writtenPhases are those that a node carries, and some that no version writes.
var writtenPhases = []Phase{
	PhasePreparing, PhaseEvicting, PhaseReleasing, PhaseUndoing, PhaseReleased, PhaseChecking, PhaseDetaching, "later", "",
}

// TestForgedMarks: an annotation that this controller did not write ends no node, evicts no
// pod, uncordons no node that another actor cordoned, and gives up nothing that is kept for
// another drain; it is removed.
func TestForgedMarks(t *testing.T) {
	for _, at := range writtenPhases {
		for _, urgent := range []bool{false, true} {
			t.Run(fmt.Sprintf("%q/urgent %t", at, urgent), func(t *testing.T) {
				inFixture(t, func(t *testing.T, w *fixture) {
					s := state{Phase: at, Pool: "web", Provisioner: policy.ProvisionerKarpenter, Since: policy.TimeOf(time.Now()), After: []string{"t1"}}
					if urgent {
						s.ReclaimAt = policy.TimeOf(time.Now().Add(2 * time.Minute))
					}
					_, with := governed()
					w.forgedNodes(s)
					stop := w.running(w.pipeline(with))
					time.Sleep(time.Minute)
					stop()
					w.untouched()
				})
			})
		}
	}
}

// forgedNodes makes nodes with a forged mark: one with a pod, an empty one, and one that a
// person has cordoned, which also carries the forged mark of a cordon.
func (w *fixture) forgedNodes(s state) {
	w.releaser.keep(backend.ReplacementReady, "t1")
	for _, name := range []string{"busy", "empty", "cordoned"} {
		w.node(name)
	}
	w.app("web", "busy", "busy")
	w.change("cordoned", func(n *corev1.Node) {
		n.Spec.Unschedulable = true
		annotate(n, "test/cordoned", "x")
		annotate(n, AnnotationCordon, "forged")
	})
	for _, name := range []string{"busy", "empty", "cordoned"} {
		w.forge(name, s)
	}
}

// untouched fails the test if anything was done because of a forged mark but to remove it.
func (w *fixture) untouched() {
	w.t.Helper()
	if len(w.evicted()) > 0 {
		w.t.Errorf("evicted %v", w.evicted())
	}
	if calls := w.releaser.called(); len(calls) > 0 {
		w.t.Errorf("the backend was asked for %v", calls)
	}
	if !w.releaser.kept["t1"] {
		w.t.Error("what is kept for another drain was given up")
	}
	delete(w.releaser.kept, "t1")
	if n := w.read("cordoned"); n == nil || !n.Spec.Unschedulable {
		w.t.Error("the cordon of another actor was removed")
	}
	w.clean("after forged marks")
}

// TestForgedMidDrain: an annotation that another actor changes while a drain runs, in any
// phase to any phase, does not move the drain on: by choice it is undone, and under a notice
// its marks are written again.
func TestForgedMidDrain(t *testing.T) {
	for _, at := range []Phase{PhaseWaiting, PhaseEvicting, PhaseDetaching, PhaseReleasing} {
		for _, to := range writtenPhases {
			for _, urgent := range []bool{false, true} {
				if urgent && at == PhaseWaiting {
					continue // it does not wait
				}
				t.Run(fmt.Sprintf("%s/%q/urgent %t", at, to, urgent), func(t *testing.T) {
					inFixture(t, func(_ *testing.T, w *fixture) { w.forgedMid(at, to, urgent) })
				})
			}
		}
	}
}

func (w *fixture) forgedMid(at, to Phase, urgent bool) {
	_, with := governed()
	w.node("a")
	w.node("b")
	w.app("web", "a", "a", "b")
	w.releaser.keep(backend.ReplacementReady, "t1")
	w.releaser.keep(backend.ReplacementReady, "other")
	l := &log{}
	p := w.pipeline(quick, with, withLog(l))
	w.must(p.adopt(w.t.Context()))
	changes := []func(*policy.Node, *policy.Drain){after("t1")}
	if urgent {
		changes = append(changes, notice(5*time.Minute))
	}
	w.hinder(at)
	w.begin(p, "a", changes...)
	w.reach(p, "a", at)
	pods := len(w.podsOn("a"))
	w.forge("a", state{Phase: to, Pool: "other", After: []string{"other"}})
	stop := w.running(p)
	time.Sleep(8 * time.Second)
	var s state
	if n := w.read("a"); n != nil {
		s, _ = readState(n)
	}
	released := slices.Contains(w.releaser.called()[1:], "release a") && at != PhaseReleasing
	if pods > 0 && released {
		w.t.Errorf("the node was given back with %d pods", pods)
	}
	if urgent && (s.Pool != "web" || s.ReclaimAt == 0) {
		w.t.Errorf("under the notice the node carries %+v", s)
	}
	if !urgent && (len(l.results) != 1 || l.results[0].Reason != "TakenOver") {
		w.t.Errorf("it ended as %+v, and stands at %+v", l.results, p.table.status())
	}
	if !w.releaser.kept["other"] {
		w.t.Error("what is kept for another drain was given up")
	}
	w.faulty(nil)
	stop()
}

// hinder keeps a drain from going further than a phase.
func (w *fixture) hinder(at Phase) {
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
}

func (w *fixture) podsOn(node string) []corev1.Pod {
	return slices.DeleteFunc(w.pods(), func(p corev1.Pod) bool { return p.Spec.NodeName != node })
}

// TestReleasingIsLookedAtAgain: a node in releasing is released only while no pod is on it, both by
// the process that drained it and by its successor.
func TestReleasingIsLookedAtAgain(t *testing.T) {
	open := func(n *corev1.Node) { n.Spec.Unschedulable = false }
	for _, x := range []struct {
		name    string
		restart bool
		person  func(*corev1.Node) // what a person does meanwhile; nil is nothing
		pods    bool
	}{
		{"a restart, uncordoned with pods", true, open, true},
		{"a restart, uncordoned without pods", true, open, false},
		{"a restart, a pod that tolerates all", true, nil, true},
		{"the same process, a pod that tolerates all", false, nil, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			inFixture(t, func(t *testing.T, w *fixture) {
				w.node("a")
				w.node("b")
				w.releaser.notYet = 1000
				p := w.pipeline()
				w.begin(p, "a")
				w.reach(p, "a", PhaseReleasing)
				before := len(w.releaser.called())
				if x.person != nil {
					w.change("a", x.person)
				}
				if x.pods {
					w.pod("web", "a", func(p *corev1.Pod) {
						p.Annotations[stopsAfter] = "100h"
						grace := int64(1 << 20)
						p.Spec.TerminationGracePeriodSeconds = &grace
					})
				}
				if x.restart {
					p = w.pipeline()
				}
				w.releaser.notYet = 0
				stop := w.running(p)
				time.Sleep(2 * time.Minute)
				stop()
				for _, call := range w.releaser.called()[before:] {
					if strings.HasPrefix(call, "release") {
						t.Errorf("the backend was asked for %q", call)
					}
				}
				w.mu.Lock()
				for _, b := range w.breaches {
					t.Error(b)
				}
				w.mu.Unlock()
				if n := w.read("a"); n == nil || x.restart && n.Spec.Unschedulable {
					t.Errorf("the node is left as %+v", n)
				}
			})
		})
	}
}

// TestUnknownPhase: a state of a later version is undone, whatever has become of its node,
// and ends no process.
func TestUnknownPhase(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.forge("a", state{Phase: "later", Pool: "web", ReclaimAt: policy.TimeOf(time.Now().Add(time.Minute))})
		authority, with := governed()
		authority.say(permit.Stopped)
		p := w.pipeline(with)
		_, err := p.takeOver(t.Context())
		w.must(err)
		w.clean("after a later version")
	})
}

// TestSealCovers: a sealed state is believed on its own node, as it was written and by whoever
// has the key, and nowhere else.
func TestSealCovers(t *testing.T) {
	x := newSealer()
	whole := state{
		Phase: PhaseReleasing, Pool: "web", Provisioner: 1, Why: policy.ReasonCheaper, Text: "x", Since: 1, Deadline: 2, ReclaimAt: 3,
		After: []string{"t1"}, Gentle: true, Failure: "y", AskedAt: 4,
	}
	marked := func(change func(*corev1.Node, *state)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a"}}
		x.write(n, whole)
		s, _ := readState(n)
		change(n, &s)
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		annotate(n, AnnotationDrain, string(text))
		return n
	}
	if s, _, sealed := x.read(marked(func(*corev1.Node, *state) {})); !sealed || s.Pool != "web" || s.AskedAt != 4 {
		t.Errorf("what was written is read as %+v, sealed %t", s, sealed)
	}
	for name, change := range map[string]func(*corev1.Node, *state){
		"node":        func(n *corev1.Node, _ *state) { n.UID = "b" },
		"phase":       func(_ *corev1.Node, s *state) { s.Phase = PhaseEvicting },
		"pool":        func(_ *corev1.Node, s *state) { s.Pool = "other" },
		"provisioner": func(_ *corev1.Node, s *state) { s.Provisioner++ },
		"since":       func(_ *corev1.Node, s *state) { s.Since++ },
		"deadline":    func(_ *corev1.Node, s *state) { s.Deadline++ },
		"reclaim":     func(_ *corev1.Node, s *state) { s.ReclaimAt = 0 },
		"after":       func(_ *corev1.Node, s *state) { s.After = append(s.After, "t2") },
		"gentle":      func(_ *corev1.Node, s *state) { s.Gentle = false },
		"asked":       func(_ *corev1.Node, s *state) { s.AskedAt = 0 },
		"seal":        func(_ *corev1.Node, s *state) { s.Seal = "" },
	} {
		if s, is, sealed := x.read(marked(change)); sealed || !is || s.Phase != PhaseUndoing || s.Pool != "" || s.After != nil {
			t.Errorf("another %s is read as %+v, sealed %t", name, s, sealed)
		}
	}
	if _, _, sealed := newSealer().read(marked(func(*corev1.Node, *state) {})); sealed {
		t.Error("a process without the key believes the mark")
	}
	whole.Phase = "later"
	if _, _, sealed := x.read(marked(func(*corev1.Node, *state) {})); sealed {
		t.Error("a phase that no version writes is believed")
	}
}

// TestOldMarkAgain: the mark of a drain that is over does not move another drain of its node.
func TestOldMarkAgain(t *testing.T) {
	inFixture(t, func(t *testing.T, w *fixture) {
		w.node("a")
		w.node("b")
		w.releaser.notYet = 1000
		authority, with := governed()
		p := w.pipeline(with)
		w.must(p.adopt(t.Context()))
		w.begin(p, "a")
		w.reach(p, "a", PhaseReleasing)
		old := w.read("a").Annotations[AnnotationDrain]
		authority.say(permit.Stopped)
		time.Sleep(p.cfg.ReleaseMax)
		_, err := p.settled(t.Context())
		w.must(err)
		authority.say(permit.Active)
		w.releaser.notYet = 0
		w.app("web", "a", "a")
		w.hinder(PhaseEvicting)
		w.begin(p, "a")
		w.reach(p, "a", PhaseEvicting)
		w.change("a", func(n *corev1.Node) { annotate(n, AnnotationDrain, old) })
		w.must(p.Pass(t.Context()))
		if got := phase(p, "a"); got == PhaseReleasing || got == PhaseReleased {
			t.Errorf("the drain is %s", got)
		}
		w.clean("after the old mark")
	})
}
