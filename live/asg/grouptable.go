package asg

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// A groupTable contains the groups as they were last read, together with newer writes. A group in
// the table may be changed only while mu is held, and, except by a poll, only by the holder of the
// group's lock. Slices and maps of a group are replaced, never modified.
type groupTable struct {
	cfg       *Config
	cloud     *cloud
	kube      *kubeAPI
	templates *templateCache
	instances *instanceTable
	sink      backend.Sink
	locks     locks         // locks of groups, held for writes
	polling   chan struct{} // full while a poll is in progress

	mu     sync.Mutex  // guards the fields below, and the instances
	polls  int         // number of polls that have started
	polled policy.Time // time of the last complete read of all groups; 0 if there was none
	fault  error       // error of the last poll
	pools  []poolOf
	all    []*group           // ascending by name
	notes  map[string]error   // the last hold, by pool
	wrote  map[string]writing // the last record of a launch, by token
}

func newGroupTable(cfg *Config, aws *cloud, k *kubeAPI, i *instanceTable, sink backend.Sink) *groupTable {
	t := &groupTable{
		cfg: cfg, cloud: aws, kube: k, instances: i, sink: sink, notes: map[string]error{}, wrote: map[string]writing{},
		locks: locks{byName: map[string]*groupLock{}}, polling: make(chan struct{}, 1),
		templates: &templateCache{cfg: cfg, cloud: aws, read: map[string]templateRead{}},
	}
	i.mu = &t.mu
	return t
}

// A writing is a recent record of a launch. It is kept because reads may be older than Spotter's
// write.
type writing struct {
	launch
	group  string
	struck bool
	when   policy.Time
}

// writingMax is the maximum time by which a read may be older than a write.
const writingMax = 30 * time.Second

// get returns a group; nil if it is not known. The caller must hold mu.
func (t *groupTable) get(name string) *group {
	i, ok := slices.BinarySearchFunc(t.all, name, func(g *group, name string) int { return strings.Compare(g.name, name) })
	if !ok {
		return nil
	}
	return t.all[i]
}

// find returns the name of the first group for which f returns true.
func (t *groupTable) find(f func(*group) bool) (name string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.IndexFunc(t.all, f); i >= 0 {
		return t.all[i].name, true
	}
	return "", false
}

// seek is like find, but polls if no group is found.
func (t *groupTable) seek(ctx context.Context, f func(*group) bool) (name string, ok bool, err error) {
	if name, ok := t.find(f); ok {
		return name, true, nil
	}
	if err := t.poll(ctx); err != nil {
		return "", false, held(err, "reading the Auto Scaling groups")
	}
	name, ok = t.find(f)
	return name, ok, nil
}

// known polls unless the last poll was less than two PollMax ago.
func (t *groupTable) known(ctx context.Context) error {
	t.mu.Lock()
	polled := t.polled
	t.mu.Unlock()
	if polled != 0 && t.cfg.now().Sub(polled) < 2*t.cfg.PollMax {
		return nil
	}
	if err := t.poll(ctx); err != nil {
		return held(err, "reading the Auto Scaling groups")
	}
	return nil
}

// fresh reads a group again, with the tags of its managed node group. It returns a [backend.Held]
// if the group no longer exists or if several pools claim it.
func (t *groupTable) fresh(ctx context.Context, name string) (*group, error) {
	x, err := t.cloud.group(ctx, name)
	if err != nil {
		return nil, held(err, "reading the group %s", name)
	}
	if x == nil {
		return nil, backend.Hold(ReasonGone, "the group %s no longer exists", name)
	}
	g := groupOf(x)
	if err := t.templates.complete(ctx, g); err != nil {
		return nil, held(err, "reading the launch template of the group %s", name)
	}
	if g.managed.name != "" {
		if err := t.readNodegroup(ctx, g); err != nil {
			return nil, held(err, "reading the node group %s", g.managed.name)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	g.read = t.cfg.now()
	t.overlay(g)
	if old := t.get(name); old != nil {
		g.pool, g.activities = old.pool, old.activities
		i, _ := slices.BinarySearchFunc(t.all, name, func(g *group, name string) int { return strings.Compare(g.name, name) })
		t.all[i] = g
	}
	if g.pool == conflicting {
		return nil, backend.Hold(ReasonConflict, "the group %s has the discovery tags of several pools", name)
	}
	return g, nil
}

// recent returns a group that was read less than FreshFor ago, and reads it again if necessary.
func (t *groupTable) recent(ctx context.Context, name string) (*group, error) {
	t.mu.Lock()
	g := t.get(name)
	now := t.cfg.now()
	t.mu.Unlock()
	if g != nil && g.read != 0 && now.Sub(g.read) < t.cfg.FreshFor && g.pool != conflicting {
		return g, nil
	}
	return t.fresh(ctx, name)
}

// readNodegroup reads the managed node group of g, whose tags contain its launches.
func (t *groupTable) readNodegroup(ctx context.Context, g *group) error {
	n, err := t.cloud.nodegroup(ctx, g.managed.cluster, g.managed.name)
	if err != nil {
		return err
	}
	if n == nil {
		return fmt.Errorf("an empty answer")
	}
	g.managed.arn, g.tags, g.managed.read = sdk.ToString(n.NodegroupArn), n.Tags, t.cfg.now()
	if g.tags == nil {
		g.tags = map[string]string{}
	}
	g.launches = decodeLaunches(g.tags)
	return nil
}

// note remembers the record of a launch and applies it to g.
func (t *groupTable) note(g *group, w writing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w.when = t.cfg.now()
	t.wrote[w.token] = w
	t.overlay(g)
	if known := t.get(g.name); known != nil && known != g {
		t.overlay(known) // a poll has replaced the group in the meantime
	}
}

// overlay applies to g the records that are so recent that the read may lack them. The caller must
// hold mu.
func (t *groupTable) overlay(g *group) {
	launches := slices.Clone(g.launches)
	for token, w := range t.wrote {
		if t.cfg.now().Sub(w.when) > writingMax {
			delete(t.wrote, token)
			continue
		}
		if w.group != g.name {
			continue
		}
		launches = slices.DeleteFunc(launches, func(l launch) bool { return l.token == token })
		if !w.struck {
			launches = append(launches, w.launch)
		}
	}
	slices.SortFunc(launches, compareLaunches)
	g.launches = launches
}

// edit calls change, which modifies known groups, while it holds mu.
func (t *groupTable) edit(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
}

// resolve reads the newest scaling activities of g, and determines the instances of its launches.
func (t *groupTable) resolve(ctx context.Context, g *group) ([]activity, error) {
	activities, err := t.cloud.activities(ctx, g.name)
	if err != nil {
		return nil, held(err, "reading the scaling activities of the group %s", g.name)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	launches := slices.Clone(g.launches)
	claim(launches, activities, g.has)
	g.launches, g.activities = launches, activities
	return activities, nil
}

// list returns copies of the known groups.
func (t *groupTable) list() []group {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]group, len(t.all))
	for i, g := range t.all {
		all[i] = *g
	}
	return all
}

// allowances returns the entry of a pool, which contains what its owner allows.
func (t *groupTable) allowances(pool string) poolOf {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.IndexFunc(t.pools, func(p poolOf) bool { return p.name == pool }); i >= 0 {
		return t.pools[i]
	}
	return poolOf{name: pool}
}

// groupsFor returns the groups of pool that launch in the markets, in the order in which the
// markets first name them.
func (t *groupTable) groupsFor(pool string, s *policy.Snapshot, markets []policy.MarketID) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for _, id := range markets {
		m := &s.Markets[id]
		if m.Provider != "aws" || m.Region != t.cfg.Region {
			continue
		}
		for _, g := range t.all {
			if g.pool == pool && g.offers(s.Zones[m.Zone], s.Types[m.Type].Name, m.Capacity) && !slices.Contains(names, g.name) {
				names = append(names, g.name)
			}
		}
	}
	return names
}

// affordable returns the groups among names that cannot launch in a market of pool whose price is
// above the pool's maximum, because only the group itself chooses among its types and zones. The
// returned text describes such a market of the last excluded group; it is empty if no group is
// excluded.
func (t *groupTable) affordable(s *policy.Snapshot, pool *policy.Pool, names []string) (left []string, dear string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range names {
		g := t.all[slices.IndexFunc(t.all, func(g *group) bool { return g.name == name })]
		i := slices.IndexFunc(pool.Markets, func(id policy.MarketID) bool {
			m := &s.Markets[id]
			return m.Region == t.cfg.Region && m.Offered && !pool.Affords(m) &&
				g.offers(s.Zones[m.Zone], s.Types[m.Type].Name, m.Capacity)
		})
		if i < 0 {
			left = append(left, name)
			continue
		}
		m := &s.Markets[pool.Markets[i]]
		dear = fmt.Sprintf("the group %s may launch in %s for %s an hour, but pool %s pays at most %s", name, m.Name,
			m.Charge().Short(), pool.Name, pool.PriceMax.Short())
	}
	return left, dear
}
