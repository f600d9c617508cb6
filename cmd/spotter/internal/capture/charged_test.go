package capture

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/history"
	"github.com/spotter-dev/spotter/policy"
)

// TestBilled takes the dollars of nodes alone, and compares none where too many of them are not
// in the bill.
func TestBilled(t *testing.T) {
	begin := policy.TimeOf(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
	nodes := []history.Node{nodeOf("ip-1", "i-0a", "m5.large", "spot", begin, 0, 10),
		nodeOf("i-0b.ec2.internal", "", "m5.large", "on-demand", begin, 0, 9), nodeOf("other", "i-0c", "no.type", "spot", begin, 0, 10)}
	const head = "line_item_resource_id,line_item_usage_start_date,line_item_usage_end_date,line_item_unblended_cost,line_item_line_item_type,line_item_usage_type,line_item_usage_amount,savings_plan_savings_plan_effective_cost\n"
	row := func(id, kind string) string {
		return id + ",2026-01-02T00:00:00Z,2026-01-02T01:00:00Z,0.5," + kind + ",BoxUsage:m5.large,1,0.25\n"
	}
	for name, c := range map[string]struct {
		text     string
		dollars  float64
		compared bool
		said     string
	}{
		"all": {head + row("i-0a", "Usage") + row("i-0b", "SavingsPlanCoveredUsage") + row("i-0c", "Usage") +
			row("i-0x",
				"Usage"), 0.75, true, "Dollars: $0.75 by the AWS Cost and Usage Report, which is of 100.0% of the node-hours; 2 other machines for $1.00 are not known nodes of this cluster; $0.25 of it are covered by commitments, which the simulation does not have; karpenter_nodepools_cost_total adds up to $7.00."},
		"partly": {head + row("i-0a", "Usage"), 0.5, false,
			"which is of 52.6% of the node-hours; karpenter_nodepools_cost_total adds up to $7.00; below 90% they are not compared."},
		"names": {"ResourceId,ChargePeriodStart,ChargePeriodEnd,EffectiveCost,ChargeCategory,ServiceCategory,ConsumedQuantity,ConsumedUnit\nip-1,2026-01-02T00:00:00Z,2026-01-02T01:00:00Z,0.5,Usage,Compute,1,Hours\ni-0b,2026-01-02T00:00:00Z,2026-01-02T01:00:00Z,0.125,Usage,Compute,1,Hours\n", 0.625, true, "$0.62 by a FOCUS export, which is of 100.0%"},
		"none": {head + row("i-0x", "Usage"), 7, true,
			"the AWS Cost and Usage Report has nothing of the nodes from 2026-01-02T00:00:00Z to 2026-01-02T10:00:00Z; 1 other machine for"},
	} {
		path := filepath.Join(t.TempDir(), "bill.csv")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		h := &history.History{From: begin, To: begin.Add(10 * time.Hour), Nodes: nodes, Dollars: 7, HasDollars: true}
		err := (&sinceFlags{bills: []string{path}}).billed(t.Context(), h)
		said := h.Bill
		if err != nil {
			said = err.Error()
		}
		if math.Abs(h.Dollars-c.dollars) > 1e-9 || h.HasDollars != c.compared || !strings.Contains(said, c.said) {
			t.Errorf("%s: %v, %v, %q, want %v, %v, %q", name, h.Dollars, h.HasDollars, said, c.dollars, c.compared, c.said)
		}
	}
}

// TestBilledByOpenCost asks the API of OpenCost for the span, as documented for /allocation.
func TestBilledByOpenCost(t *testing.T) {
	begin := policy.TimeOf(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
	code, asked := http.StatusOK, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path + " " + r.FormValue("window") + " " + r.FormValue("includeIdle") + " " + r.FormValue("cluster")
		w.WriteHeader(code)
		fmt.Fprint(w,
			`{"code":200,"data":[{"c":{"name":"c","window":{"start":"2026-01-02T00:00:00Z","end":"2026-01-02T10:00:00Z"},"cpuCost":1,"ramCost":0.5,"gpuCost":0,"networkCost":9,"totalCost":10.5}}]}`)
	}))
	defer server.Close()
	h := &history.History{From: begin, To: begin.Add(10 * time.Hour)}
	f := &sinceFlags{bills: []string{server.URL + "/allocation?cluster=a"}}
	if err := f.billed(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if asked != "/allocation 2026-01-02T00:00:00Z,2026-01-02T10:00:00Z true a" || h.Dollars != 1.5 ||
		!strings.Contains(h.Bill, "it has no __idle__") {
		t.Errorf("asked %q, got %v, %q", asked, h.Dollars, h.Bill)
	}
	code = http.StatusBadGateway
	if err := f.billed(t.Context(), h); err == nil || !strings.Contains(err.Error(), "502 Bad Gateway") {
		t.Errorf("of one that is broken: %v", err)
	}
}
