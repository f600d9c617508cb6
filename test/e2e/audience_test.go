package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/test/karpenter"
	"github.com/spotter-dev/spotter/test/testenv"
)

// An audience sees the day as users do, and notes what they would mind.
type audience struct {
	mu      sync.Mutex
	wants   map[string]int32 // target number of pods of each workload
	whole   map[string]bool  // the workloads of which all pods were healthy since
	broken  []breach
	drifted map[string]string // NodeClaims that drifted, with why
	spells  []spell
	gone    map[string]time.Time // Nodes and NodeClaims, with when that was heard of
}

// A breach is a disruption budget with too few healthy pods, and when that was seen.
type breach struct {
	at   time.Time
	what string
}

// A spell is a stretch of time.
type spell struct{ from, to time.Time }

// watch starts the observation.
func (w *fixture) watch(t *testing.T) *audience {
	t.Helper()
	a := &audience{wants: map[string]int32{}, whole: map[string]bool{}, drifted: map[string]string{}, gone: map[string]time.Time{}}
	karpenter.Follow(t, w.client, &policyv1.PodDisruptionBudgetList{}, a.budget, func(string) {})
	karpenter.Follow(t, w.client, &karpv1.NodeClaimList{}, a.claim, a.end)
	karpenter.Follow(t, w.client, &corev1.NodeList{}, func(*corev1.Node) {}, a.end)
	return a
}

// end notes that an object is gone.
func (a *audience) end(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gone[name] = time.Now()
}

// expect sets the target number of pods of a workload from now on.
func (a *audience) expect(workload string, pods int32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wants[workload], a.whole[workload] = pods, false
}

// spoil says that the provider takes pods with it: a budget that is broken then, or by
// what it takes until Kubernetes has seen to it, is not broken by an eviction.
func (a *audience) spoil(from, to time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spells = append(a.spells, spell{from, to})
}

// budget notes a disruption budget with fewer healthy pods than it wants after all were
// healthy: while nodes join, a pod may become so twice. What it says while it knows of
// another number of pods is of no account.
func (a *audience) budget(b *policyv1.PodDisruptionBudget) {
	if b.Status.ObservedGeneration != b.Generation {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case b.Status.ExpectedPods != a.wants[b.Name]:
	case b.Status.CurrentHealthy >= b.Status.ExpectedPods:
		a.whole[b.Name] = true
	case b.Status.CurrentHealthy < b.Status.DesiredHealthy && a.whole[b.Name]:
		a.broken = append(a.broken, breach{time.Now(), fmt.Sprintf("%s has %d healthy pods of %d", b.Name,
			b.Status.CurrentHealthy, b.Status.DesiredHealthy)})
	}
}

// claim notes a NodeClaim that has drifted.
func (a *audience) claim(c *karpv1.NodeClaim) {
	for _, x := range c.Status.Conditions {
		if x.Type == karpv1.ConditionTypeDrifted && x.Status == "True" {
			a.mu.Lock()
			a.drifted[c.Name] = x.Reason + " " + x.Message
			a.mu.Unlock()
		}
	}
}

// recovery is how long Kubernetes may take to replace pods whose node was taken: every 20 s
// the pod garbage collector looks for pods whose node has been gone for 40 s.
const recovery = 2 * time.Minute

// content fails the test for what users would mind.
func (w *fixture) content(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.broken {
		if !slices.ContainsFunc(w.spells, func(s spell) bool { return !b.at.Before(s.to) && b.at.Before(s.to.Add(recovery)) }) {
			t.Errorf("a disruption budget is broken at %s, and not by the provider: %s", b.at.Format(time.TimeOnly), b.what)
		} else {
			t.Logf("what the provider took broke a disruption budget: %s", b.what)
		}
	}
	for name := range w.wants {
		if !w.whole[name] {
			t.Errorf("the disruption budget of %s was never kept", name)
		}
	}
	for name, why := range w.drifted {
		t.Errorf("NodeClaim %s drifted: %s", name, why)
	}
}

// ours returns what the release has asked the API server for since a mark, and fails
// the test for each request that was denied.
func (w *fixture) ours(t *testing.T, since testenv.Mark) []testenv.AuditEvent {
	t.Helper()
	all := w.env.Audit(t, since, func(e testenv.AuditEvent) bool { return strings.HasPrefix(e.User, username) })
	for _, e := range all {
		if e.Code == http.StatusForbidden || e.Code == http.StatusUnauthorized {
			t.Errorf("denied: %v %s", e, e.URI)
		}
	}
	if len(all) == 0 {
		t.Errorf("%s asked for nothing", username)
	}
	return all
}

// written returns the writes among events, as "verb resource name".
func written(all []testenv.AuditEvent) map[string]int {
	count := map[string]int{}
	for _, e := range all {
		if !e.Writes() || e.Code/100 != 2 {
			continue
		}
		what := e.Resource
		if e.Subresource != "" {
			what += "/" + e.Subresource
		}
		count[e.Verb+" "+what+" "+e.Name]++
	}
	return count
}
