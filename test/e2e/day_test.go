package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// TestDay plays a compressed day on the real stack: in shadow first, and then active. In
// the run Interrupted Karpenter receives the provider's warnings and drains the nodes
// itself, as Karpenter for AWS does; in the run Warned only Spotter receives them.
func TestDay(t *testing.T) {
	if os.Getenv(wanted) == "" {
		t.Skipf("a compressed day takes minutes: `make e2e` plays it, by %s=1", wanted)
	}
	for name, interrupts := range map[string]bool{"Interrupted": true, "Warned": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each has a cluster of its own, and waits most of the time
			w := newFixture(t, interrupts)
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("repeat with: make e2e E2E='-run ^%s$' %s=%d %s=%d", strings.ReplaceAll(t.Name(), "/", "$/^"),
						testenv.SeedVariable, w.seed, factor, w.market.k)
				}
			})
			w.play(t)
		})
	}
}

// play goes through the day. Its hours are when something happens at the earliest.
func (w *fixture) play(t *testing.T) {
	w.own(t, "own")
	w.deploy(t, "own", 2)
	w.shadow(t)
	w.install(t, "active")
	w.research(t)
	w.runs(t, "default", shop, 4)
	w.runs(t, "default", batch, 5)
	w.shares(t, shop, 0.5, 0.5)
	w.shares(t, batch, 1, 1)
	w.won(t)
	w.calm(t)

	w.reach(t, 5)
	w.dearer(t)
	w.reach(t, 8)
	w.squeeze(t)
	w.reach(t, 12)
	w.advice(t)
	w.reach(t, 14)
	w.taken(t)
	w.overBudget(t)
	w.reach(t, 16)
	w.outbid(t)

	w.reach(t, 23)
	w.runs(t, "default", shop, 4)
	w.runs(t, "default", batch, grown)
	w.runs(t, "default", "own", 2)
	w.shares(t, shop, 0.5, 0.5)
	w.won(t)
	w.calm(t)
	w.reach(t, 24)
	w.content(t)
	w.leave(t)
	w.billed(t)
	w.untouched(t)
}

// shadowWrites is what may be written in shadow: rule 13 of the live side.
var shadowWrites = regexp.MustCompile(`^\w+ (leases spotter-leader|configmaps spotter-(memory|ledger)-\S*|(capacitypools|gpubudgets|spotnodes)/status \S+|events \S*|(tokenreviews|subjectaccessreviews) \S*)$`)

// shadow installs the chart as it is by default, and sees that it decides and touches
// nothing.
func (w *fixture) shadow(t *testing.T) {
	t.Helper()
	mark := w.env.Mark()
	w.install(t, "shadow")
	w.pool(t, shop, byKarpenter, region, pairs, &v1alpha1.PolicyRef{Name: "static", Parameters: map[string]string{"share": "0.5"}})
	w.pool(t, batch, byKarpenter, region, soldTypes, nil)
	w.token(t)
	w.pool(t, tasks, byAuction, auctionRegion, boughtClasses, nil)
	w.deploy(t, shop, 4)
	w.deploy(t, batch, 5)
	w.deploy(t, tasks, bids)
	w.runs(t, "default", "own", 2)
	for _, name := range []string{shop, batch, tasks} {
		w.until(t, "Spotter decides for "+name+" in shadow", func(ctx context.Context) error {
			var p v1alpha1.CapacityPool
			if err := w.client.Get(ctx, client.ObjectKey{Name: name}, &p); err != nil {
				return err
			}
			if p.Status.Mode != v1alpha1.ModeShadow || p.Status.LastDecisionID == "" ||
				!meta.IsStatusConditionTrue(p.Status.Conditions, live.ConditionReady) {
				return fmt.Errorf("status %+v", p.Status)
			}
			return nil
		})
	}
	w.reach(t, 2)
	w.stop(t)
	for what := range written(w.ours(t, mark)) {
		if !shadowWrites.MatchString(what) {
			t.Errorf("in shadow it wrote: %s", what)
		}
	}
	if sent := w.auction.writes(); len(sent) > 0 {
		t.Errorf("in shadow it asked of the auction: %v", sent)
	}
	var pools karpv1.NodePoolList
	if err := w.client.List(t.Context(), &pools); err != nil || len(pools.Items) != 1 {
		t.Errorf("in shadow there are %d NodePools, want the users' own (%v)", len(pools.Items), err)
	}
}

// squeeze makes Spot capacity unavailable while more pods arrive: they run on demand.
func (w *fixture) squeeze(t *testing.T) {
	t.Helper()
	if err := w.karpenter.Refuse("*/*/spot"); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s  no spot is to be had any more", w.market.clock())
	before := w.spot(t, batch)
	w.scale(t, batch, grown)
	w.runs(t, "default", batch, grown)
	h, err := w.holds(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.spot) == len(h.nodes) {
		t.Errorf("all %d nodes of %s are spot, of which none was to be had", len(h.nodes), batch)
	}
	for _, name := range h.spot {
		if !slices.Contains(before, name) {
			t.Errorf("the spot node %s came while none was to be had", name)
		}
	}
	w.reach(t, 11)
	if err := w.karpenter.Refuse(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s  spot is to be had again", w.market.clock())
}

// spot returns the Spot nodes of a pool.
func (w *fixture) spot(t *testing.T, pool string) []string {
	t.Helper()
	h, err := w.holds(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	return h.spot
}

// grown is how many pods batch has from the capacity shortage on: more than fit next to the
// five before, each of which may be alone on a node that holds two.
const grown = 11

// spotNode waits for a Spot node of a pool, and returns one.
func (w *fixture) spotNode(t *testing.T, pool string) string {
	t.Helper()
	var spot []string
	w.until(t, pool+" has spot nodes", func(ctx context.Context) error {
		h, err := w.holds(ctx, pool)
		if spot = h.spot; err == nil && len(spot) == 0 {
			err = errors.New("it has none")
		}
		return err
	})
	return spot[w.draw.IntN(len(spot))]
}

// advice recommends to leave a node, which Spotter is seen to have heard of. What it
// makes of that is the policy's.
func (w *fixture) advice(t *testing.T) {
	t.Helper()
	before := w.metric(t, `spotter_wakes_total{reason="rebalance"}`)
	w.recommend(t, w.spotNode(t, batch))
	last := time.Now()
	w.until(t, "Spotter has heard of the recommendation", func(context.Context) error {
		if len(w.revived) > 0 && time.Since(last) > again {
			before, last = 0, time.Now() // it came before the first step of one that was started again
			w.recommend(t, w.spotNode(t, batch))
		}
		if now := w.metric(t, `spotter_wakes_total{reason="rebalance"}`); now <= before {
			return fmt.Errorf("woken %v times by one, as before", now)
		}
		return nil
	})
	w.runs(t, "default", batch, grown)
	w.calm(t)
}

// again is how long a controller that was started again is waited for before a second
// recommendation is given: the lease of the one before must have ended.
const again = 45 * time.Second

// taken has the provider take a Spot node of each pool after a notice. In the end their
// pods run elsewhere.
func (w *fixture) taken(t *testing.T) {
	t.Helper()
	for pool, pods := range map[string]int{shop: 4, batch: grown} {
		node := w.spotNode(t, pool)
		at := w.reclaim(t, node)
		t.Logf("%s  the provider takes node %s of %s in %v", w.market.clock(), node, pool, lead)
		slowest, last := time.Duration(0), time.Now()
		w.until(t, "the node is gone", func(ctx context.Context) error {
			slowest, last = max(slowest, time.Since(last)), time.Now()
			err := w.client.Get(ctx, client.ObjectKey{Name: node}, &corev1.Node{})
			if err == nil {
				return errors.New("it is there")
			}
			return client.IgnoreNotFound(err)
		})
		w.emptied(t, node, at, slowest)
		w.runs(t, "default", pool, pods)
	}
	w.calm(t)
}

// research has a team use more accelerators than it was granted.
func (w *fixture) research(t *testing.T) {
	t.Helper()
	quota := 0.02 // 36 s of two devices
	r := corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "research", Labels: map[string]string{"spotter.dev/budget-gate": "enabled"}}},
		&v1alpha1.GPUBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "notebooks"}, Spec: v1alpha1.GPUBudgetSpec{
			Quota: v1alpha1.Quota{GPUHours: &quota, WindowHours: 24}, Gate: true, Enforcement: v1alpha1.Enforcement{Action: v1alpha1.EnforceEvict},
		}},
		deployment("research", "notebooks", "research", 2, r),
	} {
		if err := w.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// overBudget checks that the team's budget is enforced: its pods are gone and new ones are
// not admitted, except those that request no device.
func (w *fixture) overBudget(t *testing.T) {
	t.Helper()
	w.until(t, "the budget of research is spent and its gate closed", func(ctx context.Context) error {
		var b v1alpha1.GPUBudget
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: "research", Name: "notebooks"}, &b); err != nil {
			return err
		}
		if b.Status.Gate != v1alpha1.GateClosed {
			return fmt.Errorf("the gate is %q: %+v", b.Status.Gate, b.Status.Consumed)
		}
		return nil
	})
	w.runs(t, "research", "notebooks", 0)
	pod := func(name string, limits corev1.ResourceList) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: name}, Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"team": "research"},
			Containers:   []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Limits: limits}}},
		}}
	}
	err := w.client.Create(t.Context(), pod("more", corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}))
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(fmt.Sprint(err), "notebooks") {
		t.Errorf("a pod over budget: %v, want a refusal that names the budget", err)
	}
	if err := w.client.Create(t.Context(), pod("none", nil)); err != nil {
		t.Errorf("a pod without a device: %v", err)
	}
}
