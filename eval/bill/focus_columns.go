package bill

import (
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/spotter-dev/spotter/eval/tabular"
	"github.com/spotter-dev/spotter/policy"
)

// FocusVersion is the version of the specification that the columns are of.
const FocusVersion = "1.2"

// Columns and values that a bill of others is read by.
const (
	columnResourceID       = "ResourceId"
	columnPeriodStart      = "ChargePeriodStart"
	columnPeriodEnd        = "ChargePeriodEnd"
	columnEffectiveCost    = "EffectiveCost"
	columnChargeCategory   = "ChargeCategory"
	columnServiceCategory  = "ServiceCategory"
	columnConsumedQuantity = "ConsumedQuantity"
	columnConsumedUnit     = "ConsumedUnit"
	columnCommitmentStatus = "CommitmentDiscountStatus"

	chargeUsage    = "Usage"
	serviceCompute = "Compute"
	statusUsed     = "Used"
	creditUnit     = "vCPU-Hours" // of surplus CPU credits, by which nothing runs
)

// quantityScale is how many digits after the point quantities have.
const quantityScale = 9

// A vendor is a provider as its bills name it.
type vendor struct{ name, service string }

// vendors are those of the markets, by the name of the provider.
var vendors = map[string]vendor{
	"aws":            {"AWS", "Amazon Elastic Compute Cloud"},
	"gcp":            {"Google Cloud", "Compute Engine"},
	"azure":          {"Microsoft", "Virtual Machines"},
	policy.Rackspace: {"Rackspace", "Rackspace Spot"},
}

// nodeFee is the publisher of a fee of nodes, whose seller is not known.
const nodeFee = "Node Fee"

// vendor returns who sells what l is about.
func (l *Line) vendor() vendor {
	switch l.kind {
	case lineFee:
		return vendor{nodeFee, nodeFee}
	case lineVolumes:
		return vendor{"AWS", "Amazon Elastic Block Store"}
	}
	provider := ""
	if l.node != nil {
		provider = l.market().Provider
	} else if len(l.u.Markets) > 0 {
		provider = l.u.Markets[0].Provider // commitments are of the one account
	}
	if v, ok := vendors[provider]; ok {
		return v
	}
	return vendor{provider, "Virtual Machines"}
}

// A service is how the specification sorts what is charged, and what it is metered by.
type service struct{ category, subcategory, meter string }

// service returns that of l.
func (l *Line) service() service {
	switch l.kind {
	case lineFee:
		return service{"Other", "Other (Other)", "Node Hours"}
	case lineVolumes:
		return service{"Storage", "Block Storage", "Volume Hours"}
	case lineCredits:
		return service{serviceCompute, "Virtual Machines", "vCPU Hours"}
	case linePurchase, lineUnused:
		return service{serviceCompute, "Virtual Machines", "Commitment"}
	}
	return service{serviceCompute, "Virtual Machines", "Instance Hours"}
}

// sku is what is sold, whatever its price depends on.
func (l *Line) sku() string {
	if l.node == nil {
		return "commitment/" + l.commitment.Name
	}
	m := l.market()
	switch l.kind {
	case lineFee:
		return "node-fee/" + l.node.Pool
	case lineVolumes:
		return m.Provider + "/" + m.Region + "/volumes/" + l.node.Pool
	case lineCredits:
		return m.Provider + "/" + m.Region + "/cpu-credits/" + l.u.Types[m.Type].Family
	}
	return m.Provider + "/" + m.Region + "/" + l.u.Types[m.Type].Name
}

// capacity is how it is bought, as the price list has it.
func (l *Line) capacity() string {
	if l.kind != lineNode && l.kind != lineCovered {
		return ""
	}
	return "/" + l.market().Capacity.String()
}

// about says in words what is charged.
func (l *Line) about() string {
	switch l.kind {
	case linePurchase:
		return "Fee of the commitment " + l.commitment.Name
	case lineUnused:
		return "Unused part of the commitment " + l.commitment.Name
	}
	m := l.market()
	switch l.kind {
	case lineFee:
		return "Fee of a node of pool " + l.node.Pool
	case lineVolumes:
		return "Root and data volumes of a node of pool " + l.node.Pool
	case lineCredits:
		return "Surplus CPU credits of a " + l.u.Types[m.Type].Name
	}
	text := l.u.Types[m.Type].Name + " " + m.Capacity.String() + " in " + l.u.Zones[m.Zone]
	if l.kind == lineCovered {
		text += ", paid by the commitment " + l.commitment.Name
	}
	return text
}

// tags are those of the node, as JSON.
func (l *Line) tags() string {
	tags := map[string]string{}
	for _, t := range l.u.About.Tags {
		tags[t.Key] = t.Value
	}
	if l.node != nil {
		tags["spotter.dev/pool"] = l.node.Pool
	}
	return object(tags)
}

// details are the properties of a type that the specification has names for.
func (l *Line) details() string {
	if l.kind != lineNode && l.kind != lineCovered {
		return ""
	}
	t := &l.u.Types[l.market().Type]
	details := map[string]any{"F_InstanceType": t.Name, "F_CoreCount": t.VCPU}
	if t.Capacity.GPU > 0 {
		details["F_GpuCount"] = t.Capacity.GPU
	}
	return object(details)
}

// object writes what has no value that JSON lacks, keys ascending.
func object(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("bill: " + err.Error())
	}
	return string(text)
}

// category is the model of the price.
func (l *Line) category() string {
	switch {
	case l.kind == lineCovered, l.kind == lineUnused:
		return "Committed"
	case l.kind == lineNode && l.market().Capacity == policy.Spot:
		return "Dynamic"
	}
	return "Standard"
}

// hourUnit is the unit of quantities: hours of a node, or of a vCPU for surplus credits.
func (l *Line) hourUnit() string { return pick(l.kind == lineCredits, creditUnit, "Hours") }

// ofNode returns what value says where the line is of a node, else "".
func ofNode(value func(l *Line) string) func(*Line) string {
	return func(l *Line) string {
		if l.node == nil {
			return ""
		}
		return value(l)
	}
}

// ofCommitment does so where a commitment has a part in it.
func ofCommitment(value func(c *policy.Commitment) string) func(*Line) string {
	return func(l *Line) string {
		if l.commitment == nil {
			return ""
		}
		return value(l.commitment)
	}
}

// always returns one value.
func always(text string) func(*Line) string { return func(*Line) string { return text } }

// pick returns one of two.
func pick(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

// committed is how much of a commitment is bought, used or left: in its units, and of a
// plan to spend in dollars of its fee.
func (l *Line) committed() (int64, bool) {
	switch {
	case l.commitment == nil:
		return 0, false
	case l.commitment.Unit == policy.CoverDollars:
		return int64(part(l.commitment.Fee, l.units, l.commitment.Amount)), true
	}
	return l.units, true
}

// focusColumns are those of FOCUS that a bill of nodes has, in the order of the
// specification, which is that of the alphabet.
func focusColumns() []tabular.Column[*Line] {
	return slices.Concat(accountColumns(), commitmentColumns(), costColumns(), resourceColumns())
}

// accountColumns are those from A to Ch: who is billed, for when, for what.
func accountColumns() []tabular.Column[*Line] {
	month := func(l *Line, months int) policy.Time {
		t := l.period.From.Std()
		return policy.TimeOf(t.AddDate(0, months, 1-t.Day()).Truncate(24 * time.Hour))
	}
	return []tabular.Column[*Line]{
		tabular.Text("AvailabilityZone", ofNode(func(l *Line) string { return l.u.Zones[l.market().Zone] })),
		tabular.Money("BilledCost", func(l *Line) policy.Money { return l.billed }),
		tabular.Text("BillingAccountId", func(l *Line) string { return l.u.About.Account }),
		tabular.Text("BillingAccountName", func(l *Line) string { return l.u.About.Account }),
		tabular.Text("BillingCurrency", always("USD")),
		tabular.Time("BillingPeriodEnd", func(l *Line) policy.Time { return month(l, 1) }),
		tabular.Time("BillingPeriodStart", func(l *Line) policy.Time { return month(l, 0) }),
		tabular.Text(columnChargeCategory, func(l *Line) string {
			return pick(l.kind == linePurchase, "Purchase",
				chargeUsage)
		}),
		tabular.Text("ChargeClass", always("")), // nothing is ever corrected
		tabular.Text("ChargeDescription", (*Line).about),
		tabular.Text("ChargeFrequency", func(l *Line) string { return pick(l.node == nil, "Recurring", "Usage-Based") }),
		tabular.Time(columnPeriodEnd, func(l *Line) policy.Time { return l.period.To }),
		tabular.Time(columnPeriodStart, func(l *Line) policy.Time { return l.period.From }),
	}
}

// commitmentColumns are those that begin with CommitmentDiscount.
func commitmentColumns() []tabular.Column[*Line] {
	spends := func(c *policy.Commitment) bool { return c.Unit == policy.CoverDollars }
	name := ofCommitment(func(c *policy.Commitment) string { return c.Name })
	return []tabular.Column[*Line]{
		tabular.Text("CommitmentDiscountCategory", ofCommitment(func(c *policy.Commitment) string {
			return pick(spends(c),
				"Spend", "Usage")
		})),
		tabular.Text("CommitmentDiscountId", name),
		tabular.Text("CommitmentDiscountName", name),
		tabular.Decimal("CommitmentDiscountQuantity", quantityScale, (*Line).committed),
		tabular.Text(columnCommitmentStatus, func(l *Line) string {
			return map[lineKind]string{lineCovered: statusUsed, lineUnused: "Unused"}[l.kind]
		}),
		tabular.Text("CommitmentDiscountType", ofCommitment(func(c *policy.Commitment) string {
			return pick(spends(c),
				"Savings Plan", "Reserved Instance")
		})),
		tabular.Text("CommitmentDiscountUnit", ofCommitment(func(c *policy.Commitment) string {
			return [...]string{policy.CoverNodes: "Node-Hours", policy.CoverSizes: "Size-Hours",
				policy.CoverDollars: "USD"}[c.Unit]
		})),
	}
}

// costColumns are those from Co to P: how much of it, at which price, and whose.
func costColumns() []tabular.Column[*Line] {
	vendorName := func(l *Line) string { return l.vendor().name }
	return []tabular.Column[*Line]{
		tabular.Decimal(columnConsumedQuantity, quantityScale, func(l *Line) (int64, bool) {
			return l.quantity,
				l.node != nil
		}),
		tabular.Text(columnConsumedUnit, ofNode((*Line).hourUnit)),
		tabular.Money("ContractedCost", (*Line).list),
		tabular.Money("ContractedUnitPrice", (*Line).unitPrice),
		tabular.Money(columnEffectiveCost, func(l *Line) policy.Money { return l.effective }),
		tabular.Text("InvoiceIssuerName", vendorName),
		tabular.Money("ListCost", (*Line).list),
		tabular.Money("ListUnitPrice", (*Line).unitPrice),
		tabular.Text("PricingCategory", (*Line).category),
		tabular.Decimal("PricingQuantity", quantityScale, func(l *Line) (int64, bool) { return l.quantity, true }),
		tabular.Text("PricingUnit", (*Line).hourUnit),
		tabular.Text("ProviderName", vendorName),
		tabular.Text("PublisherName", vendorName),
	}
}

// resourceColumns are those from R on: what ran, and where.
func resourceColumns() []tabular.Column[*Line] {
	region := ofNode(func(l *Line) string { return l.market().Region })
	name := ofNode(func(l *Line) string { return l.node.Name })
	run := func(l *Line) string { return l.u.About.Run }
	return []tabular.Column[*Line]{
		tabular.Text("RegionId", region),
		tabular.Text("RegionName", region),
		tabular.Text(columnResourceID, name),
		tabular.Text("ResourceName", name),
		tabular.Text("ResourceType", ofNode(always("Virtual Machine"))),
		tabular.Text(columnServiceCategory, func(l *Line) string { return l.service().category }),
		tabular.Text("ServiceName", func(l *Line) string { return l.vendor().service }),
		tabular.Text("ServiceSubcategory", func(l *Line) string { return l.service().subcategory }),
		tabular.Text("SkuId", (*Line).sku),
		tabular.Text("SkuMeter", func(l *Line) string { return l.service().meter }),
		tabular.Text("SkuPriceDetails", (*Line).details),
		tabular.Text("SkuPriceId", func(l *Line) string { return l.sku() + l.capacity() }),
		tabular.Text("SubAccountId", run),
		tabular.Text("SubAccountName", run),
		tabular.Text("Tags", (*Line).tags),
	}
}

// WriteFocusParquet writes lines as Parquet.
func WriteFocusParquet(w io.Writer, lines []Line, version string) error {
	return tabular.WriteParquet(w, focusColumns(), pointers(lines), parquet.KeyValueMetadata("focus.version",
		FocusVersion), parquet.KeyValueMetadata("spotter.version", version))
}

// WriteFocusCSV writes lines as CSV.
func WriteFocusCSV(w io.Writer, lines []Line) error {
	return tabular.WriteCSV(w, focusColumns(), pointers(lines))
}

// pointers goes over lines.
func pointers(lines []Line) func(func(*Line) bool) {
	return func(yield func(*Line) bool) {
		for i := range lines {
			if !yield(&lines[i]) {
				return
			}
		}
	}
}
