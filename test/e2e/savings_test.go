package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/test/e2e/bill"
)

// metric returns what the controller serves under a name with labels, 0 where it has
// nothing to serve yet.
func (w *fixture) metric(t *testing.T, name string) float64 {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.lead.metrics+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Logf("reading metrics: %v", err)
		return 0
	}
	defer a.Body.Close()
	for s := bufio.NewScanner(a.Body); s.Scan(); {
		if value, ok := strings.CutPrefix(s.Text(), name+" "); ok {
			x, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatalf("metric %s: %v", name, err)
			}
			return x
		}
	}
	return 0
}

// An account is what Spotter remembers of what a pool cost, as it shows it in
// spotter_pool_paid_dollars and spotter_pool_on_demand_dollars: millionths of dollars,
// and milliseconds since 1970.
type account struct {
	Since, At, Unpriced int64
	Total               struct{ Paid, OnDemand int64 }
}

// The annotation that names the pool of a memory, and the key under which the memory is stored.
const (
	memoryPool = "spotter.dev/pool"
	memoryKey  = "memory"
)

// remembered returns the accounts by pool.
func (w *fixture) remembered(t *testing.T) map[string]account {
	t.Helper()
	var all corev1.ConfigMapList
	if err := w.client.List(t.Context(), &all, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	accounts := map[string]account{}
	for i := range all.Items {
		x := &all.Items[i]
		if x.Annotations[memoryPool] == "" {
			continue
		}
		var book struct{ Savings account }
		unpack(t, x.BinaryData[memoryKey], &book)
		accounts[x.Annotations[memoryPool]] = book.Savings
	}
	return accounts
}

// unpack reads compressed JSON.
func unpack(t *testing.T, data []byte, v any) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(z).Decode(v); err != nil {
		t.Fatal(err)
	}
}

// readings returns when Spotter looked at its meter: once a step.
func (w *fixture) readings(t *testing.T) []int64 {
	t.Helper()
	var all []int64
	for _, e := range w.env.Audit(t, 0, nil) {
		if e.Resource != "configmaps" || e.Name != "spotter-memory-head" || !e.Writes() || e.Code/100 != 2 {
			continue
		}
		var m corev1.ConfigMap
		if err := json.Unmarshal(e.Response, &m); err != nil {
			t.Fatal(err)
		}
		var head struct{ Metered int64 }
		unpack(t, m.BinaryData[memoryKey], &head)
		if head.Metered != 0 {
			all = append(all, head.Metered)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ends returns when nodes ended as the controller says, by NodeClaim or SpotNode.
func (w *fixture) ends(t *testing.T) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	for _, p := range w.leads {
		for line := range strings.Lines(p.Said()) {
			if !strings.Contains(line, `"node ended"`) {
				continue
			}
			var said struct {
				Node  string
				Ended int64
			}
			if err := json.Unmarshal([]byte(line), &said); err != nil {
				t.Fatalf("%v in %s", err, line)
			}
			all[said.Node] = said.Ended
		}
	}
	return all
}

// A ledger is what a pool costs, in what was paid and what would have been on demand.
type ledger struct {
	// bill is by the audit log and by the log of the auction, and heard what it is by when
	// Spotter heard of the end of each node, and of the prices of the auction.
	bill, heard [2]bill.Amount

	// blind bounds what Spotter may not have seen: prices that changed twice between two
	// of its readings, and all that passed while it was being started again.
	blind [2]bill.Amount

	nodes, unsold int
}

// billed holds what Spotter reports to have paid and what it would have been on demand
// against the bill, over the whole day: they are equal to half a cent once it is counted
// how late Spotter hears of the end of nodes, which is not to be later than a watch tells.
func (w *fixture) billed(t *testing.T) {
	t.Helper()
	k, accounts := w.market.k, w.remembered(t)
	for _, pool := range []string{shop, batch, tasks} {
		a, there := accounts[pool]
		if !there || a.Total.Paid <= 0 {
			t.Errorf("the account of %s: %+v", pool, a)
			continue
		}
		if most, what := w.auction.unread(a.Since, a.At); pool == tasks && most > unreadMax && len(w.revived) == 0 {
			t.Errorf("%s: for %v nobody asked for %s", pool, most, what)
		}
		l := w.tally(t, pool, a)
		if l.unsold == 0 && a.Unpriced != 0 && len(w.revived) == 0 {
			t.Errorf("%s: %d ms are said to have no price, and all nodes have been sold", pool, a.Unpriced)
		}
		reported := [2]bill.Amount{bill.Micros(a.Total.Paid), bill.Micros(a.Total.OnDemand)}
		t.Logf("%s: %d nodes: saved $%.4f by the bill, $%.4f as reported", pool, l.nodes,
			(l.bill[1] - l.bill[0]).DollarsAt(k), (reported[1] - reported[0]).DollarsAt(k))
		for i, what := range []string{"paid", "on demand"} {
			off := (reported[i] - l.heard[i]).DollarsAt(k)
			t.Logf("%s: %s $%.4f by the bill, $%.4f as reported: off by $%.4f, of which $%.4f is for how late it is heard of; $%.4f at most is not seen", pool, what,
				l.bill[i].DollarsAt(k), reported[i].DollarsAt(k), (reported[i] - l.bill[i]).DollarsAt(k), (l.heard[i] - l.bill[i]).DollarsAt(k), l.blind[i].DollarsAt(k))
			if max(off, -off) > l.blind[i].DollarsAt(k)+0.005 {
				t.Errorf("%s: what is reported as %s is off by $%.4f", pool, what, off)
			}
		}
	}
}

// unreadMax is how long Spotter may not read the prices of the auction: the interval
// between two readings plus the delay of a busy machine.
const unreadMax = pricesEvery + 15*time.Second

// A tariff holds the prices of the markets of a pool: as they were, as they were published
// to Spotter, and the published ones as Spotter saw them, which looks once a step.
type tariff struct{ truth, told, seen bill.Prices }

// tariff returns the prices of the markets of a pool.
func (w *fixture) tariff(t *testing.T, pool string) tariff {
	t.Helper()
	if pool == tasks {
		told := w.auction.told(t)
		return tariff{w.auction.prices(t), told, w.seen(t, told)}
	}
	return tariff{w.market.prices, w.market.prices, w.seen(t, w.market.prices)}
}

// tally adds up what the nodes of a pool cost until its account was read.
func (w *fixture) tally(t *testing.T, pool string, a account) ledger {
	t.Helper()
	var sum ledger
	begins, ends, prices, gaps := w.orderedAt(t), w.ends(t), w.tariff(t, pool), w.gaps(t, pool)
	lives := w.livesOf(t, pool)
	latest := w.latest(append(w.lives(t), lives...))
	add := func(to *[2]bill.Amount, prices bill.Prices, l *bill.Life, from, until int64) {
		paid, onDemand, err := prices.Cost(l, from, until)
		if err != nil {
			t.Fatal(err)
		}
		to[0], to[1] = to[0]+paid, to[1]+onDemand
	}
	for _, l := range lives {
		switch {
		case l.ClaimCreated >= a.At:
			continue
		case l.Launched == 0:
			sum.unsold++
			continue
		}
		sum.nodes++
		add(&sum.bill, prices.truth, l, a.Since, a.At)
		heard := *l
		for _, g := range gaps {
			if l.ClaimCreated < g.to && (l.Ended == 0 || l.Ended > g.from) {
				t.Logf("%s: what %s cost is not known for %d ms, in which the controller was being started again", pool, l.Claim, g.to-g.from)
				add(&sum.blind, prices.truth, l, max(a.Since, g.from), min(a.At, g.to))
			}
		}
		if l.Ended != 0 && l.Ended < a.At && !slices.ContainsFunc(gaps, func(g gap) bool { return l.Ended >= g.from && l.Ended <= g.to }) {
			heard.Ended = ends[l.Claim]
			if late := time.Duration(heard.Ended-l.Ended) * time.Millisecond; max(late, -late) > latest {
				t.Errorf("%s: of the end of %s Spotter heard %v late, and others %v at most (0 is never: %d)", pool, l.Claim, late, latest, heard.Ended)
			}
		}
		if at := begins[l.Claim]; at != 0 {
			heard.ClaimCreated = at
			if early := time.Duration(l.ClaimCreated-at) * time.Millisecond; early < 0 || early > latest {
				t.Errorf("%s: %s was ordered %v before it was won, and others are heard of %v late at most", pool, l.Claim, early, latest)
			}
		}
		add(&sum.heard, prices.told, &heard, a.Since, a.At)
		var all, known [2]bill.Amount
		add(&all, prices.told, &heard, a.Since, a.At)
		add(&known, prices.seen, &heard, a.Since, a.At)
		for i, x := range known {
			sum.blind[i] += max(all[i]-x, x-all[i])
		}
	}
	return sum
}

// latest returns how late Spotter may hear that a node has ended: a good deal later than
// this test, which has a watch of its own.
func (w *fixture) latest(lives []*bill.Life) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	slowest := time.Duration(0)
	for _, l := range lives {
		own := w.gone[l.Claim]
		if node, there := w.gone[l.Node]; there && (own.IsZero() || node.Before(own)) {
			own = node
		}
		if l.Ended != 0 && !own.IsZero() {
			slowest = max(slowest, own.Sub(time.UnixMilli(l.Ended)))
		}
	}
	return 2*time.Second + 5*slowest
}

// seen returns the prices that Spotter could see: of those that came between two of its
// readings the last.
func (w *fixture) seen(t *testing.T, told bill.Prices) bill.Prices {
	t.Helper()
	readings := w.readings(t)
	all := bill.Prices{}
	for market, prices := range told {
		for i, p := range prices {
			read, _ := slices.BinarySearch(readings, p.From)
			if i+1 < len(prices) {
				if next, _ := slices.BinarySearch(readings, prices[i+1].From); next == read && read > 0 {
					continue
				}
			}
			all[market] = append(all[market], p)
		}
	}
	return all
}

// A gap is a stretch of time of which what Spotter had counted was lost.
type gap struct{ from, to int64 }

// gaps returns those of a pool: from when its account was last written down before the
// controller ended by itself to its first reading after.
func (w *fixture) gaps(t *testing.T, pool string) []gap {
	t.Helper()
	var all []gap
	readings := w.readings(t)
	for _, at := range w.revived {
		g := gap{to: at.UnixMilli()}
		for _, a := range w.accounts(t, pool) {
			if a.At < g.to {
				g.from = max(g.from, a.At)
			}
		}
		if i, _ := slices.BinarySearch(readings, g.to); i < len(readings) {
			g.to = readings[i]
		}
		all = append(all, g)
	}
	return all
}

// accounts returns what Spotter remembered of a pool each time that it wrote it down.
func (w *fixture) accounts(t *testing.T, pool string) []account {
	t.Helper()
	var all []account
	for _, e := range w.env.Audit(t, 0, nil) {
		if e.Resource != "configmaps" || !e.Writes() || e.Code/100 != 2 || !strings.HasPrefix(e.Name, "spotter-memory-") {
			continue
		}
		var m corev1.ConfigMap
		if err := json.Unmarshal(e.Response, &m); err != nil {
			t.Fatal(err)
		}
		if m.Annotations[memoryPool] != pool {
			continue
		}
		var book struct{ Savings account }
		unpack(t, m.BinaryData[memoryKey], &book)
		all = append(all, book.Savings)
	}
	return all
}
