// Package machines simulates nodes between the cloud and the cluster: the limits and steers of
// pools, and the launch, drain, release, reclaim and bill of nodes. Other packages decide which
// nodes are wanted and which are removed.
package machines

import (
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim/cluster"
	"github.com/spotter-dev/spotter/sim/engine"
	"github.com/spotter-dev/spotter/sim/market"
)

// Machines are the nodes of a run as seen by the cloud.
type Machines struct {
	*cluster.Cluster
	Events
	Market *market.Market

	Pools    *Pools
	Launches *Launches
	Reclaims *Reclaims
	Removals *Removals
	Bills    *Bills
	Drains   *Drains

	of []machine // by node
}

// A machine is the state of a node that the cluster does not have.
type machine struct {
	born   int   // position in the order of launches
	slot   int32 // slot in its market
	drain  int32 // index into Drains, or -1
	billed bool  // its bill is final; it no longer runs
	gentle bool  // a drain by Spotter must not reduce a workload below its required number of pods
}

// Runs reports whether a node costs money: it is launched, and neither released nor taken.
func (ms *Machines) Runs(id policy.NodeID) bool {
	return ms.Nodes.All[id].Phase != policy.NodeGone && !ms.of[id].billed
}

// Events are the topics that other packages can subscribe to.
type Events struct {
	// Launched publishes a node that was launched, Terminating one that is about to be terminated,
	// and Stopped one that no longer costs money.
	Launched, Terminating, Stopped engine.Topic[policy.NodeID]

	// Noticed publishes a node that the provider will reclaim, Recommended one with a rebalance
	// recommendation, and Reclaimed one that the provider reclaims.
	Noticed, Recommended, Reclaimed engine.Topic[policy.NodeID]

	// Changed is published for other events that may let Karpenter save: a NodeClaim is gone, after
	// the shutdown of its instance or with a lost node; a NodeClaim was deleted after another
	// controller drained the node; a node is drained because of its age; or a commitment has ended.
	Changed engine.Topic[struct{}]

	// PoolRefused publishes a pool to which a node was refused, for any reason, and NoCapacity one
	// for whose NodeClaim no market had capacity.
	PoolRefused, NoCapacity engine.Topic[policy.PoolID]

	// DrainBegun publishes a node whose drain starts, DrainUndone one whose drain was cancelled,
	// and DrainEnded one whose drain was cancelled or is complete.
	DrainBegun, DrainUndone, DrainEnded engine.Topic[policy.NodeID]
}

// New returns the machines of a run, without nodes.
func New(c *cluster.Cluster, m *market.Market) *Machines {
	ms := &Machines{Cluster: c, Market: m}
	ms.Pools = &Pools{Machines: ms}
	ms.Launches = &Launches{Machines: ms, Tokens: make(map[string]policy.NodeID)}
	ms.Reclaims = &Reclaims{Machines: ms}
	ms.Removals = &Removals{Machines: ms}
	ms.Bills = &Bills{Machines: ms}
	ms.Drains = &Drains{Machines: ms}
	ms.Pools.init()
	ms.Bills.init()
	ms.subscribe()
	return ms
}

// subscribe registers the handlers of the events of machines.
func (ms *Machines) subscribe() {
	ofNode := func(kind engine.Kind, f func(policy.NodeID)) {
		ms.Clock.On(kind, func(e *engine.Event) {
			if ms.Nodes.Gen(policy.NodeID(e.A)) == e.Gen {
				f(policy.NodeID(e.A))
			}
		})
	}
	ofNode(engine.NodeRegistered, ms.Launches.register)
	ofNode(engine.NodeInitialized, ms.Launches.initialize)
	ms.Clock.On(engine.NodeNotice, func(e *engine.Event) {
		if ms.Nodes.Gen(policy.NodeID(e.A)) == e.Gen {
			ms.Reclaims.announced(policy.NodeID(e.A), e.B != 0)
		}
	})
	ofNode(engine.NodeRecommendation, ms.Reclaims.recommend)
	ofNode(engine.NodeReclaimed, ms.Reclaims.Reclaim)
	ofNode(engine.NodeGone, func(id policy.NodeID) {
		ms.Removals.Forget(id)
		ms.Changed.Publish(struct{}{})
	})
	ofNode(engine.NodeExpires, ms.Removals.expire)
	ms.Clock.On(engine.ClaimGone, func(*engine.Event) { ms.Changed.Publish(struct{}{}) })
	ms.Clock.On(engine.CommitmentEnds, func(e *engine.Event) {
		ms.Bills.account.Lapse(int(e.A), ms.Clock.Now)
		ms.Changed.Publish(struct{}{})
	})
	ms.Clock.On(engine.DrainContinues, func(e *engine.Event) { ms.Drains.proceed(int(e.A), e.Gen) })

	ms.NodeReady.Subscribe(ms.Pools.hold)
	ms.PodBound.Subscribe(func(p policy.PodID) { ms.Bills.use(ms.Pods.All[p].Node, ms.Pods.All[p].Template, 1) })
	ms.PodEnded.Subscribe(func(p cluster.EndedPod) {
		if p.Node != policy.None {
			ms.Bills.use(p.Node, p.Template, -1)
		}
	})
	ms.PodLeft.Subscribe(ms.Drains.podLeft)
}
