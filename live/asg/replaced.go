package asg

import (
	"context"
	"slices"

	"github.com/spotter-dev/spotter/live/backend"
)

// A Stage is how far a launch has come.
type Stage uint8

// The stages of a launch.
const (
	StageFailed     Stage = iota
	StageNoInstance       // the group has launched nothing
	StagePending          // there is an instance, in Pending or held in Pending:Wait
	StageNotJoined        // in service, without a Node
	StageNotReady         // joined, and not ready for pods
	StageReady
)

// String returns the name used in output.
func (s Stage) String() string {
	return [...]string{"failed", "no instance", "pending", "not joined", "not ready", "ready"}[s]
}

// Replaced reports how far the launches of the tokens have come together. Who asks
// has a drain that waits for them, so it protects their instances from scale-in as
// soon as that can be done.
func (b *Backend) Replaced(ctx context.Context, tokens []string) (backend.Replacement, error) {
	return backend.Together(tokens, func(token string) (backend.Replacement, error) {
		stage, err := b.Progress(ctx, token)
		switch stage {
		case StageFailed:
			return backend.ReplacementFailed, err
		case StageReady:
			return backend.ReplacementReady, err
		}
		return backend.ReplacementWaiting, err
	})
}

// Progress reports how far one launch has come that a drain waits for, and protects
// its instance.
func (b *Backend) Progress(ctx context.Context, token string) (Stage, error) {
	if err := b.groups.known(ctx); err != nil {
		return StageNoInstance, err
	}
	name, ok, err := b.groups.seek(ctx, launched(token))
	if err != nil {
		return StageNoInstance, err
	}
	if !ok {
		return StageFailed, nil
	}
	unlock, err := b.groups.locks.lock(ctx, name)
	if err != nil {
		return StageNoInstance, err
	}
	defer unlock()
	g, err := b.groups.recent(ctx, name)
	if isHeld(err, ReasonGone) {
		return StageFailed, nil
	}
	if err != nil {
		return StageNoInstance, err
	}
	l := g.launch(token)
	if l == nil || l.abandoned {
		return StageFailed, nil
	}
	if l.instance == "" {
		return b.progress.awaitInstance(ctx, g, token)
	}
	return b.progress.stageOf(ctx, g, *l)
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

// awaitInstance looks whether a launch has brought an instance, and writes down
// which.
func (p *progressReader) awaitInstance(ctx context.Context, g *group, token string) (Stage, error) {
	activities, err := p.groups.resolve(ctx, g)
	if err != nil {
		return StageNoInstance, err
	}
	l := *g.launch(token)
	if l.instance != "" {
		if err := p.launches.keep(ctx, g, l); err != nil {
			return StagePending, err
		}
		return p.stageOf(ctx, g, l)
	}
	if refused(since(activities, l.after)) || p.launches.age(&l) > p.cfg.InstanceMax {
		return StageFailed, nil
	}
	return StageNoInstance, nil
}

// stageOf returns how far the instance of a launch has come.
func (p *progressReader) stageOf(ctx context.Context, g *group, l launch) (Stage, error) {
	i := g.find(l.instance)
	late := p.launches.age(&l) > p.cfg.JoinMax
	switch {
	case i == nil:
		if p.instances.seenLately(g, l.instance) {
			return StagePending, nil
		}
		return StageFailed, nil
	case i.ending():
		return StageFailed, nil
	case i.state != "InService":
		return orFailed(StagePending, late), nil
	}
	l.replaces = true
	if err := p.shield(ctx, g, i, &l); err != nil {
		return StageNotJoined, err
	}
	nodes, err := p.kube.nodesByInstance(ctx)
	if err != nil {
		return StageNotJoined, err
	}
	node := nodes[i.id]
	if node == nil {
		return orFailed(StageNotJoined, late), nil
	}
	if node.Annotations[AnnotationSwap] != swapReplacement {
		if err := p.kube.mark(ctx, node.Name, swapReplacement); err != nil {
			return StageNotReady, err
		}
	}
	if !ready(node) {
		return orFailed(StageNotReady, p.launches.age(&l) > p.cfg.ReadyMax), nil
	}
	return StageReady, nil
}

func orFailed(s Stage, late bool) Stage {
	if late {
		return StageFailed
	}
	return s
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
