package cluster

import (
	"context"
	"fmt"
	"sync"

	"github.com/spotter-dev/spotter/policy"
)

// An Observer keeps the state of a cluster in tables, each for one kind of object. All methods are
// safe for concurrent use, except that only one goroutine may call Observe. The tables are read and
// changed only under the lock of the observer; their methods do not acquire it. The book and the
// queue of wakes need no lock.
type Observer struct {
	cfg   Config
	wakes wakeQueue

	mu      sync.Mutex
	clock   *snapshotClock
	streams *streamTable
	markets *marketView
	pools   *poolTable
	budgets *budgetTable
	nodes   *nodeTable
	limits  *volumeLimits
	pricing *pricingTable
	work    *workTable
	usage   usage
}

// New returns an observer that is not yet subscribed to a cluster: see [Observer.SetupWithManager].
func New(cfg Config, book Book) (*Observer, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	o := &Observer{cfg: cfg, wakes: make(wakeQueue, wakesMax), clock: &snapshotClock{clock: cfg.Clock}}
	faults := &faultLog{log: cfg.Log, reported: map[string]bool{}}
	o.streams = &streamTable{clock: o.clock, max: cfg.DataMax}
	o.markets = &marketView{book: book, view: &policy.Snapshot{}}
	o.pools = newPoolTable(book, o.wakes, o.clock, faults)
	o.budgets = &budgetTable{faults: faults, byName: map[string]policy.Budget{}}
	slots, pods := newNodeSlots(o.clock), &podSlots{byName: map[string]int32{}}
	o.limits = &volumeLimits{nodes: slots, byNode: map[string]int32{}}
	reader := &nodeReader{
		cfg: &o.cfg, clock: o.clock, markets: o.markets, pools: o.pools, limits: o.limits, labels: map[string][]policy.Label{},
	}
	o.pricing = &pricingTable{nodes: slots, reader: reader}
	o.nodes = &nodeTable{
		cfg: &o.cfg, clock: o.clock, wakes: o.wakes, slots: slots, reader: reader, pods: pods,
		experience: &experience{clock: o.clock, markets: o.markets, pools: o.pools, keep: cfg.NoticeMax,
			taken: map[string]policy.Time{}},
		lives: &lifeTable{nodes: slots, pools: o.pools, markets: o.markets},
	}
	o.work = newWorkTable(o.nodes, faults, cfg.EndedMax)
	return o, nil
}

// Observe returns the present state of the cluster. The observer never changes a snapshot that it
// has returned: data that snapshots share is replaced, never modified. Observe waits until
// everything was read once or ctx ends. It returns an error if the snapshot is invalid, which
// indicates a bug in Spotter.
func (o *Observer) Observe(ctx context.Context) (*policy.Snapshot, error) {
	if err := o.Await(ctx); err != nil {
		return nil, err
	}
	s := o.begin()
	o.fill(s)
	o.markets.book.Settle(s)
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("the observed state: %w", err)
	}
	return s, nil
}

// begin returns a snapshot of the present instant with the current markets, and reads the changed
// nodes at that instant.
func (o *Observer) begin() *policy.Snapshot {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clock.now = o.clock.instant()
	s := &policy.Snapshot{Now: o.clock.now}
	o.markets.view = s
	o.fillMarkets(s)
	o.nodes.readAll()
	return s
}

// readAhead reads most of the changed pods, a few at a time, so that no goroutine waits long for
// the lock when there are many, as at the start.
func (o *Observer) readAhead() {
	for more := true; more; {
		o.mu.Lock()
		more = o.work.pods.readSome()
		o.mu.Unlock()
	}
}

// fill completes s as of the present instant: changes received while it was being built are not
// later than its time.
func (o *Observer) fill(s *policy.Snapshot) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.nodes.readAll()
	o.work.pods.readAll()
	o.work.tabulate()
	o.nodes.fill(s)
	o.nodes.lives.fill()
	o.pricing.count(o.pools.valid)
	o.work.fill(s)
	o.pools.fill(s)
	o.nodes.fillUsed(s)
	o.budgets.fill(s)
	o.work.endings.fill(s)
	s.Sources = append(s.Sources, o.streams.sources()...)
	if o.usage.at != 0 {
		s.Sources = append(s.Sources, policy.Source{Name: SourceUsage, At: o.usage.at})
	}
	o.clock.started = true
	o.clock.now = o.clock.instant()
	s.Now = o.clock.now
	o.pools.nominate(s)
}

// readPools reads the pools if one has changed, and then marks all nodes to be read again.
func (o *Observer) readPools() {
	if o.pools.read() {
		o.nodes.slots.touchAll()
	}
}

// fillMarkets lets the book fill its part of s. If identifiers have changed, it marks everything
// that depends on them to be read again.
func (o *Observer) fillMarkets(s *policy.Snapshot) {
	o.readPools()
	o.markets.book.Fill(s, s.Now)
	if g := o.markets.book.Generation(); g != o.markets.generation || o.work.volumes.zoneIDs == nil {
		o.markets.generation = g
		o.nodes.slots.touchAll()
		o.pools.chosen = 0
		o.work.volumes.zoneIDs = nil
	}
	o.work.volumes.fillZones(s)
}
