package karpenter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy"
)

// TestTendReadsOnce: however many pools there are, the NodePools and NodeClaims are read
// once to tend them, and CapacityPools only where a NodePool of none that is known is
// there. What is written then goes by the client for what a step waits for.
func TestTendReadsOnce(t *testing.T) {
	other := capacityPool()
	other.Name = "shop"
	b := newBench(t, capacityPool(), other, nodeClass(true))
	ahead := &countingClient{Client: b.client}
	b.Backend.writes.ahead = ahead
	s := newSnapshot(b.now())
	s.Pools = append(s.Pools, s.Pools[0])
	s.Pools[1].ID, s.Pools[1].Name = 1, "shop"
	for i := range s.Pools {
		b.mustSteer(s, policy.Steer{Pool: policy.PoolID(i), Share: 1, Fallback: true})
	}
	if ahead.applied == 0 || ahead.applied != len(b.writes) {
		t.Errorf("%d of the %d writes of a steer went ahead", ahead.applied, len(b.writes))
	}
	var lists []string
	b.fail = func(verb string, o any) error {
		if verb == "list" {
			name := fmt.Sprintf("%T", o)
			if l, ok := o.(client.ObjectList); ok && l.GetObjectKind().GroupVersionKind().Kind != "" {
				name = l.GetObjectKind().GroupVersionKind().Kind
			}
			lists = append(lists, name[strings.LastIndexByte(name, '.')+1:])
		}
		return nil
	}
	b.writes = nil
	if err := b.Tend(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	slices.Sort(lists)
	if want := "[NodeClaimList NodeClaimList NodeList NodePoolList]"; /* NodeClaims and Nodes of the cache too */ fmt.Sprint(lists) != want {
		t.Errorf("two pools are tended by lists of %v, want %s", lists, want)
	}
	if len(b.writes) != 0 {
		t.Errorf("where nothing has changed %q is written", b.writes)
	}
	lists = nil
	s.Pools = s.Pools[:1]
	if err := b.Tend(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(lists, "CapacityPoolList") || b.nodePool("shop-spot") == nil {
		t.Errorf("pool shop is in no snapshot yet, and by lists of %v its NodePool is %v", lists, b.nodePool("shop-spot"))
	}
}

// A countingClient counts what is applied through it.
type countingClient struct {
	client.Client
	applied int
}

func (c *countingClient) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	c.applied++
	return c.Client.Apply(ctx, o, opts...)
}
