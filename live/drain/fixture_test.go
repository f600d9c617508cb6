package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

const (
	space    = "default"
	appLabel = "app"

	// stopsAfter is the annotation of how long a pod of the fixture takes to stop,
	// and its finalizer what keeps it until then.
	stopsAfter = "test/stops-after"
	kubelet    = "test/kubelet"
)

// A fixture is an API server with the controllers that a drain needs: evictions under disruption
// budgets, kubelets, and ReplicaSets that recreate pods. It runs in the bubble of a test, where
// waiting takes no time.
type fixture struct {
	t        *testing.T
	api      client.WithWatch // without faults
	releaser *releaser

	striking  sync.Mutex // held while a fault is asked
	mu        sync.Mutex
	fault     func(op string) error // asked before each call; nil means none
	lost      func(op string) error // asked after each call
	evictions []eviction
	ends      map[types.UID]end
	changed   bool // since the controllers last looked
	born      int
	breaches  []string
}

// An eviction is one that was accepted.
type eviction struct {
	pod, node string
	grace     *int64
	at        time.Time
}

// An end is when the process of a pod will have ended.
type end struct {
	pod string
	at  time.Time
}

// inFixture runs f in a bubble with a new fixture.
func inFixture(t *testing.T, f func(*testing.T, *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &fixture{t: t, ends: map[types.UID]end{}}
		w.api = fake.NewClientBuilder().WithScheme(kinds()).
			WithTypeConverters(managedfields.NewDeducedTypeConverter()). // the others are slow; no test applies
			WithStatusSubresource(&corev1.Pod{}, &policyv1.PodDisruptionBudget{}).
			WithIndex(&corev1.Pod{}, IndexPodNode, PodNode).
			WithIndex(&corev1.Pod{}, "spec.nodeName", PodNode).
			WithIndex(&storagev1.VolumeAttachment{}, IndexAttachmentNode, AttachmentNode).Build()
		w.releaser = &releaser{w: w, prepared: map[string]bool{}, kept: map[string]bool{}, released: map[string]time.Time{},
			how: map[string]backend.Replacement{}}
		f(t, w)
	})
}

// stop notes when the process of p will have ended.
func (w *fixture) stop(p *corev1.Pod, grace *int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	takes, _ := time.ParseDuration(p.Annotations[stopsAfter])
	takes = min(takes, time.Duration(graceOf(p))*time.Second)
	if grace != nil {
		takes = min(takes, time.Duration(*grace)*time.Second)
	}
	at := time.Now().Add(takes)
	if old, ok := w.ends[p.UID]; !ok || at.Before(old.at) {
		w.ends[p.UID] = end{pod: p.Name, at: at}
	}
	w.evictions = append(w.evictions, eviction{pod: p.Name, node: p.Spec.NodeName, grace: grace, at: time.Now()})
}

// live lets the controllers work once a second until ctx ends.
func (w *fixture) live(ctx context.Context) {
	for ctx.Err() == nil {
		w.tick()
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// tick does what the controllers have to do now.
func (w *fixture) tick() {
	w.endPods()
	w.releaser.take()
	w.mu.Lock()
	changed := w.changed
	w.changed = false
	w.mu.Unlock()
	if changed {
		w.makePods()
		w.countBudgets()
	}
}

// touch has the controllers look at the next tick.
func (w *fixture) touch() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed = true
}

func (w *fixture) pods() []corev1.Pod {
	all := &corev1.PodList{}
	w.must(w.api.List(context.Background(), all))
	return all.Items
}

func (w *fixture) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *fixture) endPods() {
	w.mu.Lock()
	var due []string
	for uid, e := range w.ends {
		if !time.Now().Before(e.at) {
			due = append(due, e.pod)
			delete(w.ends, uid)
		}
	}
	w.mu.Unlock()
	slices.Sort(due)
	for _, name := range due {
		w.drop(name)
	}
}

// drop takes a pod that is terminating out of the API.
func (w *fixture) drop(name string) {
	ctx, p := context.Background(), &corev1.Pod{}
	err := w.api.Get(ctx, client.ObjectKey{Namespace: space, Name: name}, p)
	if apierrors.IsNotFound(err) {
		return
	}
	w.must(err)
	p.Finalizers = nil
	w.must(client.IgnoreNotFound(w.api.Update(ctx, p)))
	w.touch()
}

// makePods has every workload make the pods that it lacks, on the first node that
// takes pods. They are ready at the next tick.
func (w *fixture) makePods() {
	all := &appsv1.DeploymentList{}
	w.must(w.api.List(context.Background(), all))
	pods := w.pods()
	for i := range all.Items {
		active := int32(0)
		for _, p := range pods {
			if p.Labels[appLabel] == all.Items[i].Name && p.DeletionTimestamp == nil {
				active++
				w.setReady(&p)
			}
		}
		for ; active < *all.Items[i].Spec.Replicas; active++ {
			if node := w.openNode(); node != "" {
				w.pod(all.Items[i].Name, node, func(p *corev1.Pod) { p.Status.Conditions = nil })
			}
		}
	}
}

func (w *fixture) setReady(p *corev1.Pod) {
	if len(p.Status.Conditions) == 0 {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		w.must(w.api.Status().Update(context.Background(), p))
		w.touch()
	}
}

// openNode returns the last node that takes pods.
func (w *fixture) openNode() string {
	name := ""
	for _, n := range w.nodes() {
		if !n.Spec.Unschedulable && !tainted(&n) && n.DeletionTimestamp == nil {
			name = n.Name
		}
	}
	return name
}

func (w *fixture) nodes() []corev1.Node {
	all := &corev1.NodeList{}
	w.must(w.api.List(context.Background(), all))
	return all.Items
}

// node adds a node.
func (w *fixture) node(name string) *corev1.Node {
	w.mu.Lock()
	w.born++
	uid := types.UID(fmt.Sprintf("node-%d", w.born))
	w.mu.Unlock()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}
	w.must(w.api.Create(context.Background(), n))
	return n
}

// pod adds a ready pod of app to node; without an app it has no controller.
func (w *fixture) pod(app, node string, changes ...func(*corev1.Pod)) *corev1.Pod {
	w.mu.Lock()
	w.born++
	id := w.born
	w.mu.Unlock()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: space, Name: fmt.Sprintf("%s-%d", app, id), UID: types.UID(fmt.Sprintf("pod-%d", id)),
			Labels: map[string]string{appLabel: app}, Annotations: map[string]string{stopsAfter: "5s"}, Finalizers: []string{kubelet},
		},
		Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		}},
	}
	if app == "" {
		p.Name = fmt.Sprintf("bare-%d", id)
	} else {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app,
			UID: types.UID("set-" + app), Controller: &yes}}
	}
	for _, change := range changes {
		change(p)
	}
	status := p.Status
	w.must(w.api.Create(context.Background(), p))
	w.touch()
	p.Status = status
	w.must(w.api.Status().Update(context.Background(), p))
	return p
}

// app adds a Deployment with a pod on each of nodes.
func (w *fixture) app(name string, nodes ...string) {
	ctx, yes, replicas := context.Background(), true, int32(len(nodes))
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: name}}
	w.must(w.api.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name, UID: types.UID("deployment-" + name)},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector},
	}))
	w.must(w.api.Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name, UID: types.UID("set-" + name), OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "Deployment", Name: name, UID: types.UID("deployment-" + name), Controller: &yes},
		}},
		Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: selector},
	}))
	for _, node := range nodes {
		w.pod(name, node)
	}
}

// budget adds a disruption budget of app that lets unavailable pods miss.
func (w *fixture) budget(name, app string, unavailable int32) {
	n := intstr.FromInt32(unavailable)
	w.must(w.api.Create(context.Background(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: name, UID: types.UID("budget-" + name)},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &n, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{appLabel: app}},
		},
	}))
	w.countBudgets()
}

// pipeline returns a pipeline over the fixture. Its clock is the real one, which the
// bubble replaces.
func (w *fixture) pipeline(changes ...func(*Config)) *Reconciler {
	w.t.Helper()
	cfg := DefaultConfig()
	for _, change := range changes {
		change(&cfg)
	}
	c := w.client()
	p, err := New(cfg, c, c, w.releaser)
	w.must(err)
	p.Trust([]byte("of this cluster"))
	return p
}

// stays reports whether a pod may be on a node that is released.
func (w *fixture) stays(p *corev1.Pod) bool {
	node := nodeKey{name: p.Spec.NodeName}
	if n := w.read(p.Spec.NodeName); n != nil {
		node.uid = n.UID
	}
	stays, err := stays(context.Background(), w.api, p, node)
	w.must(err)
	return stays
}

// running has the pipeline and the controllers run until the test calls stop.
func (w *fixture) running(p *Reconciler) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	wait.Go(func() { _ = p.Run(ctx) })
	wait.Go(func() { w.live(ctx) })
	return func() {
		// Off all beats: a queue that is shut down while an item becomes ready never ends.
		time.Sleep(37 * time.Millisecond)
		synctest.Wait()
		cancel()
		wait.Wait()
	}
}

// Pass works on all drains once, those included that only the nodes show.
func (p *Reconciler) Pass(ctx context.Context) error {
	return p.pass(ctx, p.table.due(), func(*round) {})
}

// Pass writes the costs that have been requested.
func (k *Ranker) Pass(ctx context.Context) error {
	var failed []error
	for k.queue.Len() > 0 {
		k.one(ctx, func(err error) { failed = append(failed, err) })
	}
	return errors.Join(failed...)
}

// takeOver takes up what a process before left, and works on it until nothing is left to
// be undone, for a minute at most.
func (p *Reconciler) takeOver(ctx context.Context) (Settled, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := p.adopt(ctx)
	for err != nil && p.pause(ctx) == nil {
		err = p.adopt(ctx)
	}
	return p.settled(ctx)
}

// settled works on all drains until nothing is left to be undone.
func (p *Reconciler) settled(ctx context.Context) (Settled, error) {
	all := p.table.due()
	for {
		err := p.Pass(ctx)
		if len(p.table.toUndo()) == 0 || p.pause(ctx) != nil {
			return account(all), err
		}
	}
}

// planned returns a snapshot of one node and the drain of it.
func planned(node string, changes ...func(*policy.Node, *policy.Drain)) (*policy.Snapshot, *policy.Drain) {
	s := &policy.Snapshot{
		Now:   policy.TimeOf(time.Now()),
		Pools: []policy.Pool{{Name: "web"}},
		Nodes: []policy.Node{{Name: node, Pool: 0, Phase: policy.NodeInitialized}},
	}
	d := &policy.Drain{Why: policy.Why{Reason: policy.ReasonCheaper, Text: "the same for less"}}
	for _, change := range changes {
		change(&s.Nodes[0], d)
	}
	return s, d
}

func notice(in time.Duration) func(*policy.Node, *policy.Drain) {
	return func(n *policy.Node, _ *policy.Drain) {
		n.NoticeAt, n.ReclaimAt = policy.TimeOf(time.Now()), policy.TimeOf(time.Now().Add(in))
	}
}

func after(tokens ...string) func(*policy.Node, *policy.Drain) {
	return func(_ *policy.Node, d *policy.Drain) { d.After = tokens }
}

// read returns a node, nil without one.
func (w *fixture) read(name string) *corev1.Node {
	n := &corev1.Node{}
	err := w.api.Get(context.Background(), client.ObjectKey{Name: name}, n)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return n
}

// change writes a node as another controller or user would.
func (w *fixture) change(name string, f func(*corev1.Node)) {
	n := w.read(name)
	f(n)
	w.must(w.api.Update(context.Background(), n))
	w.touch()
}

// clean fails the test if any mark of Spotter is left, or if something happened that must not.
func (w *fixture) clean(format string, args ...any) {
	w.t.Helper()
	where := fmt.Sprintf(format, args...)
	for _, n := range w.nodes() {
		if _, ours := readState(&n); ours {
			w.t.Errorf("%s: node %s still carries our marks: %v, taints %v", where, n.Name, n.Annotations, n.Spec.Taints)
		}
		if n.Spec.Unschedulable && n.Annotations["test/cordoned"] == "" {
			w.t.Errorf("%s: node %s was left cordoned", where, n.Name)
		}
	}
	w.releaser.mu.Lock()
	defer w.releaser.mu.Unlock()
	for name := range w.releaser.prepared {
		if w.read(name) != nil {
			w.t.Errorf("%s: what the backend did to node %s was not undone", where, name)
		}
	}
	for token := range w.releaser.kept {
		w.t.Errorf("%s: the replacement of %s is still kept", where, token)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.breaches {
		w.t.Errorf("%s: %s", where, b)
	}
}
