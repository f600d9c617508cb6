package format

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/stats"
	"github.com/spotter-dev/spotter/sim"
)

const schemaDoc = "../../docs/eval-schema.md"

// schemaMetrics is the table of metrics as the schema document has it.
func schemaMetrics() string {
	var b strings.Builder
	b.WriteString("| metric | unit | interval | meaning |\n|---|---|---|---|\n")
	for _, m := range eval.Metrics() {
		interval := ""
		if m.Interval {
			interval = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Unit, interval, m.About)
	}
	return b.String()
}

// TestSchema walks the keys of a report that has all of them and compares with
// the document, both ways.
func TestSchema(t *testing.T) {
	doc, err := os.ReadFile(schemaDoc)
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		head, _, _ := strings.Cut(string(doc), "| metric | unit |")
		doc = []byte(head + schemaMetrics())
		if err := os.WriteFile(schemaDoc, doc, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.HasSuffix(string(doc), schemaMetrics()) {
		t.Errorf("%s has not the metrics of this package; write them with -rewrite-golden", filepath.Base(schemaDoc))
	}
	c := shown()
	c.Policies = append(c.Policies, "static:share=0.2", "static:share=0.4")
	c.Cases = slices.Concat(cases(1, "batch-night"), cases(8, "web-week"))
	c.Gates = append(c.Gates, mustGate(t, "spot vs static in web-week:outage_delta.max<=0"), mustGate(t, "spot in batch-night:bill_usd.low>0"))
	c.Cases[0].Bound.Warnings = []string{"market x left out: it has no on-demand price"}
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
	r.Comparison = &eval.Comparison{Program: "./base", Version: "v1", Files: "base", Seeds: eval.DefaultSeeds(8), Changes: []eval.Change{{Policy: "spot", Pairs: 8, Demand: 8,
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
	var documented []string
	keys, _, _ := strings.Cut(string(doc), "## Gates")
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(keys, -1) {
		documented = append(documented, m[1])
		if !found[m[1]] {
			t.Errorf("the document has key %s, the output has not", m[1])
		}
	}
	for key := range found {
		if !slices.Contains(documented, key) {
			t.Errorf("the output has key %s, the document has not", key)
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
			if slices.ContainsFunc(eval.Metrics(), func(m eval.Metric) bool { return m.Name == key }) && (strings.HasSuffix(path, "metrics") || strings.HasSuffix(path, "medians")) {
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
