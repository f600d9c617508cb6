package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/test/e2e/bill"
)

// lives returns all nodes of Karpenter that ever were.
func (w *fixture) lives(t *testing.T) []*bill.Life {
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

// livesOf returns all nodes of a pool that ever were: as the audit log has them, and as
// the auction has those that were bid for.
func (w *fixture) livesOf(t *testing.T, pool string) []*bill.Life {
	t.Helper()
	if pool != tasks {
		return slices.DeleteFunc(w.lives(t), func(l *bill.Life) bool { return !l.OfPool(pool) })
	}
	var all []*bill.Life
	for _, l := range w.auction.server.Lives() {
		if l.Labels[poolLabel] != pool {
			continue
		}
		if l.OnDemand {
			t.Errorf("machine %s of %s was bought on demand, which is not sold", l.Node, l.Class)
		}
		all = append(all, &bill.Life{
			Claim: l.Labels[orderLabel], Node: l.Node, Type: l.Class, Zone: auctionRegion, Capacity: bill.Spot, Bid: int64(l.Bid),
			ClaimCreated: int64(l.Won), Launched: int64(l.Won), Ended: int64(l.Gone),
		})
	}
	return all
}

// orderedAt is the annotation of a SpotNode that says when Spotter ordered it.
const orderedAt = "spotter.dev/ordered-at"

// orderedAt returns when Spotter ordered the machines that it bid for, by the audit log.
func (w *fixture) orderedAt(t *testing.T) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	for _, e := range w.env.Audit(t, 0, nil) {
		if e.Resource != "spotnodes" || e.Verb != "create" || e.Code/100 != 2 {
			continue
		}
		var n struct {
			Metadata struct {
				Name        string
				Annotations map[string]string
			}
		}
		if err := json.Unmarshal(e.Response, &n); err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, n.Metadata.Annotations[orderedAt])
		if err != nil {
			t.Fatalf("SpotNode %s: %v", n.Metadata.Name, err)
		}
		all[n.Metadata.Name] = at.UnixMilli()
	}
	return all
}
