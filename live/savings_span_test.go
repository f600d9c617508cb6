package live

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/live/cluster"
	"github.com/spotter-dev/spotter/live/packed"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/test/nightly"
	"github.com/spotter-dev/spotter/test/testenv"
)

// A past is what happened to the nodes of one pool, and what readings see of it.
type past struct {
	from, to policy.Time
	lives    []pastLife
	curves   [][]policy.Money // by market, the prices at changes
	changes  [][]policy.Time
	offered  []policy.Time // since when the price of each market is known
}

// A pastLife is a node that is seen from an instant on, under the name of its claim
// until it has joined, and has a market from when it was sold. What was never sold has
// none at the end, either.
type pastLife struct {
	market                              int
	launched, seen, sold, joined, ended policy.Time
	bid                                 policy.Money

	// matched is when its Node is known to be of its claim: from when it joined until then
	// there are two nodes, or, where late, no claim is seen before.
	matched policy.Time
	late    bool
}

func (l *pastLife) node(i int) string { return fmt.Sprintf("node-%03d", i) }

func (l *pastLife) key(i int) string { return fmt.Sprintf("claim-%03d", i) }

// pastMarkets is how many markets there are, and pastOnDemand what they cost on demand.
const (
	pastMarkets  = 4
	pastOnDemand = policy.Money(103_457)
)

// newPast draws six hours of some forty nodes. The price of the last market is known
// late and never changes. Where calm, every node is sold and seen at once.
func newPast(r *rand.Rand, calm bool) *past {
	p := &past{from: policy.TimeOf(t0), to: policy.TimeOf(t0.Add(6 * time.Hour))}
	within := func(d time.Duration) policy.Time { return policy.Time(r.Int64N(int64(d / time.Millisecond))) }
	for m := range pastMarkets {
		at, price := []policy.Time{p.from - 1}, []policy.Money{policy.Money(20_001 + r.IntN(60_000))}
		for now := p.from + within(time.Hour); now < p.to && m < pastMarkets-1; now += 1 + within(time.Hour) {
			at, price = append(at, now), append(price, policy.Money(20_001+r.IntN(60_000)))
		}
		p.changes, p.curves, p.offered = append(p.changes, at), append(p.curves, price), append(p.offered, 0)
	}
	p.offered[pastMarkets-1] = p.from + within(3*time.Hour)
	for range 40 {
		l := pastLife{market: r.IntN(pastMarkets), launched: p.from - policy.Time(time.Hour/time.Millisecond) + within(7*time.Hour)}
		l.ended = l.launched + 1 + within([]time.Duration{30 * time.Second, 10 * time.Minute, 8 * time.Hour}[r.IntN(3)])
		l.seen, l.sold, l.joined = l.launched, l.launched, l.launched+within(5*time.Minute)
		if !calm && l.launched > p.from {
			l.seen, l.sold = l.launched+within(time.Minute), l.launched+within(20*time.Minute)
			if matched := l.joined + within(3*time.Minute); matched < p.to && l.seen < l.joined {
				l.matched, l.sold = matched, l.joined // the Node says of which market it is
				if l.late = r.IntN(2) == 0; l.late {
					l.seen = l.joined
				}
			}
		}
		if r.IntN(3) == 0 {
			l.bid = 40_000
		}
		p.lives = append(p.lives, l)
	}
	return p
}

// readings draws instants at which the past is looked at: once at least between two
// changes of a price, and at its begin and its end.
func (p *past) readings(r *rand.Rand, more int) []policy.Time {
	all := []policy.Time{p.from, p.to}
	draw := func(from, to policy.Time) { all = append(all, from+policy.Time(r.Int64N(int64(to-from)))) }
	for _, at := range p.changes {
		for i := 1; i < len(at); i++ {
			to := p.to
			if i+1 < len(at) {
				to = at[i+1]
			}
			draw(at[i], to)
		}
	}
	for at := p.from; at < p.to; at += policy.Time(30 * time.Minute / time.Millisecond) { // no gap
		draw(at, at+policy.Time(30*time.Minute/time.Millisecond))
	}
	for range more {
		draw(p.from, p.to)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// A pastObserver reports the lives of a past.
type pastObserver struct {
	lives []cluster.Life
	gone  []cluster.Gone
}

func (w *pastObserver) Lives() ([]cluster.Life, []cluster.Gone) { return w.lives, w.gone }

// look returns what is seen at an instant, and what had ended since the one before.
func (p *past) look(r *rand.Rand, before, now policy.Time) (*policy.Snapshot, *pastObserver) {
	s, w := snapshotOf(0), &pastObserver{}
	s.Now, s.Markets = now, nil
	s.Templates = []policy.Template{{Namespace: "shop", Requests: policy.Resources{CPU: 700}},
		{Namespace: "web", Requests: policy.Resources{CPU: 900}}}
	for m := range p.curves {
		x := policy.Market{ID: policy.MarketID(m), Name: fmt.Sprintf("market-%d", m), Capacity: policy.Spot, Price: policy.NoPrice}
		if now >= p.offered[m] {
			i, _ := slices.BinarySearch(p.changes[m], now+1)
			x.Offered, x.Price, x.PricedAt, x.OnDemand = true, p.curves[m][i-1], p.changes[m][i-1], pastOnDemand
		}
		s.Markets = append(s.Markets, x)
	}
	for _, i := range r.Perm(len(p.lives)) { // slots and names are not what a node is known by
		l := &p.lives[i]
		market, ordered := policy.MarketID(l.market), false
		switch {
		case now >= l.sold:
		case i%2 == 0:
			market = policy.None
		default: // it is expected in another market than it then is of
			market, ordered = policy.MarketID((l.market+1)%pastMarkets), true
		}
		switch {
		case l.ended > before && l.ended <= now:
			g := cluster.Gone{Life: cluster.Life{Key: l.key(i), Was: l.node(i), Ended: l.ended}, Launched: l.launched, Bid: l.bid, Pool: "web"}
			if l.ended >= l.sold {
				g.Market = s.Markets[l.market].Name
			}
			w.gone = append(w.gone, g)
		case l.seen <= now && l.ended > now:
			apart := now >= l.joined && now < l.matched
			add := func(key, was string, market policy.MarketID, launched policy.Time, ordered bool) {
				n := policy.Node{ID: policy.NodeID(len(s.Nodes)), Name: key, Market: market, Phase: policy.NodeLaunching,
					Launched: launched, Bid: l.bid, Allocatable: s.Types[0].Allocatable}
				if now >= l.joined {
					n.Name, n.Phase = l.node(i), policy.NodeInitialized
				}
				s.Pods = append(s.Pods, policy.Pod{Phase: policy.PodReady, Node: n.ID, Template: policy.TemplateID(i % 2)})
				s.Nodes, w.lives = append(s.Nodes, n), append(w.lives, cluster.Life{Key: key, Was: was, Ordered: ordered})
			}
			if !apart || !l.late {
				was := ""
				if !apart {
					was = l.node(i)
				}
				add(l.key(i), was, market, l.launched, ordered || apart)
			}
			if apart {
				add(l.node(i), "", market, l.joined, false)
			}
		}
	}
	return &s, w
}

// live reads a meter at all instants. Before some of them, where restarts, the process
// ends and another takes over with what was saved: of markets that were not in use it
// knows no price from before, so that none may have changed meanwhile.
func (p *past) live(t *testing.T, r *rand.Rand, readings []policy.Time, restarts bool) *Savings {
	t.Helper()
	var m meter
	book, before := &poolBook{}, policy.Time(0)
	for _, now := range readings {
		s, w := p.look(r, before, now)
		if restarts && !p.changed(before, now) && r.IntN(2) == 0 {
			data, err := packBook(book)
			if err != nil {
				t.Fatal(err)
			}
			book, m = &poolBook{}, meter{charged: m.charged}
			if err := packed.Unpack(data, packed.ReadMax, book); err != nil {
				t.Fatal(err)
			}
		}
		m.observer = w
		m.read(s, []*Savings{&book.Savings})
		before = now
	}
	return &book.Savings
}

// changed reports whether a price changed after one instant and up to another.
func (p *past) changed(after, to policy.Time) bool {
	return slices.ContainsFunc(p.changes, func(all []policy.Time) bool {
		return slices.ContainsFunc(all, func(at policy.Time) bool { return at > after && at <= to })
	})
}

// bill returns what the nodes cost, and for how long those ran that were never sold.
func (p *past) bill() (sum Account, nodes int, unsold int64) {
	window := billing.Span{From: p.from, To: p.to}
	for i := range p.lives {
		l := &p.lives[i]
		life := billing.Span{From: l.launched, To: l.ended}
		if l.seen > p.to && l.ended > p.to {
			continue // not observed yet
		}
		if l.ended < l.sold || l.sold > p.to {
			unsold += int64(life.Clip(window).Length() / time.Millisecond)
			continue
		}
		most := policy.Dollar
		if l.bid > 0 {
			most = l.bid
		}
		sum.Paid += billing.NewCurve(p.changes[l.market], p.curves[l.market]).BillAtMost(life, window, most)
		sum.OnDemand += billing.Flat(pastOnDemand, life, window)
		nodes++
	}
	return sum, nodes, unsold
}

// TestSavingsDoNotDependOnReadings reads one past at different times: the sums are the
// same to the last fraction, and those of policy/billing over all of it, which rounds
// each node once.
func TestSavingsDoNotDependOnReadings(t *testing.T) {
	seed := testenv.Seed(t)
	for k := range uint64(nightly.Count(4, 12)) {
		r := rand.New(rand.NewPCG(seed, k))
		restarts := k%2 == 1
		p := newPast(r, restarts)
		want, nodes, unsold := p.bill()
		var first *Savings
		for i, more := range []int{0, 30, 150} {
			got := p.live(t, r, p.readings(r, more), restarts)
			if first == nil {
				first = got
			}
			if got.Total != first.Total || got.Unpriced != first.Unpriced {
				t.Errorf("past %d: read %d times more it is %+v and %d ms without a price, not %+v and %d", k, more, got.Total,
					got.Unpriced, first.Total, first.Unpriced)
			}
			for what, off := range map[string]policy.Money{"paid": got.Total.Paid - want.Paid, "on demand": got.Total.OnDemand - want.OnDemand} {
				if max(off, -off) > policy.Money(nodes/2+1) {
					t.Errorf("past %d, reading %d: %s is off by %d millionths of a dollar, of %d nodes", k, i, what, off, nodes)
				}
			}
			if got.Unpriced != unsold {
				t.Errorf("past %d, reading %d: %d ms without a price, want %d", k, i, got.Unpriced, unsold)
			}
			var parts Account
			for _, n := range got.Namespaces {
				parts.add(n.Account)
			}
			if parts != got.Total {
				t.Errorf("past %d, reading %d: the namespaces are %+v, all is %+v", k, i, parts, got.Total)
			}
		}
	}
}
