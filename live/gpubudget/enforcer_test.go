package gpubudget

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/limit"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// rules are all that an enforcer needs: in shadow it uses the first three.
var rules = []rbacv1.PolicyRule{
	{APIGroups: []string{"spotter.dev"}, Resources: []string{"gpubudgets"}, Verbs: []string{"get", "list"}},
	{APIGroups: []string{""}, Resources: []string{"configmaps", "pods", "namespaces"}, Verbs: []string{"get", "list"}},
	{APIGroups: []string{"spotter.dev"}, Resources: []string{"gpubudgets/status"}, Verbs: []string{"patch"}},
	{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "update", "delete"}},
	{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
	{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"get", "patch"}},
}

// A fixture is an enforcer with the least rights, before a snapshot of one budget.
type fixture struct {
	env      *testenv.Env
	ns       string
	user     string
	enforcer *Enforcer
	budget   *v1alpha1.GPUBudget
	snap     *policy.Snapshot
	memory   policy.BudgetMemory
}

func newStage(t *testing.T, enforcing bool) *fixture {
	t.Helper()
	env := testenv.Start(t, testenv.Options{})
	x := &fixture{env: env, ns: gatedNamespace(t, env), user: "spotter-enforcer-" +
		strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))}
	pace, err := limit.New(limit.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(pace.Wrap(env.User(t, x.user, rules...), false), client.Options{Scheme: env.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	x.enforcer = newEnforcer(t, testingclock.NewFakeClock(start), c, enforcing)
	x.enforcer.cfg.Namespace = x.ns
	x.budget = newBudget(t, env, x.ns, "b", metav1.LabelSelector{MatchLabels: label("team", "ml")})
	x.snap = &policy.Snapshot{
		Now: policy.Time(start.UnixMilli()), Budgets: tableOf(x.budget),
		Templates: []policy.Template{{Namespace: x.ns, Labels: []policy.Label{{Key: "team", Value: "ml"}},
			Requests: policy.Resources{GPU: 2}, GPUResource: gpu}},
		Nodes: []policy.Node{{Name: "n", Market: policy.None, Pool: policy.None}},
		Pods:  []policy.Pod{{Name: x.ns + "/p", Phase: policy.PodReady, Bound: 1}},
	}
	x.memory = policy.BudgetMemory{Name: x.ns + "/b", Used: 11 * 3_600_000_000, Over: x.snap.Now, Closed: true,
		Buckets: []policy.BudgetBucket{{Hour: x.snap.Now.Add(-10 * time.Hour), Used: 3_600_000_000 * 5},
			{Hour: x.snap.Now.Add(-5 * time.Hour), Used: 3_600_000_000 * 6}}}
	return x
}

func (x *fixture) save(t *testing.T) {
	t.Helper()
	must(t, save(x.enforcer, x.memory))
}

// status reports after a step and reads what is written.
func (x *fixture) status(t *testing.T) *v1alpha1.GPUBudgetStatus {
	t.Helper()
	if err := x.enforcer.Report(t.Context(), x.snap); err != nil {
		t.Fatal(err)
	}
	if err := x.env.Client.Get(t.Context(), client.ObjectKeyFromObject(x.budget), x.budget); err != nil {
		t.Fatal(err)
	}
	return &x.budget.Status
}

// held reports whether err is a hold for a reason.
func held(err error, reason string) bool {
	var h *backend.Held
	return errors.As(err, &h) && h.Reason == reason
}

func closing(x *fixture) *policy.Gate {
	return &policy.Gate{Budget: x.memory.Name, Closed: true, Why: policy.Why{Text: "spent"}}
}

// TestStatus writes what is used, what is left, and when the gate opens.
func TestStatus(t *testing.T) {
	x := newStage(t, true)
	x.save(t)
	st := x.status(t)
	if st.Consumed.GPUHours != "11.000" || st.Remaining.GPUHours != "0.000" || st.TrackedPods != 1 ||
		st.Gate != v1alpha1.GateClosed || st.ObservedGeneration != 1 {
		t.Errorf("%+v", st)
	}
	// 11 hours are used and a tenth of 10 must be free: the first bucket, of 5
	// hours, leaves evenly from 14 hours on, and 2 of it have left after 24 minutes.
	opens := start.Add(14*time.Hour + 24*time.Minute)
	if st.ReopensAt == nil || st.ReopensAt.Sub(opens).Abs() > time.Second {
		t.Errorf("it opens at %v, want %v", st.ReopensAt, opens)
	}
	for kind, reason := range map[string]string{"Ready": "Counting", "Spent": "QuotaReached", "GateEnforced": "Enabled"} {
		if c := meta.FindStatusCondition(st.Conditions, kind); c == nil || c.Reason != reason ||
			c.Status != metav1.ConditionTrue || c.ObservedGeneration != 1 {
			t.Errorf("condition %s: %+v", kind, c)
		}
	}
	mark := x.env.Mark()
	writes := func(want int, what string) {
		t.Helper()
		x.status(t)
		got := x.env.Audit(t, mark, func(e testenv.AuditEvent) bool { return e.User == x.user && e.Writes() && e.Resource == "gpubudgets" })
		if len(got) != want {
			t.Errorf("%s: %v, want %d", what, got, want)
		}
	}
	writes(0, "nothing has changed")
	x.memory.Used += 36_000_000
	x.enforcer.ledgers.memory = []policy.BudgetMemory{x.memory}
	writes(0, "use has changed within the minute")
	x.snap.Now = x.snap.Now.Add(time.Minute)
	writes(1, "use has changed")
	x.snap.Now = x.snap.Now.Add(4 * time.Minute)
	writes(1, "a closed gate was confirmed four minutes ago")
	x.snap.Now = x.snap.Now.Add(2 * time.Minute)
	writes(2, "a closed gate is confirmed")
	x.memory.Closed, x.memory.Over = false, 0
	x.enforcer.ledgers.memory = []policy.BudgetMemory{x.memory}
	writes(3, "the gate opens")
	if st := x.status(t); st.Gate != v1alpha1.GateOpen || st.ReopensAt != nil || meta.IsStatusConditionTrue(st.Conditions, "Spent") {
		t.Errorf("%+v", st)
	}
}

// TestRule12Shadow makes every call to an enforcer that may not enforce. It reports what it would
// do and writes its ledger and its status.
func TestRule12Shadow(t *testing.T) {
	x := newStage(t, false)
	mark := x.env.Mark()
	x.save(t)
	if st := x.status(t); st.Gate != v1alpha1.GateWouldClose {
		t.Errorf("the gate is %q", st.Gate)
	}
	if c := meta.FindStatusCondition(x.budget.Status.Conditions, "GateEnforced"); c == nil || c.Reason != "Shadow" ||
		c.Status != metav1.ConditionFalse {
		t.Errorf("%+v", c)
	}
	for what, err := range map[string]error{
		"gate":  x.enforcer.Gate(t.Context(), x.snap, closing(x)),
		"pause": x.enforcer.Pause(t.Context(), x.snap, &policy.Pause{Paused: true}),
		"evict": x.enforcer.Evict(t.Context(), x.snap, &policy.Evict{}),
	} {
		if !held(err, "Shadow") {
			t.Errorf("%s: %v", what, err)
		}
	}
	writes := x.env.Audit(t, mark, func(e testenv.AuditEvent) bool { return e.User == x.user && e.Writes() })
	if len(writes) != 2 {
		t.Errorf("it writes %v", writes)
	}
	for _, e := range writes {
		if e.Resource != "configmaps" && (e.Resource != "gpubudgets" || e.Subresource != "status") {
			t.Errorf("it writes %v", e)
		}
	}
	if b := tableOf(x.budget); b[0].Closed {
		t.Error("a gate that would close is closed")
	}
}

// TestRule12Evict closes the gate before a pod goes that would come back.
func TestRule12Evict(t *testing.T) {
	x := newStage(t, true)
	x.save(t)
	owned := gpuPod(x.ns, label("team", "ml"))
	owned.Name, owned.GenerateName = "p", ""
	yes := true
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: x.ns, Name: "rs"}, Spec: appsv1.ReplicaSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: label("team",
			"ml")}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: label("team", "ml")}, Spec: owned.Spec},
	}}
	if err := x.env.Client.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: set.UID, Controller: &yes}}
	if err := x.env.Client.Create(t.Context(), owned); err != nil {
		t.Fatal(err)
	}
	order := &policy.Evict{Pod: 0, Budget: x.memory.Name, HasGrace: true, Grace: 20 * time.Second}
	if err := x.enforcer.Evict(t.Context(), x.snap, order); !held(err, "GateOpen") {
		t.Fatalf("before an open gate: %v", err)
	}
	if err := x.enforcer.Gate(t.Context(), x.snap, closing(x)); err != nil {
		t.Fatal(err)
	}
	if st := x.status(t); st.Gate != v1alpha1.GateClosed || st.CountedAt == nil {
		t.Fatalf("%+v", st)
	}
	strip := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+GateLabel+`":null}}}`))
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: x.ns}}
	if err := x.env.Client.Patch(t.Context(), ns, strip); err != nil {
		t.Fatal(err)
	}
	if err := x.enforcer.Evict(t.Context(), x.snap, order); !held(err, "NamespaceNotGated") {
		t.Fatalf("in a namespace without a gate: %v", err)
	}
	gated := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"`+GateLabel+`":"`+GateEnabled+`"}}}`))
	if err := x.env.Client.Patch(t.Context(), ns, gated); err != nil {
		t.Fatal(err)
	}
	mark := x.env.Mark()
	if err := x.enforcer.Evict(t.Context(), x.snap, order); err != nil {
		t.Fatal(err)
	}
	sent := x.env.Audit(t, mark, func(e testenv.AuditEvent) bool { return e.User == x.user && e.Subresource == "eviction" })
	if len(sent) != 1 || !strings.Contains(string(sent[0].Request), `"uid":"`+string(owned.UID)+`"`) ||
		!strings.Contains(string(sent[0].Request), `"gracePeriodSeconds":20`) {
		t.Fatalf("%v", sent)
	}
	if err := x.enforcer.Evict(t.Context(), x.snap, order); err != nil {
		t.Errorf("a pod that is gone: %v", err)
	}
}

// TestRule10EvictAnswers meets disruption budgets that refuse.
func TestRule10EvictAnswers(t *testing.T) {
	x := newStage(t, true)
	setGate(t, x.env, x.budget, v1alpha1.GateClosed, start, time.Time{})
	pod := gpuPod(x.ns, label("team", "ml"))
	pod.Name, pod.GenerateName = "p", ""
	if err := x.env.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase = corev1.PodRunning
	if err := x.env.Client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "TwoDisruptionBudgets"} {
		one := intstr.FromInt32(1)
		pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: x.ns, Name: fmt.Sprint("b", i)},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: label("team", "ml")},
			}}
		if err := x.env.Client.Create(t.Context(), pdb); err != nil {
			t.Fatal(err)
		}
		err := x.enforcer.Evict(t.Context(), x.snap, &policy.Evict{Budget: x.memory.Name})
		if want == "" && err != nil || want != "" && !held(err, want) {
			t.Errorf("%d disruption budgets: %v", i+1, err)
		}
		if err := x.env.Client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil || pod.DeletionTimestamp != nil {
			t.Errorf("%d disruption budgets: the pod goes: %v", i+1, err)
		}
	}
}

// TestPause suspends a Job and resumes it, and leaves alone what others suspend.
func TestPause(t *testing.T) {
	x := newStage(t, true)
	setAction(t, x.env, x.budget, v1alpha1.EnforcePause)
	setGate(t, x.env, x.budget, v1alpha1.GateClosed, start, time.Time{})
	x.snap.Budgets = tableOf(x.budget)
	job := func(name string, change func(*batchv1.Job)) *batchv1.Job {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: x.ns, Name: name}}
		j.Spec.Template.Spec = gpuPod(x.ns, nil).Spec
		j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		change(j)
		if err := x.env.Client.Create(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		x.snap.Workloads = append(x.snap.Workloads, policy.Workload{ID: policy.WorkloadID(len(x.snap.Workloads)),
			Name: x.ns + "/" + name, Kind: policy.KindJob})
		return j
	}
	yes := true
	plain := job("plain", func(*batchv1.Job) {})
	users := job("users", func(j *batchv1.Job) { j.Spec.Suspend = &yes })
	job("queued", func(j *batchv1.Job) { j.Labels = label(queueName, "team") })
	job("owned", func(j *batchv1.Job) {
		j.OwnerReferences = []metav1.OwnerReference{{APIVersion: "x.io/v1", Kind: "JobSet", Name: "s", UID: "u", Controller: &yes}}
	})
	x.snap.Workloads = append(x.snap.Workloads, policy.Workload{ID: 4, Name: x.ns + "/web", Kind: policy.KindDeployment},
		policy.Workload{ID: 5, Name: x.ns + "/gone", Kind: policy.KindJob})
	pause := func(w policy.WorkloadID, on bool) error {
		return x.enforcer.Pause(t.Context(), x.snap, &policy.Pause{Workload: w, Budget: x.memory.Name, Paused: on})
	}
	is := func(j *batchv1.Job, suspended bool, by string) {
		t.Helper()
		if err := x.env.Client.Get(t.Context(), client.ObjectKeyFromObject(j), j); err != nil {
			t.Fatal(err)
		}
		if *j.Spec.Suspend != suspended || j.Annotations[PausedBy] != by {
			t.Errorf("%s: suspended %v by %q", j.Name, *j.Spec.Suspend, j.Annotations[PausedBy])
		}
	}
	for _, on := range []bool{true, true, false, false} {
		if err := pause(0, on); err != nil {
			t.Fatal(err)
		}
		by := ""
		if on {
			by = x.memory.Name
		}
		is(plain, on, by)
		if err := pause(1, on); err != nil {
			t.Fatal(err)
		}
		is(users, true, "")
	}
	for w, reason := range map[policy.WorkloadID]string{2: "SuspendedByOther", 3: "SuspendedByOther", 4: "NotAJob"} {
		if err := pause(w, true); !held(err, reason) {
			t.Errorf("%s: %v", x.snap.Workloads[w].Name, err)
		}
	}
	if err := pause(5, true); err != nil {
		t.Errorf("a job that is gone: %v", err)
	}
}

// TestInvalid reports a budget that no API server would take now, and counts the
// others.
func TestInvalid(t *testing.T) {
	bad, good := budgetObject("ml", "bad"), budgetObject("ml", "good")
	bad.Spec.Quota.WindowHours = 0
	bad.Status.Gate = v1alpha1.GateClosed
	table := tableOf(good, bad)
	if len(table) != 2 || table[0].Name != "ml/bad" || !table[0].Invalid || table[1].Invalid {
		t.Errorf("%v", table)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ml"}}
	k := newEnforcer(t, testingclock.NewFakeClock(start), fakeClient(t, noFuncs, bad, good, ns), true)
	must(t, save(k, memory("ml/good", 0)))
	if err := k.Report(t.Context(), &policy.Snapshot{Now: 1000, Budgets: table}); err != nil {
		t.Fatal(err)
	}
	for _, b := range []*v1alpha1.GPUBudget{bad, good} {
		if err := k.client.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
			t.Fatal(err)
		}
	}
	c := meta.FindStatusCondition(bad.Status.Conditions, "Ready")
	if c == nil || c.Reason != "Invalid" || !strings.Contains(c.Message, "windowHours") || bad.Status.Gate != v1alpha1.GateOpen {
		t.Errorf("%+v", bad.Status)
	}
	if !meta.IsStatusConditionTrue(good.Status.Conditions, "Ready") {
		t.Errorf("%+v", good.Status)
	}
}

// TestIdle: while another release acts, ledgers are kept and no status is written.
func TestIdle(t *testing.T) {
	b, ns := budgetObject("ml", "b"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ml"}}
	c := fakeClient(t, noFuncs, b, ns)
	k, idle := newEnforcer(t, testingclock.NewFakeClock(start), c, true), true
	k.cfg.Idle = func() bool { return idle }
	_ = k.Save(t.Context(), []policy.BudgetMemory{memory("ml/b", 3_600_000_000)})
	for _, idle = range []bool{true, false} {
		if err := k.Report(t.Context(), &policy.Snapshot{Now: policy.TimeOf(start), Budgets: tableOf(b)}); err != nil {
			t.Fatal(err)
		}
		var ledgers corev1.ConfigMapList
		if err := errors.Join(c.List(t.Context(), &ledgers), c.Get(t.Context(), client.ObjectKeyFromObject(b), b)); err != nil {
			t.Fatal(err)
		}
		if wrote := b.Status.CountedAt != nil; wrote == idle || len(ledgers.Items) != 1 {
			t.Errorf("idle %t: %d ledgers, status %+v", idle, len(ledgers.Items), b.Status)
		}
	}
}

// TestConfig names the field that is wrong.
func TestConfig(t *testing.T) {
	for field, change := range map[string]func(*Config){
		"namespace":    func(c *Config) { c.Namespace = "" },
		"save every":   func(c *Config) { c.SaveEvery = -1 },
		"status every": func(c *Config) { c.StatusEvery = time.Hour },
		"clock":        func(c *Config) { c.Clock = nil },
		"log":          func(c *Config) { c.Log = nil },
		"room":         func(c *Config) { c.Policy.Room = 2 },
	} {
		cfg := DefaultConfig("x")
		cfg.Log = slog.New(slog.DiscardHandler)
		change(&cfg)
		if _, err := New(cfg, nil, nil); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
