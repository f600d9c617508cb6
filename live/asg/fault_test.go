package asg

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/asg/fake"
	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/test/nightly"
)

// A swapper carries one swap out as the drain pipeline does, trying again what did
// not work, and gives up after a while.
type swapper struct {
	*fixture
	token, source string
	errs          []error
}

// run returns whether the swap ended well. It is undone otherwise.
func (x *swapper) run() bool {
	launched := false
	x.try(6, func() error {
		err := x.launch(x.token, policy.Spot)
		launched = launched || err == nil
		return err
	})
	if !launched || !x.try(6, func() error { return x.backend.Prepare(x.ctx(), x.node(x.source)) }) {
		return x.undo()
	}
	state := backend.ReplacementWaiting
	x.try(120, func() error {
		var err error
		state, err = x.backend.Replaced(x.ctx(), []string{x.token})
		if err == nil && state == backend.ReplacementWaiting {
			err = backend.ErrNotYet
		}
		return err
	})
	if state != backend.ReplacementReady || !x.try(12, func() error { return x.backend.Release(x.ctx(), x.sourceNode()) }) {
		return x.undo()
	}
	x.pass(3 * time.Minute)
	x.try(20, func() error { return x.backend.Settle(x.ctx(), []string{x.token}) })
	return true
}

// sourceNode is the node that goes, as it was read before.
func (x *swapper) sourceNode() *corev1.Node {
	n := nodeFor(fake.Instance{ID: x.source, Zone: zones[0]}, true)
	return n
}

func (x *swapper) undo() bool {
	x.try(20, func() error { return x.backend.Undo(x.ctx(), x.sourceNode(), []string{x.token}) })
	return false
}

// try calls f until it works, at most n times, five seconds apart.
func (x *swapper) try(n int, f func() error) bool {
	for range n {
		err := f()
		if err == nil {
			return true
		}
		x.errs = append(x.errs, err)
		x.pass(5 * time.Second)
	}
	return false
}

// An AWS action that is refused for a while, in any way, costs time and nothing else: no node is
// lost, no extra node is left, and no mark of Spotter stays behind.
func TestEveryErrorOfAWS(t *testing.T) {
	codes := []string{"Throttling", "InternalFailure", "lost", "ExpiredToken", "AccessDenied",
		"ScalingActivityInProgress", "ResourceContention"}
	for _, action := range slices.Concat(ReadActions, WriteActions) {
		for _, code := range codes {
			for _, times := range []int{1, 4} {
				if rand.IntN(nightly.Count(5, 1)) > 0 {
					continue // a failure names its case
				}
				t.Run(fmt.Sprintf("%s/%s/%d", action, code, times), func(t *testing.T) {
					spot := spotGroup(3)
					if action[:4] == "eks:" {
						spot = managedGroup(3)
					}
					w := newFixtureOn(t, newStore(), spot, fixedGroup(3))
					w.cloud.SetFaults(fake.Faults{Once: map[string][]string{action: slices.Repeat([]string{code}, times)}})
					x := &swapper{fixture: w, token: "t1", source: w.cloud.Group("web-od").Instances[0].ID}
					well := x.run()
					w.settles(spot.Name, x, well)
				})
			}
		}
	}
}

// settles lets all faults end and fails the test unless the groups hold what they
// should and nothing is left behind.
func (w *fixture) settles(spot string, x *swapper, well bool) {
	w.t.Helper()
	w.cloud.SetFaults(fake.Faults{})
	for range 5 {
		w.cloud.Advance(4 * time.Minute)
		w.joinNodes(w.join)
		w.must(w.backend.Cleanup(w.ctx(), nil, nil))
	}
	w.clean()
	od, sp := w.cloud.Group("web-od"), w.cloud.Group(spot)
	ended := w.cloud.Ended()
	switch {
	case well && (od.Desired != 2 || sp.Desired != 4 || !slices.Equal(ended, []string{x.source})):
		w.t.Errorf("after a swap: %d on demand and %d spot, ended %v; errors on the way: %v", od.Desired, sp.Desired, ended, x.errs)
	case !well && (od.Desired != 3 || sp.Desired > 4 || slices.Contains(ended, x.source)):
		w.t.Errorf("after a swap that was undone: %d on demand and %d spot, ended %v; errors on the way: %v", od.Desired,
			sp.Desired, ended, x.errs)
	}
	for _, g := range []fake.Group{od, sp} {
		if len(g.Instances) != g.Desired {
			w.t.Errorf("%s has %d of %d instances", g.Name, len(g.Instances), g.Desired)
		}
	}
}

// A write that is denied for good is a condition that names the action's object.
func TestDeniedForGood(t *testing.T) {
	for _, action := range WriteActions {
		spot := spotGroup(3)
		if action[:4] == "eks:" {
			spot = managedGroup(3)
		}
		w := newFixtureOn(t, newStore(), spot, fixedGroup(3))
		w.cloud.SetFaults(fake.Faults{Deny: map[string]string{action: "AccessDenied"}})
		x := &swapper{fixture: w, token: "t1", source: w.cloud.Group("web-od").Instances[0].ID}
		well := x.run()
		held := slices.ContainsFunc(x.errs, func(err error) bool { return isHeld(err, ReasonDenied) })
		if used := action != "autoscaling:UpdateAutoScalingGroup"; used && !held {
			t.Errorf("%s: the swap ended well=%v, and nothing was held for %s: %v", action, well, ReasonDenied, x.errs)
		}
		w.settles(spot.Name, x, well)
	}
}

// A group that vanishes in the middle of a swap is a reason, and what there was is
// forgotten.
func TestGroupGone(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(3))
	id := w.cloud.Group("web-od").Instances[0].ID
	w.must(w.launch("t1", policy.Spot))
	n := w.node(id)
	w.must(w.backend.Prepare(w.ctx(), n))
	w.cloud.DropGroup("web-spot")
	w.pass(time.Minute)
	if got := w.replaced("t1"); got != backend.ReplacementFailed {
		t.Errorf("the replacement is %v, want it failed", got)
	}
	w.must(w.backend.Undo(w.ctx(), n, []string{"t1"}))
	w.clean()
	wantHeld(t, w.launch("t2", policy.Spot), ReasonGone)
	w.poll()
	wantHeld(t, w.launch("t2", policy.Spot), ReasonNoGroup)
	w.cloud.DropGroup("web-od")
	w.must(w.backend.Release(w.ctx(), n)) // its instance is gone with it
}

// What Kubernetes refuses is tried again or held, and nothing is begun on it.
func TestEveryErrorOfKubernetes(t *testing.T) {
	nodes := schema.GroupResource{Resource: "nodes"}
	for name, refusal := range map[string]error{
		"conflict": apierrors.NewConflict(nodes, "n", nil), "throttled": apierrors.NewTooManyRequests("busy", 1),
		"internal": apierrors.NewInternalError(errors.New("etcd")), "timeout": apierrors.NewTimeoutError("slow", 1),
		"forbidden": apierrors.NewForbidden(nodes, "n", errors.New("rbac")),
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, spotGroup(3), fixedGroup(3))
			left := 4
			w.intercept(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
				opts ...client.PatchOption) error {
				if left--; left >= 0 {
					return refusal
				}
				return c.Patch(ctx, o, p, opts...)
			}})
			x := &swapper{fixture: w, token: "t1", source: w.cloud.Group("web-od").Instances[0].ID}
			w.settles("web-spot", x, x.run())
			if name == "forbidden" && !isHeld(x.errs[0], ReasonDenied) {
				t.Errorf("forbidden is reported as %v", x.errs[0])
			}
		})
	}
}

// Without credentials a pool says so from the first poll on, and before that that
// nothing was read.
func TestNoCredentials(t *testing.T) {
	w := newFixture(t, spotGroup(3))
	w.base.Credentials = sdk.CredentialsProviderFunc(func(context.Context) (sdk.Credentials, error) {
		return sdk.Credentials{}, errors.New("no EC2 IMDS role found")
	})
	b, err := New(w.cfg, w.base, w.kube, w.kube, w.sink)
	if err != nil {
		t.Fatal(err)
	}
	check := func(reason, message string) {
		t.Helper()
		all := b.Conditions("web")
		if len(all) != 1 || all[0].Status != metav1.ConditionFalse || all[0].Reason != reason || !strings.Contains(all[0].Message, message) {
			t.Errorf("conditions %+v, want it False for %s", all, reason)
		}
	}
	if b.groups.pools, err = b.kube.readPools(w.ctx()); err != nil {
		t.Fatal(err)
	}
	check(ReasonUnread, "not been read")
	if err := b.Poll(w.ctx()); err == nil {
		t.Error("a poll without credentials fails")
	}
	check(ReasonNoKeys, "no EC2 IMDS role found")
}

// A call that waits for another gives up at its own deadline.
func TestWaitingEndsAtTheDeadline(t *testing.T) {
	w := newFixture(t, spotGroup(3))
	id := w.cloud.Group("web-spot").Instances[0].ID
	w.poll()
	unlock, err := w.backend.groups.locks.lock(t.Context(), "web-spot")
	w.must(err)
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if err := w.backend.Prepare(ctx, w.node(id)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call during another ends with %v", err)
	}
	unlock()
	if err := w.backend.Prepare(t.Context(), w.node(id)); err != nil {
		t.Errorf("after the other: %v", err)
	}
	if n := len(w.backend.groups.locks.byName); n != 0 {
		t.Errorf("%d locks are kept that nobody uses", n)
	}
}
