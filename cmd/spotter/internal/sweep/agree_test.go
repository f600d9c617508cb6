package sweep

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/eval/format/formattest"
	"github.com/spotter-dev/spotter/eval/sweep"
)

// sweptResult is a race of twelve candidates.
func sweptResult() *result {
	low, high := 0.52, 2.06
	x := race{Seeds: []uint64{1, 2}, FreshSeeds: []uint64{3, 4, 5}, of: &sweep.Race{}}
	for i := range 12 {
		n := float64(i)
		c := candidate{Name: fmt.Sprintf("share=0.%02d", i), Rungs: 1 + i%3, Dropped: i%3 == 0, Front: i%4 == 1,
			Saved: 1234.56 * n, Change: 7.77*n - 20, Outage: 0.25 * n, OutageMax: 3 * n, Evictions: 0.333 * n}
		if i == 0 {
			c.Name = sweep.AsItIs
		}
		x.Candidates = append(x.Candidates, c)
		x.of.Candidates = append(x.of.Candidates, sweep.Row{Candidate: sweep.Candidate{Name: c.Name}, Figures: sweep.Figures{
			Saved: eval.Summary{Median: c.Saved}, Outage: eval.Summary{Mean: c.Outage}, Evictions: eval.Summary{Median: c.Evictions}}})
	}
	x.Chosen = chosen{Name: "share=0.01", Selection: 3.14, Fresh: 1.29, Low: &low, High: &high, Saved: 55.55, AsItIs: 44.44,
		Outage: 0.21, AsItIsOut: 0.36, Outcome: outcomeBetter, Command: "spotter eval x.yaml"}
	return &result{Sweep: "s", Scenario: "x", Runs: 20, Files: []string{"s.sweep/runs.parquet"}, Races: []race{x}}
}

// TestRenderersAgree: every number that the terminal and the page have of a sweep is that of its JSON.
func TestRenderersAgree(t *testing.T) {
	r := sweptResult()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var d result
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	rows := d.Races[0].Candidates
	slices.SortStableFunc(rows, func(a, b candidate) int { return int(b.Saved - a.Saved) })
	want := func(_, row, heading string) ([]float64, bool) {
		for i, c := range rows {
			mark := format.Mark(i)
			if c.Name == sweep.AsItIs {
				mark = format.Mark(-1)
			}
			if row != mark+"  "+c.Name && row != mark+" "+c.Name {
				continue
			}
			numbers, known := map[string][]float64{
				"SAVED %": {c.Saved}, "CHANGE, POINTS": {c.Change}, "OUTAGE MIN mean / max": {c.Outage, c.OutageMax},
				"EVICTIONS /pod-day": {c.Evictions}, "RUNGS": {float64(c.Rungs)}, "": {},
			}[heading]
			return numbers, known
		}
		return nil, false
	}
	for form, x := range map[string]struct {
		o     format.Options
		cells int
	}{"text": {format.Options{}, 10 * 6}, "text with details": {format.Options{Details: true},
		12 * 6}, "narrow text": {format.Options{Width: 50, Wide: true}, 12 * 6}} {
		var out bytes.Buffer
		if err := answer(r).Write(&out, x.o); err != nil {
			t.Fatal(err)
		}
		if n := formattest.Compare(t, form, formattest.Text(out.String(), "CANDIDATE"), want); n != x.cells {
			t.Errorf("%s: %d cells were compared, want %d:\n%s", form, n, x.cells, out.String())
		}
	}
	var page bytes.Buffer
	if err := writePage(&page, r, [][]string{nil}, "v1"); err != nil {
		t.Fatal(err)
	}
	if n := formattest.Compare(t, "the page", formattest.HTML(page.String()), want); n != 12*6 {
		t.Errorf("the page: %d cells were compared:\n%s", n, page.String())
	}
	c := &d.Races[0].Chosen
	var says []formattest.Number
	for _, v := range verdicts(&r.Races[0]) {
		says = append(says, formattest.Numbers(v.Text)...)
	}
	numbers := []float64{0.01, 3, c.Fresh, *c.Low, *c.High, c.Saved, c.AsItIs, c.Outage, c.AsItIsOut, 2, c.Selection}
	if !slices.EqualFunc(says, numbers, func(n formattest.Number, x float64) bool { return n.Is(x) }) {
		t.Errorf("the verdict has the numbers %v, want %v", says, numbers)
	}
}
