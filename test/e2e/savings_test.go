package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
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
func (w *world) metric(t *testing.T, name string) float64 {
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

// The annotation that says which pool a memory is of, and the key that it lies under.
const (
	memoryPool = "spotter.dev/pool"
	memoryKey  = "memory"
)

// remembered returns the accounts by pool.
func (w *world) remembered(t *testing.T) map[string]account {
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
func (w *world) readings(t *testing.T) []int64 {
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

// lives returns all nodes of Karpenter that ever were.
func (w *world) lives(t *testing.T) []*bill.Life {
	t.Helper()
	log, err := os.Open(filepath.Join(w.env.Dir, "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	lives, err := bill.Lives(log)
	if err != nil {
		t.Fatal(err)
	}
	return lives
}

// A ledger is what a pool costs by the audit log, in what was paid and what would have
// been on demand.
type ledger struct {
	bill [2]bill.Amount

	// rounding is what Spotter rounds: once a node and reading, to the millionth of a
	// dollar.
	rounding [2]bill.Amount

	// unseen bounds what passes unseen: a reading tells that a node has come or gone
	// since the one before, and not when.
	unseen [2]bill.Amount

	nodes int
}

// tally adds up what the nodes of a pool cost until an account was read.
func (w *world) tally(t *testing.T, pool string, a account, lives []*bill.Life, readings []int64) ledger {
	t.Helper()
	var sum ledger
	prices := w.market.prices
	add := func(to *[2]bill.Amount, paid, onDemand bill.Amount, err error) {
		if err != nil {
			t.Fatal(err)
		}
		to[0], to[1] = to[0]+paid, to[1]+onDemand
	}
	for _, l := range lives {
		if !l.Pool(pool) || l.Sold == 0 || l.Made >= a.At {
			continue
		}
		sum.nodes++
		paid, onDemand, err := prices.Cost(l, a.Since, a.At)
		add(&sum.bill, paid, onDemand, err)
		for i, r := range readings[1:] {
			if r > a.At || l.Sold > r || l.Ended != 0 && l.Ended <= r {
				continue
			}
			paid, onDemand, err := prices.Cost(l, max(a.Since, readings[i]), r)
			add(&sum.rounding, paid.Rounded()-paid, onDemand.Rounded()-onDemand, err)
		}
		paid, onDemand, err = prices.Charge(l, l.Made, next(readings, l.Sold))
		add(&sum.unseen, paid, onDemand, err)
		if l.Ended != 0 {
			paid, onDemand, err = prices.Charge(l, last(readings, l.Ended), next(readings, l.Ended))
			add(&sum.unseen, paid, onDemand, err)
		}
	}
	return sum
}

// last returns the last reading before an instant, and next the second one after it:
// what the API server has told may not have been heard at the first.
func last(readings []int64, at int64) int64 {
	i, _ := slices.BinarySearch(readings, at)
	return readings[max(0, i-1)]
}

func next(readings []int64, at int64) int64 {
	i, _ := slices.BinarySearch(readings, at)
	return readings[min(len(readings)-1, i+1)]
}

// billed holds what Spotter reports to have paid and to have saved against the bill: it
// is the same to the cent but for what it rounds and what passes between two readings.
func (w *world) billed(t *testing.T) {
	t.Helper()
	lives, readings, k := w.lives(t), w.readings(t), w.market.k
	accounts := w.remembered(t)
	for _, pool := range []string{shop, batch} {
		a, there := accounts[pool]
		if !there || a.Total.Paid <= 0 || len(readings) < 2 {
			t.Errorf("the account of %s: %+v", pool, a)
			continue
		}
		l := w.tally(t, pool, a, lives, readings)
		reported := [2]bill.Amount{bill.Micros(a.Total.Paid), bill.Micros(a.Total.OnDemand)}
		t.Logf("%s: %d nodes, %d readings: saved $%.4f by the bill, $%.4f as reported, without %d ms of nodes that had no market yet", pool, l.nodes, len(readings),
			(l.bill[1] - l.bill[0]).Dollars(k), (reported[1] - reported[0]).Dollars(k), a.Unpriced)
		for i, what := range []string{"paid", "on demand"} {
			off := (reported[i] - l.bill[i] - l.rounding[i]).Dollars(k)
			t.Logf("%s: %s $%.4f by the bill, $%.4f as reported, of which $%.4f is rounding; $%.4f at most is not seen", pool, what,
				l.bill[i].Dollars(k), reported[i].Dollars(k), l.rounding[i].Dollars(k), l.unseen[i].Dollars(k))
			if max(off, -off) > l.unseen[i].Dollars(k)+0.005 {
				t.Errorf("%s: what is reported as %s is off by $%.4f", pool, what, off)
			}
		}
		w.still(t, pool, lives, readings)
	}
}

// still holds what Spotter counted while no node of a pool came or went, which is to be
// what the bill says, to the cent.
func (w *world) still(t *testing.T, pool string, lives []*bill.Life, readings []int64) {
	t.Helper()
	k, series := w.market.k, w.accounts(t, pool)
	var counted, billed, rounded [2]bill.Amount
	var span int64
	for i := 1; i < len(series); i++ {
		a, b := series[i-1], series[i]
		from, to := last(readings, last(readings, a.At)), b.At
		if slices.ContainsFunc(lives, func(l *bill.Life) bool {
			within := func(at int64) bool { return at != 0 && at > from && at <= to }
			return l.Pool(pool) && (within(l.Made) || within(l.Sold) || within(l.Ended))
		}) {
			continue
		}
		span += b.At - a.At
		counted[0] += bill.Micros(b.Total.Paid - a.Total.Paid)
		counted[1] += bill.Micros(b.Total.OnDemand - a.Total.OnDemand)
		before, after := w.tally(t, pool, account{Since: a.Since, At: a.At}, lives, readings), w.tally(t, pool, account{Since: a.Since, At: b.At}, lives, readings)
		for j := range billed {
			billed[j] += after.bill[j] - before.bill[j]
			rounded[j] += after.rounding[j] - before.rounding[j]
		}
	}
	hours := float64(span*k) / 3.6e6
	t.Logf("%s: in %.1f hours in which no node came or went: $%.4f paid by the bill, $%.4f as reported, of which $%.4f is rounding", pool, hours,
		billed[0].Dollars(k), counted[0].Dollars(k), rounded[0].Dollars(k))
	for j, what := range []string{"paid", "on demand"} {
		if off := (counted[j] - billed[j] - rounded[j]).Dollars(k); max(off, -off) > 0.005 {
			t.Errorf("%s: while no node came or went what is reported as %s is off by $%.4f", pool, what, off)
		}
	}
	if hours < 1 {
		t.Errorf("%s: only in %.1f hours no node came or went", pool, hours)
	}
}

// accounts returns what Spotter remembered of a pool each time that it wrote it down.
func (w *world) accounts(t *testing.T, pool string) []account {
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
