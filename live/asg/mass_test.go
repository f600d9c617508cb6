package asg

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kubefake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/asg/fake"
	"github.com/spotter-dev/spotter/live/backend"
	backendfake "github.com/spotter-dev/spotter/live/backend/fake"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/test/nightly"
)

// A massReclaim is a cluster of which the provider takes many nodes of several groups at
// once, with a drain pipeline over it. Each call of AWS takes a while.
type massReclaim struct {
	t       testing.TB
	nodes   []string
	ids     []string
	backend *Backend
	drains  *drain.Reconciler
	begun   time.Time

	mu      sync.Mutex
	evicted map[string]time.Duration // by node, since begun
	all     chan struct{}            // closed once a pod of each node was evicted
}

// NodeReleaser returns the backend of every pool.
func (m *massReclaim) NodeReleaser(string, policy.Provisioner) (backend.NodeReleaser, error) {
	return m.backend, nil
}

// newMassReclaim makes groups that share nodes among them, one pod on each.
func newMassReclaim(t testing.TB, groups, nodes int, call time.Duration) *massReclaim {
	t.Helper()
	m := &massReclaim{t: t, evicted: map[string]time.Duration{}, all: make(chan struct{})}
	cloud := fake.New(region, time.Now())
	kube := kubefake.NewClientBuilder().WithScheme(scheme).WithObjects(capacityPool("web")).
		WithIndex(&corev1.Pod{}, drain.IndexPodNode, drain.PodNode).WithIndex(&corev1.Pod{}, "spec.nodeName", drain.PodNode).
		WithIndex(&storagev1.VolumeAttachment{}, drain.IndexAttachmentNode, drain.AttachmentNode)
	for i := range groups {
		g := fake.Group{Name: fmt.Sprintf("web-%d", i), Min: 0, Max: nodes, Desired: nodes / groups, Zones: zones, Types: []string{"m5.large"},
			Mixed: true, Tags: map[string]string{"pool": "web"}, Suspended: []string{"AZRebalance"}}
		cloud.AddGroup(g)
		for _, x := range cloud.Group(g.Name).Instances {
			n := nodeFor(x, true)
			n.UID = types.UID(n.Name)
			m.nodes, m.ids = append(m.nodes, n.Name), append(m.ids, x.ID)
			kube.WithObjects(n, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pod-" + n.Name,
				UID: types.UID("pod-" + n.Name)},
				Spec: corev1.PodSpec{NodeName: n.Name}})
		}
	}
	cloud.SetBefore(func(fake.Call) error { time.Sleep(call); return nil })
	api := interceptor.NewClient(kube.Build(), interceptor.Funcs{SubResourceCreate: m.evict})
	cfg := DefaultConfig()
	cfg.Region, cfg.Endpoint, cfg.Clock, cfg.Log = region, "http://cloud.test", clock.RealClock{}, slog.New(slog.DiscardHandler)
	var err error
	if m.backend, err = New(cfg, awsConfig(cloud), api, api, backendfake.NewSink()); err != nil {
		t.Fatal(err)
	}
	if m.drains, err = drain.New(drain.DefaultConfig(), api, api, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// evict notes the first eviction of each node and carries it out.
func (m *massReclaim) evict(ctx context.Context, c client.Client, sub string, o, body client.Object,
	opts ...client.SubResourceCreateOption) error {
	node := o.GetName()[len("pod-"):]
	m.mu.Lock()
	if _, known := m.evicted[node]; !known {
		m.evicted[node] = time.Since(m.begun)
		if len(m.evicted) == len(m.nodes) {
			close(m.all)
		}
	}
	m.mu.Unlock()
	return c.SubResource(sub).Create(ctx, o, body, opts...)
}

// reclaim has the provider take all nodes, and returns how long it took until each had a
// pod evicted: at most limit. reported says that the backend knows of the notices too.
func (m *massReclaim) reclaim(limit time.Duration, reported bool) time.Duration {
	m.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	if err := m.backend.Poll(ctx); err != nil {
		m.t.Fatal(err)
	}
	wait.Go(func() { _ = m.drains.Run(ctx) })
	m.begun = time.Now()
	at := policy.TimeOf(m.begun.Add(2 * time.Minute))
	for i, node := range m.nodes {
		if reported {
			m.backend.Notice(backend.Notice{Machine: m.ids[i], At: policy.TimeOf(m.begun), ReclaimAt: at})
		}
		m.drains.Notice(drain.Noticed{Node: node, Pool: "web", ReclaimAt: at, Text: "the provider takes it"})
	}
	select {
	case <-m.all:
	case <-time.After(limit):
	}
	took := time.Since(m.begun)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.evicted) < len(m.nodes) {
		m.t.Errorf("of %d nodes that the provider takes, %d had a pod evicted within %v", len(m.nodes), len(m.evicted), took)
	}
	return took
}

// TestMassReclaim: of 160 nodes in four groups, 500 at night, that the provider takes in two minutes,
// all have their pods evicted within one, although each call of AWS takes 400 ms, and
// whether or not the backend knows of the notices.
func TestMassReclaim(t *testing.T) {
	for _, reported := range []bool{true, false} {
		t.Run(fmt.Sprintf("reported %t", reported), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				newMassReclaim(t, 4, nightly.Count(160, 500), 400*time.Millisecond).reclaim(time.Minute, reported)
			})
		})
	}
}

// BenchmarkMassReclaim measures the time until the pods of 500 nodes are being evicted, in
// real time: most of it is that of the API server's fake.
func BenchmarkMassReclaim(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(newMassReclaim(b, 4, 500, 400*time.Millisecond).reclaim(2*time.Minute, true).Seconds(), "s/reclaim")
	}
}

// A call that hangs in one group keeps no other group waiting.
func TestGroupsDoNotWaitForEachOther(t *testing.T) {
	w := newFixture(t, spotGroup(3), fixedGroup(3))
	w.poll()
	hang := make(chan struct{})
	w.cloud.SetBefore(func(c fake.Call) error {
		if strings.Contains(c.Body, "web-od") {
			<-hang
		}
		return nil
	})
	node := func(group string) *corev1.Node { return w.node(w.cloud.Group(group).Instances[0].ID) }
	var wait sync.WaitGroup
	od := node("web-od")
	wait.Go(func() { _ = w.backend.Prepare(w.ctx(), od) })
	ctx, stop := context.WithTimeout(w.ctx(), 10*time.Second)
	defer stop()
	w.must(w.backend.Prepare(ctx, node("web-spot")))
	w.must(w.backend.Release(ctx, node("web-spot")))
	close(hang)
	wait.Wait()
}

// Of two calls that decide about one group at once, the second reads it after the first has
// ended, and knows of it.
func TestOneCallAtATimeForAGroup(t *testing.T) {
	g := spotGroup(3)
	g.Min = 2
	w := newFixture(t, g)
	w.poll()
	var under, held atomic.Int32
	w.cloud.SetBefore(func(fake.Call) error {
		if under.Add(1) > 1 {
			t.Error("two calls of AWS are under way for one group")
		}
		time.Sleep(5 * time.Millisecond)
		under.Add(-1)
		return nil
	})
	var wait sync.WaitGroup
	for _, i := range w.cloud.Group("web-spot").Instances[:2] {
		node := w.node(i.ID)
		wait.Go(func() {
			if isHeld(w.backend.Prepare(w.ctx(), node), ReasonAtMin) {
				held.Add(1)
			}
		})
	}
	wait.Wait()
	if held.Load() != 1 {
		t.Errorf("a group with one instance above its minimum lets %d of 2 go, want 1", 2-held.Load())
	}
}

// A node that the provider takes is prepared without a call of AWS, whether the backend has
// learned of the notice or reads it on the node, as a new leader does. One whose group
// two pools claim is not.
func TestPrepareUnderNotice(t *testing.T) {
	for _, how := range []string{"notice", "mark", "contested"} {
		t.Run(how, func(t *testing.T) {
			w := newFixture(t, spotGroup(3))
			if how == "contested" {
				other := capacityPool("other")
				other.Spec.Backend.AutoScalingGroups.DiscoveryTags = map[string]string{"pool": "web"}
				w.must(w.kube.Create(w.ctx(), other))
			}
			w.poll()
			node := w.node(w.cloud.Group("web-spot").Instances[0].ID)
			if how == "mark" {
				node.Annotations = map[string]string{drain.AnnotationDrain: `{"phase":"evicting","reclaimAt":1}`}
			} else {
				w.backend.Notice(backend.Notice{Machine: node.Spec.ProviderID, ReclaimAt: 1})
			}
			w.cloud.Forget()
			err := w.backend.Prepare(w.ctx(), node)
			if how == "contested" {
				wantHeld(t, err, ReasonConflict)
				return
			}
			w.must(err)
			if calls := w.cloud.Calls(); len(calls) > 0 {
				t.Errorf("AWS was asked for %v", calls)
			}
			if w.node(w.cloud.Group("web-spot").Instances[0].ID).Annotations[AnnotationSwap] != swapSource {
				t.Error("the node is not marked")
			}
		})
	}
}
