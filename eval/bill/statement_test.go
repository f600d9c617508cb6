package bill

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
	"github.com/spotter-dev/spotter/sim"
)

// read reads files of a statement of a span.
func read(t *testing.T, span billing.Span, files ...string) *Statement {
	t.Helper()
	s := &Statement{Span: span}
	for _, text := range files {
		if err := s.Read(strings.NewReader(text), int64(len(text))); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// sum returns what all machines of s cost, and their hours.
func sum(s *Statement) (dollars, hours float64) {
	for _, c := range s.Resources {
		dollars, hours = dollars+c.Dollars, hours+c.Hours
	}
	return dollars, hours
}

// TestStatementRoundTrip reads what is written here: the dollars of the bill of each run come
// back from all of its forms, of rows those of machines alone, and the hours of its nodes from
// those that have them.
func TestStatementRoundTrip(t *testing.T) {
	eachCase(t, func(t *testing.T, u *Usage, _ *sim.Result) {
		lines, err := u.Focus(time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		want, ran := policy.Money(0), 0.0
		for i := range lines {
			if k := lines[i].kind; k == lineNode || k == lineCovered {
				want += lines[i].effective
			}
		}
		for i := range u.Nodes {
			ran += u.Nodes[i].life().Clip(u.Window).Length().Hours()
		}
		var csv, parquet, cost bytes.Buffer
		sets, err := u.Allocate("namespace", 24*time.Hour)
		if err := errors.Join(err, WriteFocusCSV(&csv, lines), WriteFocusParquet(&parquet, lines, "x"), WriteOpenCost(&cost, sets)); err != nil {
			t.Fatal(err)
		}
		whole := billing.Span{From: u.Window.From - u.Window.From%anHour, To: u.Window.To + anHour} // a row is of an hour that may begin before
		for form, text := range map[string]string{"CSV": csv.String(), "Parquet": parquet.String()} {
			s := read(t, whole, text)
			dollars, hours := sum(s)
			if s.Form != FormFocus || math.Abs(dollars-want.Float()) > 1e-6*float64(len(lines)) || hours < ran ||
				hours > 1.01*ran+1 || len(u.Nodes) < len(s.Resources) {
				t.Errorf("%s: %.6f in %.2f hours of %d machines, want %v in %.2f of %d", form, dollars, hours, len(s.Resources),
					want, ran, len(u.Nodes))
			}
		}
		charges, err := u.Meter(time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		billed := policy.Money(0)
		for i := range charges {
			billed += charges[i].Billed + charges[i].Fees.Total()
		}
		s := read(t, u.Window, cost.String())
		if !s.Idle || math.Abs(s.Whole.Dollars-billed.Float()) > 1e-6*float64(len(sets)) ||
			math.Abs(s.Whole.Hours-u.Window.Length().Hours()) > 1e-6 {
			t.Errorf("OpenCost: %+v, want %v", s.Whole, billed)
		}
	})
}

// TestStatementCUR reads both ways of naming the columns of the report: running instances at
// what they cost in the span, those of a commitment at their part of its fee, and nothing of
// taxes, traffic, capacity that is reserved and unused, and negations.
func TestStatementCUR(t *testing.T) {
	const rows = `i-0a,2026-03-02T00:00:00Z,2026-03-02T01:00:00Z,0.0400,Usage,USW2-SpotUsage:m5.large,1,,
i-0a,2026-03-02T01:00:00Z,2026-03-02T02:00:00Z,0.0300,Usage,USW2-SpotUsage:m5.large,0.5,,
i-0a,2026-03-02T01:00:00Z,2026-03-02T02:00:00Z,9,Usage,USW2-DataTransfer-Out-Bytes,7,,
i-0a,2026-03-02T01:00:00Z,2026-03-02T02:00:00Z,9,Tax,USW2-SpotUsage:m5.large,1,,
arn:aws:ec2:us-west-2:1:instance/i-0b,2026-03-02T01:00:00Z,2026-03-02T03:00:00Z,0.20,Usage,BoxUsage:m5.large,2,,
i-0c,2026-03-02T00:00:00Z,2026-03-02T01:00:00Z,0.50,SavingsPlanCoveredUsage,BoxUsage:m5.xlarge,1,0.30,
i-0c,2026-03-02T00:00:00Z,2026-03-02T01:00:00Z,-0.50,SavingsPlanNegation,BoxUsage:m5.xlarge,1,,
i-0d,2026-03-02T00:00:00Z,2026-03-02T01:00:00Z,0,DiscountedUsage,BoxUsage:m5.xlarge,1,,0.25
cr-1,2026-03-02T00:00:00Z,2026-03-02T01:00:00Z,0.50,Usage,UnusedBoxUsage:m5.xlarge,1,,
i-0e,2026-03-01T00:00:00Z,2026-03-01T01:00:00Z,0.50,Usage,BoxUsage:m5.xlarge,1,,
`
	two := "line_item_resource_id,line_item_usage_start_date,line_item_usage_end_date,line_item_unblended_cost,line_item_line_item_type,line_item_usage_type,line_item_usage_amount,savings_plan_savings_plan_effective_cost,reservation_effective_cost\n" + rows
	one := "lineItem/ResourceId,lineItem/UsageStartDate,lineItem/UsageEndDate,lineItem/UnblendedCost,lineItem/LineItemType,lineItem/UsageType,lineItem/UsageAmount,savingsPlan/SavingsPlanEffectiveCost,reservation/EffectiveCost\n" + rows
	span := billing.Span{From: policy.TimeOf(time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)),
		To: policy.TimeOf(time.Date(2026, 3, 2, 2, 0, 0, 0, time.UTC))}
	for _, text := range []string{two, one} {
		s := read(t, span, text)
		want := map[string]Charged{"i-0a": {Dollars: 0.07, Hours: 1.5}, "i-0b": {Dollars: 0.1, Hours: 1},
			"i-0c": {Dollars: 0.3, Committed: 0.3, Hours: 1}, "i-0d": {Dollars: 0.25, Committed: 0.25, Hours: 1}}
		if fmt.Sprintf("%.6v", s.Resources) != fmt.Sprintf("%.6v", want) || s.Passed != 4 || s.Form != FormCUR {
			t.Errorf("%s: %v, %d passed, want %v", s.Form, s.Resources, s.Passed, want)
		}
	}
	lines := strings.SplitAfter(two, "\n")
	if d, h := sum(read(t, span, strings.Join(lines[:3], ""), lines[0]+strings.Join(lines[3:],
		""))); math.Abs(d-0.72) > 1e-9 || math.Abs(h-4.5) > 1e-9 {
		t.Errorf("of two files %v in %v hours", d, h)
	}
}

// TestStatementRefuses names what is wrong with a file.
func TestStatementRefuses(t *testing.T) {
	const head = "line_item_resource_id,line_item_usage_start_date,line_item_usage_end_date,line_item_unblended_cost,line_item_line_item_type,line_item_usage_type,line_item_usage_amount\n"
	const focus = "ResourceId,ChargePeriodStart,ChargePeriodEnd,EffectiveCost,ChargeCategory,ServiceCategory,ConsumedQuantity,ConsumedUnit\n"
	span := billing.Span{To: policy.TimeOf(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))}
	for want, files := range map[string][]string{
		"its columns are a, b": {"a,b\n1,2\n"},
		"its columns are line_item_resource_id, line_item_unblended_cost":          {"line_item_resource_id,line_item_unblended_cost\n"},
		`row 1: line_item_usage_end_date: "soon" is not a time`:                    {head + "i-0a,2026-03-02,soon,1,Usage,BoxUsage:x,1\n"},
		`row 1: line_item_unblended_cost: "x" is not a number`:                     {head + "i-0a,2026-03-02,2026-03-03,x,Usage,BoxUsage:x,1\n"},
		"it is a FOCUS export, and what was read before is the AWS Cost and Usage": {head, focus},
		"it has no data, code 500 no prometheus":                                   {`{"code":500,"message":"no prometheus"}`},
		`data[0]["a"].window.end: "" is not a time`:                                {`{"code":200,"data":[{"a":{"window":{"start":"2026-03-02T00:00:00Z"}}}]}`},
		"it is not a known kind of bill":                                           {"[1]"},
	} {
		s := &Statement{Span: span}
		var err error
		for _, text := range files {
			err = errors.Join(err, s.Read(strings.NewReader(text), int64(len(text))))
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", files, err, want)
		}
	}
}
