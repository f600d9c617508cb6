package asg

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/live/backend"
)

// abandonedMax is how many times InstanceMax a launch that nobody wants is looked
// after: an instance that comes still later is left to the Cluster Autoscaler.
const abandonedMax = 12

// Tidy ends whatever a swap left behind of which nothing is known any more: marks on
// nodes that are not among those being drained, and launches, protection included,
// that are not among the tokens that drains wait for. A new leader calls it once it
// knows its drains, and may do so again after every step: where nothing is left it
// asks AWS for nothing.
func (b *Backend) Tidy(ctx context.Context, draining, tokens []string) error {
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
	var errs []error
	replacements := map[string]bool{}
	for _, g := range b.all() {
		for _, l := range slices.Clone(g.launches) {
			if l.replaces && !slices.Contains(tokens, l.token) && !l.abandoned && b.age(&l) >= b.cfg.TidyAfter {
				errs = append(errs, b.abandonByName(ctx, l.token))
			} else if n := nodes[l.instance]; n != nil {
				replacements[n.Name] = true
			}
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

func (b *Backend) abandonByName(ctx context.Context, token string) error {
	g, l, err := b.launchOf(ctx, token)
	if err != nil || l == nil {
		return err
	}
	return b.abandon(ctx, g, *l)
}

// all returns the groups that are known.
func (b *Backend) all() []*group {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.groups)
}

func sortedNodes(nodes map[string]*corev1.Node) []*corev1.Node {
	all := make([]*corev1.Node, 0, len(nodes))
	for _, n := range nodes {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b *corev1.Node) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return all
}

// sweep goes on with launches that nobody wants any more, and strikes out those
// that no drain waits for once their nodes are there. What goes wrong is tried
// again the next time that anything is written.
func (b *Backend) sweep(ctx context.Context) {
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
				err = b.abandonByName(ctx, l.token)
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
// one comes, or somebody else has lowered the size.
func (b *Backend) abandon(ctx context.Context, g *group, l launch) error {
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
	if err := b.terminate(ctx, i.id); err != nil {
		if errors.Is(err, backend.ErrNotYet) {
			return nil // the next time that anything is written
		}
		return err
	}
	return b.letGo(ctx, g, l)
}
