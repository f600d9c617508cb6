package placement_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
)

// TestAttemptsAlike: attempts in which the pods of some nodes leave them find what is found
// where these pods are not bound and the nodes are not there, each prepared by itself.
func TestAttemptsAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawCluster(t)
		for range 20 {
			w.change(t)
		}
		b := &placement.Batch{Offers: drawOffers(t)}
		for i := range w.nodes {
			if w.nodes[i].Live() {
				b.Nodes = append(b.Nodes, policy.NodeID(i))
			}
		}
		for i := range w.pods {
			if p := w.pods[i]; p.Phase == policy.PodPending && !w.templates[p.Template].DaemonSet {
				b.Pods, b.From = append(b.Pods, p), append(b.From, policy.None)
			}
		}
		w.space.Solver().Prepare(b)
		common := len(b.Pods)
		var alone []placement.Batch
		var got []string
		for range 4 {
			b.Pods, b.From, b.Without = b.Pods[:common:common], b.From[:common:common], nil
			for at, n := range b.Nodes {
				if rapid.IntRange(0, 2).Draw(t, "leaves") == 0 {
					b.Without = append(b.Without, at)
					w.leave(b, n)
				}
			}
			alone, got = append(alone, *b), append(got, fmt.Sprint(w.space.Solver().Attempt()))
		}
		for i := range alone {
			if want := w.solveUnbound(&alone[i]); got[i] != want {
				t.Fatalf("attempt %d, without %v: %s, want %s", i, alone[i].Without, got[i], want)
			}
		}
	})
}

// leave has the pods of a node leave it in b.
func (w *checkedCluster) leave(b *placement.Batch, n policy.NodeID) {
	for _, p := range w.on(n) {
		if !w.templates[p.Template].DaemonSet {
			b.Pods, b.From = append(b.Pods, *p), append(b.From, n)
		}
	}
}

// solveUnbound solves b with the pods that leave unbound.
func (w *checkedCluster) solveUnbound(b *placement.Batch) string {
	x := &placement.Batch{Pods: b.Pods, Offers: b.Offers}
	for at, n := range b.Nodes {
		if !slices.Contains(b.Without, at) {
			x.Nodes = append(x.Nodes, n)
		}
	}
	for i, n := range b.From {
		if n != policy.None {
			w.space.Unbind(&b.Pods[i], n)
			defer w.space.Bind(&b.Pods[i], n)
		}
	}
	return fmt.Sprint(w.space.Solver().Solve(x))
}

// drawOffers draws what two pools sell.
func drawOffers(t *rapid.T) (list []placement.Offer) {
	for m := range rapid.IntRange(0, 6).Draw(t, "offers") {
		room := policy.Resources{CPU: rapid.Int64Range(1, 6).Draw(t, "cpu"), Memory: 6, Storage: 6, Pods: 6}
		o := placement.Offer{Pool: policy.PoolID(m % 2), Market: policy.MarketID(m),
			Price: policy.Money(rapid.IntRange(1, 3).Draw(t, "price")), Allocatable: room, Capacity: room}
		if rapid.Bool().Draw(t, "racked") {
			o.Labels = append(o.Labels, policy.Label{Key: "rack", Value: rapid.SampledFrom([]string{"1", "3"}).Draw(t, "rack")})
		}
		if rapid.IntRange(0, 5).Draw(t, "zoned") > 0 {
			o.Labels = append(o.Labels, policy.Label{Key: "topology.kubernetes.io/zone", Value: rapid.SampledFrom(zoneNames).Draw(t, "zone")})
		}
		list = append(list, o)
	}
	return list
}
