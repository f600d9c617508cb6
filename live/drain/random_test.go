package drain

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/test/testenv"
)

// TestRandomDrains runs random schedules: drains with and without replacements, notices, budgets,
// users, faults and kills. At the end of each no mark of Spotter is left.
func TestRandomDrains(t *testing.T) {
	first := testenv.Seed(t)
	for i := range uint64(randomDrains) {
		seed := first + i
		inFixture(t, func(t *testing.T, w *fixture) { playRandom(w, rand.New(rand.NewPCG(seed, 0))) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// A play is one random schedule.
type play struct {
	*fixture
	rnd    *rand.Rand
	p      *Reconciler
	stop   func()
	tokens int
	taken  map[string]time.Time // when the provider takes a node
}

func playRandom(w *fixture, rnd *rand.Rand) {
	x := &play{fixture: w, rnd: rnd, taken: map[string]time.Time{}}
	x.furnish()
	x.restart()
	chance := 0.1 * rnd.Float64()
	faults := rand.New(rand.NewPCG(rnd.Uint64(), 1))
	w.faulty(func(string) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if faults.Float64() < chance {
			return apierrors.NewInternalError(errors.New("chance"))
		}
		return nil
	})
	for range 12 {
		x.move()
		time.Sleep(time.Duration(rnd.IntN(15000)) * time.Millisecond)
		x.reclaimDue()
	}
	w.faulty(nil)
	for i := 0; i < 24 && (len(x.p.table.status()) > 0 || len(x.taken) > 0); i++ { // all limits together
		time.Sleep(10 * time.Second)
		x.reclaimDue()
	}
	x.stop()
	if left := x.p.table.status(); len(left) > 0 {
		w.t.Errorf("drains are left: %+v", left)
	}
	w.releaser.mu.Lock()
	clear(w.releaser.kept) // of orders that died with their process
	w.releaser.mu.Unlock()
	w.clean("at the end")
}

// furnish makes nodes and workloads.
func (x *play) furnish() {
	nodes := []string{"a", "b", "c", "d"}
	for _, n := range nodes {
		x.node(n)
	}
	for i := range 1 + x.rnd.IntN(3) {
		name := fmt.Sprintf("app%d", i)
		var on []string
		for range 1 + x.rnd.IntN(4) {
			on = append(on, nodes[x.rnd.IntN(3)])
		}
		x.app(name, on...)
		for b := range x.rnd.IntN(3) {
			if b == 0 || x.rnd.IntN(4) == 0 {
				x.budget(fmt.Sprintf("%s-%d", name, b), name, int32(x.rnd.IntN(3)))
			}
		}
	}
	if x.rnd.IntN(4) == 0 {
		x.pod("", "a")
	}
	if x.rnd.IntN(4) == 0 {
		x.pod("slow", "b", func(p *corev1.Pod) { p.Annotations[stopsAfter] = "25s" })
	}
}

// move does one thing at random.
func (x *play) move() {
	name := string(rune('a' + x.rnd.IntN(3)))
	n := x.read(name)
	if n == nil {
		return
	}
	switch x.rnd.IntN(8) {
	case 0:
		x.stop()
		x.restart()
	case 1:
		if _, known := x.taken[name]; !known {
			x.taken[name] = time.Now().Add(time.Duration(20+x.rnd.IntN(100)) * time.Second)
			s, _ := planned(name, func(n *policy.Node, _ *policy.Drain) { n.ReclaimAt = policy.TimeOf(x.taken[name]) })
			x.p.Hurry(s)
		}
	case 2:
		x.change(name, func(n *corev1.Node) { n.Spec.Unschedulable = false; delete(n.Annotations, "test/cordoned") })
	case 3:
		if !n.Spec.Unschedulable && !tainted(n) {
			x.change(name, func(n *corev1.Node) { n.Spec.Unschedulable = true; annotate(n, "test/cordoned", "x") })
		}
	default:
		x.drain(name)
	}
}

func (x *play) drain(name string) {
	s, d := planned(name)
	for range x.rnd.IntN(3) {
		x.tokens++
		token := fmt.Sprintf("t%d", x.tokens)
		x.releaser.keep(backend.Replacement(x.rnd.IntN(3)), token)
		d.After = append(d.After, token)
	}
	d.Gentle = x.rnd.IntN(2) == 0
	if at, known := x.taken[name]; known {
		s.Nodes[0].ReclaimAt = policy.TimeOf(at)
	}
	_ = x.p.Start(context.Background(), s, d)
}

// restart has a new process take over.
func (x *play) restart() {
	x.p = x.pipeline(quick)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, _ = x.p.takeOver(ctx)
	x.stop = x.running(x.p)
}

// reclaimDue removes the nodes whose time has come; one of four is spared.
func (x *play) reclaimDue() {
	for _, name := range slices.Sorted(maps.Keys(x.taken)) {
		if time.Now().After(x.taken[name]) {
			if delete(x.taken, name); x.rnd.IntN(4) > 0 {
				x.reclaim(name)
			}
		}
	}
}
