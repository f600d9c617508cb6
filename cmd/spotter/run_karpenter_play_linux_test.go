package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/testenv"
)

var playFor = flag.Duration("play.for", 40*time.Second, "how long the random play on Karpenter lasts")

// A play is a plant to which things happen at random.
type play struct {
	*plant
	rng *rand.Rand
	did map[string]int
}

// TestRunKarpenterPlay has workloads grow and shrink, markets refuse, nodes come under
// notice, wanted shares change and controllers die, at random. Whenever a controller has
// taken over, what the one before was emptying is open again or gone within a minute,
// but for nodes that the provider takes.
// When it all stops every pod runs, every machine is of use, nothing is marked, no
// launch was made twice and no disruption budget was broken.
func TestRunKarpenterPlay(t *testing.T) {
	if raced {
		t.Skip("it runs alone, without the race detector: make play")
	}
	seed := testenv.Seed(t)
	p := &play{plant: newPlant(t), rng: rand.New(rand.NewPCG(seed, 1)), did: map[string]int{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("it lasted -play.for=%v", *playFor)
		}
	})
	mark := p.env.Mark()
	p.pool(t, "shop", oneEach, "static", map[string]string{"share": "0.5"})
	p.pool(t, "batch", soldTypes, "portfolio", nil)
	p.run(t)
	p.stepped(t)
	p.deploy(t, "shop", 4, map[string]string{testenv.DeleteAfter: "5s"})
	p.deploy(t, "batch", 4, nil)
	p.running(t, "shop", 4)
	p.running(t, "batch", 4)
	for end := time.Now().Add(*playFor); time.Now().Before(end); {
		p.act(t)
		p.revive(t)
		time.Sleep(time.Duration(1000+p.rng.IntN(4000)) * time.Millisecond)
	}
	p.handOver(t, syscall.SIGKILL)
	p.refuse(t, "")
	p.scale(t, "shop", 4)
	p.scale(t, "batch", 4)
	p.running(t, "shop", 4)
	p.running(t, "batch", 4)
	p.calm(t)
	t.Logf("seed %d: %v; at the end\n%s", seed, p.did, p.kubectl(t, "get", "cpool,nodes", "-L", "karpenter.sh/capacity-type"))
	p.stop(t, syscall.SIGTERM)
	p.kept(t, mark)
	p.replays(t, 5)
}

// act does one thing.
func (p *play) act(t *testing.T) {
	t.Helper()
	pool := []string{"shop", "batch"}[p.rng.IntN(2)]
	switch k := p.rng.IntN(10); {
	case k < 3:
		p.scale(t, pool, 1+p.rng.Int32N(7))
	case k < 5:
		p.warn(t, pool)
	case k < 7:
		p.refuse(t, []string{"", "*/us-east-1a/spot\n", "*/*/spot\n", "c5.*/*/*\n", "m5.large/*/*\n*/us-east-1b/*\n"}[p.rng.IntN(5)])
	case k < 8:
		p.did["share"]++
		p.wants(t, "shop", []string{"0", "0.25", "0.5", "0.75", "1"}[p.rng.IntN(5)])
	case k < 9:
		p.handOver(t, syscall.SIGKILL)
	default:
		p.handOver(t, syscall.SIGTERM)
	}
}

// scale has a workload want another number of pods.
func (p *play) scale(t *testing.T, name string, replicas int32) {
	t.Helper()
	p.did["scale"]++
	p.expect(name, replicas)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if err := p.client.Patch(t.Context(), d, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))); err != nil {
		t.Fatal(err)
	}
}

// warn puts a spot node of a pool under notice that is not yet, if it has one.
func (p *play) warn(t *testing.T, pool string) {
	t.Helper()
	by, err := p.nodes(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	calm := slices.DeleteFunc(by["spot"], func(n corev1.Node) bool {
		return slices.ContainsFunc(n.Spec.Taints, func(x corev1.Taint) bool { return x.Key == terminationTaint })
	})
	if len(calm) == 0 {
		return
	}
	n := &calm[p.rng.IntN(len(calm))]
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: terminationTaint, Effect: corev1.TaintEffectNoSchedule})
	switch err := p.client.Update(t.Context(), n); {
	case err == nil:
		p.did["notice"]++
	case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err): // else another has written it or it is gone
		t.Fatal(err)
	}
}

// refuse has markets refuse launches.
func (p *play) refuse(t *testing.T, patterns string) {
	t.Helper()
	p.did["refuse"]++
	if err := os.WriteFile(p.refused, []byte(patterns), 0o600); err != nil {
		t.Fatal(err)
	}
}

// handOver ends the controller and has another take over. Nodes that the provider takes
// are emptied by whoever leads until they are gone, be it that a disruption budget and
// markets that refuse make that last as long as the warning.
func (p *play) handOver(t *testing.T, by syscall.Signal) {
	t.Helper()
	p.did[by.String()]++
	p.stop(t, by)
	begun, err := p.since(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for node := range begun {
		var n corev1.Node
		if err := p.client.Get(t.Context(), client.ObjectKey{Name: node}, &n); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(n.Spec.Taints, func(x corev1.Taint) bool { return x.Key == terminationTaint }) {
			delete(begun, node)
		}
	}
	if len(begun) > 0 {
		p.did["left cordoned, "+by.String()]++
	}
	p.takeOver(t, begun)
}
