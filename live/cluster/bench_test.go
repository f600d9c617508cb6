package cluster_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	benchNodes = 1000
	benchPods  = 10_000
	benchApps  = 200
)

// benchObjects returns a cluster of a thousand nodes and ten thousand pods of two hundred
// Deployments.
func benchObjects() []client.Object {
	var all []client.Object
	replicas := int32(benchPods / benchApps)
	for i := range benchApps {
		name := fmt.Sprintf("app-%d", i)
		all = append(all, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Template: corev1.PodTemplateSpec{Spec: pod("x", "").Spec}}},
			&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name + "-5d", OwnerReferences: controller("Deployment", name)}})
	}
	for i := range benchNodes {
		all = append(all, node(fmt.Sprintf("node-%d", i), func(n *corev1.Node) {
			n.Labels["topology.kubernetes.io/zone"] = []string{"us-east-1a", "us-east-1b"}[i%2]
		}))
	}
	for i := range benchPods {
		all = append(all, benchPod(i, i%benchNodes))
	}
	for _, o := range all {
		o.SetUID(types.UID(fmt.Sprintf("%T %s", o, nameOf(o))))
	}
	return all
}

func benchPod(i, on int) *corev1.Pod {
	app := fmt.Sprintf("app-%d", i%benchApps)
	return pod(fmt.Sprintf("%s-5d-%d", app, i), fmt.Sprintf("node-%d", on), ownedBy("ReplicaSet", app+"-5d"), func(p *corev1.Pod) {
		p.Labels["app"], p.Labels["pod-template-hash"] = app, "5d"
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "B"}}
	})
}

func benchLab(b *testing.B, objects []client.Object) *lab {
	l := &lab{newMarkets(b), nil}
	for _, o := range objects {
		l.informerOf(o).Add(o)
	}
	l.clock.SetTime(epoch)
	return l
}

// BenchmarkObserve builds the snapshot of a thousand nodes and ten thousand pods:
// from nothing, after nothing has changed, and after one pod in a hundred and one
// node in a hundred have.
func BenchmarkObserve(b *testing.B) {
	objects := benchObjects()
	b.Run("full", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			l := benchLab(b, objects)
			b.StartTimer()
			if _, err := l.observer.Observe(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, c := range []struct {
		name string
		pods int
	}{{"same", 0}, {"one-percent", benchPods / 100}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			l := benchLab(b, objects)
			if _, err := l.observer.Observe(context.Background()); err != nil {
				b.Fatal(err)
			}
			now := time.Duration(0)
			for round := 0; b.Loop(); round++ {
				b.StopTimer()
				for i := range c.pods {
					k := (round*c.pods + i) % benchPods
					p := benchPod(k, k%benchNodes)
					p.UID = types.UID(fmt.Sprintf("%T %s", p, nameOf(p)))
					p.Annotations["round"] = fmt.Sprint(round)
					l.informerOf(p).Update(p, p)
				}
				for i := range c.pods / 10 {
					n := node(fmt.Sprintf("node-%d", (round+i*97)%benchNodes))
					n.UID = types.UID(fmt.Sprintf("%T %s", n, nameOf(n)))
					l.informerOf(n).Update(n, n)
				}
				now += time.Second
				l.clock.SetTime(epoch.Add(now))
				b.StartTimer()
				if _, err := l.observer.Observe(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMemory shows what the tables take in addition to the objects of the cache.
func BenchmarkMemory(b *testing.B) {
	objects := benchObjects()
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		l := benchLab(b, objects)
		for range 2 {
			if _, err := l.observer.Observe(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(l)
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
}

// BenchmarkObserveFlood builds the snapshot after one pod has changed, where an editor of one
// namespace has grown what it may: ten thousand pods of their own with own labels, and
// thousands of disruption budgets, or labels and annotations of the greatest size.
func BenchmarkObserveFlood(b *testing.B) {
	for name, c := range map[string]struct {
		pdbs   int
		change func(p *corev1.Pod)
	}{
		"pods":        {0, func(*corev1.Pod) {}},
		"pdbs":        {5000, func(*corev1.Pod) {}},
		"labels":      {0, func(p *corev1.Pod) { fillMap(p.Labels, 500) }},
		"annotations": {0, func(p *corev1.Pod) { p.Annotations = map[string]string{}; fillMap(p.Annotations, 500) }},
		"owners": {0, func(p *corev1.Pod) {
			for i := range 100 {
				p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "X", Name: fmt.Sprint(i), UID: "u"})
			}
		}},
	} {
		b.Run(name, func(b *testing.B) {
			objects := []client.Object{}
			for i := range 1000 {
				objects = append(objects, node(fmt.Sprintf("node-%d", i)))
			}
			for i := range 10_000 {
				p := pod(fmt.Sprintf("p-%d", i), fmt.Sprintf("node-%d", i%1000))
				p.Labels = map[string]string{"own": fmt.Sprint(i)}
				c.change(p)
				objects = append(objects, p)
			}
			for i := range c.pdbs {
				objects = append(objects, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint("b", i)},
					Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"own": fmt.Sprint(i)}}}})
			}
			l := benchLab(b, objects)
			if _, err := l.observer.Observe(context.Background()); err != nil {
				b.Fatal(err)
			}
			n := 0
			for b.Loop() {
				n++
				p := pod("p-1", "node-1")
				p.Labels = map[string]string{"own": fmt.Sprint("again", n)}
				c.change(p)
				p.ResourceVersion = fmt.Sprint(n)
				l.informerOf(p).Add(p)
				if _, err := l.observer.Observe(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func fillMap(m map[string]string, n int) {
	for i := range n {
		m[fmt.Sprintf("key-%03d", i)] = "a value of some length, as tools write"
	}
}
