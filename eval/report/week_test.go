package report

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// dataOf reads what a page has for its script.
func dataOf(t *testing.T, page string) (data struct {
	Pictures map[string]hover
	Weeks    []week
	Markets  []string
}) {
	t.Helper()
	found := dataBlock.FindStringSubmatch(page)
	if found == nil {
		t.Fatal("the page has no data")
	}
	packed, err := base64.StdEncoding.DecodeString(found[1])
	var text []byte
	if err == nil {
		text, err = io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	}
	if err != nil {
		t.Fatal(err)
	}
	// Marks are lists, which are only written.
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), `"marks":`, `"Ignored":`)), &data); err != nil {
		t.Fatal(err)
	}
	return data
}

// The week of a run ends at what the run saved, has its reclaims and outages, and the
// nodes by market that it had.
func TestWeeks(t *testing.T) {
	cfg := shown("web-week")
	r, err := eval.Run(t.Context(), cfg, nodes{fake{samples: 24}}.run)
	if err != nil {
		t.Fatal(err)
	}
	page := written(t, r)
	data := dataOf(t, page)
	if len(data.Weeks) != len(r.Runs) {
		t.Fatalf("%d of %d runs can be opened", len(data.Weeks), len(r.Runs))
	}
	by := map[string]*week{}
	for i := range data.Weeks {
		by[data.Weeks[i].Command] = &data.Weeks[i]
	}
	for i := range r.Runs {
		run := &r.Runs[i]
		w := by[r.Command(i)]
		if w == nil {
			t.Fatalf("run %d cannot be opened", i)
		}
		// Samples of a fake have a bill and no outage cost.
		last, err := w.Saved[len(w.Saved)-1].Float64()
		if want := run.Value("net_savings_usd").V + run.Result.OutageCost.Float(); err != nil || math.Abs(last-want) > 0.006 {
			t.Errorf("%s ends at %v, want %v", w.Title, last, want)
		}
		taken := int64(0)
		for _, x := range w.Taken {
			if taken += x[2]; data.Markets[x[1]] != "a m5.large" {
				t.Errorf("a node was taken in %q", data.Markets[x[1]])
			}
		}
		if taken != run.Result.Reclaims {
			t.Errorf("%s has %d reclaims, want %d", w.Title, taken, run.Result.Reclaims)
		}
		var held []string
		for _, x := range w.Held {
			held = append(held, fmt.Sprintf("%d: %d of %s", x[0], x[2], data.Markets[x[1]]))
		}
		if got := strings.Join(held, ", "); got != "0: 3 of a m5.large on demand, 5: 1 of a m5.large on demand, 5: 2 of a m5.large" {
			t.Errorf("%s holds %s", w.Title, got)
		}
		if w.Step != 3600 || w.From != run.Bound.Start.Std().Unix() {
			t.Errorf("%s begins at %d and has steps of %d s", w.Title, w.From, w.Step)
		}
	}
	if n := strings.Count(page, "<tr data-week="); n != len(r.Runs)+len(r.Config.Policies) { // all runs, and the worst
		t.Errorf("%d rows can be opened", n)
	}
}

// A nodes fake holds three on-demand nodes, two of which become Spot nodes.
type nodes struct{ fake }

func (n nodes) run(ctx context.Context, j eval.Job) (*sim.Result, error) {
	r, err := n.fake.run(ctx, j)
	if err == nil {
		at := func(k int) policy.Time { return r.Samples[k].At }
		r.Held = []sim.Held{{At: at(0), Market: 0, Nodes: 3}, {At: at(5), Market: 0, Nodes: 1}, {At: at(5), Market: 1, Nodes: 2}}
	}
	return r, err
}

// With too many runs for a page the worst of each policy can be opened before others.
func TestWeeksHaveRoom(t *testing.T) {
	var names []string
	for i := range 6 {
		names = append(names, fmt.Sprint("scenario-", i))
	}
	c := shown()
	c.Cases, c.Seeds = cases(2, names...), eval.DefaultSeeds(50)
	r := compared(t, c, fake{samples: 168})
	l, err := newWeeks(r)
	if err != nil {
		t.Fatal(err)
	}
	if l.bytes > weeksBytes+5000 || len(l.All) >= len(r.Runs) {
		t.Errorf("%d of %d runs take %d bytes", len(l.All), len(r.Runs), l.bytes)
	}
	for i := range r.Groups {
		for p := range r.Groups[i].Policies {
			if x := &r.Groups[i].Policies[p]; l.of(x.Worst) == 0 {
				t.Errorf("the worst run of %s in %s cannot be opened", x.Policy, r.Groups[i].Scenario)
			}
		}
		if note := runTable(r, &r.Groups[i], l).Note; !strings.Contains(note, " of 600: the worst of each policy") {
			t.Errorf("the note is %q", note)
		}
	}
}
