package mcp

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/eval"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/explain"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/scenario"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/top"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/try"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/whatif"
	"github.com/spotter-dev/spotter/internal/cli"
)

// writing are flags of the commands that write files or objects of a cluster, run another program,
// serve, or wait for a terminal. No input has them.
var writing = []string{"out", "report", "dir", "force", "serve", "shard", "plan", "reuse", "compare", "on", "attach", "watch", "yes",
	"cpuprofile", "memprofile", "format"}

// TestFlags: every field sets a flag that its command has, and none that writes.
func TestFlags(t *testing.T) {
	p := &cli.Program{}
	commands := map[string]*cobra.Command{"try": try.Command(p), "eval": eval.Command(p), "whatif": whatif.Command(p),
		"explain": explain.Command(p), "top": top.Command(p), "policies": {}}
	scenarios := scenario.Command(p)
	for _, c := range scenarios.Commands() {
		if c.Name() == "validate" {
			commands["validate"] = c
		}
	}
	for tool, input := range map[string]reflect.Type{"try": reflect.TypeFor[tryInput](), "eval": reflect.TypeFor[evalInput](),
		"whatif": reflect.TypeFor[whatifInput](), "explain": reflect.TypeFor[explainInput](), "top": reflect.TypeFor[topInput](),
		"validate": reflect.TypeFor[validateInput](), "policies": reflect.TypeFor[policiesInput]()} {
		checked := 0
		var walk func(reflect.Type)
		walk = func(of reflect.Type) {
			for i := range of.NumField() {
				f := of.Field(i)
				if f.Anonymous {
					walk(f.Type)
					continue
				}
				if f.Type == reflect.TypeFor[[]change]() {
					walk(f.Type.Elem())
					continue
				}
				checked++
				name, _, _ := strings.Cut(f.Tag.Get("flag"), ",")
				_, argument := f.Tag.Lookup("arg")
				switch {
				case argument:
				case commands[tool].Flags().Lookup(name) == nil:
					t.Errorf("%s: field %s sets --%s, which the command lacks", tool, f.Name, name)
				case slices.Contains(writing, name):
					t.Errorf("%s: field %s sets --%s", tool, f.Name, name)
				}
			}
		}
		walk(input)
		if checked == 0 {
			t.Errorf("%s has no input", tool)
		}
	}
}

// TestWords: an input sets exactly the flags of its fields that are set, and no argument is taken as
// a flag.
func TestWords(t *testing.T) {
	none, share := 0.0, int64(0)
	field, _ := reflect.TypeFor[evalInput]().FieldByName("Metrics")
	metrics := field.Tag.Get("default")
	for _, c := range []struct {
		input any
		want  string
	}{
		{evalInput{}, "x --metrics=" + metrics + " --no-runs -o json"},
		{evalInput{Runs: true, Metrics: []string{"regret", "bill_usd"}}, "x --metrics=regret,bill_usd -o json"},
		{evalInput{Scenarios: []string{"a b", "c"}, Policies: []string{"spot", "static:share=0.7"}, Runs: true, Metrics: []string{"regret"},
			Gates:       []string{"x.max <= 0", "y.max <= 0"},
			marketInput: marketInput{Windows: "2", Intensity: &none}, sourcesInput: sourcesInput{Strict: true}},
			"x 'a b' c --policies=spot,static:share=0.7 '--gate=x.max <= 0' '--gate=y.max <= 0' --metrics=regret --windows=2 --intensity=0 --strict -o json"},
		{evalInput{Scenarios: []string{"--out=x"}, Metrics: []string{"regret"}}, "x --metrics=regret --no-runs -o json -- --out=x"},
		{explainInput{Run: "-r", Step: &share}, "x --run=-r --step=0 --no-minor --limit=100 -o json"},
		{whatifInput{Scenario: "s", Variants: []change{{Set: []string{"a=1", "b=2"}, Policy: "portfolio"}, {Spot: true}}},
			"x s --set=a=1 --with --set=b=2 --with --policy=portfolio --allow-spot -o json"},
	} {
		if got := cli.Shell(wordsOf([]string{"x"}, c.input)); got != c.want {
			t.Errorf("%+v:\n%s\nwant\n%s", c.input, got, c.want)
		}
	}
}

// TestProgress: progress increases over the steps of a call, and a step notifies not too often.
func TestProgress(t *testing.T) {
	var got []float64
	r := &reporter{last: -1, notify: func(n *sdk.ProgressNotificationParams) {
		if n.Total > 0 && n.Progress > n.Total {
			t.Errorf("%+v", n)
		}
		got = append(got, n.Progress)
	}}
	for _, s := range []cli.Step{{Name: "load"}, {Name: "prepare"}, {Name: "prepare"}, {Name: "run", Total: 1000}} {
		r.report(s)
	}
	for i := range 1001 {
		r.report(cli.Step{Name: "run", Done: i, Total: 1000})
	}
	r.report(cli.Step{Name: "bounds", Done: 1, Total: 2})
	r.sent = time.Time{}
	r.report(cli.Step{Name: "bounds", Done: 2, Total: 2})
	if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) || len(got) < 6 || len(got) > 20 {
		t.Errorf("the progress is %v", got)
	}
}
