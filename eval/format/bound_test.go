package format

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/policy/figures"
)

// TestOracleLineSlots: where slots raise the bound the table, markdown and report say
// so, with the policy that comes nearest.
func TestOracleLineSlots(t *testing.T) {
	c := shown()
	c.Cases = []eval.Case{{Scenario: "slotted", Bound: evaltest.Slotted(10)}}
	r, err := eval.Run(context.Background(), c, fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	b, p := r.Runs[0].Value("oracle_slots_usd").V, policyReport(r, "spot").Summary("regret_slots").Median
	want := fmt.Sprintf("With no more nodes in a market than it has slots it is %s: the nearest, spot, is %s of the on-demand bill above that (regret_slots).", figures.Dollars(b), figures.Share(p, 1))
	var table, markdown strings.Builder
	if err := errors.Join(Write(&table, r, Table, Options{Width: 200, Details: true}), AnswerOf(r).Markdown(&markdown)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"table": table.String(), "markdown": markdown.String(), "report": OracleLine(r, &r.Groups[0])} {
		if text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), `\_`, "_"); !strings.Contains(text, want) {
			t.Errorf("the %s does not say %q: %s", name, want, text)
		}
	}
	if cases := r.CaseReports(); cases[0].OracleSlots.V != b || b <= cases[0].Oracle.V {
		t.Errorf("the bound with slots is %v, in the case %v, without %v", b, cases[0].OracleSlots, cases[0].Oracle)
	}
}

// TestCutShort: a bound that was cut short is warned of, and said of in the JSON.
func TestCutShort(t *testing.T) {
	c := shown()
	r, err := eval.Run(context.Background(), c, fake{}.run)
	if err != nil {
		t.Fatal(err)
	}
	r.Oracles[0].Short = 12
	want := "the oracle of " + c.Cases[0].Scenario + ", window 0 was cut short in 12 pieces of time by its limit of work"
	if !slices.ContainsFunc(Warnings(r), func(s string) bool { return strings.HasPrefix(s, want) }) {
		t.Errorf("no warning begins with %q: %q", want, Warnings(r))
	}
	if k := r.CaseReports(); !k[0].OracleCutShort || k[len(k)-1].OracleCutShort {
		t.Error("the JSON does not say of the first case, and of no other, that its oracle was cut short")
	}
}
