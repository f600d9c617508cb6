package bill

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/eval/tabular"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/billing"
)

// The formats of a statement.
const (
	FormCUR      = "the AWS Cost and Usage Report"
	FormFocus    = "a FOCUS export"
	FormOpenCost = "OpenCost's allocations"
)

// ErrForm is returned for a file in an unknown format.
var ErrForm = errors.New("it is not a known kind of bill: an AWS Cost and Usage Report or a FOCUS export, as CSV or Parquet, or an answer of OpenCost's /allocation")

// A Statement is the cost of machines in a span of time from an external source: a provider's bill,
// or OpenCost.
type Statement struct {
	Span billing.Span

	// Form is the format of all files, empty before the first is read.
	Form string

	// Resources maps the last element of a machine's name in the bill, for EC2 the instance ID, to
	// its cost. Whole is the total cost of a cluster whose machines are not named. Idle reports
	// whether Whole includes resources that no pod requested.
	Resources map[string]Charged
	Whole     Charged
	Idle      bool

	// Passed counts the skipped rows, which do not charge for running machines: taxes, traffic,
	// volumes.
	Passed int64
}

// A Charged is a cost and the hours for which it was charged, within the span.
type Charged struct {
	// Dollars are effective costs: they include the fees of commitments, in proportion to usage.
	// Committed is the part of Dollars that commitments cover.
	Dollars, Committed float64
	Hours              float64
}

// Read adds the costs in a file. All files of a statement must have the same format.
func (s *Statement) Read(f io.ReaderAt, size int64) error {
	text, err := tabular.Inflated(io.NewSectionReader(f, 0, size))
	if err != nil {
		return err
	}
	if tabular.IsJSON(text) {
		return s.ReadOpenCost(text)
	}
	var form rowForm
	t := tabular.Reader{
		Want: func(names []string) ([]int, error) {
			for _, x := range rowForms() {
				at := tabular.Find(names, x.columns...)
				if slices.Contains(at[:x.needed], -1) {
					continue
				}
				form = x
				return at, s.is(x.name)
			}
			return nil, fmt.Errorf("%w; its columns are %s", ErrForm, strings.Join(names, ", "))
		},
		Each: func(row tabular.Row) error { return s.row(&form, row) },
	}
	return t.Read(f, size)
}

// is records the format of a file. It returns an error if it differs from the format of the files
// before.
func (s *Statement) is(form string) error {
	if s.Form != "" && s.Form != form {
		return fmt.Errorf("it is %s, and what was read before is %s", form, s.Form)
	}
	s.Form = form
	return nil
}

// A rowForm describes how the rows of a format state the cost of a machine.
type rowForm struct {
	name string

	// columns are the columns that are read. The first four are the resource, the start and the end
	// of the period, and the cost. The first needed columns are required.
	columns []string
	needed  int

	// running returns the machine hours and the cost of a row, and whether a commitment covers it.
	// ok is false if the row does not charge for a running machine.
	running func(row tabular.Row) (hours, cost float64, committed, ok bool, err error)
}

// rowForms returns the supported formats with rows. The columns are those of FOCUS and of AWS's CUR
// 2.0 data dictionary; older reports spell the latter differently.
func rowForms() []rowForm {
	return []rowForm{
		{FormCUR, []string{
			"line_item_resource_id", "line_item_usage_start_date", "line_item_usage_end_date", "line_item_unblended_cost",
			"line_item_line_item_type", "line_item_usage_type", "line_item_usage_amount",
			"savings_plan_savings_plan_effective_cost", "reservation_effective_cost",
		}, 7, runningOfCUR},
		{FormFocus, []string{
			columnResourceID, columnPeriodStart, columnPeriodEnd, columnEffectiveCost,
			columnChargeCategory, columnServiceCategory, columnConsumedQuantity, columnConsumedUnit, columnCommitmentStatus, "x_UsageType",
		}, 8, runningOfFocus},
	}
}

// isInstance reports whether an AWS usage type is the usage of an instance, as in
// USW2-SpotUsage:m5.large.
func isInstance(usage string) bool {
	for _, of := range []string{"BoxUsage", "SpotUsage", "DedicatedUsage"} {
		if strings.Contains(usage, of) {
			return !strings.Contains(usage, "UnusedBox")
		}
	}
	return false
}

// runningOfCUR implements rowForm.running for the CUR: usage costs its unblended cost, covered
// usage its share of the commitment's fee. It skips the rows that negate covered usage, credits,
// discounts and taxes.
func runningOfCUR(row tabular.Row) (hours, cost float64, committed, ok bool, err error) {
	by := map[string]int{"Usage": 3, "SavingsPlanCoveredUsage": 7, "DiscountedUsage": 8}
	k, known := by[row.Text(4)]
	if !known || !isInstance(row.Text(5)) {
		return 0, 0, false, false, nil
	}
	if committed = k != 3; committed && row.Text(k) == "" { // the export does not contain the optional column
		k = 3
	}
	if hours, err = row.Number(6); err == nil {
		cost, err = row.Number(k)
	}
	return hours, cost, committed, true, err
}

// hourUnits are the known spellings of the unit hour.
var hourUnits = []string{"h", "hr", "hrs", "hour", "hours"}

func runningOfFocus(row tabular.Row) (hours, cost float64, committed, ok bool, err error) {
	usage := row.Text(9)
	if row.Text(4) != chargeUsage || row.Text(5) != serviceCompute || usage != "" && !isInstance(usage) ||
		row.Text(7) == creditUnit {
		return 0, 0, false, false, nil
	}
	if slices.Contains(hourUnits, strings.ToLower(row.Text(7))) {
		hours, err = row.Number(6)
	}
	if err == nil {
		cost, err = row.Number(3)
	}
	return hours, cost, row.Text(8) == statusUsed, true, err
}

// row adds the part of a row that is within the span.
func (s *Statement) row(form *rowForm, row tabular.Row) error {
	from, err := row.Time(1)
	if err != nil {
		return err
	}
	to, err := row.Time(2)
	if err != nil {
		return err
	}
	part := s.part(billing.Span{From: from, To: to})
	if part == 0 {
		return nil
	}
	hours, cost, committed, ok, err := form.running(row)
	switch {
	case err != nil:
		return err
	case !ok || row.Text(0) == "":
		s.Passed++
		return nil
	}
	if s.Resources == nil {
		s.Resources = map[string]Charged{}
	}
	name := row.Text(0)[strings.LastIndexByte(row.Text(0), '/')+1:]
	c := s.Resources[name]
	c.Dollars += float64(cost * part)
	c.Hours += float64(hours * part)
	if committed {
		c.Committed += float64(cost * part)
	}
	s.Resources[name] = c
	return nil
}

// part returns the fraction of a period that is within the span, in [0, 1].
func (s *Statement) part(period billing.Span) float64 {
	if period.Length() <= 0 {
		return 0
	}
	return float64(period.Clip(s.Span).Length()) / float64(period.Length())
}

// ReadOpenCost adds a response of OpenCost's /allocation API. It counts the costs of CPU, memory
// and GPUs, which together are the cost of nodes.
func (s *Statement) ReadOpenCost(r io.Reader) error {
	if err := s.is(FormOpenCost); err != nil {
		return err
	}
	var answer struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    *[]Set `json:"data"`
	}
	if err := json.NewDecoder(r).Decode(&answer); err != nil {
		return fmt.Errorf("%w: %w", ErrForm, err)
	}
	if answer.Data == nil {
		return fmt.Errorf("%w: it has no data, code %d %s", ErrForm, answer.Code, answer.Message)
	}
	for i, set := range *answer.Data {
		var window billing.Span
		for _, name := range slices.Sorted(maps.Keys(set)) {
			a := set[name]
			from, err := time.Parse(time.RFC3339, a.Window.Start)
			if err != nil {
				return fmt.Errorf("data[%d][%q].window.start: %q is not a time", i, name, a.Window.Start)
			}
			to, err := time.Parse(time.RFC3339, a.Window.End)
			if err != nil {
				return fmt.Errorf("data[%d][%q].window.end: %q is not a time", i, name, a.Window.End)
			}
			window = billing.Span{From: policy.TimeOf(from), To: policy.TimeOf(to)}
			s.Whole.Dollars += float64((a.CPUCost + a.RAMCost + a.GPUCost) * s.part(window))
			s.Idle = s.Idle || strings.HasSuffix(name, Idle)
		}
		s.Whole.Hours += window.Clip(s.Span).Length().Hours()
	}
	return nil
}
