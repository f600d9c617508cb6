package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kubefake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// leaseOf returns the lease of a holder that was renewed so long ago; negative is in
// time to come, so that no wait makes it run out.
func leaseOf(holder string, ago time.Duration) *coordinationv1.Lease {
	lasts := int32(8)
	renewed := metav1.NewMicroTime(time.Now().Add(-ago))
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "spotter", Name: live.LeaseName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &lasts, RenewTime: &renewed},
	}
}

// memoryWritten returns the memory that a controller wrote so long ago.
func memoryWritten(ago time.Duration) *corev1.ConfigMap {
	at := metav1.NewTime(time.Now().Add(-ago))
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "spotter", Name: live.MemoryName, ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "spotter", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:binaryData":{}}`)},
		}},
	}}
}

// poolSeen returns a pool of a generation, of which one was looked at last.
func poolSeen(name string, generation, observed int64, ready metav1.ConditionStatus) *v1alpha1.CapacityPool {
	return &v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: generation}, Status: v1alpha1.CapacityPoolStatus{
		ObservedGeneration: observed, Mode: v1alpha1.ModeShadow, SpotShare: "0.40", SavingsPerHour: "1.25", LossBudget: "$12 left",
		Conditions: []metav1.Condition{{Type: live.ConditionReady, Status: ready, Reason: "Because", Message: "of this"}},
	}}
}

// statusOf returns what status prints of a cluster, and the exit code.
func statusOf(t *testing.T, c client.Reader) (int, string) {
	t.Helper()
	var out bytes.Buffer
	s, err := look(t.Context(), c, "spotter")
	if err == nil {
		err = errors.Join(s.write(&out), s.check())
	}
	return cli.Report(&out, err), out.String()
}

func statusScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestStatus: what is wrong with a controller is named, and only then the exit code is
// not 0.
func TestStatus(t *testing.T) {
	timeless := leaseOf("a", -time.Hour)
	timeless.Spec.RenewTime = nil
	good, away := poolSeen("web", 2, 2, metav1.ConditionTrue), poolSeen("web", 2, 2, metav1.ConditionTrue)
	away.Status.LossBudget = "used up, on demand until 2026-01-02T03:04:05Z"
	for name, c := range map[string]struct {
		objects   []client.Object
		code      int
		has, lack string
	}{
		"all is well": {[]client.Object{leaseOf("a", -time.Hour), good}, cli.ExitOK,
			"a leads\nPOOL  MODE    READY  SPOT  SAVES/H  LOSS BUDGET  REASON\nweb   shadow  True   0.40  1.25     $12 left", "wrong"},
		"a used up budget": {[]client.Object{leaseOf("a", -time.Hour), away}, cli.ExitOK,
			"1.25     used up      \nweb: the loss budget is used up, on demand until 2026-01-02T03:04:05Z\n", "wrong"},
		"a pool that waits": {[]client.Object{leaseOf("a", -time.Hour), poolSeen("web", 1, 1, metav1.ConditionFalse)},
			cli.ExitOK, "Because: of this", "has changes"},
		"no pool": {[]client.Object{leaseOf("a", -time.Hour)}, cli.ExitOK, "there is no CapacityPool: no decisions are made", "POOL"},
		"alone": {[]client.Object{memoryWritten(time.Minute), good}, cli.ExitOK,
			"a controller without leader election decided 1m", "lease"},
		"alone, after it": {[]client.Object{leaseOf("a", time.Hour), memoryWritten(time.Minute), good}, cli.ExitOK,
			"a controller without leader election decided 1m", "no replica leads"},
		"alone, long ago": {[]client.Object{memoryWritten(time.Hour), good}, cli.ExitFailed, "there is no lease", "without leader election"},
		"a leader that died": {[]client.Object{leaseOf("a", time.Minute), memoryWritten(time.Minute), good}, cli.ExitFailed,
			"no replica leads: a has not renewed", "without leader election"},
		"given up, memory": {[]client.Object{leaseOf("", time.Minute), memoryWritten(time.Minute), good}, cli.ExitFailed,
			"no replica leads: the lease was given up", "without leader election"},
		"no lease": {[]client.Object{good}, cli.ExitFailed,
			"there is no lease spotter/spotter-leader: no controller has led there", "leads\n"},
		"given up": {[]client.Object{leaseOf("", -time.Hour), good}, cli.ExitFailed,
			"no replica leads: the lease was given up", " leads\n"},
		"run out": {[]client.Object{leaseOf("a", 2*time.Hour), good}, cli.ExitFailed,
			"no replica leads: a has not renewed its lease for 2h0m", "a leads\n"},
		"without a time": {[]client.Object{timeless, good}, cli.ExitFailed, "no replica leads: the lease has no time", "a leads\n"},
		"not looked at": {[]client.Object{leaseOf("a", -time.Hour), poolSeen("web", 3, 2, metav1.ConditionTrue),
			poolSeen("batch", 1, 1,
				metav1.ConditionTrue)}, cli.ExitFailed, "CapacityPool web has changes that no controller has read", "CapacityPool batch"},
	} {
		code, out := statusOf(t,
			kubefake.NewClientBuilder().WithScheme(statusScheme(t)).WithReturnManagedFields().WithObjects(c.objects...).Build())
		if code != c.code || !strings.Contains(out, c.has) || strings.Contains(out, c.lack) {
			t.Errorf("%s: exit %d, want %d with %q and without %q:\n%s", name, code, c.code, c.has, c.lack, out)
		}
	}
}

// TestStatusOfABrokenCluster: definitions that are missing are named, and an API server
// that does not answer is no state of the controller.
// TestStatusCauses: pools with one cause share a line, without line breaks.
func TestStatusCauses(t *testing.T) {
	objects := []client.Object{leaseOf("a", -time.Hour)}
	for _, name := range []string{"batch", "gpu", "web"} {
		p := poolSeen(name, 1, 1, metav1.ConditionFalse)
		if name != "gpu" {
			p.Status.Conditions[0].Message = "no credentials\nno role\n"
		}
		objects = append(objects, p)
	}
	_, out := statusOf(t, kubefake.NewClientBuilder().WithScheme(statusScheme(t)).WithReturnManagedFields().WithObjects(objects...).Build())
	if want := "\nbatch, web: Because: no credentials no role\ngpu: Because: of this\n"; !strings.HasSuffix(out, want) {
		t.Errorf("the causes are not %q:\n%s", want, out)
	}
}

// TestStatusOfPlans: a plan is shown with its changes, and the command that approves it with
// the digest of just these changes, until it is approved.
func TestStatusOfPlans(t *testing.T) {
	pool := poolSeen("web", 1, 1, metav1.ConditionTrue)
	pool.Status.Mode = v1alpha1.ModeApprove
	plan := &v1alpha1.SpotPlan{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Status: v1alpha1.SpotPlanStatus{
		Published: metav1.NewTime(time.Now()), Expires: metav1.NewTime(time.Now().Add(time.Hour)), Digest: "'; reboot",
		Changes: []v1alpha1.SpotPlanChange{{Change: "drain n1", SavingPerHour: "$0.06"}, {Change: "set the Spot share to 50%"}},
	}}
	sum := plan.Sum()
	for _, c := range []struct {
		spec      v1alpha1.SpotPlanSpec
		has, lack string
	}{
		{v1alpha1.SpotPlanSpec{}, "this plan waits for approval, until", "reboot"},
		{v1alpha1.SpotPlanSpec{},
			"\n  drain n1, saves $0.06 an hour\n  set the Spot share to 50%\n  kubectl patch spotplan web --type merge -p '{\"spec\":{\"approved\":true,\"digest\":\"" + sum + "\"}}'\n", "is approved, until"},
		{v1alpha1.SpotPlanSpec{Approved: true, Digest: "ab"}, "the digest that is approved is that of another plan", "is approved, until"},
		{v1alpha1.SpotPlanSpec{Approved: true, Digest: sum}, "this plan is approved, until", "kubectl"},
	} {
		plan.Spec = c.spec
		code, out := statusOf(t, kubefake.NewClientBuilder().WithScheme(statusScheme(t)).WithObjects(leaseOf("a",
			-time.Hour), pool, plan).Build())
		if code != cli.ExitOK || !strings.Contains(out, c.has) || strings.Contains(out, c.lack) {
			t.Errorf("%+v: exit %d, want %q and not %q:\n%s", c.spec, code, c.has, c.lack, out)
		}
	}
}

func TestStatusOfABrokenCluster(t *testing.T) {
	listing := func(err error) client.Reader {
		return kubefake.NewClientBuilder().WithScheme(statusScheme(t)).WithObjects(leaseOf("a",
			-time.Hour)).WithInterceptorFuncs(interceptor.Funcs{
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return err },
		}).Build()
	}
	missing := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "spotter.dev", Kind: "CapacityPool"}}
	if code, out := statusOf(t, listing(missing)); code != cli.ExitInvalid ||
		!strings.Contains(out, "the definitions are not installed") || !strings.Contains(out, "a leads") {
		t.Errorf("without definitions: exit %d\n%s", code, out)
	}
	if code, out := statusOf(t, listing(errors.New("connection refused"))); code == cli.ExitOK ||
		code == cli.ExitFailed || !strings.Contains(out, "listing CapacityPools: connection refused") {
		t.Errorf("without an answer: exit %d\n%s", code, out)
	}
}

// Programs read the same of a pool.
func TestStatusObject(t *testing.T) {
	s := &installation{leader: "a", pools: []v1alpha1.CapacityPool{*poolSeen("general", 1, 1, metav1.ConditionTrue)}, wrong: []string{"this"}}
	text, err := json.Marshal(s.object())
	for _, want := range []string{`"leader":"a"`, `"name":"general"`, `"spotShare":"0.40"`, `"wrong":["this"]`} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s is missing in %s, %v", want, text, err)
		}
	}
}

// TestHostileStatus: whatever whoever may write a status or a lease writes there, it stays in its line and shows what it is.
func TestHostileStatus(t *testing.T) {
	const hostile = "\x1b[2J\r\nall is well\n\u202e"
	p := poolSeen("web", 1, 1, metav1.ConditionFalse)
	p.Status.Mode, p.Status.SpotShare, p.Status.SavingsPerHour = hostile, hostile, hostile
	p.Status.Conditions[0].Reason, p.Status.Conditions[0].Message = "A"+hostile, "b"+hostile
	s := &installation{leader: "a" + hostile, wrong: []string{"c" + hostile}, pools: []v1alpha1.CapacityPool{*p}}
	var out bytes.Buffer
	if err := s.write(&out); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, "\nall is well") || strings.ContainsAny(text, "\x1b\r\u202e") ||
		strings.Count(text, "\n") != 5 {
		t.Errorf("it is shown as %q", text)
	}
}
