package karpenter

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// TestMachines: a claim's machine from the order to the end, each event reported once,
// and those from before the start not at all.
func TestMachines(t *testing.T) {
	b, s := launchBench(t)
	b.informer.nodePoolSeen(nil, b.nodePool("web-od"))
	c, _ := b.karpenterNode("n1", "web-od", s, market(s, 1, 1, policy.OnDemand))
	b.clock.Step(time.Minute)
	b.setCondition(c, karpv1.ConditionTypeLaunched, "True")
	for _, was := range []*karpv1.NodeClaim{nil, c, c} {
		b.informer.claimSeen(was, again(b, c))
	}
	m := b.heard.Machines["n1"]
	want := backend.Machine{
		Name: "n1", Pool: "web", Market: "kwok/test/test-zone-b/c-4x-amd64-linux/on-demand", ProviderID: "kwok://n1", Node: "node-n1",
		Phase: policy.NodeLaunching, Launched: policy.TimeOf(c.CreationTimestamp.Time),
	}
	if m.Name != want.Name || m.Pool != want.Pool || m.Market != want.Market || m.ProviderID != want.ProviderID || m.Node != want.Node ||
		m.Phase != want.Phase || m.Launched != want.Launched || m.ActedBy != policy.ActorNone {
		t.Errorf("machine %+v, want %+v", m, want)
	}
	if got := b.heard.Met(backend.MetLaunch); !slices.Equal(got, []string{want.Market}) {
		t.Errorf("launches %v, want one in %s", got, want.Market)
	}
	b.setCondition(c, karpv1.ConditionTypeDisruptionReason, "True")
	b.informer.claimSeen(c, again(b, c))
	if got := b.heard.Machines["n1"].ActedBy; got != policy.ActorKarpenter {
		t.Errorf("acted by %v, want Karpenter", got)
	}
	b.restart()
	b.informer.claimSeen(nil, again(b, c))
	b.informer.claimGone(c)
	if got := b.heard.Met(backend.MetLaunch); len(got) != 1 || len(b.heard.Machines) != 0 || len(b.heard.Met(backend.MetRefusal)) != 0 {
		t.Errorf("after a restart launches %v, refusals %v, machines %v", got, b.heard.Met(backend.MetRefusal), b.heard.Machines)
	}
}

// TestSteerAfterRestart: after a restart the steer of a pool is read off its NodePools.
func TestSteerAfterRestart(t *testing.T) {
	b := newBench(t, capacityPool(), nodeClass(true))
	s := newSnapshot(b.now())
	b.mustSteer(s, policy.Steer{Share: 0.123456789, Fallback: true})
	was := b.heard.Steers["web"]
	b.heard.Steers = map[string]policy.SteerState{}
	b.restart()
	b.informer.nodePoolSeen(nil, b.nodePool("web-spot"))
	if got := b.heard.Steers["web"]; got != was || !got.Set {
		t.Errorf("reported %+v after the restart, want %+v", got, was)
	}
}

// TestInterruptionEvents: Karpenter's Events become notices, once each.
func TestInterruptionEvents(t *testing.T) {
	b, s := launchBench(t)
	c, _ := b.karpenterNode("n1", "web-spot", s, market(s, 0, 0, policy.Spot))
	b.informer.nodePoolSeen(nil, b.nodePool("web-spot"))
	b.informer.claimSeen(nil, c)
	at := b.clock.Now().Add(time.Minute).Truncate(time.Second)
	event := func(reason string, at time.Time) *corev1.Event {
		return &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault}, Source: corev1.EventSource{Component: "karpenter"},
			Reason: reason, LastTimestamp: metav1.NewTime(at), InvolvedObject: corev1.ObjectReference{Kind: "NodeClaim", Name: "n1", UID: c.UID},
		}
	}
	for _, forge := range []func(*corev1.Event){ // by whoever may write Events in a namespace
		func(e *corev1.Event) { e.Namespace, e.InvolvedObject.Namespace = "team", "team" },
		func(e *corev1.Event) { e.InvolvedObject.Namespace = metav1.NamespaceDefault },
		func(e *corev1.Event) { e.Source.Component = "web" },
		func(e *corev1.Event) { e.ReportingController = "web" },
	} {
		e := event("SpotInterrupted", at)
		forge(e)
		b.informer.eventSeen(e)
	}
	b.informer.eventSeen(event("Unconsolidatable", at))
	for range 2 {
		b.informer.eventSeen(event("SpotRebalanceRecommendation", at))
		b.informer.eventSeen(event("SpotInterrupted", at))
	}
	t0 := policy.TimeOf(at)
	want := []backend.Notice{
		{Machine: "kwok://n1", At: t0, Source: "karpenter"},
		{Machine: "kwok://n1", At: t0, ReclaimAt: t0.Add(120 * time.Second), ActedBy: policy.ActorKarpenter, Source: "karpenter"},
	}
	if !slices.Equal(b.heard.Notices, want) {
		t.Errorf("notices %+v, want %+v", b.heard.Notices, want)
	}
	if got := b.heard.Met(backend.MetReclaim); !slices.Equal(got, []string{"kwok/test/test-zone-a/c-2x-amd64-linux/spot"}) {
		t.Errorf("reclaims %v", got)
	}
	b.restart()
	b.cfg.Since = t0.Add(time.Second)
	b.informer.eventSeen(event("SpotInterrupted", at))
	if len(b.heard.Notices) != 2 {
		t.Error("an event from before the start was reported again")
	}
}

// TestRegion: the region of a market, where the provider's zones show it.
func TestRegion(t *testing.T) {
	x := &claimConverter{cfg: &Config{}}
	for _, c := range []struct{ id, zone, label, provider, region string }{
		{"aws:///us-east-1a/i-1", "us-east-1a", "", "aws", "us-east-1"},
		{"aws:///x", "us-west-2-lax-1a", "us-west-2", "aws", "us-west-2"},
		{"gce://p/z/n", "europe-west1-b", "", "gcp", "europe-west1"},
		{"azure:///x", "westeurope-1", "", "azure", "westeurope"},
		{"", "us-east-1a", "", "aws", "us-east-1"},
	} {
		claim := &karpv1.NodeClaim{Status: karpv1.NodeClaimStatus{ProviderID: c.id}}
		claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.k8s.aws"}
		if c.label != "" {
			claim.Labels = map[string]string{corev1.LabelTopologyRegion: c.label}
		}
		if p, r := x.provider(claim), x.region(claim, c.zone); p != c.provider || r != c.region {
			t.Errorf("%s in %s: provider %s, region %s, want %s and %s", c.id, c.zone, p, r, c.provider, c.region)
		}
	}
}

// TestConfig: a configuration that cannot be is refused with its field.
func TestConfig(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"WriteEvery": func(c *Config) { c.WriteEvery = 0 }, "LimitsEvery": func(c *Config) { c.LimitsEvery = 0 }, "LaunchTimeout": func(c *Config) { c.LaunchTimeout = -1 },
		"Clock": func(c *Config) { c.Clock = nil }, "UnlaunchedMax": func(c *Config) { c.UnlaunchedMax = 0 },
		"SpotWeight": func(c *Config) { c.SpotWeight = 101 }, "OnDemandWeight": func(c *Config) { c.OnDemandWeight = 60 },
	} {
		c := DefaultConfig()
		change(&c)
		if _, err := New(c, nil, nil, nil); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
