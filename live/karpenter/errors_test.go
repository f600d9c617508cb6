package karpenter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/test/testenv"
)

// A strike is an error that one kind of call is answered, once.
type strike struct {
	name, verb string
	err        error
}

// strikes returns every error at every verb.
func strikes(verbs ...string) []strike {
	group := schema.GroupResource{Group: "karpenter.sh", Resource: "nodeclaims"}
	failures := map[string]error{
		"conflict": apierrors.NewConflict(group, "x", errors.New("changed")), "throttled": apierrors.NewTooManyRequests("later", 1),
		"internal": apierrors.NewInternalError(errors.New("etcd")), "timeout": context.DeadlineExceeded,
		"unauthorized": apierrors.NewUnauthorized("expired"), "forbidden": apierrors.NewForbidden(group, "x", errors.New("RBAC")),
		"no definition": &meta.NoKindMatchError{GroupKind: nodeClaimKind.GroupKind()},
	}
	var all []strike
	for _, verb := range verbs {
		for _, name := range slices.Sorted(maps.Keys(failures)) {
			all = append(all, strike{name, verb, failures[name]})
		}
	}
	return all
}

// on lets the next call of the verb be struck, and returns how many were.
func (x strike) on(b *bench) *int {
	hits := 0
	b.fail = func(verb string, _ any) error {
		if verb != x.verb || hits > 0 {
			return nil
		}
		hits++
		return x.err
	}
	return &hits
}

// TestErrorsWhileWaiting: an error is never taken for a replacement that failed, nor
// for one that is ready, and what was kept for it is given up afterwards, once.
func TestErrorsWhileWaiting(t *testing.T) {
	b, s := launchBench(t)
	if err := b.Launch(t.Context(), s, spotLaunch(s, "t1")); err != nil {
		t.Fatal(err)
	}
	for _, x := range strikes("get") {
		hits := x.on(b)
		if how, err := b.Replaced(t.Context(), []string{"t1"}); how != backend.ReplacementWaiting || !errors.Is(err, x.err) || *hits != 1 {
			t.Errorf("%s: the replacement is %v, %v", x.name, how, err)
		}
	}
	for _, x := range strikes("get", "patch") {
		for name, end := range map[string]func(*bench) error{
			"Settle": func(b *bench) error { return b.Settle(t.Context(), []string{"t1"}) },
			"Undo": func(b *bench) error {
				gone := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gone"}}
				return b.Undo(t.Context(), gone, []string{"t1"})
			},
		} {
			if name == "Undo" && x.verb == "get" {
				continue // it settles
			}
			b, s := launchBench(t)
			if err := b.Launch(t.Context(), s, spotLaunch(s, "t1")); err != nil {
				t.Fatal(err)
			}
			hits := x.on(b)
			if err := end(b); !errors.Is(err, x.err) || *hits != 1 {
				t.Errorf("%s, %s at %s: error %v after %d hits", name, x.name, x.verb, err, *hits)
			}
			for range 2 {
				if err := end(b); err != nil {
					t.Errorf("%s after %s at %s: %v", name, x.name, x.verb, err)
				}
			}
			if a := b.claim(ClaimName("t1")).Annotations; a[karpv1.DoNotDisruptAnnotationKey] != "" || a[ProtectedAnnotation] != "" {
				t.Errorf("%s after %s at %s: the claim is protected still: %v", name, x.name, x.verb, a)
			}
		}
	}
}

// TestErrorsWhileTending: whatever call of Tend is struck, the next one ends a launch
// that got no machine, and deletes nothing else.
func TestErrorsWhileTending(t *testing.T) {
	testenv.Start(t, testOptions()) // without it every case is skipped, and nothing is proved
	used := map[string]bool{}
	for _, x := range strikes("get", "list", "delete", "patch", "apply") {
		t.Run(fmt.Sprintf("%s/%s", x.verb, x.name), func(t *testing.T) {
			b, s := launchBench(t)
			_, node := b.karpenterNode("n", "web-spot", s, market(s, 0, 0, policy.Spot))
			if err := b.Launch(t.Context(), s, spotLaunch(s, "t1")); err != nil {
				t.Fatal(err)
			}
			b.clock.Step(time.Hour)
			s.Now = b.now()
			hits := x.on(b)
			err := b.Tend(t.Context(), s)
			if *hits == 0 {
				return
			}
			used[x.verb] = true
			var held *backend.Held
			if err == nil && x.name != "no definition" || err != nil && !errors.Is(err, x.err) && !errors.As(err, &held) {
				t.Errorf("it says %v", err)
			}
			b.fail = nil
			for range 2 {
				if err := b.Tend(t.Context(), s); err != nil {
					t.Errorf("afterwards: %v", err)
				}
			}
			if b.claim(ClaimName("t1")) != nil {
				t.Error("the launch without a machine is there still")
			}
			again(b, node)
			if b.nodePool("web-spot") == nil || b.nodePool("web-od") == nil || b.claim("n") == nil {
				t.Error("a NodePool or the claim of a node is gone")
			}
		})
	}
	for _, verb := range []string{"list", "delete"} {
		if !used[verb] {
			t.Errorf("Tend makes no %s, so that this proves nothing", verb)
		}
	}
}

// TestErrorsOfALaunch: without the definition a launch is held and says why, and it
// succeeds once that is there.
func TestErrorsOfALaunch(t *testing.T) {
	for _, x := range strikes("list", "create", "get") {
		if x.name != "no definition" {
			continue
		}
		b, s := launchBench(t)
		hits := x.on(b)
		var held *backend.Held
		if err := b.Launch(t.Context(), s, spotLaunch(s, "t1")); *hits != 1 || err == nil || !errors.Is(err, x.err) && !errors.As(err, &held) {
			t.Errorf("%s at %s: %v", x.name, x.verb, err)
		}
		b.fail = nil
		if err := b.Launch(t.Context(), s, spotLaunch(s, "t1")); err != nil {
			t.Errorf("after %s at %s: %v", x.name, x.verb, err)
		}
	}
}
