package rackspace_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/rackspace/fake"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/nightly"
)

var all = flag.Bool("all", false, "strike with every error, not with some at random")

// A swap replaces the only node of a fixture as the drain pipeline does, trying again
// what did not work, and takes it back after a while.
type swap struct {
	*fixture
	node     *corev1.Node
	reported []error
}

// try calls f until it works, at most n times, a round apart.
func (x *swap) try(n int, f func() error) bool {
	for range n {
		err := f()
		if err == nil {
			return true
		}
		x.reported = append(x.reported, err)
		x.run(x.config.Poll)
	}
	return false
}

func (x *swap) replaced() error {
	switch how, err := x.b.Replaced(x.ctx, []string{"t2"}); {
	case err != nil:
		return err
	case how != backend.ReplacementReady:
		return backend.ErrNotYet
	}
	return nil
}

func (x *swap) swap() {
	launched := x.try(8, func() error { return x.launch("t2", 40_000, "gp.vs1.medium-iad") })
	if launched && x.try(60, x.replaced) && x.try(8, func() error { return x.b.Prepare(x.ctx, x.node) }) &&
		x.try(8, func() error { return x.b.Release(x.ctx, x.node) }) {
		x.try(20, func() error { return x.b.Settle(x.ctx, []string{"t2"}) })
		return
	}
	x.try(30, func() error { return x.b.Undo(x.ctx, x.node, []string{"t2"}) })
}

// struck plays a swap while f strikes, which a call hits a number of times from when
// the first node is there, and fails the test unless all is in order once it is calm:
// one node or two, each of them ordered, known and paid for once, none being drained.
func struck(t *testing.T, strike func(*fixture)) {
	w := newFixture(t)
	w.mustLaunch("t1", 40_000, "gp.vs1.medium-iad")
	w.mustRun(9 * time.Minute)
	x := &swap{fixture: w, node: w.node(w.nodes()[0])}
	strike(w)
	x.swap()
	w.kube = nil
	w.server.SetFaults(fake.Faults{})
	w.run(30 * time.Minute)
	nodes, ledger, pools := w.nodes(), w.ledger(), w.server.Pools()
	if len(nodes) < 1 || len(nodes) > 2 || len(ledger) != len(nodes) || len(pools) != len(nodes) || w.sink.Alive() != len(nodes) {
		t.Errorf("in the end there are nodes %v, node pools %v, %d entries and machines %v; reported on the way: %v",
			nodes, pools, len(ledger), keys(w.sink.Machines), x.reported)
	}
	for i := range ledger {
		if p := ledger[i].Status.Phase; p != v1alpha1.SpotNodeRunning {
			t.Errorf("SpotNode %s is %s; reported on the way: %v", ledger[i].Name, p, x.reported)
		}
	}
}

// drawn reports whether a case is run: at night one in three.
func drawn() bool { return *all || rand.IntN(nightly.Count(16, 3)) == 0 }

// Any error of the Rackspace API at any call costs time and nothing else: no node is lost, none is
// paid for that is unknown, and nothing is left half done.
func TestEveryErrorOfRackspace(t *testing.T) {
	ops := map[string]func(*http.Request) bool{
		"login":   func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/oauth/") },
		"classes": func(r *http.Request) bool { return strings.Contains(r.URL.Path, "serverclasses") },
		"list": func(r *http.Request) bool {
			return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "nodepools")
		},
		"get": func(r *http.Request) bool {
			return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "nodepools/")
		},
		"order": func(r *http.Request) bool {
			return r.Method == http.MethodPost && !strings.HasPrefix(r.URL.Path, "/oauth/")
		},
		"delete": func(r *http.Request) bool { return r.Method == http.MethodDelete },
	}
	for _, op := range slices.Sorted(maps.Keys(ops)) {
		for _, status := range []int{401, 403, 404, 409, 429, 500, 503} {
			if status == 404 && op == "get" {
				continue // what the API says not to have is taken to be gone: nothing else shows it
			}
			for _, times := range []int{1, 12} {
				if !drawn() {
					continue
				}
				t.Run(fmt.Sprintf("%s/%d/%d", op, status, times), func(t *testing.T) {
					struck(t, func(w *fixture) {
						left := times
						w.server.SetFaults(fake.Faults{Hook: func(r *http.Request) (int, string) {
							if !ops[op](r) || left == 0 {
								return 0, ""
							}
							left--
							return status, `{"kind":"Status","message":"struck"}`
						}})
					})
				})
			}
		}
	}
}

// Every error of the API server at every kind of call, the same.
func TestEveryErrorOfKubernetes(t *testing.T) {
	group := schema.GroupResource{Group: "spotter.dev", Resource: "spotnodes"}
	failures := map[string]error{
		"conflict": apierrors.NewConflict(group, "x", errors.New("changed")), "throttled": apierrors.NewTooManyRequests("later", 1),
		"internal": apierrors.NewInternalError(errors.New("etcd")), "timeout": context.DeadlineExceeded,
		"unauthorized": apierrors.NewUnauthorized("expired"), "forbidden": forbidden(),
		"no definition": &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "spotter.dev", Kind: "SpotNode"}},
	}
	for _, verb := range []string{"get", "list", "create", "delete", "patch", "patch/status"} {
		for _, name := range slices.Sorted(maps.Keys(failures)) {
			for _, times := range []int{1, 12} {
				if !drawn() {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%d", verb, name, times), func(t *testing.T) {
					struck(t, func(w *fixture) {
						left := times
						w.kube = func(v string, _ client.Object) error {
							if v != verb || left == 0 {
								return nil
							}
							left--
							return failures[name]
						}
					})
				})
			}
		}
	}
}
