package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/crd"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/test/e2e/bill"
	"github.com/spotter-dev/spotter/test/testenv"
)

// census returns the nodes and NodePools that there are, by name and UID.
func (w *fixture) census(ctx context.Context) ([]string, error) {
	var nodes corev1.NodeList
	var pools karpv1.NodePoolList
	if err := errors.Join(w.client.List(ctx, &nodes), w.client.List(ctx, &pools)); err != nil {
		return nil, err
	}
	var all []string
	for i := range nodes.Items {
		all = append(all, fmt.Sprint("node ", nodes.Items[i].Name, " ", nodes.Items[i].UID))
	}
	for i := range pools.Items {
		all = append(all, fmt.Sprint("NodePool ", pools.Items[i].Name, " ", pools.Items[i].UID))
	}
	slices.Sort(all)
	return all, nil
}

// settling is how long is looked whether nodes go after something: Karpenter looks for
// what to disrupt every ten seconds.
const settling = 15 * time.Second

// same sees that the nodes and NodePools are those of before, for a while.
func (w *fixture) same(t *testing.T, after string, before []string) {
	t.Helper()
	for end := time.Now().Add(settling); time.Now().Before(end); time.Sleep(time.Second) {
		now, err := w.census(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(now, before) {
			t.Fatalf("after %s there are\n%s\nand before there were\n%s", after, strings.Join(now, "\n"), strings.Join(before, "\n"))
		}
	}
	t.Logf("%s  after %s all %d nodes and NodePools are there", w.market.clock(), after, len(before))
}

// leave uninstalls the chart and deletes the definitions: no node and no NodePool goes,
// and all pods run on.
func (w *fixture) leave(t *testing.T) {
	t.Helper()
	before, err := w.census(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pools := w.auction.server.Pools()
	end := make(chan error, 1)
	go func() {
		_, err := w.helm("uninstall", release, "--namespace", namespace, "--wait", "--timeout", "6m")
		end <- err
	}()
	w.hook(t, release+"-cleanup")
	sent := w.auction.writes()
	if err := <-end; err != nil {
		t.Fatal(err)
	}
	w.same(t, "uninstalling", before)
	w.unmarked(t)
	for _, d := range crd.Objects() {
		x := &apiextensionsv1.CustomResourceDefinition{}
		x.Name = d.Name
		if err := w.env.Client.Delete(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, d.Name+" is gone", func() error {
			if err := w.env.Client.Get(t.Context(), client.ObjectKeyFromObject(x), x); !apierrors.IsNotFound(err) {
				return errors.Join(errors.New("it is there"), err)
			}
			return nil
		})
	}
	w.same(t, "deleting the definitions", before)
	w.stands(t, sent, pools)
	for workload, pods := range map[string]int{shop: 4, batch: grown, tasks: bids, "own": 2} {
		w.runs(t, "default", workload, pods)
	}
}

// orderAnnotations are on machines that Spotter bought, since their node pools have them:
// what was ordered. They stay with the node pool, which it can be found again by.
var orderAnnotations = []string{
	"spotter.dev/token", "spotter.dev/market", "spotter.dev/bid-per-hour", orderedAt, "spotter.dev/cloudspace", "spotter.dev/node-pool",
}

// unmarked checks that nodes and their NodeClaims have no marks of Spotter.
func (w *fixture) unmarked(t *testing.T) {
	t.Helper()
	var nodes corev1.NodeList
	var claims karpv1.NodeClaimList
	if err := errors.Join(w.client.List(t.Context(), &nodes), w.client.List(t.Context(), &claims)); err != nil {
		t.Fatal(err)
	}
	bare := func(kind string, o client.Object) {
		for key := range o.GetAnnotations() {
			order := o.GetLabels()[orderLabel] != "" && slices.Contains(orderAnnotations, key)
			if strings.HasPrefix(key, "spotter.dev/") && !order {
				t.Errorf("%s %s keeps our annotation %s", kind, o.GetName(), key)
			}
		}
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		bare("node", n)
		if n.Spec.Unschedulable || slices.ContainsFunc(n.Spec.Taints, func(x corev1.Taint) bool { return x.Key == drain.TaintDraining }) {
			t.Errorf("node %s is cordoned or tainted: %v", n.Name, n.Spec.Taints)
		}
	}
	for i := range claims.Items {
		bare("NodeClaim", &claims.Items[i])
	}
}

// untouched sees that Spotter wrote nothing that is the users' own, and deleted no pod
// but by eviction, which asks the disruption budgets.
func (w *fixture) untouched(t *testing.T) {
	t.Helper()
	own := map[string]bool{"own": true}
	for _, l := range w.lives(t) {
		if l.NodePool == "own" {
			own[l.Claim], own[l.Node] = true, true
		}
	}
	for _, l := range w.auction.server.Lives() {
		if l.Labels[poolLabel] == "" {
			own[l.Node] = true
		}
	}
	evicted := 0
	for what, n := range written(w.ours(t, 0)) {
		words := strings.Fields(what)
		verb, resource, name := words[0], words[1], strings.Join(words[2:], " ")
		switch {
		case slices.Contains([]string{"nodes", "nodepools", "nodeclaims"}, resource) && own[name]:
			t.Errorf("it wrote what is the users' own: %s", what)
		case resource == "pods/eviction":
			evicted += n
			if strings.HasPrefix(name, "own-") {
				t.Errorf("it evicted a pod of the users' own nodes: %s", what)
			}
		case resource == "pods" && verb != "patch", resource == "nodes" && verb == "delete":
			t.Errorf("it wrote: %s", what)
		}
	}
	t.Logf("Spotter evicted %d pods", evicted)
	if evicted == 0 {
		t.Error("no pod was evicted, so that nothing is shown of disruption budgets")
	}
}

// emptied checks that a node that the provider takes was drained and released before,
// unless the machine was too slow for the test itself.
func (w *fixture) emptied(t *testing.T, node string, at time.Time, slowest time.Duration) {
	t.Helper()
	lives := w.lives(t)
	i := slices.IndexFunc(lives, func(l *bill.Life) bool { return l.Node == node })
	if i < 0 || lives[i].Ended == 0 {
		t.Errorf("the audit log does not tell of the end of node %s", node)
		return
	}
	early := at.Sub(time.UnixMilli(lives[i].Ended)).Round(time.Millisecond)
	t.Logf("%s  node %s was given back %v before it was to be taken", w.market.clock(), node, early)
	switch {
	case early > 0:
	case slowest > time.Second:
		t.Logf("the machine is too busy to tell whether that is in time: the slowest look took %v", slowest)
	default:
		t.Errorf("node %s was not given back in time", node)
	}
}
