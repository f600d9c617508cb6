package rackspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// Launch orders one node, once per token, as a node pool with one machine. It returns when the API
// has accepted the order; the result of the bid is observed later.
func (b *Backend) Launch(ctx context.Context, s *policy.Snapshot, l *policy.Launch) error {
	bid, err := checkLaunch(s, l)
	if err != nil {
		return err
	}
	var pool v1alpha1.CapacityPool
	if err := b.client.Get(ctx, client.ObjectKey{Name: s.Pools[l.Pool].Name}, &pool); err != nil {
		return held(fmt.Errorf("reading the CapacityPool: %w", err))
	}
	if pool.Spec.Backend.Rackspace == nil {
		return fmt.Errorf("CapacityPool %s does not buy at Rackspace", pool.Name)
	}
	tried, going, err := b.ledger.earlier(ctx, pool.Name, l.Token)
	if err != nil {
		return held(err)
	}
	if going != nil && going.ordered != 0 {
		return nil // the order of this token is in progress or won
	}
	a, err := b.accounts.open(ctx, b.cfg.keyOf(&pool))
	if err != nil {
		return held(err)
	}
	markets, err := b.buyer.choose(s, l, a.region, bid, tried, going)
	if err != nil {
		return err
	}
	return b.buyer.orderFirst(ctx, a, s, l, &pool, markets, bid)
}

// checkLaunch returns an error for an invalid launch, and otherwise the bid, rounded to a valid bid
// of the pool. The bid is 0 on demand.
func checkLaunch(s *policy.Snapshot, l *policy.Launch) (policy.Money, error) {
	if l.Token == "" || len(l.Markets) == 0 {
		return 0, errors.New("launch without a token or a market")
	}
	first := &s.Markets[l.Markets[0]]
	for _, id := range l.Markets {
		m := &s.Markets[id]
		switch {
		case !slices.Contains(s.Pools[l.Pool].Markets, id):
			return 0, fmt.Errorf("market %s is not in the pool", m.Name)
		case m.Capacity != first.Capacity:
			return 0, fmt.Errorf("markets %s and %s differ in capacity type", first.Name, m.Name)
		case m.Provider != policy.Rackspace:
			return 0, fmt.Errorf("market %s is not a Rackspace market", m.Name)
		}
	}
	if !first.Auction() {
		return 0, nil
	}
	if l.Bid <= 0 {
		return 0, fmt.Errorf("market %s is an auction, and the launch has no bid", first.Name)
	}
	return s.Pools[l.Pool].Bid(l.Bid), nil
}

// A buyer places orders.
type buyer struct {
	cfg      *Config
	sink     backend.Sink
	feed     *Feed
	accounts *accountTable
	state    *stateTable
	ledger   *ledger
}

// choose returns the markets to try, the cheapest first: those in the region of the cloudspace that
// may accept the bid, have not refused the token, and keep the pool within its limits. If an order
// is already in progress, choose returns its market.
func (u *buyer) choose(s *policy.Snapshot, l *policy.Launch, region string, bid policy.Money, tried map[string]bool,
	going *machine) ([]policy.MarketID, error) {
	var fit []policy.MarketID
	elsewhere, dear := 0, 0
	for _, id := range l.Markets {
		m := &s.Markets[id]
		switch {
		case going != nil && going.order.market == m.Name:
			return []policy.MarketID{id}, nil
		case m.Region != region:
			elsewhere++
		case m.Auction() && (!m.Offered || m.Charge() > bid), !s.Pools[l.Pool].Affords(m):
			dear++
		case !tried[m.Name]:
			fit = append(fit, id)
		}
	}
	if elsewhere == len(l.Markets) {
		return nil, backend.Hold("OtherRegion", "The cloudspace is in %s; no market of the launch is, of %d.", region,
			elsewhere)
	}
	if len(fit) == 0 {
		return nil,
			fmt.Errorf("of %d markets %d are in another region, %d are not offered at the bid of %s or the pool's maxPrice and %d refused: %w",
				len(l.Markets), elsewhere, dear, bid.Short(), len(tried), driver.ErrNoCapacity)
	}
	slices.SortFunc(fit, func(x, y policy.MarketID) int {
		return cmp.Or(cmp.Compare(s.Markets[x].Price, s.Markets[y].Price), cmp.Compare(x, y))
	})
	fit = u.state.withinLimits(s, l.Pool, fit)
	if len(fit) == 0 {
		return nil, fmt.Errorf("the limits of the pool are reached: %w", driver.ErrNoCapacity)
	}
	return fit, nil
}

// orderFirst places the order in the first market that accepts it.
func (u *buyer) orderFirst(ctx context.Context, a session, s *policy.Snapshot, l *policy.Launch,
	pool *v1alpha1.CapacityPool, markets []policy.MarketID, bid policy.Money) error {
	var refused []string
	for _, id := range markets {
		m := &s.Markets[id]
		o, err := newOrder(pool.Name, l.Token, m.Name, a.cloudspace, bid, u.cfg.now())
		if err != nil {
			return err
		}
		no, err := u.place(ctx, a, pool, o)
		switch {
		case no != nil && no.Market:
			refused = append(refused, m.Name+": "+no.Text)
			continue
		case no != nil:
			return backend.Hold("Refused", "Rackspace does not sell: %s", no.Text)
		}
		if err == nil || !answered(err) {
			u.state.count(s, l.Pool, s.Types[m.Type].Capacity)
		}
		return held(u.accounts.failed(u.cfg.keyOf(pool), err))
	}
	return fmt.Errorf("%s: %w", strings.Join(refused, "; "), driver.ErrNoCapacity)
}

// place writes an order to the ledger and sends it to the API. While it is unknown whether the API
// has the order, the entry remains and counts as in progress until [Backend.Pass] determines the
// result.
func (u *buyer) place(ctx context.Context, a session, pool *v1alpha1.CapacityPool, o order) (*refusal, error) {
	m, err := u.ledger.enter(ctx, o)
	if err != nil {
		return nil, err
	}
	err = a.cloud.createPool(ctx, a.namespace, kindOf(o.capacity), m.order.pooled(a.namespace, &pool.Spec.Template))
	if exists(err) {
		// The name is derived from the token: it is this order, sent earlier.
		err = u.own(ctx, a, m)
	}
	if err == nil {
		err := u.ledger.patchStatus(ctx, m, func(m *machine) { m.ordered, m.listed = u.cfg.now(), true })
		if err != nil {
			u.cfg.Log.Warn("an order was placed, and the ledger does not show it yet", "spotnode", o.name, "error", err)
		}
		u.sink.SetMachine(Name, u.state.snapshot(m))
		return nil, nil
	}
	if no, ok := refusalOf(err); ok {
		u.turnDown(ctx, m, no)
		return &no, nil
	}
	if answered(err) {
		u.ledger.erase(ctx, m)
		return nil, err
	}
	u.sink.SetMachine(Name, u.state.snapshot(m))
	return nil, err
}

// own returns an error unless the existing node pool with the order's name belongs to the order.
// The node pool exists, so a read that does not find it is out of date.
func (u *buyer) own(ctx context.Context, a session, m *machine) error {
	p, err := a.cloud.pool(ctx, a.namespace, kindOf(m.order.capacity), m.order.nodePool)
	if err != nil {
		return &unsure{err}
	}
	if p.Spec.CustomLabels[spotNodeLabel] != m.order.name {
		return &fault{What: "creating node pool " + m.order.nodePool, Status: http.StatusConflict,
			Text: "another owner has a node pool of that name"}
	}
	return nil
}

// turnDown keeps a refused order for a while, as the result of repeated calls, and reports the
// refusal.
func (u *buyer) turnDown(ctx context.Context, m *machine, no refusal) {
	now := u.cfg.now()
	if no.Floor > 0 {
		u.feed.refused(m.order.class, no.Floor, now)
	}
	err := u.ledger.patchStatus(ctx, m, func(m *machine) {
		m.fail(now, "Refused")
		m.reported.refusal, m.reported.dropped = true, true
	})
	if err != nil {
		u.cfg.Log.Warn("an order was refused, and the ledger does not show it yet", "spotnode", m.order.name, "error", err)
	}
	u.cfg.Log.Info("an order was refused", "spotnode", m.order.name, "market", m.order.market, "bid", m.order.bid,
		"floor", no.Floor, "answer", no.Text)
	if no.Market {
		u.sink.Meet(backend.Event{Kind: backend.MetRefusal, Pool: m.order.pool, Market: m.order.market, At: now})
	}
}
