package asg

import (
	"context"
	"errors"
	"maps"
	"math"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// AnnotationBounds is an annotation of a CapacityPool. The value "max" allows Spotter to write the
// maximum size of groups that buy only Spot, so that the Cluster Autoscaler cannot grow them beyond
// the wanted share. TagMax records the user's maximum size.
const AnnotationBounds = "spotter.dev/group-bounds"

// A steerer writes the steers of pools to their groups.
type steerer struct {
	cfg    *Config
	cloud  *cloud
	sink   backend.Sink
	groups *groupTable
}

// boundSlack is the minimum number of instances between the desired size of a group and its bound.
// A bound below the size makes the group terminate instances, and the Cluster Autoscaler may raise
// the size between Spotter's read and write.
const boundSlack = 2

// Steer records the steer of a pool, and writes it to the pool's groups where their owner allows
// it. Otherwise the expander of the Cluster Autoscaler decides which of two groups grows, and the
// share is reached by launches and drains. For a group that mixes Spot and on-demand, Steer returns
// a [backend.Held] if the group must not be changed.
func (b *Backend) Steer(ctx context.Context, s *policy.Snapshot, x *policy.Steer) error {
	pool := s.Pools[x.Pool].Name
	if err := b.groups.known(ctx); err != nil {
		return b.groups.keepHeld(pool, err)
	}
	return b.groups.keepHeld(pool, b.steering.steer(ctx, s, x, pool))
}

func (w *steerer) steer(ctx context.Context, s *policy.Snapshot, x *policy.Steer, pool string) error {
	var names []string
	for _, g := range w.groups.list() {
		if g.pool == pool {
			names = append(names, g.name)
		}
	}
	unlock, err := w.groups.locks.lock(ctx, names...) // the bound of one group depends on all of them
	if err != nil {
		return err
	}
	defer unlock()
	var groups []*group
	for _, name := range names {
		g, err := w.groups.fresh(ctx, name)
		if err != nil {
			return err
		}
		groups = append(groups, g)
	}
	if len(groups) == 0 {
		return backend.Hold(ReasonNoGroup, "pool %s has no Auto Scaling group", pool)
	}
	var errs []error
	for i, g := range groups {
		switch {
		case g.mixes() || g.tags[TagOnDemand] != "": // also a group that a steer has left with one capacity type
			errs = append(errs, w.mix(ctx, s, x, g))
		case g.buys.onDemandPercent == 0 && g.managed.name == "":
			errs = append(errs, w.bound(ctx, groups, i, x.Share))
		}
	}
	return errors.Join(append(errs, w.writeSteer(ctx, groups[0], pool, x))...)
}

// writeSteer records the steer of a pool, unless the recorded one agrees with it.
func (w *steerer) writeSteer(ctx context.Context, g *group, pool string, x *policy.Steer) error {
	if last, _ := decodeSteer(g.tags[TagSteer]); last.Follows(x) {
		return nil
	}
	st := x.State(w.cfg.now())
	if err := w.cloud.tag(ctx, g, TagSteer, encodeSteer(st)); err != nil {
		return held(err, "recording in the tags of the group %s what pool %s buys", g.name, pool)
	}
	w.groups.edit(func() {
		g.tags = maps.Clone(g.tags)
		g.tags[TagSteer] = encodeSteer(st)
	})
	w.sink.SetSteer(pool, st)
	return nil
}

// bound keeps a group of Spot instances from growing beyond the share. It restores the user's
// maximum size once the bound is no longer wanted or allowed.
func (w *steerer) bound(ctx context.Context, groups []*group, at int, share float64) error {
	g := groups[at]
	m, ours := maxSize.read(g)
	allowed := w.groups.allowances(g.pool).bounds
	if !ours && (!allowed || share >= 1) {
		return nil
	}
	want := m.user
	if allowed && share < 1 {
		want = min(m.user, max(g.min, g.desired+max(boundSlack, moreSpot(groups, share))))
	}
	return w.put(ctx, g, &maxSize, want)
}

// unboundGroup restores the user's maximum size of a group.
func (w *steerer) unboundGroup(ctx context.Context, name string) error {
	unlock, err := w.groups.locks.lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	g, err := w.groups.fresh(ctx, name)
	if err != nil {
		return err
	}
	return w.giveBack(ctx, g, &maxSize)
}

// moreSpot returns the number of Spot instances that can be added to groups before their part
// exceeds the share, rounded up.
func moreSpot(groups []*group, share float64) int {
	spot, all := 0, 0
	for _, g := range groups {
		all += g.desired
		if g.buys.onDemandPercent == 0 {
			spot += g.desired
		}
	}
	return max(0, int(math.Ceil(float64(share*float64(all))))-spot)
}

func heldOr(err error, doing string, args ...any) error {
	if err == nil {
		return nil
	}
	return held(err, doing, args...)
}

// mix steers a group that buys both on-demand and Spot through its purchase options. The group then
// replaces instances itself, so mix requires that the owner allows it and that a lifecycle hook
// delays the termination of instances. Each instance that the group will replace counts as a drain:
// the disruption budgets limit their number.
func (w *steerer) mix(ctx context.Context, s *policy.Snapshot, x *policy.Steer, g *group) error {
	want := int(math.Round(float64(100 * (1 - x.Share))))
	if want == g.buys.onDemandPercent {
		return nil
	}
	replaced := (abs(want-g.buys.onDemandPercent)*g.desired + 99) / 100
	if !w.groups.allowances(g.pool).replaces {
		return backend.Hold(ReasonReplaces,
			"to buy %d%% on demand instead of %d%% the group %s would replace about %d of its %d instances regardless of disruption budgets; "+
				"use one group per capacity type, or allow it with spec.backend.autoScalingGroups.allowGroupReplacement", want, g.buys.onDemandPercent, g.name, replaced, g.desired)
	}
	if g.managed.name != "" {
		return backend.Hold(ReasonEKS, "the purchase options of the managed node group %s cannot be changed", g.managed.name)
	}
	hooked, err := w.cloud.hooked(ctx, g.name)
	if err != nil {
		return held(err, "reading the lifecycle hooks of the group %s", g.name)
	}
	if !hooked {
		return backend.Hold(ReasonReplaces,
			"the group %s would replace about %d of its %d instances, and no lifecycle hook delays their termination until they are drained",
			g.name, replaced, g.desired)
	}
	may := s.Disruptable(x.Pool, policy.Underutilized)
	step := abs(want - g.buys.onDemandPercent)
	if g.desired > 0 {
		step = min(step, may*100/g.desired)
	}
	if step == 0 {
		return backend.Hold(ReasonReplaces,
			"the group %s would replace about %d of its %d instances, but only %d may be disrupted now", g.name, replaced, g.desired, may)
	}
	if want < g.buys.onDemandPercent {
		step = -step
	}
	if err := w.put(ctx, g, &onDemandPart, g.buys.onDemandPercent+step); err != nil {
		return err
	}
	w.groups.edit(func() { g.buys.onDemandPercent += step })
	return nil
}

func abs(n int) int { return max(n, -n) }
