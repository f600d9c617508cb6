package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
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
	now     policy.Time // of the last snapshot, or since when the next is being built
	latest  policy.Time // that the clock was seen to say
	streams []*stream
	started bool // a snapshot was built

	// view is the newest snapshot, which is the one that is being built while Observe
	// runs: it holds the identifiers that are in force. It is only read once it was
	// returned.
	view *policy.Snapshot

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

	// faults are what could not be understood, each reported once.
	faults map[string]bool
}

// New returns an observer of nothing yet: see [Observer.SetupWithManager].
func New(cfg Config, book Book) (*Observer, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	o := &Observer{
		cfg: cfg, book: book, wakes: make(chan string, wakesMax), view: &policy.Snapshot{},
		workloads: map[workloadKey]*workload{}, replicas: map[string]ownerRef{}, csi: map[string]int32{}, volumes: newVolumes(),
		priorities: kube.SystemPriorities(), namespaces: map[string]map[string]string{},
		pdbs: map[string]*pdb{}, budgets: map[string]policy.Budget{}, faults: map[string]bool{},
	}
	o.nodeTable.init()
	o.podTable.init()
	o.templateTable.init()
	o.poolTable.init()
	return o, nil
}

// Wakes says when a step is wanted soon, and why in one word.
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

// Observe returns what is known of the cluster now. The observer never changes a
// snapshot that it has returned, however long somebody reads it: what snapshots share is
// replaced where it changes, and never written. It fails until everything was read once,
// and for a snapshot that breaks the rules of snapshots, which then is a fault of ours.
func (o *Observer) Observe(ctx context.Context) (*policy.Snapshot, error) {
	if err := o.Await(ctx); err != nil {
		return nil, err
	}
	s := o.begin()
	o.fill(s)
	o.book.Settle(s)
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("what was observed: %w", err)
	}
	return s, nil
}

// begin returns a snapshot of now with what there is to buy, and reads the nodes by it.
func (o *Observer) begin() *policy.Snapshot {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now = o.instant()
	s := &policy.Snapshot{Now: o.now}
	o.view = s
	o.fillMarkets(s)
	o.readNodes()
	return s
}

// readAhead reads most of the pods that have changed, some at a time: so that nobody
// waits for the lock for long when there are many, as at first.
func (o *Observer) readAhead() {
	for more := true; more; {
		o.mu.Lock()
		o.podsRead = true
		n := min(len(o.rereadP), podsAtOnce)
		o.readSlots(o.rereadP[len(o.rereadP)-n:])
		o.rereadP = o.rereadP[:len(o.rereadP)-n]
		more = len(o.rereadP) > podsAtOnce
		o.mu.Unlock()
	}
}

// podsAtOnce is how many pods are read while the lock is held: some milliseconds.
const podsAtOnce = 500

// fill writes all that s does not have yet. It is of the instant at which that is done:
// what was heard of while it was being built is not from after it.
func (o *Observer) fill(s *policy.Snapshot) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.readNodes()
	o.readPods()
	o.tabulate()
	o.fillNodes(s)
	o.fillLives()
	o.countPriced()
	o.fillWork(s)
	o.fillPools(s)
	o.fillEnded(s)
	s.Sources = append(s.Sources, o.sources()...)
	if o.usage.at != 0 {
		s.Sources = append(s.Sources, policy.Source{Name: SourceUsage, At: o.usage.at})
	}
	o.started = true
	o.now = o.instant()
	s.Now = o.now
	o.nominate(s)
}

// instant returns the time, which never goes back.
func (o *Observer) instant() policy.Time {
	o.latest = max(o.latest, policy.TimeOf(o.cfg.Clock.Now()))
	return o.latest
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
	for _, z := range slices.Sorted(maps.Keys(o.volumes.seen)) {
		if _, ok := o.zoneIDs[z]; !ok {
			o.zoneIDs[z] = policy.ZoneID(len(o.zones))
			o.zones = append(o.zones, z)
		}
	}
	s.Zones = o.zones
	o.dirtyPods(func(x *podEntry) bool { return x.claims })
}

// Meet takes what a backend met. Launches and reclaims are counted here, by the node,
// so that each counts once whoever reports it; only what no node shows is taken
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

// SetSteer takes the last steer that a pool got.
func (o *Observer) SetSteer(pool string, s policy.SteerState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s.Since = o.clamp(s.Since)
	o.steers[pool] = s
}

// clamp returns t, or now where t is later: clocks differ, and nothing may be from
// after the snapshot.
func (o *Observer) clamp(t policy.Time) policy.Time { return max(0, min(t, o.instant())) }

// complain reports once something that is not understood.
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
