package drain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

const (
	space    = "default"
	appLabel = "app"

	// stopsAfter is the annotation of how long a pod of the fixture takes to stop,
	// and its finalizer what keeps it until then.
	stopsAfter = "test/stops-after"
	kubelet    = "test/kubelet"
)

// A fixture is an API server with the controllers that a drain needs: evictions
// under disruption budgets, kubelets, and ReplicaSets that make pods anew. It
// lives in the bubble of a test, where time passes as fast as it is waited for.
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
			WithTypeConverters(managedfields.NewDeducedTypeConverter()). // the others are slow, and nobody applies here
			WithStatusSubresource(&corev1.Pod{}, &policyv1.PodDisruptionBudget{}).
			WithIndex(&corev1.Pod{}, IndexPodNode, PodNode).
			WithIndex(&corev1.Pod{}, "spec.nodeName", PodNode).
			WithIndex(&storagev1.VolumeAttachment{}, IndexAttachmentNode, AttachmentNode).Build()
		w.releaser = &releaser{w: w, prepared: map[string]bool{}, kept: map[string]bool{}, released: map[string]time.Time{}, how: map[string]backend.Replacement{}}
		f(t, w)
	})
}

// kinds returns a scheme of the kinds that a drain knows, and no more: with each
// write the fake client goes through all of them.
func kinds() *runtime.Scheme {
	s := runtime.NewScheme()
	core, apps, policies, storage := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, policyv1.SchemeGroupVersion, storagev1.SchemeGroupVersion
	s.AddKnownTypes(core, &corev1.Node{}, &corev1.NodeList{}, &corev1.Pod{}, &corev1.PodList{})
	s.AddKnownTypes(apps, &appsv1.Deployment{}, &appsv1.DeploymentList{}, &appsv1.ReplicaSet{}, &appsv1.ReplicaSetList{})
	s.AddKnownTypes(policies, &policyv1.PodDisruptionBudget{}, &policyv1.PodDisruptionBudgetList{}, &policyv1.Eviction{})
	s.AddKnownTypes(storage, &storagev1.VolumeAttachment{}, &storagev1.VolumeAttachmentList{})
	for _, group := range []schema.GroupVersion{core, apps, policies, storage} {
		metav1.AddToGroupVersion(s, group)
	}
	return s
}

// client returns a client of which every call goes through the faults.
func (w *fixture) client() client.Client {
	return interceptor.NewClient(w.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return w.guard(ctx, "get "+kindOf(o), func() error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, o client.ObjectList, opts ...client.ListOption) error {
			return w.guard(ctx, "list "+kindOf(o), func() error { return c.List(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			defer w.touch()
			return w.guard(ctx, "patch "+kindOf(o), func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourceCreate: func(ctx context.Context, _ client.Client, sub string, o, body client.Object, opts ...client.SubResourceCreateOption) error {
			so := (&client.SubResourceCreateOptions{}).ApplyOptions(opts)
			op := "evict"
			if len(so.DryRun) > 0 {
				op = "rehearse"
			}
			if sub != "eviction" {
				return fmt.Errorf("subresource %s", sub)
			}
			return w.guard(ctx, op, func() error { return w.evict(o, body.(*policyv1.Eviction), op == "rehearse") })
		},
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
			w.breach("deleted %s %s", kindOf(o), o.GetName())
			return errors.New("a drain deletes nothing")
		},
	})
}

func kindOf(o any) string { return strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1.") }

// guard makes a call that may fail before it is made, or whose answer may be
// lost.
func (w *fixture) guard(ctx context.Context, op string, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.mu.Lock()
	fault, lost := w.fault, w.lost
	w.mu.Unlock()
	if err := w.strike(fault, op); err != nil {
		return err
	}
	err := f()
	if err := w.strike(lost, op); err != nil {
		return err
	}
	return err
}

// strike asks a fault, one call at a time: faults count their calls.
func (w *fixture) strike(fault func(op string) error, op string) error {
	if fault == nil {
		return nil
	}
	w.striking.Lock()
	defer w.striking.Unlock()
	return fault(op)
}

// evicted returns the evictions that were accepted so far.
func (w *fixture) evicted() []eviction {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.evictions)
}

// breach notes that something happened which never must.
func (w *fixture) breach(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.breaches = append(w.breaches, fmt.Sprintf(format, args...))
}

var podResource = schema.GroupResource{Resource: "pods"}

// evict answers as the API server does.
func (w *fixture) evict(o client.Object, e *policyv1.Eviction, dry bool) error {
	ctx := context.Background()
	p := &corev1.Pod{}
	if err := w.api.Get(ctx, client.ObjectKeyFromObject(o), p); err != nil {
		return err
	}
	d := e.DeleteOptions
	if d == nil || d.Preconditions == nil || d.Preconditions.UID == nil {
		w.breach("pod %s evicted without its UID", p.Name)
		return apierrors.NewBadRequest("no UID")
	}
	if *d.Preconditions.UID != p.UID {
		return apierrors.NewConflict(podResource, p.Name, errors.New("the UID in the precondition does not match"))
	}
	if g := d.GracePeriodSeconds; g != nil && *g < 1 {
		w.breach("pod %s evicted with a grace of %d s", p.Name, *g)
	}
	budget, err := w.budgetFor(p)
	if err != nil {
		return err
	}
	if dry {
		return nil
	}
	if budget != nil {
		budget.Status.DisruptionsAllowed--
		if err := w.api.Status().Update(ctx, budget); err != nil {
			return apierrors.NewTooManyRequests("The disruption budget is still being processed by the server.", 1)
		}
	}
	defer w.touch()
	w.stop(p, d.GracePeriodSeconds)
	if p.DeletionTimestamp != nil {
		return nil
	}
	return w.api.Delete(ctx, p)
}

// budgetFor returns the budget that an eviction of p uses up, nil without one, and
// an error if it is refused.
func (w *fixture) budgetFor(p *corev1.Pod) (*policyv1.PodDisruptionBudget, error) {
	all := &policyv1.PodDisruptionBudgetList{}
	if err := w.api.List(context.Background(), all, client.InNamespace(p.Namespace)); err != nil {
		return nil, err
	}
	mine := budgetsOf(p, all.Items)
	if ignoresBudgets(p) || len(mine) == 0 {
		return nil, nil
	}
	if len(mine) > 1 {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500,
			Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}}
	}
	s := &mine[0].Status
	if !ready(p) && (mine[0].Spec.UnhealthyPodEvictionPolicy != nil || s.DesiredHealthy > 0 && s.CurrentHealthy >= s.DesiredHealthy) {
		return nil, nil
	}
	if s.DisruptionsAllowed <= 0 {
		return nil, apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	}
	return mine[0], nil
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

// countBudgets does what the disruption controller does.
func (w *fixture) countBudgets() {
	all := &policyv1.PodDisruptionBudgetList{}
	w.must(w.api.List(context.Background(), all))
	pods := w.pods()
	for i := range all.Items {
		b := &all.Items[i]
		s := policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Generation}
		for _, p := range pods {
			if len(budgetsOf(&p, []policyv1.PodDisruptionBudget{*b})) == 0 || p.DeletionTimestamp != nil {
				continue
			}
			s.ExpectedPods++
			if ready(&p) {
				s.CurrentHealthy++
			}
		}
		if b.Spec.MaxUnavailable != nil {
			s.DesiredHealthy = s.ExpectedPods - scaled(*b.Spec.MaxUnavailable, s.ExpectedPods)
		} else {
			s.DesiredHealthy = scaled(*b.Spec.MinAvailable, s.ExpectedPods)
		}
		s.DisruptionsAllowed = max(0, s.CurrentHealthy-s.DesiredHealthy)
		if !reflect.DeepEqual(s, b.Status) {
			b.Status = s
			if err := w.api.Status().Update(context.Background(), b); apierrors.IsConflict(err) {
				w.touch() // an eviction came in between
			} else {
				w.must(err)
			}
		}
	}
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
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app, UID: types.UID("set-" + app), Controller: &yes}}
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
	return p
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

// Pass works on all drains once, those included that only the nodes tell of.
func (p *Reconciler) Pass(ctx context.Context) error {
	return p.pass(ctx, p.due(), func(*round) {})
}

// Pass writes the costs that were asked for until now.
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
	all := p.due()
	for {
		err := p.Pass(ctx)
		if len(p.toUndo()) == 0 || p.pause(ctx) != nil {
			return account(all), err
		}
	}
}

// A fakeAuthority says what the test says.
type fakeAuthority struct {
	mu       sync.Mutex
	decision permit.Decision // of every pool
	budget   *intstr.IntOrString
	err      error
	asked    int
}

func (a *fakeAuthority) say(v permit.Decision) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.decision = v
}

func (a *fakeAuthority) Pool(context.Context, string) (permit.Decision, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.decision, a.err
}

func (a *fakeAuthority) Spec(context.Context, string) (*v1alpha1.CapacityPool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p, many := &v1alpha1.CapacityPool{}, intstr.FromInt32(100)
	p.Spec.Disruption.Budget = cmp.Or(a.budget, &many)
	return p, a.err
}

func (a *fakeAuthority) Check(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	if a.err != nil || a.decision == permit.Active || permit.IsUndo(ctx) {
		return a.err
	}
	return &permit.Denied{Decision: a.decision}
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

// change writes a node as somebody else.
func (w *fixture) change(name string, f func(*corev1.Node)) {
	n := w.read(name)
	f(n)
	w.must(w.api.Update(context.Background(), n))
	w.touch()
}

// clean fails the test unless nothing of ours is left anywhere, and nothing
// happened that must not.
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

// A releaser is a backend that remembers what was asked of it.
type releaser struct {
	w *fixture

	mu       sync.Mutex
	prepared map[string]bool
	kept     map[string]bool // tokens
	released map[string]time.Time
	how      map[string]backend.Replacement
	calls    []string
	unknown  bool
	notYet   int // how often Release is not ready
}

func (g *releaser) NodeReleaser(pool string, _ policy.Provisioner) (backend.NodeReleaser, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.unknown {
		return nil, fmt.Errorf("there is no pool %s", pool)
	}
	return g, nil
}

// called returns what was asked of the backend so far.
func (g *releaser) called() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.calls)
}

// keep has the backend keep the replacements of tokens, as a Launch does.
func (g *releaser) keep(how backend.Replacement, tokens ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range tokens {
		g.kept[t], g.how[t] = true, how
	}
}

func (g *releaser) Prepare(ctx context.Context, n *corev1.Node) error {
	return g.w.guard(ctx, "prepare", func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.calls = append(g.calls, "prepare "+n.Name)
		g.prepared[n.Name] = true
		return nil
	})
}

func (g *releaser) Replaced(ctx context.Context, tokens []string) (how backend.Replacement, err error) {
	err = g.w.guard(ctx, "replaced", func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		how = backend.ReplacementReady
		for _, t := range tokens {
			if x := g.how[t]; x == backend.ReplacementFailed || how == backend.ReplacementReady {
				how = x
			}
		}
		return nil
	})
	return how, err
}

func (g *releaser) Release(ctx context.Context, n *corev1.Node) error {
	return g.w.guard(ctx, "release", func() error {
		for _, p := range g.w.pods() {
			if p.Spec.NodeName == n.Name && !stays(&p) {
				g.w.breach("node %s given back with pod %s", n.Name, p.Name)
			}
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.calls = append(g.calls, "release "+n.Name)
		if g.notYet > 0 {
			g.notYet--
			return fmt.Errorf("a volume is attached: %w", backend.ErrNotYet)
		}
		if _, ok := g.released[n.Name]; !ok {
			g.released[n.Name] = time.Now()
		}
		return nil
	})
}

func (g *releaser) Undo(ctx context.Context, n *corev1.Node, tokens []string) error {
	return g.w.guard(ctx, "undo", func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.calls = append(g.calls, "undo "+n.Name)
		delete(g.prepared, n.Name)
		g.forget(tokens)
		return nil
	})
}

func (g *releaser) Settle(ctx context.Context, tokens []string) error {
	return g.w.guard(ctx, "settle", func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.calls = append(g.calls, "settle")
		g.forget(tokens)
		return nil
	})
}

func (g *releaser) forget(tokens []string) {
	for _, t := range tokens {
		delete(g.kept, t)
	}
}

// take removes the nodes that were given back 5 s ago.
func (g *releaser) take() {
	g.mu.Lock()
	var due []string
	for name, at := range g.released {
		if time.Since(at) >= 5*time.Second {
			due = append(due, name)
			delete(g.released, name)
		}
	}
	g.mu.Unlock()
	slices.Sort(due)
	for _, name := range due {
		g.w.reclaim(name)
	}
}

// reclaim removes a node and all that is on it.
func (w *fixture) reclaim(name string) {
	ctx := context.Background()
	if n := w.read(name); n != nil {
		w.must(w.api.Delete(ctx, n))
	}
	w.releaser.mu.Lock()
	delete(w.releaser.prepared, name)
	w.releaser.mu.Unlock()
	for _, p := range w.pods() {
		if p.Spec.NodeName == name {
			if p.DeletionTimestamp == nil {
				w.must(w.api.Delete(ctx, &p))
			}
			w.drop(p.Name)
		}
	}
}

// attach attaches a volume to a node.
func (w *fixture) attach(node string) {
	w.must(w.api.Create(context.Background(), &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "v-" + node}, Spec: storagev1.VolumeAttachmentSpec{NodeName: node}}))
}
