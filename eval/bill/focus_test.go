package bill

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// A focusRow is a row by the names of its columns, "" for null.
type focusRow map[string]string

func (r focusRow) number(column string) *big.Rat {
	x, ok := new(big.Rat).SetString(r[column])
	if !ok {
		return new(big.Rat)
	}
	return x
}

// rowsOf returns the lines of u as they are in a CSV.
func rowsOf(t *testing.T, u *Usage, every time.Duration) []focusRow {
	t.Helper()
	lines, err := u.Focus(every)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := WriteFocusCSV(&out, lines); err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []focusRow
	for _, record := range records[1:] {
		row := focusRow{}
		for i, column := range records[0] {
			row[column] = record[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// A focusRule is what FOCUS 1.2 says of a column.
type focusRule struct {
	// null says whether the column must be null in a row, and filled whether it must not.
	null, filled func(r focusRow) bool

	// allowed are its values; none allows any. An instant, a number and JSON must be one.
	allowed                []string
	instant, decimal, json bool
}

func never(focusRow) bool    { return false }
func everyRow(focusRow) bool { return true }

// is makes a condition of a value.
func is(column, value string) func(focusRow) bool {
	return func(r focusRow) bool { return r[column] == value }
}

func not(f func(focusRow) bool) func(focusRow) bool { return func(r focusRow) bool { return !f(r) } }

func both(f, g func(focusRow) bool) func(focusRow) bool {
	return func(r focusRow) bool { return f(r) && g(r) }
}

// focusRules are those of the columns that are written, in the order of the specification.
func focusRules() (names []string, rules map[string]focusRule) {
	rules = map[string]focusRule{}
	add := func(f focusRule, columns ...string) {
		for _, c := range columns {
			names = append(names, c)
			rules[c] = f
		}
	}
	committed, usage := not(is("CommitmentDiscountId", "")), is("ChargeCategory", "Usage")
	used := both(usage, not(is("CommitmentDiscountStatus", "Unused")))
	mandatory, optional := focusRule{null: never, filled: everyRow}, focusRule{null: never, filled: never}
	cost := focusRule{null: never, filled: everyRow, decimal: true}
	ofCommitment := focusRule{null: not(committed), filled: committed}
	with := func(f focusRule, change func(f *focusRule)) focusRule { change(&f); return f }
	values := func(f focusRule, allowed ...string) focusRule {
		return with(f, func(f *focusRule) { f.allowed = allowed })
	}
	instant := with(mandatory, func(f *focusRule) { f.instant = true })
	add(optional, "AvailabilityZone")
	add(cost, "BilledCost")
	add(mandatory, "BillingAccountId", "BillingAccountName")
	add(values(mandatory, "USD"), "BillingCurrency")
	add(instant, "BillingPeriodEnd", "BillingPeriodStart")
	add(values(mandatory, "Usage", "Purchase", "Tax", "Credit", "Adjustment"), "ChargeCategory")
	add(values(optional, "Correction"), "ChargeClass")
	add(mandatory, "ChargeDescription")
	add(values(mandatory, "One-Time", "Recurring", "Usage-Based"), "ChargeFrequency")
	add(instant, "ChargePeriodEnd", "ChargePeriodStart")
	add(values(ofCommitment, "Spend", "Usage"), "CommitmentDiscountCategory")
	add(optional, "CommitmentDiscountId")
	add(ofCommitment, "CommitmentDiscountName")
	add(with(ofCommitment, func(f *focusRule) { f.decimal = true }), "CommitmentDiscountQuantity")
	add(values(focusRule{null: not(both(committed, usage)), filled: both(committed, usage)}, "Used", "Unused"), "CommitmentDiscountStatus")
	add(ofCommitment, "CommitmentDiscountType", "CommitmentDiscountUnit")
	add(focusRule{null: not(used), filled: used, decimal: true}, "ConsumedQuantity")
	add(focusRule{null: not(used), filled: used}, "ConsumedUnit")
	add(cost, "ContractedCost", "ContractedUnitPrice", "EffectiveCost")
	add(mandatory, "InvoiceIssuerName")
	add(cost, "ListCost", "ListUnitPrice")
	add(values(mandatory, "Standard", "Dynamic", "Committed", "Other"), "PricingCategory")
	add(cost, "PricingQuantity")
	add(mandatory, "PricingUnit", "ProviderName", "PublisherName")
	add(optional, "RegionId")
	add(focusRule{null: is("RegionId", ""), filled: not(is("RegionId", ""))}, "RegionName")
	add(optional, "ResourceId")
	add(focusRule{null: is("ResourceId", ""), filled: not(is("ResourceId", ""))}, "ResourceName", "ResourceType")
	add(values(mandatory, "Compute", "Storage", "Other"), "ServiceCategory")
	add(mandatory, "ServiceName")
	add(values(mandatory, "Virtual Machines", "Block Storage", "Other (Other)"), "ServiceSubcategory")
	add(mandatory, "SkuId")
	add(focusRule{null: is("SkuId", ""), filled: never}, "SkuMeter")
	add(focusRule{null: is("SkuPriceId", ""), filled: never, json: true}, "SkuPriceDetails")
	add(mandatory, "SkuPriceId")
	add(optional, "SubAccountId")
	add(focusRule{null: is("SubAccountId", ""), filled: not(is("SubAccountId", ""))}, "SubAccountName")
	add(with(optional, func(f *focusRule) { f.json = true }), "Tags")
	return names, rules
}

// broken says what of the rule a value in a row breaks, "" where nothing.
func (f *focusRule) broken(r focusRow, column string) string {
	v := r[column]
	switch {
	case v == "" && f.filled(r):
		return "is null"
	case v == "":
		return ""
	case f.null(r):
		return "is not null"
	case f.allowed != nil && !slices.Contains(f.allowed, v):
		return "has a value that is not allowed"
	}
	if f.instant {
		if _, err := time.Parse("2006-01-02T15:04:05Z", v); err != nil {
			return err.Error()
		}
	}
	if _, ok := new(big.Rat).SetString(v); f.decimal && (!ok || strings.ContainsAny(v, "eE ")) {
		return "is no number"
	}
	if f.json && json.Unmarshal([]byte(v), &map[string]any{}) != nil {
		return "is no JSON object"
	}
	return ""
}

// TestFocusRules holds each column of each row to what the specification says of it: order,
// nullability, allowed values and form.
func TestFocusRules(t *testing.T) {
	names, rules := focusRules()
	if !slices.IsSorted(names) {
		t.Fatal("the columns are not in the order of the specification")
	}
	var written []string
	for _, c := range focusColumns() {
		written = append(written, c.Name)
	}
	if !slices.Equal(written, names) {
		t.Fatalf("the columns are\n%v, want\n%v", written, names)
	}
	categories := map[string]int{}
	eachCase(t, func(t *testing.T, u *Usage, _ *sim.Result) {
		for i, row := range rowsOf(t, u, time.Hour) {
			categories[row["PricingCategory"]+row["ChargeCategory"]+row["CommitmentDiscountStatus"]]++
			for _, column := range names {
				rule := rules[column]
				if why := rule.broken(row, column); why != "" {
					t.Fatalf("row %d: %s %s: %v", i, column, why, row)
				}
			}
			if why := focusRelations(row); why != "" {
				t.Fatalf("row %d: %s: %v", i, why, row)
			}
		}
	})
	for _, want := range []string{"StandardUsage", "DynamicUsage", "CommittedUsageUsed", "CommittedUsageUnused", "StandardPurchase"} {
		if categories[want] == 0 {
			t.Errorf("no row is %s: %v", want, categories)
		}
	}
}

// focusRelations says what two columns of a row contradict each other in.
func focusRelations(r focusRow) string {
	product := func(price, cost string) bool {
		off := new(big.Rat).Sub(new(big.Rat).Mul(r.number(price), r.number("PricingQuantity")), r.number(cost))
		return off.Abs(off).Cmp(big.NewRat(1, 1_000_000)) <= 0
	}
	zero := func(column string) bool { return r.number(column).Sign() == 0 }
	switch purchase := r["ChargeCategory"] == "Purchase"; {
	case !product("ListUnitPrice", "ListCost"), !product("ContractedUnitPrice", "ContractedCost"):
		return "a cost is not price × quantity"
	case purchase && (!zero("EffectiveCost") || r["ChargeFrequency"] == "Usage-Based"):
		return "a purchase has an effective cost, or is based on usage"
	case r["PricingCategory"] == "Committed" && !zero("BilledCost"):
		return "what a commitment pays is billed again"
	case r["CommitmentDiscountId"] == "" && r["BilledCost"] != r["EffectiveCost"]:
		return "without a commitment the effective cost is what is billed"
	case r.number("PricingQuantity").Sign() <= 0, r["ConsumedQuantity"] != "" && r.number("ConsumedQuantity").Sign() <= 0:
		return "a quantity is not positive"
	case r["CommitmentDiscountQuantity"] != "" && r.number("CommitmentDiscountQuantity").Sign() <= 0:
		return "a quantity of a commitment is not positive"
	case r["ChargePeriodStart"] < r["BillingPeriodStart"], r["ChargePeriodEnd"] > r["BillingPeriodEnd"], !strings.HasSuffix(r["BillingPeriodStart"], "-01T00:00:00Z"):
		return "the billing period is not the month of the charge"
	}
	return ""
}

// TestFocusAddsUp: to the micro-dollar the nodes cost the bill, the purchases the fees,
// and the effective costs both, of hours and of days.
func TestFocusAddsUp(t *testing.T) {
	eachCase(t, func(t *testing.T, u *Usage, r *sim.Result) {
		for _, every := range []time.Duration{time.Hour, 24 * time.Hour} {
			lines, err := u.Focus(every)
			if err != nil {
				t.Fatal(err)
			}
			var nodes, purchases, effective policy.Money
			var fees policy.NodeFees
			for i := range lines {
				l := &lines[i]
				effective += l.effective
				switch l.kind {
				case linePurchase:
					purchases += l.billed
					continue
				case lineFee:
					fees.Fee += l.billed
				case lineVolumes:
					fees.Volumes += l.billed
				case lineCredits:
					fees.Credits += l.billed
					if off := l.list() - l.billed; off < -1 || off > 1 || l.hourUnit() != creditUnit {
						t.Errorf("credits of %v are %v at their list price, by %s", l.billed, l.list(), l.hourUnit())
					}
				}
				nodes += l.billed
			}
			if nodes != r.Bill || fees != r.Fees || purchases != r.CommitmentFee || effective != r.Bill+r.CommitmentFee {
				t.Errorf("every %v: %v for nodes and %v for commitments, effectively %v; the run was billed %v, and paid %v",
					every, nodes, purchases, effective, r.Bill, r.CommitmentFee)
			}
		}
	})
}

// TestFocusParquet has the names and types of the columns, and equal bytes for equal bills.
func TestFocusParquet(t *testing.T) {
	u, r := usageOf(t, "committed", "static")
	lines, err := u.Focus(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	write := func() []byte {
		var out bytes.Buffer
		if err := WriteFocusParquet(&out, lines, "v1"); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	data := write()
	if !bytes.Equal(data, write()) {
		t.Error("two files of one bill differ")
	}
	type row struct {
		Billed   int64 `parquet:"BilledCost,decimal(6:18)"`
		Consumed int64 `parquet:"ConsumedQuantity,optional,decimal(9:18)"`
		Start    int64 `parquet:"ChargePeriodStart,timestamp(millisecond)"`
		Tags     string
	}
	rows, err := parquet.Read[row](bytes.NewReader(data), int64(len(data)))
	if err != nil || len(rows) != len(lines) {
		t.Fatalf("%d rows of %d lines: %v", len(rows), len(lines), err)
	}
	sum := int64(0)
	for i := range rows {
		sum += rows[i].Billed
		if rows[i].Start != int64(lines[i].period.From) ||
			lines[i].node != nil && (rows[i].Consumed != lines[i].quantity ||
				rows[i].Tags != `{"spotter.dev/pool":"general","spotter.dev/simulated":"true"}`) {
			t.Fatalf("row %d is %+v", i, rows[i])
		}
	}
	if sum != int64(r.Bill+r.CommitmentFee) {
		t.Errorf("the file has %d micro-dollars, want %v", sum, r.Bill+r.CommitmentFee)
	}
}

// TestShare: what a fee is divided into never exceeds it, and all of the commitment has
// all of it; the least that is billed has a row.
func TestShare(t *testing.T) {
	s := share{fee: 100, all: 10}
	if a, b, c := s.take(3), s.take(4), s.take(9); a != 30 || b != 40 || c != 30 || s.used != 10 {
		t.Errorf("%v, %v and %v of 100", a, b, c)
	}
	u := plain()
	u.Commitments = []policy.Commitment{{Name: "ri", Amount: 1}}
	f := focus{u: u, commitmentOf: []int{0}}
	f.node(periodOf(u.Window.From, time.Hour), &Charge{Time: time.Hour, Billed: 1, Spared: 1 << 40}, []share{{}})
	if len(f.lines) != 2 || f.lines[0].billed != 1 || f.lines[0].quantity != 1 || f.lines[1].quantity != nanoHours-1 {
		t.Errorf("the lines are %+v", f.lines)
	}
}

// TestFocusModelled: a list price that was not published is reported as modelled.
func TestFocusModelled(t *testing.T) {
	for _, modelled := range []bool{false, true} {
		u := plain()
		u.About.Account, u.Markets[0].OnDemandModelled = "shop", modelled
		if _, err := u.Focus(time.Hour); err != nil || (len(u.Warnings) > 0) != modelled {
			t.Errorf("modelled %v: %q, %v", modelled, u.Warnings, err)
		}
	}
}

// TestFocusRefuses what the columns need and is not known.
func TestFocusRefuses(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(u *Usage)
	}{
		{"BillingAccountId", func(u *Usage) { u.About.Account = "" }},
		{"ListUnitPrice", func(u *Usage) { u.Markets = slices.Clone(u.Markets); u.Markets[u.Nodes[0].Market].OnDemand = 0 }},
		{"the fee of plan is not stated", func(u *Usage) {
			u.Commitments = slices.Clone(u.Commitments)
			u.Commitments[0].Fee = policy.NoPrice
		}},
		{"both plan and other cover", func(u *Usage) {
			other := u.Commitments[0]
			other.Name = "other"
			u.Commitments = append(slices.Clone(u.Commitments), other)
			for i := range u.Nodes {
				u.Nodes[i].Billed = policy.NoPrice
			}
		}},
	} {
		u, _ := usageOf(t, "committed", "on-demand")
		c.change(u)
		if _, err := u.Focus(time.Hour); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
