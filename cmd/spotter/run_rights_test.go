package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterapis "sigs.k8s.io/karpenter/pkg/apis"

	"github.com/spotter-dev/spotter/live"
	"github.com/spotter-dev/spotter/live/rights"
	"github.com/spotter-dev/spotter/live/rights/rightstest"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// bind lets a user do in the cluster and in a namespace what a controller that is run
// like this needs, and nothing else, narrowed by the admission policies of the chart.
func bind(t *testing.T, env *testenv.Env, user, namespace string, setup rights.Setup) *rest.Config {
	t.Helper()
	for _, o := range rightstest.Admission(t, rights.GuardFile(rights.Guarded{User: user, Namespace: namespace, KillSwitch: live.DefaultConfig().KillSwitch})) {
		if err := env.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return bindUnguarded(t, env, user, namespace, setup)
}

// bindUnguarded is bind without admission policies, of which a cluster has one set.
func bindUnguarded(t *testing.T, env *testenv.Env, user, namespace string, setup rights.Setup) *rest.Config {
	t.Helper()
	own := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user}, Rules: rightstest.Rules(setup, rights.OwnNamespace)}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName,
			Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}
	for _, o := range []client.Object{own, binding} {
		if err := env.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Group: own.Rules[0].APIGroups[0], Resource: own.Rules[0].Resources[0], Verb: own.Rules[0].Verbs[0],
		}}}
	testenv.Eventually(t, "the role holds", func() error {
		answer := review.DeepCopy()
		if err := env.Client.Create(t.Context(), answer); err != nil {
			return err
		}
		if !answer.Status.Allowed {
			return fmt.Errorf("%s may not yet: %s", user, answer.Status.Reason)
		}
		return nil
	})
	return env.User(t, user, rightstest.Rules(setup, rights.Cluster)...)
}

// TestRule13RightsAreExact runs the controller in shadow with the rights that are
// documented and no more, until the audit log shows that it has made use of all that it
// was granted. Nothing was denied to it till its end.
func TestRule13RightsAreExact(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server and a process")
	}
	setup := rights.Setup{Parts: []rights.Part{rights.LeaderElection, rights.SecureMetrics, rights.Karpenter}}
	s := exactStage(t, setup)
	env := s.env
	budget := newGPUBudget(t, env)
	mark := env.Mark()
	running := s.start(t, "mode: shadow", "metrics: {secure: true}", "stepInterval: 2s")
	kept := func() *replica { // as a Deployment does: one that could not renew its lease has ended
		select {
		case <-running.End:
			running = s.start(t, "mode: shadow", "metrics: {secure: true}", "stepInterval: 2s")
		default:
		}
		return running
	}
	awaitLedger(t, s, kept, true)
	scrapeAs(t, env, kept)
	if err := env.Client.Delete(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
	awaitLedger(t, s, kept, false)
	ours := func(e testenv.AuditEvent) bool { return e.User == "spotter" && e.Resource != "" }
	testenv.Eventually(t, "it has used what it was granted", func() error {
		kept() // informers begin each in its own time, so that one that has just led has not watched all
		return unused(env.Audit(t, mark, ours), setup, []string{
			"list metrics.k8s.io/nodes",  // there is no metrics-server
			"patch events.k8s.io/events", // nothing was said twice
			// no provider of Karpenter is there
			"list karpenter.azure.com/aksnodeclasses", "list karpenter.k8s.aws/ec2nodeclasses", "list karpenter.k8s.gcp/gcenodeclasses",
			"list karpenter.kwok.sh/kwoknodeclasses", "list eks.amazonaws.com/nodeclasses",
		})
	})
	if err := kept().Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-running.End
	for _, e := range env.Audit(t, mark, ours) {
		if e.Code == http.StatusForbidden {
			t.Errorf("it was not let: %v", e)
		}
	}
}

// unused returns an error that names what was granted and not used, but for what is
// expected.
func unused(did []testenv.AuditEvent, setup rights.Setup, expected []string) error {
	used := map[string]bool{}
	for _, e := range did {
		what := e.Resource
		if e.Subresource != "" {
			what += "/" + e.Subresource
		}
		used[e.Verb+" "+e.Group+"/"+what] = true
		if e.Verb == "watch" { // which a server before 1.34 cannot begin with what there is
			used["list "+e.Group+"/"+what] = true
		}
	}
	var idle []string
	for _, scope := range []rights.Scope{rights.Cluster, rights.OwnNamespace} {
		for _, rule := range rightstest.Rules(setup, scope) {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					if what := verb + " " + rule.APIGroups[0] + "/" + resource; !used[what] && !slices.Contains(expected, what) {
						idle = append(idle, what)
					}
				}
			}
		}
	}
	if len(idle) > 0 {
		return fmt.Errorf("granted and not used: %s", strings.Join(idle, ", "))
	}
	return nil
}

// newGPUBudget makes a budget in a namespace of its own.
func newGPUBudget(t *testing.T, env *testenv.Env) *v1alpha1.GPUBudget {
	t.Helper()
	ten := 10.0
	b := &v1alpha1.GPUBudget{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "notebooks"}, Spec: v1alpha1.GPUBudgetSpec{
		Quota: v1alpha1.Quota{GPUHours: &ten, WindowHours: 24}, Gate: true,
	}}
	if err := env.Client.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return b
}

// awaitLedger waits until there is a ledger, or none any more.
func awaitLedger(t *testing.T, s *stage, kept func() *replica, there bool) {
	t.Helper()
	testenv.Eventually(t, fmt.Sprintf("a ledger is there: %t", there), func() error {
		kept()
		var all corev1.ConfigMapList
		if err := s.env.Client.List(t.Context(), &all, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		found := slices.ContainsFunc(all.Items, func(m corev1.ConfigMap) bool { return strings.HasPrefix(m.Name, "spotter-ledger-") })
		if found != there {
			return fmt.Errorf("there is one: %t", found)
		}
		return nil
	})
}

// scrapeAs requests the metrics as an account that may read them and as one that may not.
func scrapeAs(t *testing.T, env *testenv.Env, kept func() *replica) {
	t.Helper()
	namespace := env.Namespace(t)
	reader := rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}
	for name, want := range map[string]int{"prometheus": http.StatusOK, "somebody": http.StatusForbidden} {
		var rules []rbacv1.PolicyRule
		if want == http.StatusOK {
			rules = append(rules, reader)
		}
		cfg := env.ServiceAccount(t, namespace, name, rules...)
		testenv.Eventually(t, name+" is answered", func() error {
			return ask(t.Context(), strings.Replace(kept().metric, "http://", "https://", 1), cfg.BearerToken, want)
		})
	}
}

func ask(ctx context.Context, url, token string, want int) error {
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // its certificate is its own
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	q.Header.Set("Authorization", "Bearer "+token)
	resp, err := c.Do(q)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != want {
		return fmt.Errorf("the answer is %s, want %d", resp.Status, want)
	}
	return nil
}

// exactStage is a stage whose user has the rights that are documented for a setup.
func exactStage(t *testing.T, setup rights.Setup) *stage {
	t.Helper()
	env := testenv.New(t, testenv.Options{CRDs: karpenterapis.CRDs})
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{env: env, namespace: env.Namespace(t), binary: binary}
	s.kubeconfig = testenv.Kubeconfig(t, bind(t, env, "spotter", s.namespace, setup))
	pool := &v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1alpha1.CapacityPoolSpec{
		Backend: v1alpha1.Backend{Karpenter: &v1alpha1.KarpenterBackend{NodeClassName: "default"}}, Mode: v1alpha1.ModeActive,
		Markets: v1alpha1.Markets{Regions: []string{"us-east-1"}, InstanceTypes: []string{"m5.large"}},
	}}
	if err := env.Client.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRightThatIsMissing runs a controller that may not read disruption budgets: it reports that,
// decides nothing without them, and does not exit. Once it has the permission it continues
// without a restart.
func TestRightThatIsMissing(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server and a process")
	}
	setup := rights.Setup{Parts: []rights.Part{rights.LeaderElection, rights.Karpenter}}
	s := exactStage(t, setup)
	less := slices.DeleteFunc(rightstest.Rules(setup, rights.Cluster),
		func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "poddisruptionbudgets") })
	s.env.User(t, "spotter", less...)
	r := s.start(t, "stepInterval: 2s")
	for range 3 { // it is tried again, ever more rarely
		before := strings.Count(r.Said(), "poddisruptionbudgets")
		testenv.Eventually(t, "it says what it may not read", func() error {
			if said := r.Said(); strings.Count(said, "poddisruptionbudgets") == before || !strings.Contains(said, "forbidden") {
				return fmt.Errorf("it says %q", said)
			}
			return nil
		})
	}
	if _, writer, _ := s.leader(t.Context()); writer != "" {
		t.Error("it has decided without knowing the disruption budgets")
	}
	select {
	case err := <-r.End:
		t.Fatalf("it has ended: %v", err)
	default:
	}
	s.env.User(t, "spotter", rightstest.Rules(setup, rights.Cluster)...)
	s.leads(t, r)
}
