package rights_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterapis "sigs.k8s.io/karpenter/pkg/apis"

	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/live/rights"
	"github.com/spotter-dev/spotter/live/rights/rightstest"
	"github.com/spotter-dev/spotter/test/testenv"
)

// A guardCase is a write of the controller's account to an object.
type guardCase struct {
	what   string
	object string // as it was before; it is made by an administrator
	write  string // a merge patch, "create", "delete", "delete orphans" or "evict"

	// free and stopped report whether the write is taken while the kill switch is off, and
	// while it is on.
	free, stopped bool
}

const (
	node      = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"NAME","labels":{"team":"a"}%s},"spec":{%s}}`
	poolLabel = `"labels":{"spotter.dev/pool":"web"}`
	claimSpec = `"spec":{"nodeClassRef":{"group":"karpenter.k8s.aws","kind":"EC2NodeClass","name":"default"},"requirements":[]}`
	poolSpec  = `"spec":{"weight":10,"template":{"spec":{"expireAfter":"Never",` +
		`"nodeClassRef":{"group":"karpenter.k8s.aws","kind":"EC2NodeClass","name":"default"},"requirements":[{"key":"karpenter.sh/capacity-type","operator":"In","values":["spot"]}]}}}`
	karpenterV = `"apiVersion":"karpenter.sh/v1"`
	template   = `"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}`
)

func nodeWith(annotations, spec string) string {
	if annotations != "" {
		annotations = `,"annotations":{` + annotations + `}`
	}
	return fmt.Sprintf(node, annotations, spec)
}

func claimWith(meta, status string) string {
	return `{` + karpenterV + `,"kind":"NodeClaim","metadata":{"name":"spotter-NAME"` + meta + `},` + claimSpec + status + `}`
}

func poolWith(name, meta, status string) string {
	return `{` + karpenterV + `,"kind":"NodePool","metadata":{"name":"` + name + `"` + meta + `},` + poolSpec + status + `}`
}

func jobWith(annotations, suspend string) string {
	return `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"NAME","namespace":"default","annotations":{` +
		annotations + `}},"spec":{"suspend":` + suspend + `,` + template + `}}`
}

const (
	drained  = `"spotter.dev/drain":"{\"phase\":\"evicting\"}"`
	ourTaint = `{"key":"spotter.dev/draining","effect":"NoSchedule"}`
	theirs   = `{"key":"team","value":"a","effect":"NoSchedule"}`
	unready  = `{"key":"node.kubernetes.io/not-ready","effect":"NoSchedule"}` // which the API server adds to a new node
	pod      = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"NAME","namespace":"default","annotations":{%s}},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	launched = `,` + poolLabel +
		`,"annotations":{"spotter.dev/launch-token":"t","karpenter.sh/do-not-disrupt":"true","spotter.dev/protected":"replacement x"}`
	machine  = `,"status":{"providerID":"aws:///a/i-1"}`
	capacity = `{"apiVersion":"spotter.dev/v1alpha1","kind":"CapacityPool","metadata":{"name":"NAME"},"spec":{"mode":"shadow","backend":{"karpenter":{"nodeClassName":"default"}}}}`
)

// guardCases are the writes that drains, budgets and backends make, the ones that undo
// them, and those that only a controller that was taken over would make.
var guardCases = []guardCase{
	{"a drain begins", nodeWith("", ""), `{"metadata":{"annotations":{` + drained +
		`,"spotter.dev/cordon":"x"}},"spec":{"unschedulable":true,"taints":[` + unready + `,` + ourTaint + `]}}`, true, false},
	{"a drain begins on a node that a user tainted and cordoned", nodeWith("", `"unschedulable":true,"taints":[`+theirs+`]`),
		`{"metadata":{"annotations":{` + drained + `}},"spec":{"taints":[` + theirs + `,` + unready + `,` + ourTaint + `]}}`, true, false},
	{"a drain is undone", nodeWith(drained+`,"spotter.dev/cordon":"x"`, `"unschedulable":true,"taints":[`+theirs+`,`+ourTaint+`]`),
		`{"metadata":{"annotations":{"spotter.dev/drain":"{\"phase\":\"undoing\",\"pool\":\"web\"}","spotter.dev/cordon":null}},"spec":{"unschedulable":null,"taints":[` + theirs + `,` + unready + `]}}`, true, true},
	{"a cordon without a drain is undone", nodeWith(`"spotter.dev/cordon":"x"`, `"unschedulable":true`),
		`{"metadata":{"annotations":{"spotter.dev/drain":"{\"phase\":\"undoing\"}","spotter.dev/cordon":null}},"spec":{"unschedulable":null}}`, true, true},
	{"the last mark is removed", nodeWith(drained, ""), `{"metadata":{"annotations":{"spotter.dev/drain":null}}}`, true, true},
	{"a drain goes on", nodeWith(drained, ""), `{"metadata":{"annotations":{"spotter.dev/drain":"{\"phase\":\"releasing\"}"}}}`, true, false},
	{"a node is protected", nodeWith(drained, ""),
		`{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":"true","spotter.dev/protected":"drain x"}}}`, true, false},
	{"the protection is removed", nodeWith(`"karpenter.sh/do-not-disrupt":"true","spotter.dev/protected":"drain x"`, ""),
		`{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":null,"spotter.dev/protected":null}}}`, true, true},
	{"a swap begins", nodeWith("", ""),
		`{"metadata":{"annotations":{"spotter.dev/group-swap":"x","spotter.dev/scale-down-disabled-by":"spotter","cluster-autoscaler.kubernetes.io/scale-down-disabled":"true"}}}`, true, false},
	{"a swap ends",
		nodeWith(`"spotter.dev/group-swap":"x","spotter.dev/scale-down-disabled-by":"spotter","cluster-autoscaler.kubernetes.io/scale-down-disabled":"true"`, ""),
		`{"metadata":{"annotations":{"spotter.dev/group-swap":null,"spotter.dev/scale-down-disabled-by":null,"cluster-autoscaler.kubernetes.io/scale-down-disabled":null}}}`, true, true},
	{"another's cordon is removed", nodeWith(drained, `"unschedulable":true`), `{"spec":{"unschedulable":null}}`, false, false},
	{"a cordon without a mark", nodeWith("", ""), `{"spec":{"unschedulable":true}}`, false, false},
	{"another's protection is removed", nodeWith(`"karpenter.sh/do-not-disrupt":"true"`, ""),
		`{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":null}}}`, false, false},
	{"another's scale-down-disabled is removed", nodeWith(`"cluster-autoscaler.kubernetes.io/scale-down-disabled":"true"`, ""),
		`{"metadata":{"annotations":{"cluster-autoscaler.kubernetes.io/scale-down-disabled":null}}}`, false, false},
	{"a protection without a mark", nodeWith("", ""), `{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":"true"}}}`, false, false},
	{"a label of a node", nodeWith("", ""), `{"metadata":{"labels":{"team":"b"}}}`, false, false},
	{"another annotation of a node", nodeWith("", ""), `{"metadata":{"annotations":{"a":"b"}}}`, false, false},
	{"a taint of others", nodeWith("", ""), `{"spec":{"taints":[` + unready + `,{"key":"a","effect":"NoExecute"}]}}`, false, false},
	{"a taint of others is removed", nodeWith("", `"taints":[`+theirs+`]`), `{"spec":{"taints":[` + unready + `]}}`, false, false},
	{"our taint evicts", nodeWith(drained, ""), `{"spec":{"taints":[` + unready +
		`,{"key":"spotter.dev/draining","effect":"NoExecute"}]}}`, false, false},
	{"a finalizer of a node", nodeWith("", ""), `{"metadata":{"finalizers":["a.io/b"]}}`, false, false},

	{"a pod is evicted", fmt.Sprintf(pod, ""), "evict", true, false},
	{"a pod is ranked", fmt.Sprintf(pod, ""),
		`{"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"5","spotter.dev/pod-deletion-cost":"5"}}}`, true, false},
	{"a rank is removed", fmt.Sprintf(pod, `"controller.kubernetes.io/pod-deletion-cost":"5","spotter.dev/pod-deletion-cost":"5"`),
		`{"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":null,"spotter.dev/pod-deletion-cost":null}}}`, true, true},
	{"a label of a pod", fmt.Sprintf(pod, ""), `{"metadata":{"labels":{"a":"b"}}}`, false, false},

	{"a Job is suspended", jobWith("", "false"),
		`{"metadata":{"annotations":{"spotter.dev/paused-by":"b"}},"spec":{"suspend":true}}`, true, false},
	{"a Job is resumed", jobWith(`"spotter.dev/paused-by":"b"`, "true"),
		`{"metadata":{"annotations":{"spotter.dev/paused-by":null}},"spec":{"suspend":false}}`, true, true},
	{"a Job is suspended without a mark", jobWith("", "false"), `{"spec":{"suspend":true}}`, false, false},
	{"another's suspended Job is resumed", jobWith("", "true"), `{"spec":{"suspend":false}}`, false, false},
	{"the parallelism of a Job", jobWith("", "false"), `{"spec":{"parallelism":5}}`, false, false},
	{"a suspended Job goes elsewhere", jobWith(`"spotter.dev/paused-by":"b"`, "true"),
		`{"spec":{"template":{"spec":{"nodeSelector":{"a":"b"}}}}}`, false, false},

	{"a launch", claimWith(launched, ""), "create", true, false},
	{"a launch without a pool", claimWith(`,"annotations":{"spotter.dev/launch-token":"t"}`, ""), "create", false, false},
	{"a launch without a token", claimWith(`,`+poolLabel, ""), "create", false, false},
	{"a launch is no longer protected", claimWith(launched, ""),
		`{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":null,"spotter.dev/protected":null}}}`, true, true},
	{"another's protection of a NodeClaim is removed", claimWith(`,"annotations":{"karpenter.sh/do-not-disrupt":"true"}`, ""),
		`{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":null}}}`, false, false},
	{"a label of a NodeClaim", claimWith(launched, ""), `{"metadata":{"labels":{"a":"b"}}}`, false, false},
	{"a launch without a machine is deleted", claimWith(launched, ""), "delete", true, true},
	{"a machine is released", claimWith(launched, machine), "delete", true, false},
	{"a NodeClaim of Karpenter is deleted", claimWith("", ""), "delete", true, false},

	{"a NodePool is made", poolWith("web-spot", `,`+poolLabel, ""), "create", true, false},
	{"a NodePool of another name", poolWith("general", `,`+poolLabel, ""), "create", false, false},
	{"a NodePool without a pool", poolWith("web-spot", "", ""), "create", false, false},
	{"a NodePool of ours is steered", poolWith("web-spot", `,`+poolLabel, ""),
		`{"metadata":{"annotations":{"spotter.dev/steer":"x"}},"spec":{"weight":20,"limits":{"cpu":"5"}}}`, true, false},
	{"an adopted NodePool is steered", poolWith("general", `,"annotations":{"spotter.dev/adopt":"web"}`, ""),
		`{"spec":{"weight":20,"limits":{"cpu":"5"}}}`, true, false},
	{"an adopted NodePool gets another template", poolWith("general", `,"annotations":{"spotter.dev/adopt":"web"}`, ""),
		`{"spec":{"template":{"spec":{"expireAfter":"1h"}}}}`, false, false},
	{"a NodePool of others is steered", poolWith("general", "", ""), `{"spec":{"weight":20}}`, false, false},
	{"a NodePool of others is adopted", poolWith("general", "", ""), `{"metadata":{"annotations":{"spotter.dev/adopt":"web"}}}`, false, false},
	{"a NodePool of others is taken", poolWith("web-spot", "", ""), `{"metadata":{"labels":{"spotter.dev/pool":"web"}}}`, false, false},
	{"a spent NodePool of ours is deleted", poolWith("web-od", `,`+poolLabel, `,"status":{"resources":{"nodes":"0"}}`),
		"delete orphans", true, true},
	{"a NodePool of ours is deleted with its nodes", poolWith("web-od", `,`+poolLabel, ""), "delete", false, false},
	{"a NodePool that has nodes is deleted", poolWith("web-od", `,`+poolLabel, `,"status":{"resources":{"nodes":"3"}}`),
		"delete orphans", false, false},
	{"a NodePool of others is deleted", poolWith("general", "", ""), "delete orphans", false, false},

	{"a pool keeps its steer", capacity, `{"metadata":{"annotations":{"spotter.dev/steer":"x"}}}`, true, false},
	{"a pool becomes active", capacity, `{"spec":{"mode":"active"}}`, false, false},
	{"an annotation of a pool", capacity, `{"metadata":{"annotations":{"spotter.dev/own-spot-share":"1"}}}`, false, false},
	{"an order",
		`{"apiVersion":"spotter.dev/v1alpha1","kind":"SpotNode","metadata":{"name":"NAME"},"spec":{"pool":"p","market":"m","token":"t"}}`, "create", true, false},
	{"a plan is proposed", `{"apiVersion":"spotter.dev/v1alpha1","kind":"SpotPlan","metadata":{"name":"NAME"}}`, "create", true, true},
	{"a plan that is approved is proposed",
		`{"apiVersion":"spotter.dev/v1alpha1","kind":"SpotPlan","metadata":{"name":"NAME"},"spec":{"approved":true,"digest":"a"}}`, "create", false, false},
	{"an order that was not placed",
		`{"apiVersion":"spotter.dev/v1alpha1","kind":"SpotNode","metadata":{"name":"NAME"},"spec":{"pool":"p","market":"m","token":"t"}}`, "delete", true, true},
}

// TestGuard has the account of the controller, with all rights that an active one is
// granted, make each write on a real API server with the switch off, on and unreadable.
func TestGuard(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server")
	}
	env := testenv.New(t, testenv.Options{CRDs: karpenterapis.CRDs})
	if err := env.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "spotter"}}); err != nil {
		t.Fatal(err)
	}
	who := rights.Guarded{User: "spotter", Namespace: "spotter", KillSwitch: "stop"}
	for _, o := range rightstest.Admission(t, rights.GuardFile(who)) {
		if err := env.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	user, err := client.New(env.User(t, who.User, rightstest.Rules(full(true), rights.Cluster)...), client.Options{Scheme: env.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	b := &guardBench{env: env, user: user,
		kill: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: who.Namespace, Name: who.KillSwitch}}}
	b.await(t, false)
	b.all(t, "no switch", func(c *guardCase) bool { return c.free })
	if err := env.Client.Create(t.Context(), b.kill); err != nil {
		t.Fatal(err)
	}
	b.turn(t, "true", true)
	b.all(t, "on", func(c *guardCase) bool { return c.stopped })
	for value, stops := range map[string]bool{"": true, "False": false, "stop": true, "0": false, "off": true, "T": true} {
		b.turn(t, value, stops)
	}
	b.turn(t, "false", false)
	b.all(t, "off", func(c *guardCase) bool { return c.free })
	b.somebodyElse(t)
}

type guardBench struct {
	env  *testenv.Env
	user client.Client
	kill *corev1.ConfigMap
	n    int
}

// turn sets the switch, and waits until the API server heeds it.
func (b *guardBench) turn(t *testing.T, value string, stops bool) {
	t.Helper()
	b.kill.Annotations = map[string]string{permit.KillSwitchAnnotation: value}
	if err := b.env.Client.Update(t.Context(), b.kill); err != nil {
		t.Fatal(err)
	}
	b.await(t, stops)
}

// await waits until the policies hold, and the switch is on or off.
func (b *guardBench) await(t *testing.T, stopped bool) {
	t.Helper()
	first := guardCases[0] // what the switch denies, and a case that is always denied
	label := guardCases[slices.IndexFunc(guardCases, func(c guardCase) bool { return c.what == "a label of a node" })]
	testenv.Eventually(t, fmt.Sprintf("the switch holds: %t", stopped), func() error {
		if err := b.try(t, &label); err == nil {
			return errors.New("a label is taken")
		}
		if err := b.try(t, &first); (err != nil) != stopped {
			return fmt.Errorf("a drain: %w", err)
		}
		return nil
	})
}

func (b *guardBench) all(t *testing.T, when string, taken func(*guardCase) bool) {
	t.Helper()
	for i := range guardCases {
		c := &guardCases[i]
		err := b.try(t, c)
		if (err == nil) != taken(c) || err != nil && !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			t.Errorf("%s: %s: taken is to be %t: %v", when, c.what, taken(c), err)
		}
	}
}

// try makes the object of c as an administrator and the write as the controller.
func (b *guardBench) try(t *testing.T, c *guardCase) error {
	t.Helper()
	ctx := t.Context()
	b.n++
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(c.object, "NAME", fmt.Sprintf("x%d", b.n))), &o.Object); err != nil {
		t.Fatalf("%s: %v", c.what, err)
	}
	defer b.remove(t, o)
	if c.write == "create" {
		return b.user.Create(ctx, o.DeepCopy())
	}
	status := o.Object["status"]
	if err := b.env.Client.Create(ctx, o); err != nil {
		t.Fatalf("%s: %v", c.what, err)
	}
	if status != nil {
		o.Object["status"] = status
		if err := b.env.Client.Status().Update(ctx, o); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
	}
	switch c.write {
	case "delete":
		return b.user.Delete(ctx, o)
	case "delete orphans":
		return b.user.Delete(ctx, o, client.PropagationPolicy(metav1.DeletePropagationOrphan))
	case "evict":
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()}}
		return b.user.SubResource("eviction").Create(ctx, p, &policyv1.Eviction{})
	}
	return b.user.Patch(ctx, o.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(c.write)))
}

func (b *guardBench) remove(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	if err := b.env.Client.Patch(ctx, o.DeepCopy(), client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`))); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err := b.env.Client.Delete(ctx, o.DeepCopy(), client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err := b.env.Client.Patch(ctx, o.DeepCopy(), client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`))); client.IgnoreNotFound(err) != nil && !apierrors.IsInvalid(err) {
		t.Fatal(err)
	}
}

// somebodyElse makes with the switch on what the controller may not.
func (b *guardBench) somebodyElse(t *testing.T) {
	t.Helper()
	b.turn(t, "true", true)
	b.user = b.env.Client
	for i := range guardCases {
		if err := b.try(t, &guardCases[i]); err != nil {
			t.Errorf("an administrator: %s: %v", guardCases[i].what, err)
		}
	}
}

// unswitched are the writes that the kill switch lets through, with the reason.
var unswitched = map[string]string{
	"events.k8s.io/events":                      "they report",
	"coordination.k8s.io/leases":                "a stopped controller leads",
	"/configmaps":                               "memory and ledgers",
	"authentication.k8s.io/tokenreviews":        "they change nothing",
	"authorization.k8s.io/subjectaccessreviews": "they change nothing",
	"spotter.dev/capacitypools/status":          "it reports",
	"spotter.dev/gpubudgets/status":             "it reports",
	"spotter.dev/spotplans":                     "they propose",
	"spotter.dev/spotplans/status":              "it proposes",
	"spotter.dev/spotnodes/status":              "what became of an order is recorded",
	"spotter.dev/spotnodes delete":              "an order that was not placed is removed from the ledger",
}

// TestSwitchCoversRights: every write that an active controller is granted is judged by
// the policy of the kill switch, or excused.
func TestSwitchCoversRights(t *testing.T) {
	var judged []admissionv1.NamedRuleWithOperations
	for _, o := range rightstest.Admission(t, rights.GuardFile(rights.Guarded{User: "u", Namespace: "n", KillSwitch: "k"})) {
		if p, is := o.(*admissionv1.ValidatingAdmissionPolicy); is && p.Name == "kill-switch.spotter.dev" {
			judged = p.Spec.MatchConstraints.ResourceRules
		}
	}
	operations := map[string]admissionv1.OperationType{
		"create": admissionv1.Create, "update": admissionv1.Update, "patch": admissionv1.Update, "delete": admissionv1.Delete,
	}
	excused := maps.Clone(unswitched)
	for a := range ever(true) {
		op, writes := operations[a.verb]
		if !writes || slices.ContainsFunc(judged, func(r admissionv1.NamedRuleWithOperations) bool {
			return slices.Contains(r.APIGroups, a.group) && slices.Contains(r.Resources, a.resource) && slices.Contains(r.Operations, op)
		}) {
			continue
		}
		what := a.group + "/" + a.resource
		if unswitched[what] == "" && unswitched[what+" "+a.verb] == "" {
			t.Errorf("the kill switch does not deny %s %s", a.verb, what)
		}
		delete(excused, what)
		delete(excused, what+" "+a.verb)
	}
	for what := range excused {
		t.Errorf("%s is excused, and not granted or denied", what)
	}
}
