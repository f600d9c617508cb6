package karpenter

import (
	"fmt"
	"sync"
	"testing"
	"time"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/policy"
)

// TestRule04LaunchesAtOnce: as many launches as are asked for at the same time, no more
// NodeClaims without a machine are made than there may be.
func TestRule04LaunchesAtOnce(t *testing.T) {
	b, s := launchBench(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() { _ = b.Launch(t.Context(), s, spotLaunch(s, fmt.Sprint("token-", i))) })
	}
	all.Wait()
	var list karpv1.NodeClaimList
	if err := b.client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	if most := DefaultConfig().UnlaunchedMax; len(list.Items) != most {
		t.Errorf("%d NodeClaims have no machine, want %d", len(list.Items), most)
	}
}

// TestRule02SteeredAtOnce: whoever steers a pool at the same time, and while it is tended,
// its NodePools are written once.
func TestRule02SteeredAtOnce(t *testing.T) {
	b := newBench(t, capacityPool(), nodeClass(true))
	s := world(b.now())
	b.fail = func(verb string, _ any) error {
		if verb == "apply" {
			time.Sleep(100 * time.Millisecond)
		}
		return nil
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := b.Steer(t.Context(), s, &policy.Steer{Share: 1, Fallback: true}); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			if err := b.Tend(t.Context(), s); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(b.writes) != 2 {
		t.Errorf("written %v, want each of the two NodePools once", b.writes)
	}
}
