package report

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/eval/format/formattest"
)

// TestPageAgrees: the numbers of the table of policies are those of the JSON of the same report. The
// windows are a day long.
func TestPageAgrees(t *testing.T) {
	c := eval.DefaultConfig()
	c.Policies, c.Baseline = []string{eval.OnDemand, "spot", "static:share=0.3", "spotvortex"}, "spotvortex"
	c.Cases, c.Seeds = cases(1, "web-week"), eval.DefaultSeeds(9)
	r, err := eval.Run(t.Context(), c, fake{samples: 4}.run)
	if err != nil {
		t.Fatal(err)
	}
	var page, text bytes.Buffer
	if err := Write(&page, r, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := format.Write(&text, r, format.JSON, format.Options{}); err != nil {
		t.Fatal(err)
	}
	type figure struct {
		Median, Mean, Max float64
		Interval          [2]float64 `json:"median_interval"`
	}
	var d struct {
		Groups []struct {
			Policies []struct {
				Policy  string
				Metrics map[string]figure
			}
		}
	}
	if err := json.Unmarshal(text.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	columns := map[string]func(m map[string]figure) []float64{
		"Bill $ a month": func(m map[string]figure) []float64 { return []float64{m["bill_usd"].Median * 730 / 24} },
		"Saved %":        func(m map[string]figure) []float64 { return []float64{m["net_savings_pct"].Median} },
		"Change on":      func(m map[string]figure) []float64 { return []float64{m["net_savings_delta_pct"].Median} },
		"Outage minutes": func(m map[string]figure) []float64 {
			return []float64{m["outage_minutes"].Median, m["outage_minutes"].Max}
		},
		"Against baseline": func(m map[string]figure) []float64 { return []float64{m["outage_delta"].Max} },
		"Spot share":       func(m map[string]figure) []float64 { return []float64{m["spot_share"].Median * 100} },
		"Moved":            func(m map[string]figure) []float64 { return []float64{m["voluntary_evictions_per_pod_day"].Median} },
		"Lost":             func(m map[string]figure) []float64 { return []float64{m["reclaim_evictions_per_pod_day"].Median} },
		"Regret":           func(m map[string]figure) []float64 { return []float64{m["regret"].Median * 100} },
	}
	found := map[string]int{}
	for _, table := range formattest.HTML(page.String()) {
		if len(table.Headings) == 0 || !strings.HasPrefix(table.Headings[0], "Policy") ||
			!slices.ContainsFunc(table.Headings, func(h string) bool { return strings.HasPrefix(h, "Regret") }) {
			continue
		}
		for _, row := range table.Rows {
			for _, p := range d.Groups[0].Policies {
				for i, heading := range table.Headings {
					for name, numbers := range columns {
						if !strings.HasPrefix(heading, name) || !strings.HasPrefix(row[0]+" ", p.Policy+" ") || row[i] == "baseline" ||
							strings.HasPrefix(row[i], "–") {
							continue
						}
						found[name]++
						got := formattest.Numbers(row[i])
						for k, want := range numbers(p.Metrics) {
							if k >= len(got) || !got[k].Is(want) {
								t.Errorf("%s, %s is %q, want %v", p.Policy, heading, row[i], numbers(p.Metrics))
								break
							}
						}
					}
				}
			}
		}
	}
	for name := range columns {
		if found[name] < 3 {
			t.Errorf("%d cells under %q were compared", found[name], name)
		}
	}
}
