package bill_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/test/e2e/bill"
)

// TestAlone: what Spotter reports is held against code that shares nothing with it.
func TestAlone(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(name, "github.com/spotter-dev/spotter/") && !strings.HasSuffix(name, "/test/e2e/bill") {
			t.Errorf("it imports %s", name)
		}
	}
}

// A log writes an audit log as the API server does.
type log struct{ strings.Builder }

// add writes the response to a request, at a time in seconds.
func (l *log) add(second float64, verb, group, resource, name string, code int, answer any) {
	text, err := json.Marshal(map[string]any{
		"verb": verb, "stageTimestamp": at(second), "objectRef": map[string]any{"apiGroup": group, "resource": resource, "name": name},
		"responseStatus": map[string]any{"code": code}, "responseObject": answer,
	})
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(l, "%s\n", text)
}

func at(second float64) time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(second * float64(time.Second))).UTC()
}

func ms(second float64) int64 { return at(second).UnixMilli() }

// claim returns a NodeClaim as in a response, created at made, in seconds.
func claim(name string, made float64, node, zone string, deleted bool, finalizers ...string) map[string]any {
	meta := map[string]any{"name": name, "creationTimestamp": at(made), "finalizers": finalizers}
	labels := map[string]string{"karpenter.sh/nodepool": "web-spot", "karpenter.sh/capacity-type": "spot"}
	if zone != "" {
		labels["node.kubernetes.io/instance-type"], labels["topology.kubernetes.io/zone"] = "m5.large", zone
	}
	meta["labels"] = labels
	if deleted {
		meta["deletionTimestamp"] = at(made)
	}
	return map[string]any{"kind": "NodeClaim", "metadata": meta, "status": map[string]any{"nodeName": node}}
}

// TestBill: one node of $0.36 an hour for 70 s, the last 35 s of them at half the price,
// costs $0.00525, and twenty times that in a scenario that runs twenty times as fast. A
// NodeClaim that is refused or never sold costs nothing; a node that is taken ends before
// its claim, and a node of 10 s is charged for a minute.
func TestBill(t *testing.T) {
	const group = "karpenter.sh"
	var l log
	l.add(0.4, "create", group, "nodeclaims", "", 201, claim("a", 0, "", "", false))
	l.add(0.5, "create", group, "nodeclaims", "refused", 403, claim("refused", 0, "", "z", false))
	l.add(0.6, "create", group, "nodeclaims", "unsold", 201, claim("unsold", 0, "", "", false))
	l.add(1, "patch", group, "nodeclaims", "a", 200, claim("a", 0, "node-a", "z", false, "f"))
	l.add(2, "delete", group, "nodeclaims", "a", 200, claim("a", 0, "node-a", "z", true, "f"))
	l.add(2, "delete", "", "nodes", "node-a", 200, map[string]any{"kind": "Node",
		"metadata": map[string]any{"deletionTimestamp": at(2), "finalizers": []string{"f"}}})
	l.add(70, "patch", "", "nodes", "node-a", 200, map[string]any{"kind": "Node", "metadata": map[string]any{"deletionTimestamp": at(2)}})
	l.add(72, "update", group, "nodeclaims", "a", 200, claim("a", 0, "node-a", "z", true))
	l.add(73, "delete", group, "nodeclaims", "unsold", 200, map[string]any{"kind": "Status", "status": "Success"})
	l.add(80, "create", group, "nodeclaims", "brief", 201, claim("brief", 80, "", "z", false))
	l.add(90, "delete", group, "nodeclaims", "brief", 200, map[string]any{"kind": "Status"})
	l.WriteString(`{"verb":"create"`) // still being written
	lives, err := bill.Lives(strings.NewReader(l.String()))
	if err != nil {
		t.Fatal(err)
	}
	if len(lives) != 3 || lives[0].Ended != ms(70) || lives[0].Launched != ms(1) || lives[1].Ended != ms(73) ||
		!lives[0].OfPool("web") || lives[0].OfPool("we") {
		t.Fatalf("read %+v and %+v", lives[0], lives[1:])
	}
	prices := bill.Prices{
		"m5.large/z/spot":      {{From: ms(-100), MicroDollars: 360_000}, {From: ms(35), MicroDollars: 180_000}, {From: ms(150), MicroDollars: 1}},
		"m5.large/z/on-demand": {{From: ms(100), MicroDollars: 720_000}},
	}
	for _, c := range []struct {
		life           int
		from, to       float64
		paid, onDemand float64
	}{{0, -5, 100, .105, .28}, {0, 34, 36, .003, .008}, {0, 71, 80, 0, 0}, {2, 0, 200, .06, .24}, {2, 0, 100, .02, .08}} {
		paid, onDemand, err := prices.Cost(lives[c.life], ms(c.from), ms(c.to))
		if err != nil || paid.DollarsAt(20) != c.paid || onDemand.DollarsAt(20) != c.onDemand {
			t.Errorf("life %d from %v to %v is %v and %v, want %v and %v (%v)", c.life, c.from, c.to, paid.DollarsAt(20),
				onDemand.DollarsAt(20), c.paid, c.onDemand, err)
		}
	}
	if paid, _, err := prices.Cost(lives[1], 0, ms(100)); paid != 0 || err != nil {
		t.Errorf("what was never sold costs %v (%v)", paid, err)
	}
	if _, _, err := (bill.Prices{}).Cost(lives[0], 0, ms(100)); err == nil {
		t.Error("a market without a price costs something")
	}
}

// TestAuction: the winner pays the market price of $0.02 and not the bid of $0.10; the
// reserve of $0.01 where the market price is $0.001; and the bid where the market price is
// $0.30 and the machine is not yet taken. Three hours cost $0.13.
func TestAuction(t *testing.T) {
	const hour = 3600
	prices := bill.Prices{
		"medium/z/spot": bill.WithReserve([]bill.Price{{From: ms(0), MicroDollars: 20_000}, {From: ms(hour), MicroDollars: 1_000},
			{From: ms(2 * hour), MicroDollars: 300_000}}, 10_000),
		"medium/z/on-demand": {{From: ms(0), MicroDollars: 90_000}},
	}
	l := &bill.Life{Type: "medium", Zone: "z", Capacity: bill.Spot, Bid: 100_000, ClaimCreated: ms(0), Launched: ms(0), Ended: ms(3 * hour)}
	paid, onDemand, err := prices.Cost(l, 0, ms(4*hour))
	if err != nil || paid.DollarsAt(1) != .13 || onDemand.DollarsAt(1) != .27 {
		t.Errorf("it costs %v, and %v on demand (%v)", paid.DollarsAt(1), onDemand.DollarsAt(1), err)
	}
}
