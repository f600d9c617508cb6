package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/live/karpenter"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/play/watch"
	"github.com/spotter-dev/spotter/test/testenv"
)

// How long a play lasts.
var (
	playFor   = flag.Duration("play.for", 40*time.Second, "how long faults happen in each play on Karpenter")
	playQuiet = flag.Duration("play.quiet", time.Minute, "how long after the last fault a mark may stand")
	playN     = flag.Int("play.n", 1, "how many plays, with one seed after the other")
)

// A play is a plant with two replicas of the controller, to which things happen at random.
type play struct {
	*plant
	rng     *rand.Rand
	did     map[string]int
	members []*member
	watcher *watcher

	// second is the stage of a second release, whose replica is the last of members, and
	// changed when the release that acts was last another one.
	second  stage
	changed time.Time

	// heals are what ends faults, each when its time has come.
	heals []heal

	// restarted is when the API server was last kept from answering.
	restarted time.Time
}

// A heal ends a fault.
type heal struct {
	at time.Time
	f  func(*testing.T)
}

// playPools are the pools of a play, with what they sell and their policies.
var playPools = map[string]struct {
	sold       []string
	policy     string
	parameters map[string]string
}{"shop": {oneEach, "static", map[string]string{"share": "0.5"}}, "batch": {soldTypes, "portfolio", nil}}

// TestRunKarpenterPlay injects random faults into two replicas of the controller, the services
// that they use and what they report, with a real Karpenter. A separate process, which knows only
// the API, checks throughout that no disruption budget of a pool is exceeded, that nothing is
// evicted once a mode or the kill switch forbids it or the switch cannot be read, that no
// PodDisruptionBudget is violated, that no protected pod is evicted voluntarily, that no node is
// terminated with pods on it, that no launch is abandoned and no ledger grows too early, and that
// only one of two installations acts. After the faults end, every pod runs, no mark is left
// without a cause, ledgers hold what was used, and every record replays to the same decisions.
// Finally the pools are switched off, and no mark is left at all.
//
// A single process cannot have its own clock here. The API server's clock is changed in its
// responses; code that depends on the clock of the machine takes it as a parameter and is tested
// that way.
func TestRunKarpenterPlay(t *testing.T) {
	if raced {
		t.Skip("it runs alone, without the race detector: make play")
	}
	first := testenv.Seed(t)
	for seed := first; seed < first+uint64(*playN); seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("repeat with: make play SEED=%d N=1 FOR=%v QUIET=%v", seed, *playFor, *playQuiet)
				}
			})
			playOne(t, seed)
		})
	}
}

func playOne(t *testing.T, seed uint64) {
	p := &play{plant: newPlant(t), rng: rand.New(rand.NewPCG(seed, 1)), did: map[string]int{}}
	p.meanwhile = p.keep
	p.second = stage{env: p.env, namespace: p.env.Namespace(t), binary: p.binary}
	p.watch(t)
	p.flip(t, "false")
	for name := range playPools {
		p.makePool(t, name)
	}
	p.makeBudget(t)
	p.join(t, "a", p.stage, p.access, false)
	p.join(t, "b", p.stage, p.access, false)
	p.join(t, "second", p.second, bindUnguarded(t, p.env, secondUser, p.second.namespace, karpenterRights), true)
	p.keep(t)
	p.deploy(t, "shop", 4, map[string]string{testenv.DeleteAfter: "5s"})
	p.deploy(t, "batch", 4, nil)
	p.running(t, "shop", 4)
	p.running(t, "batch", 4)
	for end := time.Now().Add(*playFor); time.Now().Before(end); {
		p.act(t)
		for pause := time.Now().Add(time.Duration(500+p.rng.IntN(3000)) * time.Millisecond); time.Now().Before(pause); time.Sleep(50 * time.Millisecond) {
			p.keep(t)
		}
	}
	p.settleAll(t)
	t.Logf("seed %d: %v; at the end\n%s", seed, p.did, p.kubectl(t, "get", "cpool,nodes", "-L", "karpenter.sh/capacity-type"))
}

// settleAll ends all faults and holds what must be so afterwards.
func (p *play) settleAll(t *testing.T) {
	t.Helper()
	for _, h := range p.heals {
		h.f(t)
	}
	p.heals = nil
	p.flip(t, "false")
	for name := range playPools {
		p.setMode(t, name, v1alpha1.ModeActive)
	}
	p.refuse(t, "")
	for _, m := range p.members {
		m.heal()
	}
	p.scale(t, "shop", 4)
	p.scale(t, "batch", 4)
	p.endSecond(t)
	quiet := time.Now().Add(*playQuiet)
	p.running(t, "shop", 4)
	p.running(t, "batch", 4)
	for time.Now().Before(quiet) {
		p.keep(t)
		time.Sleep(100 * time.Millisecond)
	}
	p.counted(t)
	p.watcher.order(t, watch.OrderRest)
	p.watcher.order(t, watch.OrderLedgers)
	for name := range playPools {
		p.setMode(t, name, v1alpha1.ModeOff)
	}
	for end := time.Now().Add(*playQuiet); time.Now().Before(end) && p.marked(t); time.Sleep(200 * time.Millisecond) {
		p.keep(t)
	}
	p.watcher.order(t, watch.OrderUnmarked)
	for _, m := range p.members {
		m.end(t)
		if segments, err := filepath.Glob(filepath.Join(m.record, "segment=*")); err != nil || len(segments) == 0 {
			continue // it never led
		}
		p.record = m.record
		p.replays(t, 1)
	}
	p.watcher.end(t)
}

// makeBudget makes a GPUBudget that only counts what the pods of shop use.
func (p *play) makeBudget(t *testing.T) {
	t.Helper()
	quota := 1000.0
	if err := p.client.Create(t.Context(), &v1alpha1.GPUBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"},
		Spec: v1alpha1.GPUBudgetSpec{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}, ResourceName: "cpu",
			Quota: v1alpha1.Quota{GPUHours: &quota, WindowHours: 24}},
	}); err != nil {
		t.Fatal(err)
	}
}

// marked reports whether a node or a NodeClaim carries a mark of Spotter.
func (p *play) marked(t *testing.T) bool {
	t.Helper()
	var (
		nodes  corev1.NodeList
		claims karpv1.NodeClaimList
	)
	if errors.Join(p.client.List(t.Context(), &nodes), p.client.List(t.Context(), &claims)) != nil {
		return true
	}
	ours := func(o client.Object) bool {
		a := o.GetAnnotations()
		return a[karpenter.ProtectedAnnotation] != "" || a[drain.AnnotationCordon] != "" || a[drain.AnnotationDrain] != ""
	}
	return slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool {
		return ours(&n) || slices.ContainsFunc(n.Spec.Taints, func(x corev1.Taint) bool { return x.Key == drain.TaintDraining })
	}) || slices.ContainsFunc(claims.Items, func(c karpv1.NodeClaim) bool { return ours(&c) })
}
