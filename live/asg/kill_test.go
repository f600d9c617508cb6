package asg

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/asg/fake"
	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/test/nightly"
)

var errKilled = errors.New("the process is dead")

// The process dies before or after one of the requests of a swap, to AWS or to Kubernetes, at
// points drawn by seed. The next leader either resumes the drain, if it had been written down, or
// knows nothing of it. No replacement is duplicated, and no protection, mark or tag stays.
func TestKilledAtAnyPoint(t *testing.T) {
	points := nightly.Count(30, 100)
	late := 0
	for seed := uint64(1); seed <= uint64(points); seed++ {
		key := chance.Stream(seed, "kill")
		w := newFixtureOn(t, newStore(), spotGroup(3), fixedGroup(3))
		k := &killer{at: 1 + key.At1(1).IntN(34), after: key.At1(2).IntN(2) == 0}
		k.guard(w)
		x := &swapper{fixture: w, token: "t1", source: w.cloud.Group("web-od").Instances[0].ID}
		phase := k.swap(x)
		if !k.dead {
			late++
		}
		k.free = true
		w.restart()
		w.pass(10 * time.Second)
		well := recoverSwap(x, phase, key.At1(3).IntN(2) == 0)
		w.settles("web-spot", x, well)
		if t.Failed() {
			t.Fatalf("killed at request %d (after it was carried out: %v) in phase %d; seed %d", k.at, k.after, phase, seed)
		}
	}
	if late > points/3 {
		t.Errorf("%d of %d swaps ended before they could be killed", late, points)
	}
}

// A killer breaks all requests from a certain one on.
type killer struct {
	at, n      int
	after      bool // the request at which it dies is carried out
	dead, free bool
}

// gate returns whether a request is carried out, and what the caller learns.
func (k *killer) gate() (bool, error) {
	if k.free {
		return true, nil
	}
	if k.dead {
		return false, errKilled
	}
	if k.n++; k.n < k.at {
		return true, nil
	}
	k.dead = true
	return k.after, errKilled
}

func (k *killer) guard(w *fixture) {
	inner := w.kube
	run := func(f func() error) error {
		ok, reported := k.gate()
		if !ok {
			return reported
		}
		return errors.Join(reported, f())
	}
	dead := interceptor.NewClient(inner, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return run(func() error { return c.Patch(ctx, o, p, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			return run(func() error { return c.List(ctx, l, opts...) })
		},
	})
	w.cfg.AttemptsMax = 1
	b, err := New(w.cfg, w.base, dead, dead, w.sink)
	w.must(err)
	w.backend = b
	w.cloud.SetBefore(func(c fake.Call) error {
		ok, reported := k.gate()
		if ok && reported != nil {
			w.cloud.LoseNext() // carried out, but the answer is lost
			return nil         //nolint:nilerr // the answer is what is lost
		}
		return reported
	})
}

// The phases of a swap at which it may be killed.
const (
	phaseLaunch = iota
	phaseDrain  // the drain has been written down
	phaseReleased
)

// swap goes through a swap until its process is dead, and returns how far its
// drain had been written down.
func (k *killer) swap(x *swapper) int {
	if err := x.launch(x.token, policy.Spot); err != nil || k.dead {
		return phaseLaunch
	}
	n := x.node(x.source)
	if err := x.backend.Prepare(x.ctx(), n); err != nil || k.dead {
		return phaseDrain
	}
	for range 60 {
		x.pass(5 * time.Second)
		r, err := x.backend.Replaced(x.ctx(), []string{x.token})
		if k.dead {
			return phaseDrain
		}
		if err == nil && r == backend.ReplacementReady {
			break
		}
	}
	if err := x.backend.Release(x.ctx(), n); err != nil || k.dead {
		return phaseReleased
	}
	x.pass(2 * time.Minute)
	_ = x.backend.Settle(x.ctx(), []string{x.token})
	return phaseReleased
}

// recoverSwap does what the next leader does: it undoes, resumes or cleans up.
func recoverSwap(x *swapper, phase int, goOn bool) (well bool) {
	switch {
	case phase == phaseLaunch:
		return false
	case phase == phaseReleased:
		// The pods are gone from the node, so it is released.
		if x.cloud.Has("web-od") && slices.ContainsFunc(x.cloud.Group("web-od").Instances,
			func(i fake.Instance) bool { return i.ID == x.source }) {
			x.try(12, func() error { return x.backend.Release(x.ctx(), x.sourceNode()) })
		}
		x.pass(2 * time.Minute)
		x.try(12, func() error { return x.backend.Settle(x.ctx(), []string{x.token}) })
		return true
	case goOn:
		return x.run()
	}
	return x.undo()
}
