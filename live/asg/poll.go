package asg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// conflicting is the pool of a group that several pools claim; it is no name.
const conflicting = "\x00"

// templateFor is for how long a launch template is taken to stay as it is, and
// nodegroupFor the tags of a managed node group at which nothing is going on.
const (
	templateFor  = 10 * time.Minute
	nodegroupFor = 10 * time.Minute
)

// absentMax is how many whole reads in a row must lack an instance that was not
// seen to end: one of them may be old.
const absentMax = 2

// A poolOf is a CapacityPool that names groups.
type poolOf struct {
	name string
	tags map[string]string

	// bounds and replaces are what its annotations allow.
	bounds, replaces bool

	active, gone bool // its mode; a pool that was deleted is kept while its groups carry marks of ours
}

// Poll reads all groups of all pools and reports to the sink what has changed. It
// changes nothing. When it fails, what was known stays.
func (b *Backend) Poll(ctx context.Context) error {
	err := b.cloud.blame(ctx, b.poll(ctx))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = err
	return err
}

func (b *Backend) poll(ctx context.Context) error {
	began := b.now()
	pools, err := b.readPools(ctx)
	if err != nil {
		return err
	}
	b.mu.Lock()
	for _, old := range b.pools {
		is := func(p poolOf) bool { return p.name == old.name }
		if !slices.ContainsFunc(pools, is) && slices.ContainsFunc(b.groups, func(g *group) bool { return g.pool == old.name && g.marked() }) {
			old.active, old.gone = false, true
			pools = append(pools, old)
		}
	}
	b.pools = pools // also where their groups cannot be read, which conditions then say
	b.mu.Unlock()
	groups, err := b.readGroups(ctx, pools)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if err := b.examine(ctx, g); err != nil {
			return fmt.Errorf("looking at the group %s: %w", g.name, err)
		}
	}
	if err := b.readBought(ctx, groups); err != nil {
		return fmt.Errorf("looking at new instances: %w", err)
	}
	nodes, err := b.nodesByInstance(ctx)
	if err != nil {
		return err
	}
	b.mu.Lock()
	first := b.polled == 0
	for i, g := range groups {
		if old := b.group(g.name); old != nil && old.read > began {
			kept := *old // it was read for a write meanwhile
			kept.pool = g.pool
			groups[i] = &kept
			continue
		}
		g.read = began
		b.overlay(g)
	}
	b.groups, b.polled = groups, b.now()
	reported := b.report(nodes, first)
	b.mu.Unlock()
	reported.send(b.sink)
	return nil
}

// readPools returns the pools that name groups, ascending by name.
func (b *Backend) readPools(ctx context.Context) ([]poolOf, error) {
	var list v1alpha1.CapacityPoolList
	if err := b.client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing capacity pools: %w", err)
	}
	var pools []poolOf
	for i := range list.Items {
		p := &list.Items[i]
		if x := p.Spec.Backend.AutoScalingGroups; x != nil && len(x.DiscoveryTags) > 0 {
			pools = append(pools, poolOf{p.Name, x.DiscoveryTags,
				p.Annotations[AnnotationBounds] == "max", p.Annotations[AnnotationReplacement] == "true",
				p.Spec.Mode == v1alpha1.ModeActive, false})
		}
	}
	slices.SortFunc(pools, func(a, b poolOf) int { return cmp.Compare(a.name, b.name) })
	return pools, nil
}

// readGroups returns the groups of pools, ascending by name.
func (b *Backend) readGroups(ctx context.Context, pools []poolOf) ([]*group, error) {
	found := map[string]*group{}
	for _, p := range pools {
		list, err := b.cloud.groups(ctx, p.tags)
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

// examine reads what the list of groups does not have of g: its launch template,
// its managed node group, and why instances are missing.
func (b *Backend) examine(ctx context.Context, g *group) error {
	if err := b.complete(ctx, g); err != nil {
		return err
	}
	if g.nodegroup != "" && !b.quiet(g) {
		if err := b.readNodegroup(ctx, g); err != nil {
			return err
		}
	}
	waiting := slices.ContainsFunc(g.launches, func(l launch) bool { return l.instance == "" })
	if !waiting && g.missing() == 0 {
		return nil
	}
	activities, err := b.cloud.activities(ctx, g.name)
	if err != nil {
		return err
	}
	g.activities = activities
	claim(g.launches, g.activities, g.has)
	return nil
}

// quiet reports whether nothing is going on at the managed node group of g, and
// shows in g what was read of that not long ago.
func (b *Backend) quiet(g *group) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.group(g.name)
	if old == nil || old.arn == "" || len(old.launches) > 0 || b.now().Sub(old.noted) > nodegroupFor {
		return false
	}
	g.arn, g.tags, g.launches, g.noted = old.arn, maps.Clone(old.tags), nil, old.noted
	return true
}

// complete adds what the launch template of g says where no policy overrides it.
func (b *Backend) complete(ctx context.Context, g *group) error {
	if g.template == "" || g.policy && len(g.types) > 0 {
		return nil
	}
	key := g.template + " " + g.version
	b.mu.Lock()
	t, ok := b.templet[key]
	b.mu.Unlock()
	if !ok || b.now().Sub(t.at) > templateFor {
		read, err := b.cloud.template(ctx, g.template, g.version)
		if err != nil {
			return err
		}
		t = templateRead{read, b.now()}
		b.mu.Lock()
		b.templet[key] = t
		b.mu.Unlock()
	}
	if t.kind != "" && !g.policy {
		g.types = []string{t.kind}
	}
	if !g.policy && t.spot {
		g.onDemandPercent = 0
	}
	return nil
}

// readBought finds out how instances that are new were bought. That never changes,
// so it is asked once.
func (b *Backend) readBought(ctx context.Context, groups []*group) error {
	b.mu.Lock()
	known := b.bought
	b.mu.Unlock()
	var ids []string
	next := map[string]bought{}
	for _, g := range groups {
		for _, i := range g.instances {
			if x, ok := known[i.id]; ok {
				next[i.id] = x
			} else {
				ids = append(ids, i.id)
			}
		}
	}
	if len(ids) > 0 {
		found, err := b.cloud.instances(ctx, ids)
		if err != nil {
			return err
		}
		maps.Copy(next, found)
	}
	b.mu.Lock()
	b.bought = next
	b.mu.Unlock()
	return nil
}

// nodesByInstance returns the Nodes of the region by the instance that each is.
func (b *Backend) nodesByInstance(ctx context.Context) (map[string]*corev1.Node, error) {
	var list corev1.NodeList
	if err := b.client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	nodes := make(map[string]*corev1.Node, len(list.Items))
	for i := range list.Items {
		if id, ok := instanceID(list.Items[i].Spec.ProviderID); ok && within(b.cfg.Region, &list.Items[i]) {
			nodes[id] = &list.Items[i]
		}
	}
	return nodes, nil
}

// conditionOf returns what keeps the groups of a pool from being read or worked
// on; nil for nothing.
func (b *Backend) conditionOf(pool string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := slices.IndexFunc(b.pools, func(p poolOf) bool { return p.name == pool })
	claimed := slices.IndexFunc(b.groups, func(g *group) bool { return g.pool == conflicting && p >= 0 && claims(b.pools[p], g) })
	switch {
	case b.fault != nil:
		return held(b.fault, "reading the Auto Scaling groups")
	case p < 0:
		return nil
	case b.polled == 0:
		return backend.Hold(ReasonUnread, "the Auto Scaling groups were not read yet since this replica began")
	case claimed >= 0:
		return backend.Hold(ReasonConflict, "the group %s has the discovery tags of several pools, so it is left alone", b.groups[claimed].name)
	case !slices.ContainsFunc(b.groups, func(g *group) bool { return g.pool == pool }):
		return backend.Hold(ReasonNoGroup, "no Auto Scaling group has the discovery tags %s", written(b.pools[p].tags))
	}
	return b.notes[pool]
}

// claims reports whether the tags of p are among those of g.
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

// remember keeps what is held of a pool for its condition, until something goes
// well again.
func (b *Backend) remember(pool string, err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var h *backend.Held
	if err == nil || errors.As(err, &h) {
		b.notes[pool] = err
	}
	return err
}

// A sinkReport is what the sink is to learn, collected so that nothing is locked
// while it listens.
type sinkReport struct {
	machines []backend.Machine
	dropped  []string
	events   []backend.Event
	steers   map[string]policy.SteerState
	wake     string
}

func (t *sinkReport) send(s backend.Sink) {
	for _, m := range t.machines {
		s.SetMachine(Name, m)
	}
	for _, name := range t.dropped {
		s.DropMachine(Name, name)
	}
	for _, pool := range slices.Sorted(maps.Keys(t.steers)) {
		s.SetSteer(pool, t.steers[pool])
	}
	for _, e := range t.events {
		s.Meet(e)
	}
	if t.wake != "" {
		s.Wake(t.wake)
	}
}
