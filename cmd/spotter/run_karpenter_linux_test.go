package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/live/karpenter"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// TestRunKarpenter lets the controller decide for two pools whose nodes Karpenter creates. Pods
// run, the Spot share follows its target, and a node under notice is replaced and drained. A
// controller that is killed during a drain leaves no node cordoned for good: its successor takes
// over, and obeys the next notice. No disruption budget is ever violated, the API server denies
// no request, and every decision can be replayed from the record.
func TestRunKarpenter(t *testing.T) {
	if raced {
		t.Skip("it runs alone, without the race detector")
	}
	p := newPlant(t)
	mark := p.env.Mark()
	p.pool(t, "shop", oneEach, "static", map[string]string{"share": "0.5"})
	p.pool(t, "batch", soldTypes, "portfolio", nil)
	p.run(t)
	p.stepped(t)
	p.ramps(t, "shop")
	p.deploy(t, "shop", 2, map[string]string{testenv.DeleteAfter: "12s"})
	p.deploy(t, "batch", 4, nil)
	p.running(t, "shop", 2)
	p.running(t, "batch", 4)
	t.Logf("pods run\n%s", p.kubectl(t, "get", "cpool,nodepools,nodes", "-L", "karpenter.sh/capacity-type"))
	p.share(t, "batch", 0.9, 1)
	p.share(t, "shop", 0.4, 0.6)
	p.calm(t)
	p.notice(t, "batch", 4)
	p.wants(t, "shop", "0")
	begun := p.draining(t)
	p.stop(t, syscall.SIGKILL)
	t.Logf("killed while it drained %v", begun)
	p.takeOver(t, begun)
	p.calm(t)
	p.notice(t, "batch", 4)
	p.calm(t)
	p.running(t, "shop", 2)
	p.running(t, "batch", 4)
	t.Logf("at the end\n%s", p.kubectl(t, "get", "cpool,nodes", "-L", "karpenter.sh/capacity-type"))
	p.stop(t, syscall.SIGTERM)
	if p.kept(t, mark) == 0 {
		t.Error("no pod was evicted, so that nothing is shown")
	}
	p.replays(t, 5)
}

// wants sets the parameter share of a pool with the policy static.
func (p *plant) wants(t *testing.T, pool, share string) {
	t.Helper()
	if err := p.client.Patch(t.Context(), &v1alpha1.CapacityPool{ObjectMeta: metav1.ObjectMeta{Name: pool}},
		client.RawPatch(types.MergePatchType, []byte(`{"spec":{"policy":{"parameters":{"share":"`+share+`"}}}}`))); err != nil {
		t.Fatal(err)
	}
}

// share waits until the Spot share of a pool, by vCPU, is between low and high.
func (p *plant) share(t *testing.T, pool string, low, high float64) {
	t.Helper()
	p.within(t, patience, fmt.Sprintf("the spot share of %s lies within %v and %v", pool, low, high), func() error {
		by, err := p.nodes(t.Context(), pool)
		if err != nil {
			return err
		}
		cpu, types := map[string]int64{}, map[string]int{}
		for kind, nodes := range by {
			for i := range nodes {
				n := nodes[i].Status.Capacity.Cpu().Value()
				cpu[kind] += n
				types[fmt.Sprintf("%s %s of %d", kind, nodes[i].Labels[corev1.LabelInstanceTypeStable], n)]++
			}
		}
		got := float64(cpu["spot"]) / float64(max(1, cpu["spot"]+cpu["on-demand"]))
		if got < low || got > high || len(cpu) == 0 {
			return fmt.Errorf("vCPU %v: %v", cpu, types)
		}
		return nil
	})
}

// ramps waits until a pool says that it has just become active.
func (p *plant) ramps(t *testing.T, pool string) {
	t.Helper()
	p.within(t, patience, "pool "+pool+" ramps up", func() error {
		var x v1alpha1.CapacityPool
		if err := p.client.Get(t.Context(), client.ObjectKey{Name: pool}, &x); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(x.Status.Conditions, live.ConditionRamping) || x.Status.Mode != v1alpha1.ModeActive {
			return fmt.Errorf("status %+v", x.Status)
		}
		return nil
	})
}

// playedLead is how long after its notice the provider of announce takes a node.
const playedLead = 30 * time.Second

// terminationTaint is how the provider of announce says that it takes a node.
const terminationTaint = "cloud.google.com/impending-node-termination"

// announce has the provider announce the reclaim of a Spot node of a pool.
func (p *plant) announce(t *testing.T, pool string) *corev1.Node {
	t.Helper()
	var n *corev1.Node
	p.within(t, patience, "a spot node of "+pool+" is put under notice", func() error {
		by, err := p.nodes(t.Context(), pool)
		if err != nil || len(by["spot"]) == 0 {
			return fmt.Errorf("%d spot nodes: %w", len(by["spot"]), err)
		}
		n = &by["spot"][0]
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: terminationTaint, Effect: corev1.TaintEffectNoSchedule})
		return p.client.Update(t.Context(), n)
	})
	return n
}

// notice has the provider announce the reclaim of a Spot node of a pool, and waits until the node
// is drained and terminated and all pods run elsewhere. The deadline of the drain is checked only
// where the machine is fast enough for the test's own requests.
func (p *plant) notice(t *testing.T, pool string, pods int) {
	t.Helper()
	n := p.announce(t, pool)
	begun, by := time.Now(), p.lead
	var empty, slowest time.Duration
	last := begun
	p.within(t, patience, "the node under notice is gone", func() error {
		slowest, last = max(slowest, time.Since(last)), time.Now()
		var on corev1.PodList
		if err := p.client.List(t.Context(), &on, client.InNamespace("default"), client.MatchingFields{"spec.nodeName": n.Name}); err != nil {
			return err
		}
		if len(on.Items) == 0 && empty == 0 {
			empty = time.Since(begun)
		}
		err := p.client.Get(t.Context(), client.ObjectKeyFromObject(n), &corev1.Node{})
		if err == nil {
			return errors.New("it is there")
		}
		return client.IgnoreNotFound(err)
	})
	gone := time.Since(begun)
	p.running(t, pool, pods)
	t.Logf("the node under notice was empty after %v and gone after %v, and all pods ran after %v; the slowest look took %v",
		empty.Round(time.Millisecond), gone.Round(time.Millisecond), time.Since(begun).Round(time.Millisecond), slowest.Round(time.Millisecond))
	switch {
	case slowest > time.Second || p.lead != by:
		t.Log("the machine is too busy to tell whether that is in time")
	case empty == 0:
		t.Error("the node was given back with pods on it")
	case empty > playedLead:
		t.Errorf("the node under notice was empty after %v, and the provider takes it after %v", empty, playedLead)
	}
}

// since returns of the nodes that we have cordoned when their drain began.
func (p *plant) since(ctx context.Context) (map[string]string, error) {
	var all corev1.NodeList
	if err := p.client.List(ctx, &all); err != nil {
		return nil, err
	}
	begun := map[string]string{}
	for i := range all.Items {
		n := &all.Items[i]
		tainted := slices.ContainsFunc(n.Spec.Taints, func(x corev1.Taint) bool { return x.Key == drain.TaintDraining })
		if !tainted && n.Annotations[drain.AnnotationCordon] == "" && n.Annotations[drain.AnnotationDrain] == "" {
			continue
		}
		var state struct {
			Since json.RawMessage `json:"since"`
		}
		if err := json.Unmarshal([]byte(n.Annotations[drain.AnnotationDrain]), &state); err != nil {
			return nil, fmt.Errorf("node %s is marked by %q: %w", n.Name, n.Annotations[drain.AnnotationDrain], err)
		}
		if tainted {
			begun[n.Name] = string(state.Since)
		}
	}
	return begun, nil
}

// draining waits until a node is cordoned by us, and returns all that are.
func (p *plant) draining(t *testing.T) (begun map[string]string) {
	t.Helper()
	p.within(t, patience, "a node is being drained", func() (err error) {
		if begun, err = p.since(t.Context()); err == nil && len(begun) == 0 {
			err = errors.New("none is")
		}
		return err
	})
	return begun
}

// settled waits until no node is cordoned any more by a drain that was begun then.
func (p *plant) settled(t *testing.T, begun map[string]string, until time.Time) {
	t.Helper()
	p.within(t, patience, "nothing is left cordoned", func() error {
		now, err := p.since(t.Context())
		if err != nil {
			return err
		}
		for node, since := range begun {
			if now[node] == since {
				return fmt.Errorf("node %s is", node)
			}
		}
		return nil
	})
	if late := time.Since(until); late > 0 {
		t.Errorf("nothing is left cordoned, but %v too late", late)
	}
}

// calm waits until nothing is half done: every machine has its node and is of use, no
// node is cordoned, and Karpenter may do with each as it likes.
func (p *plant) calm(t *testing.T) {
	t.Helper()
	p.within(t, patience, "all is calm", func() error {
		var nodes corev1.NodeList
		var claims karpv1.NodeClaimList
		var pods corev1.PodList
		if err := errors.Join(p.client.List(t.Context(), &nodes), p.client.List(t.Context(), &claims),
			p.client.List(t.Context(), &pods)); err != nil {
			return err
		}
		used := map[string]bool{}
		for i := range pods.Items {
			x := &pods.Items[i]
			if x.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("pod %s is %s", x.Name, x.Status.Phase)
			}
			used[x.Spec.NodeName] = true
		}
		has := map[string]bool{}
		for i := range claims.Items {
			c := &claims.Items[i]
			has[c.Status.NodeName] = true
			if c.DeletionTimestamp != nil || c.Annotations[karpenter.ProtectedAnnotation] != "" {
				return fmt.Errorf("NodeClaim %s is going: %v, or protected: %q", c.Name, c.DeletionTimestamp,
					c.Annotations[karpenter.ProtectedAnnotation])
			}
		}
		for i := range nodes.Items {
			if err := idle(&nodes.Items[i], used, has); err != nil {
				return err
			}
		}
		if len(nodes.Items) != len(claims.Items) {
			return fmt.Errorf("%d nodes of %d NodeClaims", len(nodes.Items), len(claims.Items))
		}
		return nil
	})
}

// idle returns what is half done or in vain about a node.
func idle(n *corev1.Node, used, has map[string]bool) error {
	switch {
	case n.DeletionTimestamp != nil:
		return fmt.Errorf("node %s is going", n.Name)
	case n.Spec.Unschedulable || len(n.Spec.Taints) > 0:
		return fmt.Errorf("node %s is cordoned: %v, and has the taints %v", n.Name, n.Spec.Unschedulable, n.Spec.Taints)
	case n.Annotations[karpenter.ProtectedAnnotation] != "" || n.Annotations[drain.AnnotationDrain] != "" || n.Annotations[karpv1.DoNotDisruptAnnotationKey] != "":
		return fmt.Errorf("node %s carries marks: %v", n.Name, n.Annotations)
	case !has[n.Name]:
		return fmt.Errorf("node %s has no NodeClaim", n.Name)
	case !used[n.Name]:
		return fmt.Errorf("node %s is empty", n.Name)
	}
	return nil
}

// activeWrites is what an active controller may write in addition to what it writes in shadow.
var activeWrites = regexp.MustCompile(`^((patch) nodes \S+|patch pods \S+|create pods/eviction \S+|` +
	`(create|patch|delete) nodepools (shop|batch)-(spot|od)|(create|patch|delete) nodeclaims (spotter-|shop-|batch-)\S+)$`)

// kept fails the test if a disruption budget was violated, if a launch was made twice, or if the
// controller made a request that it must not make. It returns how many pods the controller
// evicted.
func (p *plant) kept(t *testing.T, mark testenv.Mark) (evicted int) {
	t.Helper()
	answers := map[int]int{}
	for _, e := range p.env.Audit(t, mark, func(e testenv.AuditEvent) bool { return e.User == "spotter" }) {
		if e.Code == http.StatusForbidden {
			t.Errorf("it was not let: %v", e)
		}
		if !e.Writes() {
			continue
		}
		what := e.Resource
		if e.Subresource != "" {
			what += "/" + e.Subresource
		}
		if what == "pods/eviction" {
			answers[e.Code]++
		}
		if written := what + " " + strings.TrimPrefix(e.Namespace+"/", "/") + e.Name; !shadowWrites.MatchString(written) &&
			!activeWrites.MatchString(e.Verb+" "+written) {
			t.Errorf("it wrote %s: %v", written, e)
		}
	}
	t.Logf("answers to evictions: %v", answers)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.broken) > 0 {
		t.Errorf("disruption budgets were broken: %v", p.broken)
	}
	if !p.whole["shop"] || !p.whole["batch"] {
		t.Errorf("not every disruption budget was ever kept: %v", p.whole)
	}
	if len(p.twice) > 0 {
		t.Errorf("launched twice: %v", p.twice)
	}
	return answers[http.StatusCreated]
}

// stepsOf is how replay says how many steps it has taken again.
var stepsOf = regexp.MustCompile(`(\d+) steps? of`)

// replays fails the test unless at least least steps were recorded and a replay of each makes the
// same decision.
func (p *plant) replays(t *testing.T, least int) {
	t.Helper()
	said := p.spotter(t, "replay", p.record)
	t.Logf("replay: %s", said)
	m := stepsOf.FindStringSubmatch(said) // what a process that was killed has left is said before or after
	if m == nil || !strings.Contains(said, "every plan is the same") {
		t.Error("the decisions are not decided again as they were")
	} else if n, err := strconv.Atoi(m[1]); err != nil || n < least {
		t.Errorf("want %d steps at least that are decided again as they were", least)
	}
}
