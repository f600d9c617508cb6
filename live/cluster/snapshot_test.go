package cluster_test

import (
	"encoding/json"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/cluster"
	"github.com/spotter-dev/spotter/live/market"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// A heldSnapshot is a snapshot and what it said when it was returned.
type heldSnapshot struct {
	s    *policy.Snapshot
	text string
}

func hold(t testing.TB, s *policy.Snapshot) heldSnapshot {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return heldSnapshot{s, string(text)}
}

// check holds that the snapshot says what it did.
func (h heldSnapshot) check(t testing.TB) {
	t.Helper()
	if now := hold(t, h.s).text; now != h.text {
		i := 0
		for i < min(len(now), len(h.text)) && now[i] == h.text[i] {
			i++
		}
		from := max(0, i-200)
		t.Fatalf("the snapshot of %v was overwritten: it said\n…%.400s\nand says\n…%.400s", h.s.Now, h.text[from:], now[from:])
	}
}

// newBookLab returns a lab with a real book, and the clock and the feed of both.
func newBookLab(t *testing.T) (*lab, *market.Book, *clocktesting.FakeClock, *priceList) {
	t.Helper()
	clock, feed := clocktesting.NewFakeClock(epoch), &priceList{price: policy.Dollar / 20}
	bc := market.DefaultConfig()
	bc.Clock, bc.Feeds = clock, []market.Feed{feed}
	book, err := market.New(bc)
	if err != nil {
		t.Fatal(err)
	}
	cfg := cluster.DefaultConfig()
	cfg.Clock = clock
	l := newLab(t)
	if l.observer, err = cluster.New(cfg, book); err != nil {
		t.Fatal(err)
	}
	l.informer = &informertest.FakeInformers{Scheme: l.informer.Scheme}
	if err := l.observer.Follow(t.Context(), l.informer); err != nil {
		t.Fatal(err)
	}
	return l, book, clock, feed
}

// TestSnapshotsNeverChange changes everything that a snapshot shows: what was returned
// before is read by a drain, the recorder and the backends meanwhile.
func TestSnapshotsNeverChange(t *testing.T) {
	l, book, clock, feed := newBookLab(t)
	replicas, one := int32(2), intstr.FromInt32(1)
	deployment := func(cpu string) *appsv1.Deployment {
		p := pod("x", "")
		p.Spec.Containers[0].Image = cpu
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web"}, Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels}, Spec: p.Spec}}}
	}
	web := ownedBy("ReplicaSet", "web-5d")
	pdb := func(allowed int32) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed}}
	}
	budget := func(hours float64) *v1alpha1.GPUBudget {
		return &v1alpha1.GPUBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "team"},
			Spec: v1alpha1.GPUBudgetSpec{Quota: v1alpha1.Quota{GPUHours: &hours, WindowHours: 24}}}
	}
	typed := func(share float64) func(*v1alpha1.CapacityPool) {
		return func(p *v1alpha1.CapacityPool) {
			p.Spec.Markets.InstanceTypes = []string{"m5.xlarge"}
			p.Generation = int64(100 * share)
		}
	}
	volume := func(zone string) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v-" + zone,
			Labels: map[string]string{corev1.LabelTopologyZone: zone}}}
	}
	l.put(deployment("1"), &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web-5d",
		OwnerReferences: controller("Deployment", "web")}},
		capacityPool("p", typed(0.1)), node("n"), node("m"), pod("w0", "n", web), pod("w1", "m", web), pod("bare",
			"n"), pdb(1), budget(10), volume("us-east-1a"))
	changes := []func(){
		func() { _ = book.Refresh(t.Context()) },
		func() { feed.price /= 2; _ = book.Refresh(t.Context()) },
		func() { l.put(node("n", tainted("karpenter.sh/disrupted"))) },
		func() { l.put(pod("w0", "m", web)) },
		func() { l.remove(l.objects["pod a/w1"]) },
		func() { l.put(pod("w2", "n", web), pod("w3", "", web)) },
		func() { l.put(pdb(0)) },
		func() { l.put(budget(20)) },
		func() { l.put(capacityPool("o", typed(0.3)), capacityPool("p", typed(0.2))) },
		func() { replicas = 3; l.put(deployment("2")) },
		func() { l.put(volume("us-east-1z")) },
		func() {
			l.observer.Notice(backend.Notice{Machine: "n", At: policy.TimeOf(clock.Now()), ReclaimAt: policy.TimeOf(clock.Now().Add(time.Minute))})
		},
		func() { l.observer.SetSteer("p", policy.SteerState{Set: true, Share: 0.5}) },
		func() {
			l.observer.Meet(backend.Event{Kind: backend.MetRefusal, Pool: "p",
				Market: "aws/us-east-1/us-east-1a/m5.xlarge/spot", At: policy.TimeOf(clock.Now())})
		},
		func() {
			l.observer.SetMachine("b", backend.Machine{Name: "machine", Pool: "p", Launched: policy.TimeOf(clock.Now())})
		},
		func() { l.remove(l.objects["node n"]) },
		func() { clock.Step(time.Hour); _ = book.Refresh(t.Context()) },
	}
	var held []heldSnapshot
	for i, change := range changes {
		change()
		clock.Step(time.Second)
		s, err := l.observer.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for k := range s.Markets { // as a forecaster does before it is handed on
			if s.Markets[k].Forecast != (policy.Forecast{}) {
				t.Fatalf("after change %d: a snapshot begins with the forecasts of another", i)
			}
			s.Markets[k].Forecast.Hazard = float64(i + 1)
		}
		for k := range s.Pools {
			if s.Pools[k].Actions != nil {
				t.Fatalf("after change %d: a snapshot begins with the action values of another", i)
			}
			s.Pools[k].Actions = []float64{float64(i)}
		}
		held = append(held, hold(t, s))
		for _, h := range held {
			h.check(t)
		}
	}
}

// A runningClock says a later time whenever it is asked.
type runningClock struct {
	clock.PassiveClock
	at time.Time
}

func (c *runningClock) Now() time.Time {
	c.at = c.at.Add(time.Millisecond)
	return c.at
}

// TestNothingIsFromAfterNow observes objects of machines whose clocks are ahead, while
// time passes: what is put back to the present is not from after the snapshot.
func TestNothingIsFromAfterNow(t *testing.T) {
	l := newLab(t)
	c := cluster.DefaultConfig()
	c.Clock = &runningClock{at: epoch}
	var err error
	if l.observer, err = cluster.New(c, l.book); err != nil {
		t.Fatal(err)
	}
	l.informer = &informertest.FakeInformers{Scheme: l.informer.Scheme}
	if err := l.observer.Follow(t.Context(), l.informer); err != nil {
		t.Fatal(err)
	}
	ahead := metav1.Time{Time: epoch.Add(time.Hour)}
	l.put(capacityPool("p"), node("n", func(n *corev1.Node) { n.CreationTimestamp = ahead }))
	for range 3 {
		l.put(pod("w", "n", func(p *corev1.Pod) { p.CreationTimestamp = ahead }))
		if _, err := l.observer.Observe(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
