package report

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/sim"
)

const day = 24 * time.Hour

// cases returns windows of scenarios.
func cases(windows int, names ...string) []eval.Case {
	var out []eval.Case
	for _, n := range names {
		for w := range windows {
			out = append(out, eval.Case{Scenario: n, Window: w, Bound: evaltest.Scenario(n, w)})
		}
	}
	return out
}

// spotOf is how much each made-up policy has on spot.
var spotOf = map[string]float64{"spot": 1, "static:share=0.3": 0.3, "static:share=0.7": 0.7, "spotvortex": 0.2,
	"portfolio": 0.9, "worse": -0.3}

// A fake makes up results, sampled every hour: the more spot the cheaper, and
// the more reclaims.
type fake struct {
	fail func(eval.Job) bool

	// samples is how many parts the day is sampled in; 0 takes no samples.
	samples int

	// barred is for how long the policy portfolio keeps its pool on demand for its loss budget.
	barred time.Duration
}

func (f fake) run(_ context.Context, j eval.Job) (*sim.Result, error) {
	if f.fail != nil && f.fail(j) {
		return nil, errors.New("the cloud fell down")
	}
	share := spotOf[j.Policy]
	luck := chance.New(j.Seed, "fake", j.Scenario)
	r := &sim.Result{
		Scenario: j.Scenario, Policy: j.Policy, Seed: j.Seed, Window: billing.Span{From: j.Bound.Start, To: j.Bound.Start.Add(j.Bound.Duration)},
		Availability: 0.999, PodDays: 4, NodeHours: 48, Weather: [32]byte{byte(j.Seed), byte(j.Window)},
	}
	r.Bill = policy.Money(4_800_000 * (1 - 0.6*share + 0.02*luck.At1(1).Float()))
	r.SpotBill = policy.Money(float64(r.Bill) * max(0, share))
	r.OnDemandBill = r.Bill - r.SpotBill
	if n := int64(share * 3 * luck.At1(2).Float()); n > 0 {
		r.Outages = evaltest.Outages(j.Bound, n)
	}
	r.OutageCost, r.SpotShare = policy.Money(r.OutageMinutes)*20_000, max(0, share)
	r.Workloads = []sim.WorkloadResult{{Name: "default/web", Kind: policy.KindDeployment, PodValue: 50_000, Outages: r.Outages,
		OutageCost: r.OutageCost, Availability: 0.999, SpotShare: r.SpotShare}}
	for i := 1; f.samples > 0 && i <= f.samples; i++ {
		part := float64(i) / float64(f.samples)
		r.Samples = append(r.Samples, sim.Sample{
			At: j.Bound.Start.Add(time.Duration(part * float64(j.Bound.Duration))), Bill: policy.Money(part * float64(r.Bill)),
			Nodes: 2, Size: 4000, SpotSize: int64(4000 * r.SpotShare * luck.At2(3, uint64(i)).Float()),
		})
	}
	for i := range uint64(10 * max(0, share)) {
		r.Taken = append(r.Taken, sim.Taken{At: j.Bound.Start.Add(time.Duration(luck.At2(4, i).Float() * float64(day))), Market: 1})
	}
	r.Reclaims = int64(len(r.Taken))
	if j.Policy == "portfolio" {
		r.SpotBarred = f.barred
	}
	return r, nil
}

// shown is the comparison that pages are shown with.
func shown(names ...string) eval.Config {
	c := eval.DefaultConfig()
	c.Baseline = "spotvortex"
	c.Policies = []string{eval.OnDemand, "spotvortex", "spot", "static:share=0.3", "static:share=0.7", "portfolio"}
	c.Cases = cases(2, names...)
	c.Seeds = eval.DefaultSeeds(5)
	c.Gates = []eval.Gate{
		{Metric: "net_profit_improvement_pct", Statistic: eval.Median, Op: ">=", Value: 2},
		{Metric: "outage_delta", Statistic: eval.Max, Op: "<=", Value: 0},
	}
	c.Version, c.Invocation = "v0.1.0", "spotter eval web-week --windows 2 --seeds 5"
	return c
}

func compared(t *testing.T, c eval.Config, f fake) *eval.Report {
	t.Helper()
	r, err := eval.Run(context.Background(), c, f.run)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func written(t *testing.T, r *eval.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, r, Options{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
