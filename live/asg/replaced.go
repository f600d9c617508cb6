package asg

import (
	"context"
	"slices"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy/kube"
)

// Replaced reports how far the launches of the tokens have come together. Who asks
// has a drain that waits for them, so it protects their instances from scale-in as
// soon as that can be done.
func (b *Backend) Replaced(ctx context.Context, tokens []string) (backend.Replacement, error) {
	return backend.Together(tokens, func(token string) (backend.Replacement, error) { return b.progress.of(ctx, token) })
}

// A progressReader finds out how far launches have come, and protects their instances.
type progressReader struct {
	cfg       *Config
	cloud     *cloud
	kube      *kubeAPI
	groups    *groupTable
	instances *instanceTable
	launches  *launchLedger
}

// of reports how far the launch of a token has come, and protects its instance.
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

// awaitInstance looks whether a launch has brought an instance, and writes down
// which.
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

// stageOf returns how far the instance of a launch has come.
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

// orFailed returns that a replacement is waited for, or has failed if it is late.
func orFailed(late bool) backend.Replacement {
	if late {
		return backend.ReplacementFailed
	}
	return backend.ReplacementWaiting
}

// shield protects the instance of a launch from scale-in, unless its group protects all. The group
// of a managed node group is not written; for it the annotation of the Node must be enough. The
// protection is recorded first, so that a crash between the two writes leaves no protection that is
// never removed.
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
