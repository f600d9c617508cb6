package asg

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/permit"
)

// abandonedMax is how many times InstanceMax a launch that nobody wants is looked
// after: an instance that comes still later is left to the Cluster Autoscaler.
const abandonedMax = 12

// Cleanup ends whatever a swap left behind of which nothing is known any more: marks on
// nodes that are not among those being drained, and launches, protection included,
// that are not among the tokens that drains wait for. A new leader calls it once it
// knows its drains, and may do so again after every step: where nothing is left it
// asks AWS for nothing. What is ours is taken back whatever the mode of its pool is, also
// of one that was deleted, and there the bounds of groups too.
func (b *Backend) Cleanup(ctx context.Context, draining, tokens []string) error {
	release, err := b.act(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := b.known(ctx); err != nil {
		return err
	}
	nodes, err := b.nodesByInstance(ctx)
	if err != nil {
		return err
	}
	ctx = permit.Undo(ctx)
	var errs []error
	replacements := map[string]bool{}
	for _, g := range b.all() {
		for _, l := range slices.Clone(g.launches) {
			if l.replaces && !slices.Contains(tokens, l.token) && !l.abandoned && b.age(&l) >= b.cfg.CleanupAfter {
				errs = append(errs, b.eachLaunch(ctx, []string{l.token}, b.abandon))
			} else if n := nodes[l.instance]; n != nil {
				replacements[n.Name] = true
			}
		}
		if g.tags[TagMax] != "" && !b.allowances(g.pool).active {
			errs = append(errs, b.unboundByName(ctx, g.name))
		}
	}
	for _, n := range sortedNodes(nodes) {
		switch as := n.Annotations[AnnotationSwap]; {
		case as == swapSource && !slices.Contains(draining, n.Name), as == swapReplacement && !replacements[n.Name]:
			errs = append(errs, b.unmark(ctx, n.Name, as))
		}
	}
	b.sweep(ctx)
	return errors.Join(errs...)
}

func (b *Backend) unboundByName(ctx context.Context, name string) error {
	g, err := b.fresh(ctx, name)
	if err != nil {
		return err
	}
	return b.unbound(ctx, g)
}

// all returns the groups that are known.
func (b *Backend) all() []*group {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.groups)
}

func sortedNodes(nodes map[string]*corev1.Node) []*corev1.Node {
	return slices.SortedFunc(maps.Values(nodes), func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
}

// sweep goes on with launches that nobody wants any more, and strikes out those
// that no drain waits for once their nodes are there. What goes wrong is tried
// again the next time that anything is written.
func (b *Backend) sweep(ctx context.Context) {
	ctx = permit.Undo(ctx)
	nodes, err := b.nodesByInstance(ctx)
	if err != nil {
		b.cfg.Log.Warn("looking after launches", "error", err)
		return
	}
	for _, g := range b.all() {
		for _, l := range slices.Clone(g.launches) {
			var err error
			switch n := nodes[l.instance]; {
			case l.abandoned:
				err = b.eachLaunch(ctx, []string{l.token}, b.abandon)
			case l.replaces:
			case n != nil, l.instance != "" && !g.has(l.instance), b.age(&l) > b.cfg.ReadyMax:
				err = b.forget(ctx, g, l.token)
			}
			if err != nil && !errors.Is(err, backend.ErrNotYet) {
				b.cfg.Log.Warn("looking after a launch", "group", g.name, "token", l.token, "error", err)
			}
		}
	}
}

// abandon gives a launch up, as far as that can be done now: that nobody wants it
// is written down first. The size that it asked for cannot be lowered while there is
// no instance, since the group would choose which to end; so it is looked after until
// one comes, or somebody else has lowered the size. Only a pool that may be changed has
// an instance ended; else that is left to the Cluster Autoscaler.
func (b *Backend) abandon(ctx context.Context, g *group, l launch) error {
	ctx = permit.Undo(ctx)
	if !l.abandoned {
		l.abandoned = true
		if err := b.keep(ctx, g, l); err != nil {
			return err
		}
	}
	i := g.find(l.instance)
	switch {
	case l.instance == "" && g.missing() > 0 && b.age(&l) < abandonedMax*b.cfg.InstanceMax:
		return nil
	case l.instance != "" && i == nil && b.seenLately(g, l.instance):
		return nil // the read may be old
	case i == nil, i.ending():
		return b.letGo(ctx, g, l)
	}
	nodes, err := b.nodesByInstance(ctx)
	if err != nil {
		return err
	}
	wanted := g.desired <= g.min
	if n := nodes[i.id]; n != nil && !wanted {
		busy, err := b.busy(ctx, n.Name)
		if err != nil {
			return err
		}
		wanted = busy || ready(n) || tainted(n, TaintToBeDeleted)
	}
	if wanted {
		return b.letGo(ctx, g, l)
	}
	err = b.terminate(permit.Act(ctx, g.pool), i.id)
	switch {
	case errors.Is(err, backend.ErrNotYet):
		return nil // the next time that anything is written
	case err != nil && !errors.As(err, new(*permit.Denied)):
		return err
	}
	return b.letGo(ctx, g, l)
}
