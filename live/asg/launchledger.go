package asg

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/drain"
	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy/kube"
)

// abandonedMax limits, as a multiple of InstanceMax, how long an unwanted launch is tracked. An
// instance that starts later is left to the Cluster Autoscaler.
const abandonedMax = 12

// A launchLedger records launches in the tags of their groups, and tracks them until their nodes
// exist or they are abandoned. The records are stored in AWS, so that a restart does not lose any.
type launchLedger struct {
	cfg       *Config
	cloud     *cloud
	kube      *kubeAPI
	groups    *groupTable
	instances *instanceTable
	releases  *releaser
}

// keep records a launch in the tags of its group and in the group table.
func (w *launchLedger) keep(ctx context.Context, g *group, l launch) error {
	if err := w.cloud.tag(ctx, g, TagLaunch+l.token, l.encode()); err != nil {
		return held(err, "recording a launch in the tags of the group %s", g.name)
	}
	w.groups.note(g, writing{launch: l, group: g.name})
	return nil
}

// forget removes the record of a launch.
func (w *launchLedger) forget(ctx context.Context, g *group, token string) error {
	if err := w.cloud.untag(permit.Undo(ctx), g, TagLaunch+token); err != nil {
		return held(err, "removing the record of a launch from the group %s", g.name)
	}
	w.groups.note(g, writing{launch: launch{token: token}, group: g.name, struck: true})
	return nil
}

// sweep continues with abandoned launches. It removes the records of launches that no drain waits
// for, once their nodes exist, their instances have gone or ReadyMax has passed. Errors are logged
// and retried at the next write.
func (w *launchLedger) sweep(ctx context.Context) {
	ctx = permit.Undo(ctx)
	nodes, err := w.kube.nodesByInstance(ctx)
	if err != nil {
		w.cfg.Log.Warn("checking launches", "error", err)
		return
	}
	for _, g := range w.groups.list() {
		for _, l := range slices.Clone(g.launches) {
			var err error
			switch n := nodes[l.instance]; {
			case l.abandoned:
				err = w.each(ctx, []string{l.token}, w.abandon)
			case l.replaces:
			case n != nil, l.instance != "" && !g.has(l.instance), w.age(&l) > w.cfg.ReadyMax:
				err = w.strike(ctx, g.name, l.token)
			}
			if err != nil && !errors.Is(err, backend.ErrNotYet) {
				w.cfg.Log.Warn("checking a launch", "group", g.name, "token", l.token, "error", err)
			}
		}
	}
}

// strike removes the record of a launch unless a drain waits for it by now.
func (w *launchLedger) strike(ctx context.Context, group, token string) error {
	unlock, err := w.groups.locks.lock(ctx, group)
	if err != nil {
		return err
	}
	defer unlock()
	for _, g := range w.groups.list() {
		if l := g.launch(token); g.name == group && l != nil && !l.replaces {
			return w.forget(ctx, &g, token)
		}
	}
	return nil
}

// abandon gives up a launch, or makes as much progress as it can now. It first records that the
// launch is unwanted. The requested size cannot be decreased before an instance exists, since the
// group would choose the instance to terminate. The launch is therefore tracked until an instance
// exists or another client has decreased the size. The instance is terminated only if its pool may
// be changed. Otherwise it is left to the Cluster Autoscaler.
func (w *launchLedger) abandon(ctx context.Context, g *group, l launch) error {
	ctx = permit.Undo(ctx)
	if !l.abandoned {
		l.abandoned = true
		if err := w.keep(ctx, g, l); err != nil {
			return err
		}
	}
	i := g.find(l.instance)
	switch {
	case l.instance == "" && g.missing() > 0 && w.age(&l) < abandonedMax*w.cfg.InstanceMax:
		return nil
	case l.instance != "" && i == nil && w.instances.seenLately(g, l.instance):
		return nil // the read may be old
	case i == nil, i.ending():
		return w.settle(ctx, g, l)
	}
	nodes, err := w.kube.nodesByInstance(ctx)
	if err != nil {
		return err
	}
	wanted := g.desired <= g.min
	if n := nodes[i.id]; n != nil && !wanted {
		busy, err := drain.Busy(ctx, w.kube.client, w.kube.reader, n)
		if err != nil {
			return err
		}
		wanted = busy || kube.IsPrepared(n) || kube.IsTainted(n, TaintToBeDeleted)
	}
	if wanted {
		return w.settle(ctx, g, l)
	}
	err = w.releases.terminate(permit.Act(ctx, g.pool), i.id)
	switch {
	case errors.Is(err, backend.ErrNotYet):
		return nil // retried at the next write
	case err != nil && !errors.As(err, new(*permit.Denied)):
		return err
	}
	return w.settle(ctx, g, l)
}

// each calls do for each existing launch with one of the tokens.
func (w *launchLedger) each(ctx context.Context, tokens []string,
	do func(context.Context, *group, launch) error) error {
	var errs []error
	for _, token := range tokens {
		errs = append(errs, w.one(ctx, token, do))
	}
	return errors.Join(errs...)
}

// one calls do with the launch of a token, after it has locked the group and read it again. It does
// nothing if no group has the launch or if the group no longer exists.
func (w *launchLedger) one(ctx context.Context, token string, do func(context.Context, *group, launch) error) error {
	name, ok, err := w.groups.seek(ctx, launched(token))
	if err != nil || !ok {
		return err
	}
	unlock, err := w.groups.locks.lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	g, err := w.groups.fresh(ctx, name)
	if isHeld(err, ReasonGone) {
		return nil
	}
	if err != nil {
		return err
	}
	l := g.launch(token)
	if l == nil {
		return nil
	}
	if l.instance == "" {
		if _, err := w.groups.resolve(ctx, g); err != nil {
			return err
		}
		l = g.launch(token)
	}
	return do(ctx, g, *l)
}

// settle removes the protection from the instance of a launch, and then the record. The tag is
// removed last, so that a crash before leaves it for another attempt.
func (w *launchLedger) settle(ctx context.Context, g *group, l launch) error {
	ctx = permit.Undo(ctx)
	i := g.find(l.instance)
	if i != nil && l.protected && i.protected && !i.ending() {
		if err := w.cloud.protect(ctx, g.name, i.id, false); err != nil && kindOf(err) != kindGone &&
			kindOf(err) != kindRefused {
			return held(err, "removing the scale-in protection of instance %s", i.id)
		}
	}
	nodes, err := w.kube.nodesByInstance(ctx)
	if err != nil {
		return err
	}
	if n := nodes[l.instance]; n != nil {
		if err := w.kube.unmark(ctx, n.Name, swapReplacement); err != nil {
			return err
		}
	}
	return w.forget(ctx, g, l.token)
}

// age returns the time since a launch was requested.
func (w *launchLedger) age(l *launch) time.Duration { return w.cfg.now().Sub(l.at) }
