package rackspace

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// steerAnnotation is the annotation of a CapacityPool that contains its last steer, since no object
// at Rackspace contains it.
const steerAnnotation = "spotter.dev/steer"

// A steer is the last steer of a pool. No provisioner acts on it, so share, markets and bid are
// only informative; the limits apply to every launch.
type steer struct {
	Share    float64  `json:"share"`
	Exact    bool     `json:"exact,omitempty"`
	Fallback bool     `json:"fallback,omitempty"`
	Since    string   `json:"since"`
	Markets  []string `json:"markets,omitempty"`
	Bid      string   `json:"bidPerHour,omitempty"`

	// Limits are in thousandths of a vCPU, bytes and devices; 0 means that the limit of the pool
	// applies.
	CPU    int64 `json:"cpuMilli,omitempty"`
	Memory int64 `json:"memoryBytes,omitempty"`
	GPU    int64 `json:"gpu,omitempty"`
}

// marketsMax is the maximum number of markets in the annotation.
const marketsMax = 50

// Steer records the last steer of a pool. It changes neither running nodes nor their bids: a bid
// applies for the lifetime of a node.
func (b *Backend) Steer(ctx context.Context, s *policy.Snapshot, x *policy.Steer) error {
	name := s.Pools[x.Pool].Name
	var p v1alpha1.CapacityPool
	if err := b.client.Get(ctx, client.ObjectKey{Name: name}, &p); err != nil {
		return held(fmt.Errorf("reading the CapacityPool: %w", err))
	}
	next := steer{Share: x.Share, Exact: x.Exact, Fallback: x.Fallback, Since: s.Now.String(),
		CPU: x.Limits.CPU, Memory: x.Limits.Memory, GPU: x.Limits.GPU}
	for _, m := range x.Markets[:min(len(x.Markets), marketsMax)] {
		next.Markets = append(next.Markets, s.Markets[m].Name)
	}
	if x.Bid > 0 {
		next.Bid = amountOf(s.Pools[x.Pool].Bid(x.Bid)).text
	}
	last := steerOf(&p)
	// A limit that the steer does not set is kept.
	for _, l := range []struct{ next, last *int64 }{{&next.CPU, &last.CPU}, {&next.Memory, &last.Memory},
		{&next.GPU, &last.GPU}} {
		if *l.next == 0 {
			*l.next = *l.last
		}
	}
	if last.Since != "" && sameSteer(next, last) {
		return nil
	}
	text, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("recording the steer: %w", err)
	}
	if err := b.annotate(ctx, &p, string(text)); err != nil {
		return held(fmt.Errorf("writing annotation %s: %w", steerAnnotation, err))
	}
	b.steered(name, next)
	return nil
}

// steered reports a steer to the sink and stores it for launches.
func (b *Backend) steered(pool string, x steer) {
	b.state.mu.Lock()
	b.state.pool(pool).steer = x
	b.state.mu.Unlock()
	b.sink.SetSteer(pool, x.state())
}

// state returns x as the last steer of its pool.
func (x *steer) state() policy.SteerState {
	return policy.SteerState{Set: true, Share: x.Share, Exact: x.Exact, Fallback: x.Fallback, Since: instant(x.Since)}
}

// steerOf returns the last steer of a pool, or the zero value if the annotation is missing or
// invalid.
func steerOf(p *v1alpha1.CapacityPool) steer {
	var x steer
	if json.Unmarshal([]byte(p.Annotations[steerAnnotation]), &x) != nil || instant(x.Since) == 0 {
		return steer{}
	}
	return x
}

// sameSteer reports whether a and b are equal, apart from Since.
func sameSteer(a, b steer) bool {
	a.Since, b.Since = "", ""
	return reflect.DeepEqual(a, b)
}
