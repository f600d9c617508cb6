package asg

import (
	"context"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/portable"
)

// Name is the name under which this backend reports to the sink.
const Name = "asg"

// A Backend is the backend for Auto Scaling groups. It delegates to its parts. A caller must hold
// the lock of a group to decide about the group or to write to it.
type Backend struct {
	cfg       *Config
	kube      *kubeAPI
	groups    *groupTable
	instances *instanceTable
	launches  *launchLedger
	launcher  *launcher
	releases  *releaser
	progress  *progressReader
	steering  *steerer
}

var (
	_ backend.Backend                = (*Backend)(nil)
	_ manager.Runnable               = (*Backend)(nil)
	_ manager.LeaderElectionRunnable = (*Backend)(nil)
)

// New returns a backend that has not read anything yet. base contains the credentials. c reads from
// a cache and writes; r reads from the API server.
func New(cfg Config, base sdk.Config, c client.Client, r client.Reader, sink backend.Sink) (*Backend, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	b := &Backend{cfg: &cfg, kube: &kubeAPI{region: cfg.Region, client: c, reader: r}}
	aws := newCloud(&cfg, base)
	b.instances = newInstanceTable(b.cfg, aws)
	b.groups = newGroupTable(b.cfg, aws, b.kube, b.instances, sink)
	b.releases = &releaser{cfg: b.cfg, cloud: aws, kube: b.kube, groups: b.groups, instances: b.instances,
		volumes: map[string]policy.Time{}}
	b.launches = &launchLedger{cfg: b.cfg, cloud: aws, kube: b.kube, groups: b.groups, instances: b.instances,
		releases: b.releases}
	b.launcher = &launcher{cfg: b.cfg, cloud: aws, kube: b.kube, groups: b.groups, launches: b.launches,
		raised: map[string]policy.Time{}}
	b.progress = &progressReader{cfg: b.cfg, cloud: aws, kube: b.kube, groups: b.groups, instances: b.instances,
		launches: b.launches}
	b.steering = &steerer{cfg: b.cfg, cloud: aws, sink: sink, groups: b.groups}
	return b, nil
}

// SetupWithManager adds the backend to a manager, which then runs Start.
func (b *Backend) SetupWithManager(m manager.Manager) error { return m.Add(b) }

// NeedLeaderElection returns false: all replicas poll, so that a new leader already knows the
// groups.
func (b *Backend) NeedLeaderElection() bool { return false }

// Start polls until the context ends.
func (b *Backend) Start(ctx context.Context) error { return b.Run(ctx) }

// Run polls until the context ends. A failed poll is retried at the next interval and leaves the
// known state unchanged.
func (b *Backend) Run(ctx context.Context) error {
	wait := b.cfg.Poll
	for round := uint64(0); ; round++ {
		switch err := b.groups.poll(ctx); {
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

// jittered returns a duration within a fifth of d, which is the same for the same name and round.
func jittered(d time.Duration, name string, round uint64) time.Duration {
	const part = 1 << 16
	h := int64(portable.Mix(portable.HashString(name), round) % part)
	return d - d/5 + time.Duration(int64(2*d/5)/part*h)
}
