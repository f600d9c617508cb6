package asg

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// conflicting is the pool of a group that several pools claim. No pool can have this name.
const conflicting = "\x00"

// nodegroupFor is how long the tags of an idle managed node group are assumed to stay the same.
const nodegroupFor = 10 * time.Minute

// A poolOf is a CapacityPool that names groups.
type poolOf struct {
	name string
	tags map[string]string

	// bounds and replaces report whether the pool allows Spotter to bound its groups and to let
	// them replace nodes.
	bounds, replaces bool

	active, gone bool // active is the mode; gone marks a deleted pool that is kept while its groups have marks of Spotter
}

// Poll reads all groups of all pools and reports the changes to the sink. It changes nothing in
// AWS. If it fails, the known state stays the same.
func (b *Backend) Poll(ctx context.Context) error { return b.groups.poll(ctx) }

// poll reads all groups, unless another call has started and completed a read since this call.
func (t *groupTable) poll(ctx context.Context) error {
	t.mu.Lock()
	before := t.polls
	t.mu.Unlock()
	select {
	case t.polling <- struct{}{}:
		defer func() { <-t.polling }()
	case <-ctx.Done():
		return fmt.Errorf("waiting for another read of the groups: %w", ctx.Err())
	}
	t.mu.Lock()
	if t.polls > before && t.fault == nil {
		t.mu.Unlock()
		return nil
	}
	t.polls++
	t.mu.Unlock()
	err := t.cloud.blame(ctx, t.readAll(ctx))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fault = err
	return err
}

func (t *groupTable) readAll(ctx context.Context) error {
	began := t.cfg.now()
	pools, err := t.kube.readPools(ctx)
	if err != nil {
		return err
	}
	t.mu.Lock()
	for _, old := range t.pools {
		is := func(p poolOf) bool { return p.name == old.name }
		if !slices.ContainsFunc(pools, is) && slices.ContainsFunc(t.all,
			func(g *group) bool { return g.pool == old.name && g.marked() }) {
			old.active, old.gone = false, true
			pools = append(pools, old)
		}
	}
	t.pools = pools // also if their groups cannot be read, so that conditions can report it
	t.mu.Unlock()
	groups, err := t.readGroups(ctx, pools)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if err := t.examine(ctx, g); err != nil {
			return fmt.Errorf("reading the group %s: %w", g.name, err)
		}
	}
	if err := t.instances.readBought(ctx, groups); err != nil {
		return fmt.Errorf("reading new instances: %w", err)
	}
	nodes, err := t.kube.nodesByInstance(ctx)
	if err != nil {
		return err
	}
	t.mu.Lock()
	first := t.polled == 0
	for i, g := range groups {
		if old := t.get(g.name); old != nil && old.read > began {
			kept := *old // it was read for a write in the meantime
			kept.pool = g.pool
			groups[i] = &kept
			continue
		}
		g.read = began
		t.overlay(g)
	}
	t.all, t.polled = groups, t.cfg.now()
	maps.DeleteFunc(t.notes, func(name string, _ error) bool {
		return !slices.ContainsFunc(pools, func(p poolOf) bool { return p.name == name })
	})
	reported := t.instances.report(t.all, nodes, first)
	t.mu.Unlock()
	reported.send(t.sink)
	return nil
}

// readGroups returns the groups of pools, ascending by name.
func (t *groupTable) readGroups(ctx context.Context, pools []poolOf) ([]*group, error) {
	found := map[string]*group{}
	for _, p := range pools {
		list, err := t.cloud.groups(ctx, p.tags)
		if err != nil {
			return nil, fmt.Errorf("reading the groups of pool %s: %w", p.name, err)
		}
		mine := map[string]bool{}
		for i := range list {
			g := groupOf(&list[i])
			if mine[g.name] || p.gone && found[g.name] != nil {
				continue // it moved from one page to the next, or has another pool now
			}
			mine[g.name] = true
			g.pool = p.name
			if found[g.name] != nil {
				g.pool = conflicting
			}
			found[g.name] = g
		}
	}
	groups := make([]*group, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		groups = append(groups, found[name])
	}
	return groups, nil
}

// examine reads the data of g that the list of groups lacks: its launch template, its managed node
// group, and the activities of missing instances.
func (t *groupTable) examine(ctx context.Context, g *group) error {
	if err := t.templates.complete(ctx, g); err != nil {
		return err
	}
	if g.managed.name != "" && !t.quiet(g) {
		if err := t.readNodegroup(ctx, g); err != nil {
			return err
		}
	}
	waiting := slices.ContainsFunc(g.launches, func(l launch) bool { return l.instance == "" })
	if !waiting && g.missing() == 0 {
		return nil
	}
	activities, err := t.cloud.activities(ctx, g.name)
	if err != nil {
		return err
	}
	g.activities = activities
	claim(g.launches, g.activities, g.has)
	return nil
}

// quiet reports whether the managed node group of g is idle and was read recently. If so, it copies
// the result of that read to g.
func (t *groupTable) quiet(g *group) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.get(g.name)
	if old == nil || old.managed.arn == "" || len(old.launches) > 0 || t.cfg.now().Sub(old.managed.read) > nodegroupFor {
		return false
	}
	g.managed.arn, g.tags, g.launches, g.managed.read = old.managed.arn, maps.Clone(old.tags), nil, old.managed.read
	return true
}

// claims reports whether g has all tags of p.
func claims(p poolOf, g *group) bool {
	for k, v := range p.tags {
		if has, ok := g.own[k]; !ok || v != "" && v != has {
			return false
		}
	}
	return true
}

func written(tags map[string]string) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		all = append(all, k+"="+tags[k])
	}
	return strings.Join(all, ", ")
}
