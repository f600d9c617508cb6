package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A latecomer is a client whose nodes join the cluster some time after their launch, each
// after a time of its own. The kwok provider makes the Node of a launch in a goroutine of
// the launch's, so that nothing else waits.
type latecomer struct {
	client.Client
	least, most time.Duration
}

// newLatecomer reads JOIN_AFTER: two durations with a hyphen between; without it nodes
// join at once.
func newLatecomer(c client.Client, after string) (client.Client, error) {
	if after == "" {
		return c, nil
	}
	from, to, _ := strings.Cut(after, "-")
	least, err := time.ParseDuration(from)
	if err != nil {
		return nil, fmt.Errorf("JOIN_AFTER is %q: %w", after, err)
	}
	most, err := time.ParseDuration(to)
	if err != nil || least < 0 || most < least {
		return nil, fmt.Errorf("JOIN_AFTER is %q, want two durations, the lesser first: 30s-60s", after)
	}
	return latecomer{c, least, most}, nil
}

// Create implements client.Client. A node whose NodeClaim was deleted meanwhile never joins: the
// provider has ended its machine.
func (c latecomer) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	if n, ok := o.(*corev1.Node); ok && c.most > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(c.least + rand.N(c.most-c.least+1)):
		}
		if claim, err := claimOf(ctx, c, n.Name); err != nil || claim == nil || !claim.DeletionTimestamp.IsZero() {
			return err
		}
	}
	return c.Client.Create(ctx, o, options...)
}
