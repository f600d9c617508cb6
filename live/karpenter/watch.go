package karpenter

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// SetupWithManager adds the watches to the manager. They run on all replicas, and start once
// Karpenter is installed.
func (b *Backend) SetupWithManager(mgr manager.Manager) error {
	b.informer.mgr = mgr
	return mgr.Add(b.informer)
}

// An informer is the part of a Backend that a manager runs: it reports the changes of Karpenter's
// objects to the sink.
type informer struct {
	cfg      *Config
	log      *slog.Logger
	sink     backend.Sink
	api      *apiReader
	claims   *claimConverter
	outcomes *outcomeTable
	mgr      manager.Manager // set before Start

	mu       sync.Mutex
	reported map[string]bool // by UID and reason of interruption Events; after a restart, an Event may be reported again
}

// NeedLeaderElection returns false: all replicas watch.
func (*informer) NeedLeaderElection() bool { return false }

// lookEvery is the interval at which the informer checks whether Karpenter has been installed.
const lookEvery = 10 * time.Second

// Start runs the watches until ctx ends.
func (i *informer) Start(ctx context.Context) error {
	logged := false
	err := wait.PollUntilContextCancel(ctx, lookEvery, true, func(context.Context) (bool, error) {
		_, err := i.mgr.GetRESTMapper().RESTMapping(nodeClaimKind.GroupKind(), groupVersion.Version)
		if err != nil && !logged {
			i.log.Info("Karpenter is not installed yet", "error", err)
			logged = true
		}
		return err == nil, nil
	})
	if err != nil {
		return nil //nolint:nilerr // the end of ctx is how it is stopped
	}
	var informers [2]cache.Informer // both exist before a handler of one reads the other
	for k, of := range []client.Object{&karpv1.NodePool{}, &karpv1.NodeClaim{}} {
		if informers[k], err = i.mgr.GetCache().GetInformer(ctx, of); err != nil {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // as above
			}
			return fmt.Errorf("watching %T: %w", of, err)
		}
	}
	for k, h := range []toolscache.ResourceEventHandler{handler(i.nodePoolSeen, func(*karpv1.NodePool) {}),
		handler(i.claimSeen, i.claimGone)} {
		if _, err := informers[k].AddEventHandler(h); err != nil {
			return fmt.Errorf("watching Karpenter's objects: %w", err)
		}
	}
	return i.watchEvents(ctx)
}

// handler returns an event handler. It calls see for an object that is new or has changed, with its
// previous state, nil if it is new, and drop for a deleted object.
func handler[T any](see func(was, is *T), drop func(*T)) toolscache.ResourceEventHandlerFuncs {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) {
			if x, ok := o.(*T); ok {
				see(nil, x)
			}
		},
		UpdateFunc: func(old, o any) {
			if x, ok := o.(*T); ok {
				was, _ := old.(*T)
				see(was, x)
			}
		},
		DeleteFunc: func(o any) {
			if d, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = d.Obj
			}
			if x, ok := o.(*T); ok {
				drop(x)
			}
		},
	}
}

// nodePoolSeen reports the last steer of a NodePool's pool. If the NodePool now belongs to another
// pool, its NodeClaims are reported again with the new pool.
func (i *informer) nodePoolSeen(was, n *karpv1.NodePool) {
	pool := ownerOf(n)
	if t, ok := readSteering(n.Annotations[SteerAnnotation]); ok && n.Labels[PoolLabel] != "" {
		i.sink.SetSteer(pool, t.state())
	}
	if was != nil && ownerOf(was) == pool {
		return
	}
	claims, err := i.api.cached(context.Background(), client.MatchingLabels{karpv1.NodePoolLabelKey: n.Name})
	if err != nil {
		i.log.Warn("NodeClaims cannot be assigned to their pool", "nodePool", n.Name, "pool", pool, "error", err)
	}
	for k := range claims { // in any order: the claims are independent
		i.sink.SetMachine(BackendName, i.claims.machine(&claims[k]))
	}
}

// claimSeen reports the state of a NodeClaim, and a launch if it has got a machine.
func (i *informer) claimSeen(was, c *karpv1.NodeClaim) {
	m := i.claims.machine(c)
	i.sink.SetMachine(BackendName, m)
	if !launched(c) {
		i.attemptRefused(was, c)
	}
	known := was != nil && was.UID == c.UID && launched(was)
	if at := launchedAt(c); launched(c) && !known && at != 0 && at >= i.cfg.Since && m.Market != "" {
		i.sink.Meet(backend.Event{Kind: backend.MetLaunch, Pool: m.Pool, Market: m.Market, At: at})
	}
}

// launchedAt returns when a claim got its machine, 0 if it has none.
func launchedAt(c *karpv1.NodeClaim) policy.Time {
	if x := c.StatusConditions(observed).Get(karpv1.ConditionTypeLaunched); x != nil {
		return policy.TimeOf(x.LastTransitionTime.Time)
	}
	return 0
}

// claimGone reports that a NodeClaim no longer exists. A claim that never had a machine counts as
// refused, unless its node class was not ready or Spotter ended it, which was reported then.
func (i *informer) claimGone(c *karpv1.NodeClaim) {
	_, ours := i.outcomes.end(c.Annotations[TokenAnnotation])
	i.mu.Lock()
	for _, reason := range [...]string{eventInterrupted, eventRecommendation} {
		delete(i.reported, string(c.UID)+"/"+reason)
	}
	i.mu.Unlock()
	i.sink.DropMachine(BackendName, c.Name)
	if launched(c) || ours {
		return
	}
	n := i.api.nodePoolOf(c)
	if n == nil {
		return // the cause is unknown: do not count it against the market
	}
	if no, _ := poolIsNot(n, karpv1.ConditionTypeNodeClassReady); no {
		return
	}
	if pool := i.api.poolOf(c); pool != "" {
		i.outcomes.refused(pool, i.outcomes.ended(c, i.cfg.now()), i.cfg.now())
	}
}
