package cluster

import (
	"context"
	"fmt"
	"sync"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/kube"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// wakesMax is how many wakes may wait for the controller; what is more says nothing
// new.
const wakesMax = 64

// An Observer keeps what is known of a cluster. All of its methods may be called
// from any goroutine, but Observe from one only.
type Observer struct {
	cfg   Config
	book  Book
	wakes chan string

	mu      sync.Mutex
	now     policy.Time // of the last snapshot
	streams []*stream
	started bool // a snapshot was built
	turn    int
	view    [2]policy.Snapshot

	nodeTable
	podTable
	templateTable
	poolTable

	workloads  map[workloadKey]*workload
	replicas   map[string]ownerRef // what owns each ReplicaSet, by its name
	volumes    volumes
	csi        map[string]int32 // how many volumes a node takes, by its name
	priorities map[string]kube.Priority
	preset     kube.Priority                // of pods without a class
	namespaces map[string]map[string]string // labels by name
	pdbs       map[string]*pdb
	budgets    map[string]policy.Budget
	ended      []ending
	usage      usage
	generation uint64 // of the book's identifiers
	zones      []string
	zoneIDs    map[string]policy.ZoneID

	// faults are what could not be understood, each told once.
	faults map[string]bool
}

// New returns an observer of nothing yet: see [Observer.SetupWithManager].
func New(cfg Config, book Book) (*Observer, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	o := &Observer{
		cfg: cfg, book: book, wakes: make(chan string, wakesMax),
		workloads: map[workloadKey]*workload{}, replicas: map[string]ownerRef{}, volumes: newVolumes(),
		priorities: kube.SystemPriorities(), namespaces: map[string]map[string]string{},
		pdbs: map[string]*pdb{}, budgets: map[string]policy.Budget{}, faults: map[string]bool{},
	}
	o.nodeTable.init()
	o.podTable.init()
	o.templateTable.init()
	o.poolTable.init()
	return o, nil
}

// Wakes tells when a step is wanted soon, and why in one word.
func (o *Observer) Wakes() <-chan string { return o.wakes }

// Wake asks for a step soon.
func (o *Observer) Wake(reason string) {
	select {
	case o.wakes <- reason:
	default: // enough is said
	}
}

// The reasons for which the observer itself wakes the controller.
const (
	wakeNotice        = "notice"
	wakePools         = "pool-changed"
	wakeLost          = "lost-node"
	wakeRebalance     = "rebalance"
	wakeRefused       = "refused"
	wakeUnschedulable = "unschedulable"
)

// Observe returns what is known of the cluster now. The snapshot before last is
// used again. It fails until everything was read once, and for a snapshot that
// breaks the rules of snapshots, which then is a fault of ours.
func (o *Observer) Observe(ctx context.Context) (*policy.Snapshot, error) {
	if err := o.Await(ctx); err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	s := &o.view[o.turn]
	o.turn = 1 - o.turn
	o.now = max(o.now, policy.TimeOf(o.cfg.Clock.Now()))
	s.Now = o.now
	o.fillMarkets(s)
	o.readNodes()
	o.readPods()
	o.tabulate()
	o.fillNodes(s)
	o.fillLives()
	o.fillWork(s)
	o.fillPools(s)
	o.fillEnded(s)
	o.book.Running(s.Now, o.running(s))
	o.book.Settle(s)
	s.Sources = append(s.Sources, o.sources()...)
	if o.usage.at != 0 {
		s.Sources = append(s.Sources, policy.Source{Name: SourceUsage, At: o.usage.at})
	}
	o.started = true
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("what was observed: %w", err)
	}
	return s, nil
}

// fillMarkets lets the book write its part, and marks what depends on identifiers
// that have changed.
func (o *Observer) fillMarkets(s *policy.Snapshot) {
	if o.poolsChanged {
		o.readPools()
	}
	o.book.Fill(s, s.Now)
	if g := o.book.Generation(); g != o.generation || o.zoneIDs == nil {
		o.generation = g
		o.dirtyNodes()
		o.chosen = 0
		o.zoneIDs = nil
	}
	o.fillZones(s)
}

// fillZones appends to the zones in which something is sold those in which volumes
// lie: a pod whose volume lies where nothing is sold must not seem free to go
// anywhere.
func (o *Observer) fillZones(s *policy.Snapshot) {
	if o.zoneIDs != nil && !o.volumes.zonesChanged {
		s.Zones = o.zones
		return
	}
	o.zoneIDs, o.volumes.zonesChanged = map[string]policy.ZoneID{}, false
	o.zones = append([]string(nil), s.Zones...)
	for i, z := range o.zones {
		o.zoneIDs[z] = policy.ZoneID(i)
	}
	for _, z := range o.volumes.zoneNames() {
		if _, ok := o.zoneIDs[z]; !ok {
			o.zoneIDs[z] = policy.ZoneID(len(o.zones))
			o.zones = append(o.zones, z)
		}
	}
	s.Zones = o.zones
	o.dirtyPods(func(x *podEntry) bool { return x.claims })
}

// running returns how many nodes run in each market of s.
func (o *Observer) running(s *policy.Snapshot) func(policy.MarketID) int {
	counts := make([]int, len(s.Markets))
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Phase != policy.NodeGone && n.Market != policy.None {
			counts[n.Market]++
		}
	}
	return func(m policy.MarketID) int { return counts[m] }
}

// Meet takes what a backend met. Launches and reclaims are counted here, by the node,
// so that each counts once whoever tells of it; only what no node shows is taken
// from backends.
func (o *Observer) Meet(e backend.Event) {
	switch e.Kind {
	case backend.MetLaunch, backend.MetReclaim:
		return
	case backend.MetRefusal:
		o.mu.Lock()
		o.refused[e.Pool] = max(o.refused[e.Pool], o.clamp(e.At))
		o.mu.Unlock()
	}
	o.book.Meet(e)
	o.Wake(wakeRefused)
}

// SetSteer says what a pool was last told.
func (o *Observer) SetSteer(pool string, s policy.SteerState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s.Since = o.clamp(s.Since)
	o.steers[pool] = s
}

// clamp returns t, or now where t is later: clocks differ, and nothing may be from
// after the snapshot.
func (o *Observer) clamp(t policy.Time) policy.Time {
	return max(0, min(t, max(o.now, policy.TimeOf(o.cfg.Clock.Now()))))
}

// complain tells once of something that is not understood.
func (o *Observer) complain(of, what string) {
	text := of + ": " + what
	if o.faults[text] {
		return
	}
	if len(o.faults) > 10_000 {
		clear(o.faults)
	}
	o.faults[text] = true
	o.cfg.Log.Warn("something of the cluster is not understood", "object", of, "problem", what)
}

// used lists the pools that the book is to sell for.
func used(pools []*pool) []*v1alpha1.CapacityPool {
	all := make([]*v1alpha1.CapacityPool, len(pools))
	for i, p := range pools {
		all[i] = p.object
	}
	return all
}
