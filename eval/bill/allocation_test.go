package bill

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/sim"
)

const anHour = policy.Time(3_600_000)

// plain is two hours of a node of 4 cores and 16 GiB at $1 an hour, of which a pod of a
// shop has half the cores and a quarter of the memory for an hour, and one without a
// controller a core for the half of the other.
func plain() *Usage {
	day := policy.TimeOf(time.Date(2026, 1, 31, 22, 0, 0, 0, time.UTC))
	return &Usage{
		Window:  billing.Span{From: day, To: day + 3*anHour},
		Types:   []policy.InstanceType{{Name: "m5.xlarge", VCPU: 4, Capacity: policy.Resources{CPU: 4000, Memory: 16 << 30}}},
		Zones:   []string{"a"},
		Markets: []policy.Market{{Name: "aws/r/a/m5.xlarge/spot", Provider: "aws", Region: "r", Capacity: policy.Spot, OnDemand: 2_000_000}},
		Charges: []*billing.Curve{curve([]policy.Time{1}, []policy.Money{1_000_000})},
		Nodes:   []Node{{Name: "n1", Pool: "general", From: day, To: day + 2*anHour, Billed: 2_000_000}},
		Pods: []Pod{
			{Name: "shop/web-1", Owner: 0, From: day - anHour, To: day + anHour},
			{Name: "ops/bare", Owner: 1, From: day + 3*anHour/2, To: day + 3*anHour},
		},
		Owners: []Owner{
			{Namespace: "shop", Kind: "deployment", Name: "web", Labels: []policy.Label{{Key: "app.io/team", Value: "blue"}},
				Requests: policy.Resources{CPU: 2000, Memory: 4 << 30}},
			{Namespace: "ops", Name: "bare", Requests: policy.Resources{CPU: 1000}},
		},
	}
}

// TestAllocateByHand: 4 cores × 0.031611 and 16 GiB × 0.004237 bear a dollar as 0.650984 to
// 0.349016. Half of the one and a quarter of the other for an hour are $0.412746; a core
// for half an hour $0.081373.
func TestAllocateByHand(t *testing.T) {
	u := plain()
	cores := 4 * 0.031611 / (4*0.031611 + 16*0.004237)
	shop, ops := cores/2+(1-cores)/4, cores/8
	for by, names := range map[string][2]string{
		"namespace": {"shop", "ops"}, "controller": {"deployment:web", Unallocated}, "label:app.io/team": {"blue",
			Unallocated}, "label:app_io_team": {"blue", Unallocated},
	} {
		sets, err := u.Allocate(by, 0)
		if err != nil || len(sets) != 1 || len(sets[0]) != 3 {
			t.Fatalf("%s: %+v, %v", by, sets, err)
		}
		a, b, idle := sets[0][names[0]], sets[0][names[1]], sets[0][Idle]
		for _, x := range [][2]float64{
			{a.TotalCost, shop}, {b.TotalCost, ops}, {idle.TotalCost, 2 - shop - ops}, {a.CPUCost, cores / 2}, {a.RAMCost, (1 - cores) / 4},
			{a.Minutes, 60}, {b.Minutes, 30}, {a.CPUCoreHours, 2}, {b.CPUCoreHours, 0.5}, {b.CPUCores, 1}, {a.RAMByteHours,
				4 << 30}, {idle.CPUCoreHours, 5.5}, {idle.RAMByteHours, 28 << 30},
			{a.CPUCoreRequestAverage, 2}, {idle.CPUCoreRequestAverage, 0},
		} {
			if math.Abs(x[0]-x[1]) > 1.5e-6 {
				t.Errorf("%s: %v, want %v:\n%+v\n%+v\n%+v", by, x[0], x[1], a, b, idle)
			}
		}
		if a.Name != names[0] || a.Start != "2026-01-31T22:00:00Z" || a.End != "2026-01-31T23:00:00Z" || a.Window.End != "2026-02-01T01:00:00Z" {
			t.Errorf("%s: %+v", by, a)
		}
	}
	for _, by := range []string{"node", "pool"} {
		sets, err := u.Allocate(by, time.Hour)
		name := map[string]string{"node": "n1", "pool": "general"}[by]
		if err != nil || len(sets) != 2 || math.Abs(sets[1][name].TotalCost-ops) > 1e-6 || sets[1][name].Window.Start != "2026-01-31T23:00:00Z" {
			t.Errorf("%s: %+v, %v", by, sets, err)
		}
	}
	for _, by := range []string{"", "label:", "cluster"} {
		if _, err := u.Allocate(by, 0); err == nil || CheckAggregate(by) == nil {
			t.Errorf("%q is taken", by)
		}
	}
}

// TestAllocateAddsUp: whatever is aggregated by, costs add up to the bill to the
// micro-dollar, what is idle included, and no name has more than all nodes.
func TestAllocateAddsUp(t *testing.T) {
	eachCase(t, func(t *testing.T, u *Usage, r *sim.Result) {
		for _, by := range []string{"namespace", "controller", "node", "pool", "label:app"} {
			for _, every := range []time.Duration{0, 24 * time.Hour} {
				sets, err := u.Allocate(by, every)
				if err != nil {
					t.Fatal(err)
				}
				bill, pods := policy.Money(0), 0
				for _, set := range sets {
					for name, a := range set {
						bill += policy.Dollars(a.TotalCost)
						if policy.Dollars(a.CPUCost+a.RAMCost+a.GPUCost) != policy.Dollars(a.TotalCost) {
							t.Errorf("%s %s: %+v", by, name, a)
						}
						if name != Idle && a.TotalCost > 0 {
							pods++
						}
						if a.CPUCost < -1e-5 || a.RAMCost < -1e-5 || a.GPUCost < -1e-5 || a.CPUCoreHours < 0 {
							t.Errorf("%s %s: %+v", by, name, a)
						}
					}
				}
				if bill != r.Bill || pods == 0 {
					t.Errorf("%s every %v: %v of %d names, the run was billed %v", by, every, bill, pods, r.Bill)
				}
			}
		}
	})
}

// TestGPUCost: a GPU bears the cost of a node by its default price too.
func TestGPUCost(t *testing.T) {
	got := amountOf(policy.Resources{CPU: 8000, Memory: 61 << 30, GPU: 1}).costs(3.06)
	want := 3.06 * 0.95 / (8*0.031611 + 61*0.004237 + 0.95)
	if math.Abs(got[2]-want) > 1e-9 || math.Abs(got[0]+got[1]+got[2]-3.06) > 1e-9 {
		t.Errorf("%v, want %v for the GPU", got, want)
	}
}

// TestOpenCost has the form of an answer of /allocation, and is the same every time.
func TestOpenCost(t *testing.T) {
	write := func() string {
		sets, err := plain().Allocate("namespace", 0)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := WriteOpenCost(&out, sets); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	text := write()
	var answer struct {
		Code int
		Data []map[string]struct {
			Name       string
			Properties map[string]any
			Window     struct{ Start, End time.Time }
			Minutes    float64
		}
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Code != 200 || len(answer.Data) != 1 || text != write() {
		t.Fatalf("%v: %s", err, text)
	}
	if shop := answer.Data[0]["shop"]; shop.Name != "shop" || !reflect.DeepEqual(shop.Properties,
		map[string]any{"namespace": "shop"}) || shop.Window.End.Sub(shop.Window.Start) != 3*time.Hour {
		t.Errorf("%+v", shop)
	}
}
