package main

import (
	"errors"
	"fmt"
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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/play/watch"
	"github.com/spotter-dev/spotter/test/testenv"
)

// killSwitch is the ConfigMap that stops everything.
const killSwitch = "spotter-kill-switch"

// acts are what may happen, each as often as it stands here.
var acts = []struct {
	name  string
	often int
	do    func(*play, *testing.T)
}{
	{"scale", 4, func(p *play, t *testing.T) { p.scale(t, p.anyPool(), 1+p.rng.Int32N(7)) }},
	{"notice", 3, func(p *play, t *testing.T) { p.warn(t, p.anyPool()) }},
	{"refused markets", 2, func(p *play, t *testing.T) {
		p.refuse(t, []string{"", "*/us-east-1a/spot\n", "*/*/spot\n", "c5.*/*/*\n", "m5.large/*/*\n*/us-east-1b/*\n"}[p.rng.IntN(5)])
	}},
	{"share", 2, func(p *play, t *testing.T) {
		p.edit(t, "shop", fmt.Sprintf(`{"spec":{"policy":{"parameters":{"share":%q}}}}`,
			[]string{"0", "0.25", "0.5", "0.75", "1"}[p.rng.IntN(5)]))
	}},
	{"budget", 2, func(p *play, t *testing.T) {
		if time.Since(p.restarted) > 15*time.Second { // else the watcher may learn of it before what went before
			p.edit(t, p.anyPool(), fmt.Sprintf(`{"spec":{"disruption":{"budget":%s}}}`, []string{`1`, `2`, `"50%"`}[p.rng.IntN(3)]))
		}
	}},
	{"mode", 3, func(p *play, t *testing.T) {
		p.setMode(t, p.anyPool(), []v1alpha1.Mode{v1alpha1.ModeActive, v1alpha1.ModeActive, v1alpha1.ModeShadow, v1alpha1.ModeOff}[p.rng.IntN(4)])
	}},
	{"pool deleted", 1, func(p *play, t *testing.T) { p.deletePool(t, p.anyPool()) }},
	{"kill switch", 2, func(p *play, t *testing.T) {
		p.flip(t, "true")
		p.after(p.seconds(3, 10), func(t *testing.T) { p.flip(t, "false") })
	}},
	{"switch unreadable", 2, func(p *play, t *testing.T) {
		d, status := p.seconds(3, 20), []int{0, 403, 500}[p.rng.IntN(3)]
		for _, m := range p.members {
			m.proxy.Unread("/configmaps/"+killSwitch, status, d)
		}
		p.watcher.order(t, watch.OrderUnread+d.String())
	}},
	{"mark forged", 2, func(p *play, t *testing.T) { p.forge(t, p.anyPool()) }},
	{"do-not-disrupt", 3, func(p *play, t *testing.T) { p.protect(t) }},
	{"budget flood", 1, func(p *play, t *testing.T) { p.flood(t) }},
	{"clock jump", 3, func(p *play, t *testing.T) {
		by := time.Duration(1-2*p.rng.IntN(2)) * p.seconds(3600, 12*3600)
		d := p.seconds(5, 20)
		for _, m := range p.members {
			m.proxy.Shift(by, d)
		}
		if p.rng.IntN(3) == 0 {
			time.Sleep(p.seconds(2, 4)) // it has seen the time of an answer
			p.anyMember().kill()()
		}
	}},
	{"two releases", 3, func(p *play, t *testing.T) { p.compete(t) }},
	{"SIGKILL", 2, func(p *play, t *testing.T) { p.anyMember().kill()() }},
	{"SIGTERM", 2, func(p *play, t *testing.T) { _ = p.anyMember().run.Cmd.Process.Signal(syscall.SIGTERM) }},
	{"killed at a write", 4, func(p *play, t *testing.T) {
		for _, m := range p.started() { // whichever leads
			m.proxy.Strike(1+p.rng.IntN(30), p.rng.IntN(2) == 0, m.kill())
		}
	}},
	{"partition", 3, func(p *play, t *testing.T) {
		m, d := p.anyMember(), p.seconds(2, 15)
		p.watcher.order(t, watch.OrderApart+d.String())
		m.proxy.Part(true)
		p.after(d, func(*testing.T) { m.proxy.Part(false) })
	}},
	{"429", 2, func(p *play, t *testing.T) { p.answer(429) }},
	{"500", 2, func(p *play, t *testing.T) { p.answer(500) }},
	{"API server frozen", 1, func(p *play, t *testing.T) {
		thaw := p.env.Freeze(t, testenv.APIServer)
		time.Sleep(p.seconds(1, 6)) // nothing else can be done meanwhile
		thaw()
		p.restarted = time.Now()
	}},
	{"API server restarted", 1, func(p *play, t *testing.T) {
		p.env.Restart(t, testenv.APIServer)
		testenv.Eventually(t, "the API server answers", func() error {
			return p.client.Get(t.Context(), client.ObjectKey{Name: "default"}, &corev1.Namespace{})
		})
		p.restarted = time.Now()
	}},
	{"node deleted", 1, func(p *play, t *testing.T) { p.deleteNode(t, p.anyPool()) }},
	{"Karpenter restarted", 1, func(p *play, t *testing.T) {
		_ = p.karpenter.Process.Kill()
		p.after(p.seconds(0, 5), func(t *testing.T) { p.startKarpenter(t) })
	}},
}

// act does one thing.
func (p *play) act(t *testing.T) {
	t.Helper()
	all := 0
	for i := range acts {
		all += acts[i].often
	}
	k := p.rng.IntN(all)
	for i := range acts {
		if k -= acts[i].often; k < 0 {
			p.did[acts[i].name]++
			t.Logf("%s %s", time.Now().UTC().Format("15:04:05.000"), acts[i].name)
			acts[i].do(p, t)
			return
		}
	}
}

func (p *play) anyPool() string { return []string{"batch", "shop"}[p.rng.IntN(2)] }

func (p *play) anyMember() *member {
	some := p.started()
	return some[p.rng.IntN(len(some))]
}

func (p *play) seconds(least, most int) time.Duration {
	return time.Duration(least*1000+p.rng.IntN((most-least)*1000)) * time.Millisecond
}

// after has f called when some time has passed, or when all faults end.
func (p *play) after(d time.Duration, f func(*testing.T)) {
	p.heals = append(p.heals, heal{time.Now().Add(d), f})
}

// answer has the writes of all replicas answered by a status for a while.
func (p *play) answer(status int) {
	d := p.seconds(2, 8)
	for _, m := range p.members {
		m.proxy.Answer(status, d)
	}
}

// scale has a workload want another number of pods.
func (p *play) scale(t *testing.T, name string, replicas int32) {
	t.Helper()
	p.expect(name, replicas)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if err := p.client.Patch(t.Context(), d, client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))); err != nil {
		t.Fatal(err)
	}
}

// warn announces the reclaim of a Spot node of a pool, if the pool has one that is not yet under
// notice.
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
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}} // the provider takes it, whatever became of it
		p.after(playedLead, func(t *testing.T) { _ = p.client.Delete(t.Context(), node) })
	case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err): // else another has written it or it is gone
		t.Fatal(err)
	}
}

// deleteNode deletes a node of a pool, as an operator does, if it has one.
func (p *play) deleteNode(t *testing.T, pool string) {
	t.Helper()
	by, err := p.nodes(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	if all := slices.Concat(by["spot"], by["on-demand"]); len(all) > 0 {
		if err := p.client.Delete(t.Context(), &all[p.rng.IntN(len(all))]); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
}

// forge marks a node of a pool as drained and about to be released, as any user who may patch
// nodes can.
func (p *play) forge(t *testing.T, pool string) {
	t.Helper()
	by, err := p.nodes(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(by["spot"], by["on-demand"])
	if len(all) == 0 {
		return
	}
	n := &all[p.rng.IntN(len(all))]
	mark := fmt.Sprintf(`{"phase":"releasing","pool":%q,"provisioner":1,"reason":"share","since":%d}`, pool, time.Now().UnixMilli())
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, drain.AnnotationDrain, mark)
	if err := p.client.Patch(t.Context(), n, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
}

// protect has the owner of a running pod want it left alone for a while: if there is one, of a pod on a node that is
// being emptied.
func (p *play) protect(t *testing.T) {
	t.Helper()
	var pods corev1.PodList
	var nodes corev1.NodeList
	if err := errors.Join(p.client.List(t.Context(), &pods, client.InNamespace("default")), p.client.List(t.Context(), &nodes)); err != nil {
		t.Fatal(err)
	}
	draining := map[string]bool{}
	for i := range nodes.Items {
		draining[nodes.Items[i].Name] = nodes.Items[i].Annotations[drain.AnnotationDrain] != ""
	}
	some := slices.DeleteFunc(slices.Clone(pods.Items), func(x corev1.Pod) bool { return !draining[x.Spec.NodeName] })
	if len(some) == 0 {
		some = pods.Items
	}
	if len(some) == 0 {
		return
	}
	pod := some[p.rng.IntN(len(some))]
	annotate := func(value string) func(*testing.T) {
		return func(t *testing.T) {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":%s}}}`, value)
			x := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
			if err := p.client.Patch(t.Context(), x, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
		}
	}
	annotate(`"true"`)(t)
	p.after(p.seconds(5, 20), annotate("null"))
}

// floodOf is how many budgets a flood makes.
const floodOf = 300

// flood has an editor of a namespace make many GPUBudgets, and delete them after a while.
func (p *play) flood(t *testing.T) {
	t.Helper()
	round, quota := p.did["budget flood"], 1.0
	labels := map[string]string{"flood": fmt.Sprint(round)}
	for i := range floodOf {
		if err := p.client.Create(t.Context(), &v1alpha1.GPUBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("flood-%d-%03d", round, i), Labels: labels},
			Spec: v1alpha1.GPUBudgetSpec{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop", "flood": fmt.Sprint(i)}},
				ResourceName: "cpu", Quota: v1alpha1.Quota{GPUHours: &quota, WindowHours: 24}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	p.after(p.seconds(10, 20), func(t *testing.T) {
		if err := p.client.DeleteAllOf(t.Context(), &v1alpha1.GPUBudget{}, client.InNamespace("default"),
			client.MatchingLabels(labels)); err != nil {
			t.Fatal(err)
		}
	})
}

// refuse has markets refuse launches.
func (p *play) refuse(t *testing.T, patterns string) {
	t.Helper()
	if err := os.WriteFile(p.refused, []byte(patterns), 0o600); err != nil {
		t.Fatal(err)
	}
}

// makePool makes a CapacityPool that lets one node be disrupted at a time.
func (p *play) makePool(t *testing.T, name string) {
	t.Helper()
	x := playPools[name]
	p.pool(t, name, x.sold, x.policy, x.parameters)
	p.edit(t, name, `{"spec":{"disruption":{"budget":1}}}`)
}

// edit changes a pool, if there is one.
func (p *play) edit(t *testing.T, name, patch string) {
	t.Helper()
	pool := &v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := p.client.Patch(t.Context(), pool, client.RawPatch(types.MergePatchType, []byte(patch))); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
}

// setMode sets the mode of a pool, and creates the pool if it does not exist.
func (p *play) setMode(t *testing.T, name string, mode v1alpha1.Mode) {
	t.Helper()
	err := p.client.Get(t.Context(), client.ObjectKey{Name: name}, &v1alpha1.CapacityPool{})
	if apierrors.IsNotFound(err) {
		p.makePool(t, name)
	} else if err != nil {
		t.Fatal(err)
	}
	p.edit(t, name, fmt.Sprintf(`{"spec":{"mode":%q}}`, mode))
}

// deletePool deletes a pool, and recreates it after a while.
func (p *play) deletePool(t *testing.T, name string) {
	t.Helper()
	pool := &v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := p.client.Delete(t.Context(), pool); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	p.after(p.seconds(3, 12), func(t *testing.T) { p.setMode(t, name, v1alpha1.ModeActive) })
}

// flip sets the kill switches of both releases.
func (p *play) flip(t *testing.T, on string) {
	t.Helper()
	for _, namespace := range []string{p.second.namespace, p.namespace} {
		x := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: killSwitch,
			Annotations: map[string]string{"spotter.dev/kill-switch": on}}}
		// An API server that was restarted denies all until its admission is ready.
		err := retry.OnError(wait.Backoff{Steps: 60, Duration: time.Second}, apierrors.IsForbidden, func() error {
			err := p.client.Create(t.Context(), x)
			if apierrors.IsAlreadyExists(err) {
				patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"spotter.dev/kill-switch":%q}}}`, on)
				err = p.client.Patch(t.Context(), x, client.RawPatch(types.MergePatchType, patch))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
