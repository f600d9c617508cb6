package karpenter

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// TestRule04LaunchesAtOnce: however many launches are requested at the same time, the number of
// NodeClaims without a machine stays within its limit.
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
	s := newSnapshot(b.now())
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

// TestRule04PoolsAtOnce: while eight pools are steered, launch and are tended at the same
// time, each NodePool is written once and no more NodeClaims have no machine than may.
func TestRule04PoolsAtOnce(t *testing.T) {
	const pools = 8
	b := newBench(t, nodeClass(true))
	s := newSnapshot(b.now())
	one := s.Pools[0]
	s.Pools = nil
	for i := range pools {
		p, o := one, capacityPool()
		p.ID, p.Name = policy.PoolID(i), fmt.Sprint("web", i)
		s.Pools, o.Name = append(s.Pools, p), p.Name
		if err := b.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	atOnce := func(do func(policy.PoolID) error) {
		var all sync.WaitGroup
		for i := range pools {
			all.Go(func() {
				if err := do(policy.PoolID(i)); err != nil {
					t.Error(err)
				}
			})
			all.Go(func() {
				if err := b.Tend(t.Context(), s); err != nil {
					t.Error(err)
				}
			})
			all.Go(func() { b.Conditions(s.Pools[i].Name) })
		}
		all.Wait()
	}
	b.writes = nil
	atOnce(func(p policy.PoolID) error {
		return b.Steer(t.Context(), s, &policy.Steer{Pool: p, Share: 1, Fallback: true})
	})
	if len(b.writes) != 2*pools {
		t.Errorf("%d writes %v, want one of each NodePool", len(b.writes), b.writes)
	}
	for i := range pools {
		b.karpenterSees(s.Pools[i].Name + "-spot")
	}
	b.writes = nil
	atOnce(func(p policy.PoolID) error {
		l := spotLaunch(s, fmt.Sprint("token-", p))
		l.Pool = p
		if err := b.Launch(t.Context(), s, l); err != nil && !errors.As(err, new(*backend.Held)) {
			return err
		}
		return nil
	})
	if most := DefaultConfig().UnlaunchedMax; len(b.writes) != most {
		t.Errorf("written %v, want %d NodeClaims", b.writes, most)
	}
}

// TestRule04MassReclaim: of two hundred launches under a notice those for which there is no
// room are left to Karpenter, in no time.
func TestRule04MassReclaim(t *testing.T) {
	b, s := launchBench(t)
	began, left := time.Now(), 0
	for i := range 200 {
		l := spotLaunch(s, fmt.Sprint("token-", i))
		l.Replaces = withNode(s, fmt.Sprint("node-", i), market(s, 0, 0, policy.Spot))
		s.Nodes[l.Replaces].ReclaimAt = s.Now + 120_000
		if held := new(backend.Held); errors.As(b.Launch(t.Context(), s, l), &held) && held.Reason == "LeftToKarpenter" &&
			strings.Contains(held.Message, fmt.Sprint("node-", i)) {
			left++
		}
	}
	if want := 200 - DefaultConfig().UnlaunchedMax; left != want {
		t.Errorf("%d launches are left to Karpenter, want %d", left, want)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}
