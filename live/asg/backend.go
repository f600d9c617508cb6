package asg

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/live/permit"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
)

// Name is the name by which the sink knows this backend.
const Name = "asg"

// A Backend is the part of the live side that works on Auto Scaling groups.
type Backend struct {
	cfg    Config
	cloud  *cloud
	client client.Client
	reader client.Reader
	sink   backend.Sink

	// acting is full while something writes, so that two calls never decide on the
	// same read. Whoever waits for it gives up at his deadline.
	acting chan struct{}

	mu       sync.Mutex // guards all below
	started  policy.Time
	polled   policy.Time // when all groups were last read whole; 0 for never
	fault    error       // of the last Poll
	pools    []poolOf
	groups   []*group // ascending by name
	templet  map[string]templateRead
	bought   map[string]bought
	reported map[string]backend.Machine // by instance
	absent   map[string]int             // reads in a row that lacked an instance
	refusals map[string]policy.Time     // by market, when last reported
	advised  map[string]policy.Time     // instances that it is recommended to leave
	reclaims map[string]policy.Time     // instances that the provider takes, and when
	volumes  map[string]policy.Time     // since when nodes wait for their volumes
	notes    map[string]error           // by pool, what was last held
	wrote    map[string]writing         // by token, what was last written down
	endings  map[string]ending          // instances that were asked to end
	raised   map[string]policy.Time     // by group, when it was last raised
}

// A writing is what was written down of a launch, since reads may be older than
// what we wrote.
type writing struct {
	launch
	group  string
	struck bool
	when   policy.Time
}

// writingMax is how long a read may be older than what was written.
const writingMax = 30 * time.Second

// A templateRead is a launch template and when it was read.
type templateRead struct {
	template
	at policy.Time
}

var (
	_ backend.Backend                = (*Backend)(nil)
	_ manager.Runnable               = (*Backend)(nil)
	_ manager.LeaderElectionRunnable = (*Backend)(nil)
)

// New returns a backend that has read nothing yet. base holds the credentials;
// c reads from a cache and writes, r reads from the API server.
func New(cfg Config, base sdk.Config, c client.Client, r client.Reader, sink backend.Sink) (*Backend, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	b := &Backend{cfg: cfg, cloud: newCloud(&cfg, base), client: c, reader: r, sink: sink, acting: make(chan struct{}, 1),
		templet: map[string]templateRead{}, bought: map[string]bought{}, reported: map[string]backend.Machine{}, absent: map[string]int{},
		refusals: map[string]policy.Time{}, advised: map[string]policy.Time{}, reclaims: map[string]policy.Time{}, volumes: map[string]policy.Time{}, notes: map[string]error{},
		wrote: map[string]writing{}, endings: map[string]ending{}, raised: map[string]policy.Time{}}
	b.started = b.now()
	return b, nil
}

func (b *Backend) now() policy.Time { return policy.TimeOf(b.cfg.Clock.Now()) }

// act waits until nothing else writes.
func (b *Backend) act(ctx context.Context) (release func(), err error) {
	select {
	case b.acting <- struct{}{}:
		return func() { <-b.acting }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for other work on groups in %s: %w", b.cfg.Region, ctx.Err())
	}
}

// SetupWithManager has a manager run the watching.
func (b *Backend) SetupWithManager(m manager.Manager) error { return m.Add(b) }

// NeedLeaderElection says that watching needs none: a replica that becomes the
// leader knows the groups already.
func (b *Backend) NeedLeaderElection() bool { return false }

// Start polls until the context ends.
func (b *Backend) Start(ctx context.Context) error { return b.Run(ctx) }

// Run polls until the context ends. A poll that fails is tried again at the next
// turn, and what was known stays.
func (b *Backend) Run(ctx context.Context) error {
	wait := b.cfg.Poll
	for round := uint64(0); ; round++ {
		switch err := b.Poll(ctx); {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the end of ctx is how Run is stopped
		case err == nil:
			wait = max(wait/2, b.cfg.Poll)
		default:
			b.cfg.Log.Warn("reading Auto Scaling groups", "error", err)
			if kindOf(err) == kindThrottled {
				wait = min(2*wait, b.cfg.PollMax)
			}
		}
		t := b.cfg.Clock.NewTimer(jittered(wait, b.cfg.Region, round))
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C():
		}
	}
}

// jittered returns a time within a fifth of d, the same for the same round.
func jittered(d time.Duration, name string, round uint64) time.Duration {
	const part = 1 << 16
	h := int64(portable.Mix(portable.HashString(name), round) % part)
	return d - d/5 + time.Duration(int64(2*d/5)/part*h)
}

// group returns what is known of a group; nil if it is not.
func (b *Backend) group(name string) *group {
	i, ok := slices.BinarySearchFunc(b.groups, name, func(g *group, name string) int { return strings.Compare(g.name, name) })
	if !ok {
		return nil
	}
	return b.groups[i]
}

// groupWith returns the group that f holds for; nil if none does.
func (b *Backend) groupWith(f func(*group) bool) *group {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.IndexFunc(b.groups, f); i >= 0 {
		return b.groups[i]
	}
	return nil
}

// seek returns the group that f holds for, also one that shows with a new poll; nil if
// none does.
func (b *Backend) seek(ctx context.Context, f func(*group) bool) (*group, error) {
	if g := b.groupWith(f); g != nil {
		return g, nil
	}
	if err := b.Poll(ctx); err != nil {
		return nil, held(err, "reading the Auto Scaling groups")
	}
	return b.groupWith(f), nil
}

// known polls if nobody has for two turns.
func (b *Backend) known(ctx context.Context) error {
	b.mu.Lock()
	polled := b.polled
	b.mu.Unlock()
	if polled != 0 && b.now().Sub(polled) < 2*b.cfg.PollMax {
		return nil
	}
	if err := b.Poll(ctx); err != nil {
		return held(err, "reading the Auto Scaling groups")
	}
	return nil
}

// fresh reads a group anew, with the tags of its managed node group. It is held
// where the group is gone, and where two pools claim it.
func (b *Backend) fresh(ctx context.Context, name string) (*group, error) {
	x, err := b.cloud.group(ctx, name)
	if err != nil {
		return nil, held(err, "reading the group %s", name)
	}
	if x == nil {
		return nil, backend.Hold(ReasonGone, "the group %s does not exist any more", name)
	}
	g := groupOf(x)
	if err := b.complete(ctx, g); err != nil {
		return nil, held(err, "reading what the group %s launches", name)
	}
	if g.nodegroup != "" {
		if err := b.readNodegroup(ctx, g); err != nil {
			return nil, held(err, "reading the node group %s", g.nodegroup)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	g.read = b.now()
	b.overlay(g)
	if old := b.group(name); old != nil {
		g.pool, g.activities = old.pool, old.activities
		i, _ := slices.BinarySearchFunc(b.groups, name, func(g *group, name string) int { return strings.Compare(g.name, name) })
		b.groups[i] = g
	}
	if g.pool == conflicting {
		return nil, backend.Hold(ReasonConflict, "the group %s has the discovery tags of several pools", name)
	}
	return g, nil
}

// recent returns a group as read at most FreshFor ago.
func (b *Backend) recent(ctx context.Context, name string) (*group, error) {
	b.mu.Lock()
	g := b.group(name)
	now := b.now()
	b.mu.Unlock()
	if g != nil && g.read != 0 && now.Sub(g.read) < b.cfg.FreshFor && g.pool != conflicting {
		return g, nil
	}
	return b.fresh(ctx, name)
}

// readNodegroup reads the managed node group of g, whose tags hold its launches.
func (b *Backend) readNodegroup(ctx context.Context, g *group) error {
	n, err := b.cloud.nodegroup(ctx, g.cluster, g.nodegroup)
	if err != nil {
		return err
	}
	if n == nil {
		return fmt.Errorf("an empty answer")
	}
	g.arn, g.tags, g.noted = sdk.ToString(n.NodegroupArn), n.Tags, b.now()
	if g.tags == nil {
		g.tags = map[string]string{}
	}
	g.launches = decodeLaunches(g.tags)
	return nil
}

// keep writes a launch down, here and with the group.
func (b *Backend) keep(ctx context.Context, g *group, l launch) error {
	if err := b.cloud.tag(ctx, g, TagLaunch+l.token, l.encode()); err != nil {
		return held(err, "writing down a launch at the group %s", g.name)
	}
	b.note(g, writing{launch: l, group: g.name})
	return nil
}

// forget strikes a launch out.
func (b *Backend) forget(ctx context.Context, g *group, token string) error {
	if err := b.cloud.untag(permit.Undo(ctx), g, TagLaunch+token); err != nil {
		return held(err, "striking out a launch at the group %s", g.name)
	}
	b.note(g, writing{launch: launch{token: token}, group: g.name, struck: true})
	return nil
}

// note remembers what was written, and shows it in g.
func (b *Backend) note(g *group, w writing) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.when = b.now()
	b.wrote[w.token] = w
	b.overlay(g)
	if known := b.group(g.name); known != nil && known != g {
		b.overlay(known) // a poll has read the group meanwhile
	}
}

// overlay shows in g what was written so lately that the read may lack it.
func (b *Backend) overlay(g *group) {
	launches := slices.Clone(g.launches)
	for token, w := range b.wrote {
		if b.now().Sub(w.when) > writingMax {
			delete(b.wrote, token)
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
