package machines

import (
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/placement"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/sim/engine"
)

// Launches creates nodes: those that are launched in a run, from the order until they accept pods,
// and those that exist when the warm-up starts.
type Launches struct {
	*Machines

	// Number is the number of nodes created so far. Tokens maps launch tokens to their nodes.
	// InFlight are the launched nodes that are not initialized yet.
	Number   int
	Tokens   map[string]policy.NodeID
	InFlight []policy.NodeID
}

// An Order specifies a node to create: its pool, market, slot and label choice.
type Order struct {
	Pool   policy.PoolID
	Market policy.MarketID
	Slot   int32
	Choice int
}

// add creates a node that is launched now.
func (la *Launches) add(o Order) policy.NodeID {
	x, p := &la.Scenario.Markets[o.Market], &la.Scenario.Pools[o.Pool]
	typ := &la.Scenario.Types[x.Type]
	la.Number++
	n := policy.Node{Name: p.Name + "-" + strconv.Itoa(la.Number), Pool: o.Pool, Market: o.Market,
		Phase: policy.NodeLaunching, Allocatable: la.Scenario.AllocatableOf(o.Pool, x.Type),
		VolumesMax: typ.VolumesMax, GPUResource: typ.GPUResource,
		Labels: la.labels(o), Taints: p.Taints, Launched: la.Clock.Now}
	if own := la.Prepared.Own(o.Pool); own != nil {
		n.DoNotDisrupt = own.DoNotDisrupt
	}
	id := la.Nodes.Add(n, x.Capacity == policy.Spot, la.Pools.SizeOf(o.Market))
	for len(la.of) <= int(id) {
		la.of = append(la.of, machine{})
	}
	la.of[id] = machine{born: la.Number, slot: o.Slot, drain: -1}
	la.Pools.use(o.Pool, typ.Capacity)
	la.Market.Launch(o.Market, o.Slot)
	la.Bills.begin(id)
	la.Launched.Publish(id)
	la.Nodes.Touch(id)
	return id
}

func (la *Launches) labels(o Order) []policy.Label {
	offers := la.Prepared.Offers[o.Pool]
	for i := range offers {
		if offers[i].Market == o.Market && offers[i].Choice == o.Choice {
			return offers[i].Labels
		}
	}
	return placement.NodeLabels(la.Scenario.Types, la.Scenario.Zones, &la.Scenario.Pools[o.Pool],
		&la.Scenario.Markets[o.Market])
}

// Launch launches a node and plans the events of its life.
func (la *Launches) Launch(o Order, token string, bid policy.Money) policy.NodeID {
	id, m := la.add(o), o.Market
	la.Pools.noteFallback(o.Pool, m)
	n := &la.Nodes.All[id]
	n.Token = token
	if la.Scenario.Markets[m].Auction() {
		n.Bid = bid
	}
	if token != "" {
		la.Tokens[token] = id
	}
	la.InFlight = append(la.InFlight, id)
	if la.Metered() {
		la.Result.Launches++
	} else {
		la.Result.WarmUpLaunches++
	}
	la.Log.Add(la.Clock.Now, engine.RecordLaunch, n.Name, la.Scenario.Markets[m].Name,
		int64(la.Prepared.Market.Charges()[m].At(la.Clock.Now)))
	// The key identifies the machine: two nodes in the same slot at the same instant are the same
	// machine.
	u := chance.New(la.Seed, "node-start", la.Scenario.Markets[m].Name).At2(uint64(o.Slot), uint64(la.Clock.Now)).Float()
	least, most := la.Delays.Register(&la.Scenario.Markets[m])
	join := time.Duration(float64(least+time.Duration(u*float64(most-least))) * la.SlowFactor)
	la.Clock.Add(la.Clock.Now.Add(join), engine.NodeRegistered, int32(id), 0, la.Nodes.Gen(id))
	la.Reclaims.planEnd(id)
	return id
}

func (la *Launches) register(id policy.NodeID) {
	if la.of[id].billed {
		return // reclaimed before it registered
	}
	la.Nodes.Register(id)
	la.Log.Add(la.Clock.Now, engine.RecordRegistered, la.Nodes.All[id].Name, "", 0)
	la.Clock.Add(la.Clock.Now.Add(la.Delays.Initialize), engine.NodeInitialized, int32(id), 0, la.Nodes.Gen(id))
}

func (la *Launches) initialize(id policy.NodeID) {
	n := &la.Nodes.All[id]
	if la.of[id].billed {
		return
	}
	n.Phase, n.Initialized = policy.NodeInitialized, la.Clock.Now
	la.arrive(id)
	la.Log.Add(la.Clock.Now, engine.RecordInitialized, n.Name, "", 0)
	la.Nodes.Ready(id)
	la.Drains.wake(n.Token)
}

// arrive removes a node from InFlight.
func (la *Launches) arrive(id policy.NodeID) {
	for i, x := range la.InFlight {
		if x == id {
			la.InFlight = append(la.InFlight[:i], la.InFlight[i+1:]...)
			return
		}
	}
}

// AddReady creates a node that is initialized at once.
func (la *Launches) AddReady(o Order) policy.NodeID {
	id := la.add(o)
	n := &la.Nodes.All[id]
	n.Phase, n.Registered, n.Initialized = policy.NodeInitialized, la.Clock.Now, la.Clock.Now
	if la.Scenario.Markets[o.Market].Auction() {
		n.Bid = la.Pools.StandingBid(o.Pool, []policy.MarketID{o.Market})
	}
	la.Log.Add(la.Clock.Now, engine.RecordLaunch, n.Name, la.Scenario.Markets[o.Market].Name, 0)
	la.Reclaims.planEnd(id)
	la.Nodes.Ready(id)
	return id
}
