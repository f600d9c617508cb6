package asg

import (
	"context"
	"slices"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy/kube"
)

// Replaced returns the combined progress of the launches with the tokens. Callers have a drain that
// waits for the launches, so Replaced protects their instances from scale-in as soon as possible.
func (b *Backend) Replaced(ctx context.Context, tokens []string) (backend.Replacement, error) {
	return backend.Together(tokens, func(token string) (backend.Replacement, error) { return b.progress.of(ctx, token) })
}

// A progressReader determines the progress of launches and protects their instances.
type progressReader struct {
	cfg       *Config
	cloud     *cloud
	kube      *kubeAPI
	groups    *groupTable
	instances *instanceTable
	launches  *launchLedger
}

// of returns the progress of the launch with a token, and protects its instance.
func (p *progressReader) of(ctx context.Context, token string) (backend.Replacement, error) {
	if err := p.groups.known(ctx); err != nil {
		return backend.ReplacementWaiting, err
	}
	name, ok, err := p.groups.seek(ctx, launched(token))
	if err != nil || !ok {
		return orFailed(!ok && err == nil), err
	}
	unlock, err := p.groups.locks.lock(ctx, name)
	if err != nil {
		return backend.ReplacementWaiting, err
	}
	defer unlock()
	g, err := p.groups.recent(ctx, name)
	if isHeld(err, ReasonGone) {
		return backend.ReplacementFailed, nil
	}
	if err != nil {
		return backend.ReplacementWaiting, err
	}
	l := g.launch(token)
	if l == nil || l.abandoned {
		return backend.ReplacementFailed, nil
	}
	if l.instance == "" {
		return p.awaitInstance(ctx, g, token)
	}
	return p.stageOf(ctx, g, *l)
}

// awaitInstance determines whether a launch has created an instance, and records the instance.
func (p *progressReader) awaitInstance(ctx context.Context, g *group, token string) (backend.Replacement, error) {
	activities, err := p.groups.resolve(ctx, g)
	if err != nil {
		return backend.ReplacementWaiting, err
	}
	l := *g.launch(token)
	if l.instance != "" {
		if err := p.launches.keep(ctx, g, l); err != nil {
			return backend.ReplacementWaiting, err
		}
		return p.stageOf(ctx, g, l)
	}
	if refused(since(activities, l.after)) || p.launches.age(&l) > p.cfg.InstanceMax {
		return backend.ReplacementFailed, nil
	}
	return backend.ReplacementWaiting, nil
}

// stageOf returns the progress of the instance of a launch.
func (p *progressReader) stageOf(ctx context.Context, g *group, l launch) (backend.Replacement, error) {
	i := g.find(l.instance)
	late := p.launches.age(&l) > p.cfg.JoinMax
	switch {
	case i == nil:
		if p.instances.seenLately(g, l.instance) {
			return backend.ReplacementWaiting, nil
		}
		return backend.ReplacementFailed, nil
	case i.ending():
		return backend.ReplacementFailed, nil
	case i.state != "InService":
		return orFailed(late), nil
	}
	l.replaces = true
	if err := p.shield(ctx, g, i, &l); err != nil {
		return backend.ReplacementWaiting, err
	}
	nodes, err := p.kube.nodesByInstance(ctx)
	if err != nil {
		return backend.ReplacementWaiting, err
	}
	node := nodes[i.id]
	if node == nil {
		return orFailed(late), nil
	}
	if node.Annotations[AnnotationSwap] != swapReplacement {
		if err := p.kube.mark(ctx, node.Name, swapReplacement); err != nil {
			return backend.ReplacementWaiting, err
		}
	}
	if !kube.IsPrepared(node) {
		return orFailed(p.launches.age(&l) > p.cfg.ReadyMax), nil
	}
	return backend.ReplacementReady, nil
}

// orFailed returns ReplacementFailed if late, and otherwise ReplacementWaiting.
func orFailed(late bool) backend.Replacement {
	if late {
		return backend.ReplacementFailed
	}
	return backend.ReplacementWaiting
}

// shield protects the instance of a launch from scale-in, unless it is already protected. It does
// not write to the group of a managed node group, for which the annotation of the Node must be
// enough. The protection is recorded before it is set, so that a crash between the two writes
// cannot leave it in place forever.
func (p *progressReader) shield(ctx context.Context, g *group, i *instance, l *launch) error {
	if i.protected || g.managed.name != "" {
		return nil
	}
	if !l.protected {
		l.protected = true
		if err := p.launches.keep(ctx, g, *l); err != nil {
			return err
		}
	}
	if err := p.cloud.protect(ctx, g.name, i.id, true); err != nil {
		return held(err, "protecting instance %s from scale-in", i.id)
	}
	p.groups.edit(func() {
		g.instances = slices.Clone(g.instances)
		g.find(i.id).protected = true
	})
	return nil
}
