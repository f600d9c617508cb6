package live

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// claimPools claims the pools that no release has claimed, or whose release no longer leads, before
// a plan is carried out. If two releases start at once, one of them claims the first pool, and the
// other then treats it as its rival.
func (c *Controller) claimPools(ctx context.Context) error {
	rival, unclaimed, err := c.parts.Authority.Claims(ctx)
	if err != nil {
		return fmt.Errorf("reading who has claimed the pools: %w", err)
	}
	if rival != c.current.rival {
		c.parts.Log.Warn("the release that acts on the pools changed", "rival", rival, "acts", rival == "")
		c.current.rival = rival
	}
	defer func() {
		if len(unclaimed) > 0 {
			c.parts.Authority.Forget()
		}
	}()
	for _, p := range unclaimed {
		next := p.DeepCopy()
		next.Status.Controller = c.cfg.Namespace
		err := c.parts.Client.Status().Update(ctx, next, fieldOwner) // rejected if the pool has changed since it was read
		switch {
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			return nil // the next step reads it again
		case err != nil:
			return fmt.Errorf("claiming CapacityPool %s: %w", p.Name, err)
		}
		c.parts.Log.Info("pool claimed", "pool", p.Name, "before", p.Status.Controller)
	}
	return nil
}
