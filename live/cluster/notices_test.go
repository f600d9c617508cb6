package cluster_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

func (l *lab) notices() []drain.Noticed {
	l.t.Helper()
	all, err := l.observer.Notices(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	return all
}

// TestNoticesBetweenSnapshots reports which nodes must be drained as soon as it is known, also
// before the first snapshot, and never a node that a snapshot has no drain for.
func TestNoticesBetweenSnapshots(t *testing.T) {
	off := capacityPool("off", func(p *v1alpha1.CapacityPool) {
		p.Spec.Mode = v1alpha1.ModeOff
		p.Spec.Template.Labels = map[string]string{"pool": "off"}
	})
	unready := func(n *corev1.Node) { delete(n.Labels, "karpenter.sh/initialized") }
	of := func(pool string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Labels["karpenter.sh/nodepool"] = pool + "-spot" }
	}
	ours := func(n *corev1.Node) { n.Annotations[drain.AnnotationDrain] = "{}" }
	l := newLab(t, capacityPool("p"), off, node("a"), node("b", ours), node("c", tainted("karpenter.sh/disrupted")),
		node("d", unready), node("e", of("off")), node("f", of("nobody")), node("g"))
	warn := func(name string, in time.Duration) {
		l.observer.Notice(backend.Notice{Machine: name, At: at(0), ReclaimAt: at(in), Source: "sqs"})
	}
	for _, name := range []string{"a", "c", "d", "e", "f"} {
		warn(name, 2*time.Minute)
	}
	warn("b", time.Minute)
	want := []drain.Noticed{
		{Node: "b", Pool: "p", Provisioner: policy.ProvisionerKarpenter, ReclaimAt: at(time.Minute),
			Text: "the provider reclaims the node, according to sqs"},
		{Node: "a", Pool: "p", Provisioner: policy.ProvisionerKarpenter, ReclaimAt: at(2 * time.Minute),
			Text: "the provider reclaims the node, according to sqs"},
	}
	if got := l.notices(); !slices.Equal(got, want) {
		t.Errorf("before the first snapshot: %+v", got)
	}
	s := l.observe(0)
	var planned []string
	for _, d := range placement.Notices(s) {
		planned = append(planned, s.Nodes[d.Node].Name)
	}
	if slices.Sort(planned); !slices.Equal(planned, []string{"a", "b"}) {
		t.Errorf("a snapshot has drains for %v", planned)
	}
	warn("g", 90*time.Second)
	l.put(capacityPool("p", func(p *v1alpha1.CapacityPool) { p.Generation = 2 }))
	l.put(node("a", tainted("karpenter.sh/disrupted")))
	if got := l.notices(); len(got) != 2 || got[0] != want[0] || got[1].Node != "g" {
		t.Errorf("after a change: %+v", got)
	}
	l.put(capacityPool("p", func(p *v1alpha1.CapacityPool) { p.Generation, p.Spec.Mode = 3, v1alpha1.ModeOff }))
	if got := l.notices(); len(got) != 0 {
		t.Errorf("after its pool was turned off: %+v", got)
	}
	l.put(capacityPool("p", func(p *v1alpha1.CapacityPool) { p.Generation = 4 }))
	l.clock.SetTime(epoch.Add(time.Hour))
	if got := l.notices(); len(got) != 0 {
		t.Errorf("long after the end that was announced: %+v", got)
	}
}

// BenchmarkNotices asks a cluster of 5,000 nodes, of which 200 are under notice and as
// many change, while snapshots of it are built.
func BenchmarkNotices(b *testing.B) {
	l := newMarkets(b)
	for i := range 5000 {
		n := node(fmt.Sprintf("node-%d", i))
		l.informerOf(n).Add(n)
	}
	p := capacityPool("p")
	l.informerOf(p).Add(p)
	l.clock.SetTime(epoch)
	if _, err := l.observer.Observe(b.Context()); err != nil {
		b.Fatal(err)
	}
	for i := range 200 {
		l.observer.Notice(backend.Notice{Machine: fmt.Sprintf("node-%d", 25*i), At: at(0), ReclaimAt: at(2 * time.Minute), Source: "sqs"})
	}
	for b.Loop() {
		for i := range 200 {
			n := node(fmt.Sprintf("node-%d", 25*i))
			l.informerOf(n).Update(n, n)
		}
		if all, err := l.observer.Notices(b.Context()); err != nil || len(all) != 200 {
			b.Fatal(len(all), err)
		}
	}
}
