package format

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/sim"
)

// TestJSONKeys: a report that has everything has every key of the types, so that the
// page on them names no key that is never written.
func TestJSONKeys(t *testing.T) {
	c := shown()
	c.Policies = append(c.Policies, "static:share=0.2", "static:share=0.4")
	c.Cases = slices.Concat(cases(1, "batch-night"), cases(8, "web-week"))
	c.Gates = append(c.Gates, mustGate(t, "spot vs static in web-week:outage_delta.max<=0"), mustGate(t, "spot in batch-night:bill_usd.low>0"))
	c.Cases[0].Bound.Warnings = []string{"market x left out: it has no on-demand price"}
	c.Cases[0].Bound.Karpenter, c.Cases[0].Bound.NodeFee = 14, 20_000
	c.Today = &eval.Today{Name: "today's bill", Nodes: 3, Month: 100}
	runner := func(ctx context.Context, j eval.Job) (*sim.Result, error) {
		x, err := fake{fail: func(j eval.Job) bool { return j.Policy == "spot" && j.Seed == 3 }}.run(ctx, j)
		if err == nil && j.Policy == "spot" {
			x.Violations = []string{tooMuchSpot}
		}
		return x, err
	}
	r, err := eval.Run(context.Background(), c, runner)
	if err != nil {
		t.Fatal(err)
	}
	r.Runs[0].Result.Warnings = []string{"2 actions failed"}
	r.Runs[0].Result.Budgets = []sim.BudgetResult{{Name: "ml/b"}}
	r.Runs[0].Result.Queues = []sim.QueueResult{{Name: "ml"}}
	r.Comparison = &eval.Comparison{Program: "./base", Version: "v1", Files: "base", Seeds: eval.DefaultSeeds(8),
		Changes: []eval.Change{{Policy: "spot", Pairs: 8, Demand: 8,
			Savings: eval.Difference{Interval: &stats.Interval{}}, Outage: eval.Difference{Interval: &stats.Interval{}}}, {Policy: "static", Pairs: 2,
			Savings: eval.Difference{Need: 8}, Outage: eval.Difference{Need: 8}}}}
	var out bytes.Buffer
	if err := writeJSON(&out, r); err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(out.Bytes(), &value); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	walk(value, "", found)
	if n := sameKeys(t, reflect.TypeFor[jsonReport](), found); n < 180 {
		t.Errorf("%d keys are found", n)
	}
}

// sameKeys compares the keys of a type with those of an output, both ways, and returns
// how many the type has.
func sameKeys(t *testing.T, of reflect.Type, found map[string]bool) int {
	t.Helper()
	keys := map[string]bool{}
	typed(of, "", keys)
	for key := range keys {
		if !found[key] {
			t.Errorf("the types have key %s, the output has not", key)
		}
	}
	for key := range found {
		if !keys[key] && !strings.Contains(key, "<metric>") {
			t.Errorf("the output has key %s, the types have not", key)
		}
	}
	return len(keys)
}

// typed adds the paths of all keys of a type.
func typed(of reflect.Type, path string, keys map[string]bool) {
	switch {
	case of.Kind() == reflect.Pointer:
		typed(of.Elem(), path, keys)
	case of == reflect.TypeFor[eval.Figure]():
		typed(reflect.TypeFor[eval.FigureReport](), path, keys)
	case of == reflect.TypeFor[stats.Interval](), of == reflect.TypeFor[eval.Value](), of == reflect.TypeFor[eval.Values](),
		of == reflect.TypeFor[eval.Medians](), of == reflect.TypeFor[eval.Summaries](): // they write themselves, without keys of their own
	case of.Kind() == reflect.Slice:
		typed(of.Elem(), path+"[]", keys)
	case of.Kind() == reflect.Struct:
		for f := range of.Fields() {
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous {
				typed(f.Type, path, keys)
				continue
			}
			if key == "-" || !f.IsExported() {
				continue
			}
			if path != "" {
				key = path + "." + key
			}
			keys[key] = true
			typed(f.Type, key, keys)
		}
	}
}

// walk adds the paths of all keys in v.
func walk(v any, path string, found map[string]bool) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			walk(x, path+"[]", found)
		}
	case map[string]any:
		for key, x := range v {
			if slices.ContainsFunc(eval.Metrics(), func(m eval.Metric) bool { return m.Name == key }) &&
				(strings.HasSuffix(path, "metrics") || strings.HasSuffix(path, "medians")) {
				key = "<metric>"
			}
			p := key
			if path != "" {
				p = path + "." + key
			}
			found[p] = true
			walk(x, p, found)
		}
	}
}

// TestPartOfJSON: JSON has the runs and the metrics that the options select, and the report keeps
// all.
func TestPartOfJSON(t *testing.T) {
	r := reportOf(t, 2, nil, "spot", "static:share=0.5")
	text := func(o Options) string {
		t.Helper()
		var out bytes.Buffer
		if err := Write(&out, r, JSON, o); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	whole := text(Options{})
	part := text(Options{NoRuns: true, Metrics: []string{"regret", "bill_usd"}})
	var got jsonPart
	if err := json.Unmarshal([]byte(part), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Runs) != 0 || len(got.Groups) != len(r.Groups) {
		t.Fatalf("%d runs, %d groups", len(got.Runs), len(got.Groups))
	}
	for i, g := range got.Groups {
		for k, p := range g.Policies {
			if len(p.Metrics) != 2 || p.Metrics["bill_usd"] == nil || p.Metrics["regret"] == nil {
				t.Errorf("%s has the metrics %v", p.Policy, p.Metrics)
			}
			if len(p.Windows) == 0 || len(p.Windows) != len(r.Groups[i].Policies[k].Windows) {
				t.Errorf("%s has %d windows", p.Policy, len(p.Windows))
			}
			for _, w := range p.Windows {
				if w.Medians["bill_usd"] == nil || len(w.Medians) > 2 {
					t.Errorf("%s has the medians %v", p.Policy, w.Medians)
				}
			}
		}
	}
	if again := text(Options{}); again != whole || len(part) >= len(whole) {
		t.Errorf("the report has changed: %d bytes after %d", len(again), len(whole))
	}
}

// A jsonPart is what is checked of a part of a report.
type jsonPart struct {
	Runs   []any
	Groups []struct {
		Policies []struct {
			Policy  string
			Metrics map[string]any
			Windows []struct{ Medians map[string]any }
		}
	}
}
