package whatif

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/test/e2e/bill"
)

// figures are what a stack came to over a window, by its audit log.
type figures struct {
	// NodeHours are from the launch of nodes to their end, ByType those of each instance
	// type, and Dollars what they cost.
	NodeHours float64            `json:"nodeHours"`
	ByType    map[string]float64 `json:"byType"`
	Dollars   float64            `json:"dollars"`

	// Evictions are pods that were evicted, and Launched nodes that were bought.
	Evictions int `json:"evictions"`
	Launched  int `json:"launched"`
}

// measure reads the audit log of a stack.
func measure(t testing.TB, path string, m *market, from, to time.Time) figures {
	t.Helper()
	open := func() *os.File {
		log, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { log.Close() })
		return log
	}
	lives, err := bill.Lives(open())
	if err != nil {
		t.Fatal(err)
	}
	f := figures{ByType: map[string]float64{}}
	total := bill.Amount(0)
	for _, l := range lives {
		paid, _, err := m.prices.Cost(l, from.UnixMilli(), to.UnixMilli())
		if err != nil {
			t.Fatal(err)
		}
		if paid == 0 {
			continue
		}
		end := to.UnixMilli()
		if l.Ended != 0 {
			end = min(end, l.Ended)
		}
		hours := time.Duration(end-max(l.ClaimCreated, from.UnixMilli())) * time.Millisecond
		total += paid
		f.NodeHours += hours.Hours()
		f.ByType[l.Type] += hours.Hours()
		if l.ClaimCreated >= from.UnixMilli() {
			f.Launched++
		}
	}
	f.Dollars = total.DollarsAt(1)
	f.Evictions = evictions(t, open(), from, to)
	return f
}

// evictions counts the evictions of an audit log that were let happen.
func evictions(t testing.TB, log io.Reader, from, to time.Time) (n int) {
	t.Helper()
	for r := bufio.NewReaderSize(log, 1<<20); ; {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
		var e struct {
			Verb           string
			StageTimestamp time.Time
			ObjectRef      struct{ Resource, Subresource string }
			ResponseStatus struct{ Code int }
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if e.Verb == "create" && e.ObjectRef.Resource == "pods" && e.ObjectRef.Subresource == "eviction" && e.ResponseStatus.Code/100 == 2 &&
			!e.StageTimestamp.Before(from) && e.StageTimestamp.Before(to) {
			n++
		}
	}
}
