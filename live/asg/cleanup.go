package asg

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
)

// Cleanup removes the remains of unknown replacements: marks on nodes that are not in draining, and
// launches that are not in tokens (the launches that drains wait for), with their scale-in
// protection. A new leader calls it once it knows its drains. It may be called after every step: if
// nothing remains, it sends no request to AWS. Cleanup undoes Spotter's changes in every mode of
// their pool, even if the pool was deleted. If the pool is not active, Cleanup also removes the
// bounds of its groups.
func (b *Backend) Cleanup(ctx context.Context, draining, tokens []string) error {
	if err := b.groups.known(ctx); err != nil {
		return err
	}
	nodes, err := b.kube.nodesByInstance(ctx)
	if err != nil {
		return err
	}
	ctx = permit.Undo(ctx)
	var errs []error
	replacements := map[string]bool{}
	for _, g := range b.groups.list() {
		for _, l := range slices.Clone(g.launches) {
			if l.replaces && !slices.Contains(tokens, l.token) && !l.abandoned && b.launches.age(&l) >= b.cfg.CleanupAfter {
				errs = append(errs, b.launches.each(ctx, []string{l.token}, b.launches.abandon))
			} else if n := nodes[l.instance]; n != nil {
				replacements[n.Name] = true
			}
		}
		if g.tags[TagMax] != "" && !b.groups.allowances(g.pool).active {
			errs = append(errs, b.steering.unboundGroup(ctx, g.name))
		}
	}
	for _, n := range sortedNodes(nodes) {
		switch as := n.Annotations[AnnotationSwap]; {
		case as == swapSource && !slices.Contains(draining, n.Name), as == swapReplacement && !replacements[n.Name]:
			errs = append(errs, b.kube.unmark(ctx, n.Name, as))
		}
	}
	b.launches.sweep(ctx)
	b.forget(nodes)
	return errors.Join(errs...)
}

// forget drops the state of groups and nodes that no longer exist.
func (b *Backend) forget(nodes map[string]*corev1.Node) {
	b.launcher.mu.Lock()
	maps.DeleteFunc(b.launcher.raised, func(name string, _ policy.Time) bool {
		_, known := b.groups.find(func(g *group) bool { return g.name == name })
		return !known
	})
	b.launcher.mu.Unlock()
	names := map[string]bool{}
	for _, n := range nodes {
		names[n.Name] = true
	}
	b.releases.mu.Lock()
	defer b.releases.mu.Unlock()
	maps.DeleteFunc(b.releases.volumes, func(node string, _ policy.Time) bool { return !names[node] })
}

func sortedNodes(nodes map[string]*corev1.Node) []*corev1.Node {
	return slices.SortedFunc(maps.Values(nodes), func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
}
