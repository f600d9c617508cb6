package format

import (
	"bytes"
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// An other is another build with the results of the fake runner, except that its policy spot
// costs less, by points percent of an on-demand bill of $4.50.
type other struct {
	cases  []eval.Case
	points func(*eval.OtherRun) float64
}

func (o *other) Runs(ctx context.Context, scenario string, policies []string, seeds []uint64) ([]eval.OtherRun, error) {
	var out []eval.OtherRun
	for _, k := range o.cases {
		for _, s := range seeds {
			for _, p := range policies {
				r, err := fake{}.run(ctx, eval.Job{Case: k, Policy: p, Seed: s})
				if err != nil {
					return nil, err
				}
				x := eval.OtherRun{Scenario: k.Scenario, Window: k.Window, Seed: s, Policy: p,
					Weather: hex.EncodeToString(r.Weather[:]), Hash: hex.EncodeToString(r.Hash[:]),
					Bill: r.Bill, OutageCost: r.OutageCost, OutageMinutes: r.OutageMinutes,
					SpotBill: r.SpotBill, JobCost: r.JobCost, CapacityHours: r.CapacityHours, SpotShare: r.SpotShare}
				if n := o.points(&x); n != 0 && p == "spot" {
					x.Bill -= policy.Dollars(4.5 * n / 100)
					x.SpotBill -= policy.Dollars(4.5 * n / 100)
					x.Hash = "00" + x.Hash[2:]
				}
				if k.Scenario == scenario {
					out = append(out, x)
				}
			}
		}
	}
	return out, nil
}

// setAgainst compares r with another build.
func setAgainst(t *testing.T, r *eval.Report, points func(*eval.OtherRun) float64) {
	t.Helper()
	a := eval.Against{Other: &other{r.Config.Cases, points}, Program: "./base", Version: "v0.0.9"}
	if err := r.Compare(t.Context(), a, fake{}.run); err != nil {
		t.Fatal(err)
	}
}

// TestHeadline: the headline is about the change that loses most, and what seeds do
// not decide is a warning.
func TestHeadline(t *testing.T) {
	c := shown()
	c.Cases, c.Seeds, c.Gates = cases(1, "a", "b"), eval.DefaultSeeds(10), nil
	r, err := eval.Run(t.Context(), c, fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	setAgainst(t, r, func(x *eval.OtherRun) float64 { return map[string]float64{"a": 3, "b": 1}[x.Scenario] })
	if want := "this change: net savings −$4.11/month, outages 0 min/month (spot in a, of 2 pairs of a policy and a scenario that changed)"; Headline(r.Comparison) != want {
		t.Errorf("%s, want %s", Headline(r.Comparison), want)
	}
	var out bytes.Buffer
	if err := Write(&out, r, Table, Options{Width: 200, Details: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nspot in a ", "\nspot in b ",
		"6 of 8 pairs of a policy and a scenario did the same in every run and are left out."} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, out.String())
		}
	}
	setAgainst(t, r, func(x *eval.OtherRun) float64 {
		if x.Scenario == "a" {
			return 0
		}
		return 8 * (2*chance.New(x.Seed, "luck", x.Scenario).At1(uint64(x.Window)).Float() - 1)
	})
	if all := Warnings(r); !slices.ContainsFunc(all, func(w string) bool { return strings.Contains(w, "whether spot in b lost") }) {
		t.Errorf("warnings %q", all)
	}
}

// TestCompareNeeds: of too few units it is said how many are needed.
func TestCompareNeeds(t *testing.T) {
	c := shown()
	c.Cases, c.Seeds, c.Gates = cases(1, "web-week"), eval.DefaultSeeds(2), nil
	r, err := eval.Run(t.Context(), c, fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	setAgainst(t, r, func(*eval.OtherRun) float64 { return 5 })
	var table bytes.Buffer
	if err := Write(&table, r, Table, Options{Width: 200, Details: true}); err != nil ||
		!strings.Contains(table.String(), "(need ≥ 11 seeds)") {
		t.Errorf("%v: the table does not say what is needed:\n%s", err, table.String())
	}
}
