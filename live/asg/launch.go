package asg

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
)

// Launch increases the size of the first suitable group in the order of the markets, once for each
// token. The group, not the policy, chooses among its types and zones. Groups that cannot grow are
// skipped. If AWS refuses the instance later, the refusal appears in the events of the sink and as
// a failed replacement.
func (b *Backend) Launch(ctx context.Context, s *policy.Snapshot, l *policy.Launch) error {
	if l.Token == "" || len(l.Markets) == 0 {
		return fmt.Errorf("launch without a token or a market")
	}
	pool := s.Pools[l.Pool].Name
	if err := b.groups.known(ctx); err != nil {
		return b.groups.keepHeld(pool, err)
	}
	b.launches.sweep(ctx)
	return b.groups.keepHeld(pool, b.launcher.launchIn(ctx, s, l, pool))
}

// A launcher increases the sizes of groups.
type launcher struct {
	cfg      *Config
	cloud    *cloud
	kube     *kubeAPI
	groups   *groupTable
	launches *launchLedger

	mu     sync.Mutex
	raised map[string]policy.Time // time of the last increase, by group
}

// passedOver are the reasons for which a launch tries the next group.
var passedOver = []string{ReasonAtMax, ReasonInFlight, ReasonBusy, ReasonTags, ReasonGone, ReasonConflict}

func (lr *launcher) launchIn(ctx context.Context, s *policy.Snapshot, l *policy.Launch, pool string) error {
	if _, asked := lr.groups.find(launched(l.Token)); asked {
		return nil
	}
	names := lr.groups.groupsFor(pool, s, l.Markets)
	if len(names) == 0 {
		return backend.Hold(ReasonNoGroup, "no Auto Scaling group of pool %s launches in %s", pool,
			s.Markets[l.Markets[0]].Name)
	}
	names, dear := lr.groups.affordable(s, &s.Pools[l.Pool], names)
	if len(names) == 0 {
		return backend.Hold(ReasonTooDear, "%s", dear)
	}
	var full error
	short := false
	for _, name := range names {
		err := lr.raise(ctx, name, l)
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

// tagsMax is the maximum number of tags of a group in AWS. Spotter leaves tagsFree of them to the
// user.
const (
	tagsMax  = 50
	tagsFree = 4
)

// raise requests one more instance from a group.
func (lr *launcher) raise(ctx context.Context, name string, l *policy.Launch) error {
	unlock, err := lr.groups.locks.lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	g, err := lr.groups.fresh(ctx, name)
	if err != nil {
		return err
	}
	if g.launch(l.Token) != nil {
		return nil // requested before a restart
	}
	activities, err := lr.groups.resolve(ctx, g)
	if err != nil {
		return err
	}
	if err := lr.mayGrow(ctx, g); err != nil {
		return err
	}
	if g.missing() > 0 && refused(activities) {
		return fmt.Errorf("the group %s is waiting for capacity: %w", name, driver.ErrNoCapacity)
	}
	x := launch{token: l.Token, at: lr.cfg.now() / 1000 * 1000, from: g.desired, after: noActivity,
		replaces: l.Replaces != policy.None}
	if len(activities) > 0 {
		x.after = activities[0].id
	}
	if err := lr.launches.keep(ctx, g, x); err != nil {
		return err
	}
	return lr.resize(ctx, g, &x)
}

// mayGrow returns the reason that g must not grow now; nil if it may.
func (lr *launcher) mayGrow(ctx context.Context, g *group) error {
	if g.desired >= g.max {
		return backend.Hold(ReasonAtMax, "the group %s has a desired capacity of %d and a maximum of %d", g.name,
			g.desired, g.max)
	}
	if len(g.tags) > tagsMax-tagsFree {
		return backend.Hold(ReasonTags, "the group %s has %d tags, and recording a launch needs one more", g.name,
			len(g.tags))
	}
	nodes, err := lr.kube.nodesByInstance(ctx)
	if err != nil {
		return err
	}
	flying := 0
	for _, l := range g.launches {
		if !l.abandoned && nodes[l.instance] == nil {
			flying++
		}
	}
	if wait := lr.nextRaise(g).Sub(lr.cfg.now()); wait > 0 {
		return backend.Hold(ReasonInFlight, "the group %s was enlarged recently and may be again in %v", g.name, wait)
	}
	if flying >= lr.cfg.InFlightMax {
		return backend.Hold(ReasonInFlight, "the group %s has not launched the node that was requested before", g.name)
	}
	return nil
}

// nextRaise returns the earliest time of the next increase of g.
func (lr *launcher) nextRaise(g *group) policy.Time {
	lr.mu.Lock()
	last := lr.raised[g.name]
	lr.mu.Unlock()
	for i := range g.launches {
		last = max(last, g.launches[i].at)
	}
	if last == 0 {
		return 0
	}
	return last.Add(lr.cfg.RaiseEvery)
}

// resize requests one instance more than the group had when x was recorded. If AWS may have applied
// the size without a response, the group is read again: resize does not repeat the request after
// another client has changed the size.
func (lr *launcher) resize(ctx context.Context, g *group, x *launch) error {
	lr.mu.Lock()
	before := lr.raised[g.name]
	lr.raised[g.name] = lr.cfg.now()
	lr.mu.Unlock()
	for range 2 {
		err := lr.cloud.setDesired(ctx, g, x.from+1, x.token)
		switch kindOf(err) {
		case kindNone:
			return nil
		case kindUnknown:
			again, readErr := lr.groups.fresh(ctx, g.name)
			if readErr != nil {
				return errors.Join(held(err, "enlarging the group %s", g.name), readErr)
			}
			if again.desired != x.from {
				return nil // the request arrived, or another client has changed the size
			}
			if ctx.Err() != nil {
				return held(err, "enlarging the group %s", g.name)
			}
		default:
			lr.mu.Lock()
			lr.raised[g.name] = before // nothing was raised
			lr.mu.Unlock()
			return errors.Join(held(err, "enlarging the group %s", g.name), lr.launches.forget(ctx, g, x.token))
		}
	}
	return fmt.Errorf("enlarging the group %s: AWS did not report whether it was done", g.name)
}
