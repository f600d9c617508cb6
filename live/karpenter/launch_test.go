package karpenter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
)

// launchBench has steered NodePools that Karpenter has seen.
func launchBench(t *testing.T) (*bench, *policy.Snapshot) {
	t.Helper()
	b := newBench(t, capacityPool(), nodeClass(true))
	s := newSnapshot(b.now())
	b.mustSteer(s, policy.Steer{Share: 1, Fallback: true})
	b.karpenterSees("web-spot")
	b.karpenterSees("web-od")
	b.writes = nil
	return b, s
}

func spotLaunch(s *policy.Snapshot, token string) *policy.Launch {
	return &policy.Launch{Token: token, Replaces: policy.None, Markets: []policy.MarketID{market(s, 0, 0, policy.Spot),
		market(s, 1, 0, policy.Spot)}}
}

func (b *bench) claim(name string) *karpv1.NodeClaim {
	b.t.Helper()
	c := &karpv1.NodeClaim{}
	if err := b.client.Get(b.t.Context(), client.ObjectKey{Name: name}, c); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		b.t.Fatal(err)
	}
	return c
}

// TestRule04ClaimShape: the claim is as Karpenter makes its own, with the requests of
// the pods that it is for, and protected.
func TestRule04ClaimShape(t *testing.T) {
	b, s := launchBench(t)
	old := withNode(s, "old", market(s, 1, 0, policy.OnDemand))
	s.Templates = []policy.Template{
		{Requests: policy.Resources{CPU: 500, Memory: 1 << 30, Pods: 1}},
		{Requests: policy.Resources{CPU: 100, Memory: 1 << 20, Pods: 1}, DaemonSet: true},
	}
	s.Pods = []policy.Pod{
		{Phase: policy.PodReady, Template: 0, Node: old}, {Phase: policy.PodReady, Template: 0,
			Node: old}, {Phase: policy.PodReady, Template: 1, Node: old},
		{Phase: policy.PodTerminating, Template: 0, Node: old}, {Phase: policy.PodPending, Template: 0, Node: policy.None},
	}
	l := spotLaunch(s, policy.Token(s.Now, "web", "m", 0))
	l.Replaces = old
	for range 2 { // the second time nothing happens
		if err := b.Launch(t.Context(), s, l); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.writes) != 1 {
		t.Errorf("writes %v, want one", b.writes)
	}
	n, c := b.nodePool("web-spot"), b.claim(ClaimName(l.Token))
	if c == nil {
		t.Fatal("there is no NodeClaim")
	}
	if len(c.OwnerReferences) != 1 || c.OwnerReferences[0].UID != n.UID || c.OwnerReferences[0].Kind != "NodePool" {
		t.Errorf("owners %v", c.OwnerReferences)
	}
	for k, want := range map[string]string{
		karpv1.NodePoolLabelKey: "web-spot", "karpenter.kwok.sh/kwoknodeclass": "default", "team": "shop", PoolLabel: "web",
	} {
		if c.Labels[k] != want {
			t.Errorf("label %s is %q, want %q", k, c.Labels[k], want)
		}
	}
	for k, want := range map[string]string{
		karpv1.NodePoolHashAnnotationKey: n.Hash(), karpv1.NodePoolHashVersionAnnotationKey: karpv1.NodePoolHashVersion,
		karpv1.DoNotDisruptAnnotationKey: "true", TokenAnnotation: l.Token,
		MarketsAnnotation: "kwok/test/test-zone-a/c-2x-amd64-linux/spot,kwok/test/test-zone-a/c-4x-amd64-linux/spot",
	} {
		if c.Annotations[k] != want {
			t.Errorf("annotation %s is %q, want %q", k, c.Annotations[k], want)
		}
	}
	r := c.Spec.Resources.Requests
	if r.Cpu().String() != "1100m" || r.Memory().Value() != 2<<30+1<<20 || r.Pods().Value() != 3 {
		t.Errorf("requests %v", r)
	}
	got := map[string][]string{}
	for _, x := range c.Spec.Requirements {
		got[x.Key] = x.Values
	}
	if !slices.Equal(got[corev1.LabelInstanceTypeStable], []string{"c-2x-amd64-linux", "c-4x-amd64-linux"}) ||
		!slices.Equal(got[corev1.LabelTopologyZone], []string{"test-zone-a"}) ||
		!slices.Equal(got[karpv1.CapacityTypeLabelKey], []string{"spot"}) {
		t.Errorf("requirements %v", got)
	}
	if *c.Spec.ExpireAfter.Duration != 720*time.Hour {
		t.Errorf("expires after %v", c.Spec.ExpireAfter)
	}
}

// TestRule04Held: what keeps a claim from being made.
func TestRule04Held(t *testing.T) {
	for _, c := range []struct {
		reason string
		before func(*bench, *policy.Snapshot, *policy.Launch)
	}{
		{"NodePoolMissing", func(b *bench, _ *policy.Snapshot, _ *policy.Launch) {
			if err := b.client.Delete(b.t.Context(), b.nodePool("web-spot")); err != nil {
				b.t.Fatal(err)
			}
		}},
		{"NodeClassNotReady", func(b *bench, _ *policy.Snapshot, _ *policy.Launch) {
			u := again(b, nodeClass(true))
			u.Object["status"] = nodeClass(false).Object["status"]
			b.status(u)
		}},
		{"NodeClassMissing", func(b *bench, _ *policy.Snapshot, _ *policy.Launch) {
			if err := b.client.Delete(b.t.Context(), nodeClass(true)); err != nil {
				b.t.Fatal(err)
			}
		}},
		{"LimitReached", func(b *bench, s *policy.Snapshot, _ *policy.Launch) {
			b.karpenterNode("n1", "web-spot", s, market(s, 1, 0, policy.Spot))
			s.Pools[0].Limits = policy.Resources{CPU: 4000} // one node of 4 vCPU
		}},
		{"OutsideNodePool", func(b *bench, s *policy.Snapshot, l *policy.Launch) {
			n := b.nodePool("web-spot")
			n.Spec.Template.Spec.Requirements = Requirements("spot", []Offer{{"other", testZones[0]}}, nil)
			if err := b.client.Update(b.t.Context(), n); err != nil {
				b.t.Fatal(err)
			}
		}},
		{"LaunchesUnderWay", func(b *bench, s *policy.Snapshot, _ *policy.Launch) {
			for i := range 3 {
				if err := b.Launch(b.t.Context(), s, spotLaunch(s, fmt.Sprint("token-", i))); err != nil {
					b.t.Fatal(err)
				}
			}
		}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			b, s := launchBench(t)
			l := spotLaunch(s, "token-x")
			c.before(b, s, l)
			b.writes = nil
			holds(t, b.Launch(t.Context(), s, l), c.reason)
			if len(b.writes) != 0 {
				t.Errorf("written: %v", b.writes)
			}
		})
	}
}

// TestRule04NoOtherMarket: a claim can request no market that the launch does not name, although it
// names types and zones separately.
func TestRule04NoOtherMarket(t *testing.T) {
	b, s := launchBench(t)
	l := spotLaunch(s, "token-x")
	l.Markets = []policy.MarketID{market(s, 0, 0, policy.Spot), market(s, 1, 0, policy.Spot), market(s, 2, 1, policy.Spot)}
	if err := b.Launch(t.Context(), s, l); err != nil {
		t.Fatal(err)
	}
	if got := b.claim(ClaimName("token-x")).Annotations[MarketsAnnotation]; strings.Count(got, ",") != 1 || strings.Contains(got, "zone-b") {
		t.Errorf("asked for %s", got)
	}
}

// TestRule04Unlaunched: a claim without a machine after a minute is deleted, its markets count as
// refused, and the same launch is refused when requested again. A claim with a machine stays.
func TestRule04Unlaunched(t *testing.T) {
	b, s := launchBench(t)
	for _, token := range []string{"token-a", "token-b"} {
		if err := b.Launch(t.Context(), s, spotLaunch(s, token)); err != nil {
			t.Fatal(err)
		}
	}
	given := b.claim(ClaimName("token-b"))
	given.Status.ProviderID = "kwok://b"
	b.status(given)
	b.clock.Step(50 * time.Second)
	if err := b.Tend(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if b.claim(ClaimName("token-a")) == nil {
		t.Fatal("deleted too early")
	}
	b.clock.Step(20 * time.Second)
	if err := b.Tend(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if b.claim(ClaimName("token-a")) != nil || b.claim(ClaimName("token-b")) == nil {
		t.Error("the claim without a machine is to go, the other to stay")
	}
	want := []string{"kwok/test/test-zone-a/c-2x-amd64-linux/spot", "kwok/test/test-zone-a/c-4x-amd64-linux/spot"}
	if got := b.heard.Met(backend.MetRefusal); !slices.Equal(got, want) {
		t.Errorf("refusals %v, want %v", got, want)
	}
	if err := b.Launch(t.Context(), s, spotLaunch(s, "token-a")); !errors.Is(err, driver.ErrNoCapacity) {
		t.Errorf("the same launch again: %v, want ErrNoCapacity", err)
	}
}

// TestRule04Refused: a claim that vanishes without a machine was refused; one that
// we gave up, or whose node class is not ready, was not.
func TestRule04Refused(t *testing.T) {
	b, s := launchBench(t)
	if err := b.Launch(t.Context(), s, spotLaunch(s, "token-a")); err != nil {
		t.Fatal(err)
	}
	c := b.claim(ClaimName("token-a"))
	b.informer.nodePoolSeen(nil, b.nodePool("web-spot"))
	b.informer.claimSeen(nil, c)
	if m := b.heard.Machines[c.Name]; m.Phase != policy.NodeLaunching || m.Pool != "web" || m.Token != "token-a" ||
		m.Market != "kwok/test/test-zone-a/c-2x-amd64-linux/spot" {
		t.Errorf("reported %+v", m)
	}
	b.informer.claimGone(c)
	if got := b.heard.Met(backend.MetRefusal); len(got) != 2 || len(b.heard.Wakes) != 1 || len(b.heard.Machines) != 0 {
		t.Errorf("refusals %v, wakes %v, machines %v", got, b.heard.Wakes, b.heard.Machines)
	}
	own := c.DeepCopy()
	own.Annotations = nil
	b.informer.claimSeen(nil, own)
	b.informer.claimGone(own)
	if got := b.heard.Met(backend.MetRefusal); len(got) != 4 || got[2] != "kwok/test/test-zone-a/c-2x-amd64-linux/spot" {
		t.Errorf("refusals after one of Karpenter's own: %v", got)
	}
	n := b.nodePool("web-spot")
	if err := b.client.Status().Patch(t.Context(), n, client.RawPatch("application/merge-patch+json",
		[]byte(`{"status":{"conditions":[{"type":"NodeClassReady","status":"False","reason":"No","message":"no","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`))); err != nil {
		t.Fatal(err)
	}
	b.informer.claimSeen(nil, own)
	b.informer.claimGone(own)
	if got := b.heard.Met(backend.MetRefusal); len(got) != 4 {
		t.Errorf("a node class that is not ready counts as a refusal: %v", got)
	}
}

// TestLaunchErrors: each error of the API is reported, nothing is left half-done, and the
// same launch succeeds afterwards.
func TestLaunchErrors(t *testing.T) {
	b, s := launchBench(t)
	group := schema.GroupResource{Group: "karpenter.sh", Resource: "nodeclaims"}
	for i, failure := range []error{
		apierrors.NewConflict(group, "x", errors.New("changed")), apierrors.NewTooManyRequests("slow down", 1),
		apierrors.NewInternalError(errors.New("etcd")), apierrors.NewTimeoutError("late", 1),
		apierrors.NewUnauthorized("expired"), apierrors.NewForbidden(group, "x", errors.New("no")),
	} {
		for _, verb := range []string{"get", "list", "create"} {
			l := spotLaunch(s, fmt.Sprintf("token-%d-%s", i, verb))
			b.fail = func(v string, _ any) error {
				if v == verb {
					return failure
				}
				return nil
			}
			if err := b.Launch(t.Context(), s, l); !errors.Is(err, failure) {
				t.Errorf("%s answers %v: error %v", verb, failure, err)
			}
			b.fail = nil
			if err := b.Launch(t.Context(), s, l); err != nil {
				t.Errorf("after %v: %v", failure, err)
			}
			if err := b.client.Delete(t.Context(), b.claim(ClaimName(l.Token))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, l := range []*policy.Launch{{}, {Token: "x"}, {Token: "x",
		Markets: []policy.MarketID{market(s, 0, 0, policy.Spot), market(s, 0, 0, policy.OnDemand)}}} {
		if err := b.Launch(t.Context(), s, l); err == nil {
			t.Errorf("launch %+v was taken", l)
		}
	}
}

// TestClaimName: tokens of policies are names, and others become one.
func TestClaimName(t *testing.T) {
	token := policy.Token(policy.TimeOf(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)), "web", "aws/x", 12)
	if got := ClaimName(token); got != "spotter-"+token {
		t.Errorf("%s becomes %s", token, got)
	}
	a, b := ClaimName("A/b"), ClaimName("A/c")
	if a == b || len(a) > 63 || strings.ToLower(a) != a {
		t.Errorf("names %s and %s", a, b)
	}
}

// TestRule04OwnLimits: the limits by which a NodePool keeps to its share hold back
// Karpenter and not the plan, which has weighed the share.
func TestRule04OwnLimits(t *testing.T) {
	b, s := launchBench(t)
	n := b.nodePool("web-spot")
	n.Spec.Limits = karpv1.Limits(nothing())
	if err := b.client.Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if err := b.Launch(t.Context(), s, spotLaunch(s, "token-x")); err != nil {
		t.Fatal(err)
	}
	b.claim(ClaimName("token-x"))
}
