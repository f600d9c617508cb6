package karpenter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
	backendfake "github.com/spotter-dev/spotter/live/backend/fake"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/test/nightly"
	"github.com/spotter-dev/spotter/test/testenv"
)

// TestRule02RandomSteers gives Karpenter random steers while a workload grows and
// shrinks. No NodeClaim is ever drifted; at the end it is shown that Karpenter would
// have said so.
func TestRule02RandomSteers(t *testing.T) {
	p := newPlant(t)
	rng := rand.New(rand.NewPCG(testenv.Seed(t), 1))
	p.steer(policy.Steer{Share: 1, Fallback: true})
	p.deploy("shop", "1500m", 2)
	p.running("shop", 2)
	last, changes := 0, 0
	shares := []float64{0, 0.25, 0.5, 0.75, 1}
	enough := func() bool { return len(p.claimsSeen()) >= 3 && changes >= 3 }
	for i := 0; i < nightly.Count(30, 100) || i < 600 && !enough(); i++ { // a busy machine adds nodes late
		x := policy.Steer{Share: shares[rng.IntN(len(shares))], Exact: rng.IntN(2) == 0, EmptyOnly: rng.IntN(2) == 0}
		x.Fallback = x.Share == 1 || rng.IntN(2) == 0
		for m := range newSnapshot(1).Markets {
			if rng.IntN(4) == 0 {
				x.Markets = append(x.Markets, policy.MarketID(m))
			}
		}
		p.steer(x)
		if n := len(valuesOf(p.nodePool("web-spot"), corev1.LabelInstanceTypeStable)); n != last {
			last, changes = n, changes+1
		}
		if i%5 == 0 {
			p.scale("shop", int32(1+rng.IntN(12)))
		}
		time.Sleep(time.Duration(rng.IntN(600)) * time.Millisecond)
	}
	p.steer(policy.Steer{Share: 1, Fallback: true})
	p.scale("shop", 4)
	p.running("shop", 4)
	t.Logf("%d nodes were there in all, and the types of the spot NodePool changed %d times", len(p.claimsSeen()), changes)
	if !enough() {
		t.Error("that nothing drifted says little")
	}
	if d := p.drifted(); len(d) > 0 {
		t.Fatalf("drifted: %v", d)
	}
	for name, capacity := range map[string]string{"web-spot": "spot", "web-od": "on-demand"} {
		n := p.nodePool(name)
		before := n.DeepCopy()
		n.Spec.Template.Spec.Requirements = Requirements(capacity, []Offer{{"c-8x-amd64-linux", "test-zone-c"}}, nil)
		if err := p.client.Patch(t.Context(), n, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, "Karpenter finds nodes drifted that a hidden narrowing excludes", func() error {
		if len(p.drifted()) == 0 {
			return errors.New("none is")
		}
		return nil
	})
}

// TestRule06ShareFollows: a pool that is all spot, then on-demand, then half and half,
// as it grows; and where spot is refused it falls back.
func TestRule06ShareFollows(t *testing.T) {
	p := newPlant(t)
	p.steer(policy.Steer{Share: 1, Fallback: true, EmptyOnly: true})
	p.deploy("shop", "1500m", 3)
	p.running("shop", 3)
	if spot, od := p.vcpu(); od != 0 || spot < 6 {
		t.Errorf("at a share of 1: %d vCPU spot, %d on-demand", spot, od)
	}
	p.steer(policy.Steer{Share: 0, Fallback: true, EmptyOnly: true})
	p.scale("shop", 6)
	p.running("shop", 6)
	spot, od := p.vcpu()
	if spot < 6 || od < 6 {
		t.Errorf("at a share of 0 after growth: %d vCPU spot, %d on-demand", spot, od)
	}
	before := spot
	p.scale("shop", 12)
	p.steer(policy.Steer{Share: 0.5, Fallback: true, EmptyOnly: true}) // the pods are not in this snapshot
	p.running("shop", 12)
	if spot, _ = p.vcpu(); spot-before > 8 {
		t.Errorf("at a share of a half spot grew from %d to %d vCPU", before, spot)
	}
	if err := os.WriteFile(p.refused, []byte("*/*/spot\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, od = p.vcpu()
	p.steer(policy.Steer{Share: 1, Fallback: true, EmptyOnly: true})
	p.scale("shop", 14)
	p.running("shop", 14)
	if _, now := p.vcpu(); now <= od {
		t.Errorf("spot is refused and on-demand stays at %d vCPU", now)
	}
	if len(p.heard.Met(backend.MetRefusal)) == 0 {
		t.Error("no refusal was reported")
	}
}

// TestRule04LaunchedNode: a NodeClaim by Spotter becomes an initialized Node, whose launch is
// reported once. Only its protection keeps Karpenter from removing the node while it is empty: once
// the launch is settled, Karpenter removes it. (TestRule05Drain shows that it does not do so
// before.)
func TestRule04LaunchedNode(t *testing.T) {
	p := newPlant(t)
	p.steer(policy.Steer{Share: 1, Fallback: true})
	p.launch("token-a")
	testenv.Eventually(t, "the launch is reported", func() error {
		if got := p.heard.Met(backend.MetLaunch); len(got) != 1 || !strings.HasSuffix(got[0], "/spot") {
			return fmt.Errorf("launches reported %v", got)
		}
		return nil
	})
	if err := p.Settle(t.Context(), []string{"token-a"}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "Karpenter removes the empty node", func() error {
		if n := len(p.heard.All()); n != 0 {
			return fmt.Errorf("%d machines", n)
		}
		return nil
	})
	if got := p.heard.Met(backend.MetRefusal); len(got) != 0 {
		t.Errorf("refusals %v", got)
	}
}

// launch makes a node and waits until it is initialized.
func (p *plant) launch(token string) {
	p.t.Helper()
	testenv.Eventually(p.t, "the launch is taken", func() error {
		s := p.snapshot()
		l := spotLaunch(s, token)
		return p.Launch(p.t.Context(), s, l)
	})
	testenv.Eventually(p.t, "the node is initialized", func() error {
		how, err := p.Replaced(p.t.Context(), []string{token})
		if err == nil && how != backend.ReplacementReady {
			err = fmt.Errorf("replacement %d", how)
		}
		return err
	})
}

// TestKarpenterMissing: where the API server does not know Karpenter's kinds the
// watches wait, and end without an error.
func TestKarpenterMissing(t *testing.T) {
	env := testenv.Start(t, testOptions())
	mgr, err := manager.New(env.Config, manager.Options{
		Scheme: testScheme(t), Metrics: server.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.NewDefaultRESTMapper(nil), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(DefaultConfig(), mgr.GetClient(), mgr.GetAPIReader(), backendfake.NewSink())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := mgr.Start(ctx); err != nil {
		t.Errorf("the manager ended: %v", err)
	}
}

// TestRule04Shortage: a claim that no market can serve is refused and leaves nothing behind.
func TestRule04Shortage(t *testing.T) {
	p := newPlant(t)
	p.steer(policy.Steer{Share: 1, Fallback: true})
	if err := os.WriteFile(p.refused, []byte("*/*/spot\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the launch is taken", func() error {
		s := p.snapshot()
		return p.Launch(t.Context(), s, spotLaunch(s, "token-a"))
	})
	testenv.Eventually(t, "the refusal is reported", func() error {
		if got := p.heard.Met(backend.MetRefusal); len(got) != 2 {
			return fmt.Errorf("refusals %v", got)
		}
		return nil
	})
	if how, err := p.Replaced(t.Context(), []string{"token-a"}); err != nil || how != backend.ReplacementFailed {
		t.Errorf("replaced %v, %v, want failed", how, err)
	}
}

// TestRule05Drain replaces an on-demand node by spot. While both stand Karpenter
// neither replaces the old node, which it would for the price, nor removes the new
// one, which is empty. The drain ends with the claim deleted and the Node gone. Then
// the CapacityPool is deleted, and the node that runs stays.
func TestRule05Drain(t *testing.T) {
	p := newPlant(t)
	p.steer(policy.Steer{Share: 0, Fallback: true, EmptyOnly: true})
	p.deploy("shop", "1500m", 1)
	old := p.node(p.running("shop", 1)[0].Spec.NodeName)
	p.steer(policy.Steer{Share: 1, Fallback: true, EmptyOnly: true})
	testenv.Eventually(t, "the old node may be drained", func() error { return p.Prepare(t.Context(), p.node(old.Name)) })
	p.steer(policy.Steer{Share: 1, Fallback: true}) // from now on Karpenter would replace it
	p.launch("token-a")
	before := p.claimsSeen()
	quiet(t, 30*time.Second, func() error { // a disruption loop of 10 s and a validation of 15 s
		if now := p.claimsSeen(); len(now) != 2 || len(p.heard.All()) != 2 {
			return fmt.Errorf("Karpenter made or removed nodes: NodeClaims %v", now)
		}
		for _, m := range p.heard.All() {
			if m.ActedBy != policy.ActorNone {
				return fmt.Errorf("Karpenter acts on %s", m.Name)
			}
		}
		return nil
	})
	p.empty(old.Name)
	pod := p.running("shop", 1)[0]
	if pod.Spec.NodeName == old.Name {
		t.Fatal("the pod did not move")
	}
	if err := p.Settle(t.Context(), []string{"token-a"}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the node is given back", func() error { return p.Release(t.Context(), p.node(old.Name)) })
	testenv.Eventually(t, "the old Node is gone", func() error {
		err := p.client.Get(t.Context(), client.ObjectKey{Name: old.Name}, &corev1.Node{})
		if err == nil {
			return errors.New("it is there")
		}
		return client.IgnoreNotFound(err)
	})
	if after := p.claimsSeen(); !slices.Equal(before, after) || len(after) != 2 {
		t.Errorf("NodeClaims %v before and %v after, want the old and the new", before, after)
	}
	n := p.node(pod.Spec.NodeName)
	if n.Annotations[karpv1.DoNotDisruptAnnotationKey] != "" {
		t.Errorf("the new node is still protected")
	}
	if err := p.client.Delete(t.Context(), capacityPool()); err != nil {
		t.Fatal(err)
	}
	quiet(t, 10*time.Second, func() error {
		seen, err := p.api.look(t.Context())
		if err != nil {
			return err
		}
		if err := p.collect(t.Context(), &policy.Snapshot{}, seen.nodePools); err != nil {
			return err
		}
		return p.client.Get(t.Context(), client.ObjectKey{Name: n.Name}, &corev1.Node{})
	})
	if err := p.client.Get(t.Context(), client.ObjectKey{Name: "web-spot"}, &karpv1.NodePool{}); err != nil {
		t.Errorf("the NodePool of a running node: %v", err)
	}
}

// empty does what the drain pipeline does between Prepare and Release.
func (p *plant) empty(name string) {
	p.t.Helper()
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { // a patch would replace the taints of others
		n := p.node(name)
		n.Spec.Unschedulable = true
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: drain.TaintDraining, Effect: corev1.TaintEffectNoSchedule})
		return p.client.Update(p.t.Context(), n)
	}); err != nil {
		p.t.Fatal(err)
	}
	var pods corev1.PodList
	if err := p.client.List(p.t.Context(), &pods, client.InNamespace("default"), client.MatchingFields{"spec.nodeName": name}); err != nil {
		p.t.Fatal(err)
	}
	for i := range pods.Items {
		if err := p.client.SubResource("eviction").Create(p.t.Context(), &pods.Items[i], &policyv1.Eviction{}); err != nil {
			p.t.Fatal(err)
		}
	}
}

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	log.SetOutput(io.Discard)
	os.Exit(m.Run())
}
