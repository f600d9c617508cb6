package format

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios"
)

// TestManyWindows: from eight windows on the report speaks of other weeks too,
// and says so; below it says that it does not.
func TestManyWindows(t *testing.T) {
	for _, x := range []struct {
		windows    int
		over, says string
	}{
		{1, "seeds", "the result holds for this window only"},
		{7, "windows", "There are no intervals, which need ≥ 8 windows at 98.8%: the result holds for these windows only"},
		{8, "windows", "Intervals are of the median over windows"},
	} {
		c := shown()
		c.Cases = cases(x.windows, "web-week")
		r, err := eval.Run(context.Background(), c, fake{}.run)
		if err != nil {
			t.Fatal(err)
		}
		var table, js bytes.Buffer
		if err := errors.Join(Write(&table, r, Table, Options{Width: 160, Details: true}), writeJSON(&js, r)); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(table.String(), x.says) || !strings.Contains(js.String(), `"intervals_over": "`+x.over+`"`) {
			t.Errorf("%d windows: the outputs do not say that intervals are over %s", x.windows, x.over)
		}
		if perWindow := strings.Contains(table.String(), "CHANGE ON *, %"); perWindow != (x.windows == 7) {
			t.Errorf("%d windows: medians of each are printed: %v", x.windows, perWindow)
		}
	}
}

// TestNeed: where there are too few units every output says how many an interval
// needs.
func TestNeed(t *testing.T) {
	for _, x := range []struct {
		windows, seeds int
		need           string
	}{{1, 1, "need ≥ 8 seeds"}, {1, 7, "need ≥ 8 seeds"}, {1, 8, ""}, {7, 9, "need ≥ 8 windows"}, {8, 1, ""}} {
		c := shown()
		c.Cases, c.Seeds = cases(x.windows, "web-week"), eval.DefaultSeeds(x.seeds)
		c.Gates = []eval.Gate{mustGate(t, "static:bill_usd.low >= 0")}
		r, err := eval.Run(context.Background(), c, fake{}.run)
		if err != nil {
			t.Fatal(err)
		}
		s := policyReport(r, "static").Summary("net_savings_delta_pct")
		if (s.MedianInterval == nil) != (x.need != "") || NeedWords(s.Need, s.Over) != x.need {
			t.Errorf("%d windows, %d seeds: interval %v, %q", x.windows, x.seeds, s.MedianInterval, NeedWords(s.Need, s.Over))
		}
		g := r.Gates[0]
		if g.Pass != (x.need == "") || g.Estimated() != g.Pass || x.need != "" && gateReason(r, &g) != x.need+" for 98.8%" {
			t.Errorf("%d windows, %d seeds: the gate is %+v", x.windows, x.seeds, g)
		}
		for _, f := range []Format{Table, Markdown, JSON, JUnit} {
			var out bytes.Buffer
			if err := Write(&out, r, f, Options{Width: 160, Details: true}); err != nil {
				t.Fatal(err)
			}
			for _, says := range []string{x.need + " for 98.8%", x.need} {
				if strings.Contains(out.String(), says) != (x.need != "") && x.need != "" {
					t.Errorf("%d windows, %d seeds: %s does not say %q", x.windows, x.seeds, f, says)
				}
			}
			if x.need == "" && strings.Contains(out.String(), "need ≥") {
				t.Errorf("%d windows, %d seeds: %s needs more", x.windows, x.seeds, f)
			}
		}
		var js bytes.Buffer
		if err := writeJSON(&js, r); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(js.String(), `"need": 8`) != (x.need != "") {
			t.Errorf("%d windows, %d seeds: the JSON output has need wrongly", x.windows, x.seeds)
		}
	}
}

// TestReclaimsSaidAsTheyAre: a trace may have the availability of every Spot market, of some or
// of none.
func TestReclaimsSaidAsTheyAre(t *testing.T) {
	samples := scenarios.AvailabilityCurve{At: []policy.Time{1}, Available: []bool{true}}
	for _, x := range []struct {
		available []scenarios.AvailabilityCurve
		want      string
	}{
		{nil, "modelled"},
		{[]scenarios.AvailabilityCurve{{}, samples, samples}, "recorded"},
		{[]scenarios.AvailabilityCurve{{}, samples, {}}, "recorded in part and modelled elsewhere"},
	} {
		c := shown()
		c.Cases = cases(1, "web-week")
		w := c.Cases[0].Bound
		w.Markets = append(w.Markets, policy.Market{ID: 2, Name: "aws/r/b/m5.large/spot", Capacity: policy.Spot})
		w.Prices = append(w.Prices, w.Prices[1])
		w.Available, w.Trace.Availability, w.Trace.Synthetic = x.available, x.available != nil, false
		r, err := eval.Run(context.Background(), c, fake{}.run)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range Formats() {
			var out bytes.Buffer
			if err := Write(&out, r, f, Options{Width: 200, Details: true}); err != nil {
				t.Fatal(err)
			}
			want := map[Format]string{CSV: "," + x.want + ",", JSON: `"reclaims": "` + x.want + `"`, Parquet: `"reclaims":"` + x.want + `"`}[f]
			if want == "" {
				want = "reclaims are " + x.want + "."
			}
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s does not say %q", f, want)
			}
		}
	}
}
