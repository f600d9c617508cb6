package asg

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
)

// Launch makes the group of the first market that will do one larger, once for
// each token. The group, and not the policy, chooses among its types and zones.
// Groups that may not grow are passed over for the next. An instance that is
// refused later shows in the sink's events, and as a replacement that failed.
func (b *Backend) Launch(ctx context.Context, s *policy.Snapshot, l *policy.Launch) error {
	release, err := b.act(ctx)
	if err != nil {
		return err
	}
	defer release()
	if l.Token == "" || len(l.Markets) == 0 {
		return fmt.Errorf("launch without a token or a market")
	}
	pool := s.Pools[l.Pool].Name
	if err := b.known(ctx); err != nil {
		return b.remember(pool, err)
	}
	b.sweep(ctx)
	return b.remember(pool, b.launchIn(ctx, s, l, pool))
}

// passedOver are the reasons for which a launch tries the next group.
var passedOver = []string{ReasonAtMax, ReasonInFlight, ReasonBusy, ReasonTags, ReasonGone, ReasonConflict}

func (b *Backend) launchIn(ctx context.Context, s *policy.Snapshot, l *policy.Launch, pool string) error {
	if b.groupWith(func(g *group) bool { return g.launch(l.Token) != nil }) != nil {
		return nil
	}
	names := b.groupsFor(pool, s, l.Markets)
	if len(names) == 0 {
		return backend.Hold(ReasonNoGroup, "no Auto Scaling group of pool %s launches in %s", pool, s.Markets[l.Markets[0]].Name)
	}
	names, dear := b.affordable(s, &s.Pools[l.Pool], names)
	if len(names) == 0 {
		return backend.Hold(ReasonTooDear, "%s", dear)
	}
	var full error
	short := false
	for _, name := range names {
		err := b.raise(ctx, name, l)
		switch {
		case errors.Is(err, driver.ErrNoCapacity):
			short = true
		case isHeld(err, passedOver...):
			full = err
		default:
			return err
		}
	}
	if full == nil && short {
		return driver.ErrNoCapacity
	}
	return full
}

// groupsFor returns the groups of pool that launch in the markets, in the order in
// which the markets name them first.
func (b *Backend) groupsFor(pool string, s *policy.Snapshot, markets []policy.MarketID) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var names []string
	for _, id := range markets {
		m := &s.Markets[id]
		if m.Provider != "aws" || m.Region != b.cfg.Region {
			continue
		}
		for _, g := range b.groups {
			if g.pool == pool && g.offers(s.Zones[m.Zone], s.Types[m.Type].Name, m.Capacity) && !slices.Contains(names, g.name) {
				names = append(names, g.name)
			}
		}
	}
	return names
}

// affordable returns those of the groups that launch in no market of pool which costs
// more now than it may pay, and of one of the others what it would: the group, and
// nobody else, chooses among its types and zones.
func (b *Backend) affordable(s *policy.Snapshot, pool *policy.Pool, names []string) (left []string, dear string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		g := b.groups[slices.IndexFunc(b.groups, func(g *group) bool { return g.name == name })]
		i := slices.IndexFunc(pool.Markets, func(id policy.MarketID) bool {
			m := &s.Markets[id]
			return m.Region == b.cfg.Region && m.Offered && !pool.Affords(m) && g.offers(s.Zones[m.Zone], s.Types[m.Type].Name, m.Capacity)
		})
		if i < 0 {
			left = append(left, name)
			continue
		}
		m := &s.Markets[pool.Markets[i]]
		dear = fmt.Sprintf("the group %s may launch in %s for %s an hour, and pool %s pays %s at most", name, m.Name, m.Charge().Short(), pool.Name, pool.PriceMax.Short())
	}
	return left, dear
}

// tagsMax is the most tags that AWS lets a group have. Ours leave the user room.
const (
	tagsMax  = 50
	tagsRoom = 4
)

// raise asks one group for one more instance.
func (b *Backend) raise(ctx context.Context, name string, l *policy.Launch) error {
	g, err := b.fresh(ctx, name)
	if err != nil {
		return err
	}
	if g.launch(l.Token) != nil {
		return nil // it was asked for before a restart
	}
	activities, err := b.resolve(ctx, g)
	if err != nil {
		return err
	}
	if err := b.mayGrow(ctx, g); err != nil {
		return err
	}
	if g.missing() > 0 && refused(activities) {
		return fmt.Errorf("the group %s is waiting for capacity: %w", name, driver.ErrNoCapacity)
	}
	x := launch{token: l.Token, at: b.now() / 1000 * 1000, from: g.desired, after: noActivity, replaces: l.Replaces != policy.None}
	if len(activities) > 0 {
		x.after = activities[0].id
	}
	if err := b.keep(ctx, g, x); err != nil {
		return err
	}
	return b.resize(ctx, g, &x)
}

// resolve reads the newest scaling activities of g, and finds out which instances
// its launches brought.
func (b *Backend) resolve(ctx context.Context, g *group) ([]activity, error) {
	activities, err := b.cloud.activities(ctx, g.name)
	if err != nil {
		return nil, held(err, "reading the scaling activities of the group %s", g.name)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	launches := slices.Clone(g.launches)
	claim(launches, activities, g.has)
	g.launches, g.activities = launches, activities
	return activities, nil
}

// mayGrow returns why g is not to be made larger now; nil if it is.
func (b *Backend) mayGrow(ctx context.Context, g *group) error {
	if g.desired >= g.max {
		return backend.Hold(ReasonAtMax, "the group %s is to hold %d instances and may hold no more than %d", g.name, g.desired, g.max)
	}
	if len(g.tags) > tagsMax-tagsRoom {
		return backend.Hold(ReasonTags, "the group %s has %d tags, and a launch is written down as one more", g.name, len(g.tags))
	}
	nodes, err := b.nodesByInstance(ctx)
	if err != nil {
		return err
	}
	flying := 0
	for _, l := range g.launches {
		if !l.abandoned && nodes[l.instance] == nil {
			flying++
		}
	}
	if wait := b.nextRaise(g).Sub(b.now()); wait > 0 {
		return backend.Hold(ReasonInFlight, "the group %s was raised lately, and may be again in %v", g.name, wait)
	}
	if flying >= b.cfg.InFlightMax {
		return backend.Hold(ReasonInFlight, "the group %s has not brought the node that was asked for before", g.name)
	}
	return nil
}

// nextRaise returns when g may be raised again.
func (b *Backend) nextRaise(g *group) policy.Time {
	b.mu.Lock()
	last := b.raised[g.name]
	b.mu.Unlock()
	for i := range g.launches {
		last = max(last, g.launches[i].at)
	}
	if last == 0 {
		return 0
	}
	return last.Add(b.cfg.RaiseEvery)
}

// resize asks for one instance more than the read that x was written down with
// said. Where AWS may have done so without sinkReport, the group is read again: the
// size is never sent a second time after somebody else has changed it.
func (b *Backend) resize(ctx context.Context, g *group, x *launch) error {
	b.mu.Lock()
	before := b.raised[g.name]
	b.raised[g.name] = b.now()
	b.mu.Unlock()
	for range 2 {
		err := b.cloud.setDesired(ctx, g, x.from+1, x.token)
		switch kindOf(err) {
		case kindNone:
			return nil
		case kindUnknown:
			again, readErr := b.fresh(ctx, g.name)
			if readErr != nil {
				return errors.Join(held(err, "raising the size of the group %s", g.name), readErr)
			}
			if again.desired != x.from {
				return nil // it arrived, or others have raised the size as far
			}
			if ctx.Err() != nil {
				return held(err, "raising the size of the group %s", g.name)
			}
		default:
			b.mu.Lock()
			b.raised[g.name] = before // nothing was raised
			b.mu.Unlock()
			return errors.Join(held(err, "raising the size of the group %s", g.name), b.forget(ctx, g, x.token))
		}
	}
	return fmt.Errorf("raising the size of the group %s: AWS did not say whether it was done", g.name)
}
