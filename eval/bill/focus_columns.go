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

// FocusVersion is the version of the FOCUS specification that defines the columns.
const FocusVersion = "1.2"

// Columns and values that are also read from bills of other programs.
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
	creditUnit     = "vCPU-Hours" // of surplus CPU credits, which are not the time of a node
)

// quantityScale is the number of decimal places of quantities.
const quantityScale = 9

// A vendor is the name of a provider and of its service in the provider's bills.
type vendor struct{ name, service string }

// vendors is indexed by the name of a market's provider.
var vendors = map[string]vendor{
	"aws":            {"AWS", "Amazon Elastic Compute Cloud"},
	"gcp":            {"Google Cloud", "Compute Engine"},
	"azure":          {"Microsoft", "Virtual Machines"},
	policy.Rackspace: {"Rackspace", "Rackspace Spot"},
}

// nodeFee is the publisher of node fees, whose vendor is unknown.
const nodeFee = "Node Fee"

// vendor returns the vendor of the charge.
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
		provider = l.u.Markets[0].Provider // all commitments belong to the same account
	}
	if v, ok := vendors[provider]; ok {
		return v
	}
	return vendor{provider, "Virtual Machines"}
}

// A service is the category of a charge in the FOCUS specification, and its meter.
type service struct{ category, subcategory, meter string }

// service returns the service of the charge.
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

// sku identifies the product that is sold, independent of its price.
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

// capacity returns the capacity type as a suffix of the price ID, empty for rows that are not about
// a node's price.
func (l *Line) capacity() string {
	if l.kind != lineNode && l.kind != lineCovered {
		return ""
	}
	return "/" + l.market().Capacity.String()
}

// about describes the charge in words.
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

// tags returns the tags of the row's node as JSON.
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

// details returns those properties of an instance type that the specification defines, as JSON.
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

// object encodes v as JSON with ascending keys. It panics if v cannot be encoded.
func object(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("bill: " + err.Error())
	}
	return string(text)
}

// category returns the pricing model.
func (l *Line) category() string {
	switch {
	case l.kind == lineCovered, l.kind == lineUnused:
		return "Committed"
	case l.kind == lineNode && l.market().Capacity == policy.Spot:
		return "Dynamic"
	}
	return "Standard"
}

// hourUnit returns the unit of the quantity: hours of a node, or of a vCPU for surplus CPU credits.
func (l *Line) hourUnit() string { return pick(l.kind == lineCredits, creditUnit, "Hours") }

// ofNode returns a function that is value for rows about a node and returns "" for others.
func ofNode(value func(l *Line) string) func(*Line) string {
	return func(l *Line) string {
		if l.node == nil {
			return ""
		}
		return value(l)
	}
}

// ofCommitment returns a function that applies value to the row's commitment, and returns "" if it
// has none.
func ofCommitment(value func(c *policy.Commitment) string) func(*Line) string {
	return func(l *Line) string {
		if l.commitment == nil {
			return ""
		}
		return value(l.commitment)
	}
}

// always returns a function that returns text for every row.
func always(text string) func(*Line) string { return func(*Line) string { return text } }

// pick returns a if yes is true, otherwise b.
func pick(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

// committed returns how much of a commitment is bought, used or unused, in the commitment's units;
// for a savings plan in dollars of its fee. ok is false for rows without a commitment.
func (l *Line) committed() (int64, bool) {
	switch {
	case l.commitment == nil:
		return 0, false
	case l.commitment.Unit == policy.CoverDollars:
		return mulDiv(int64(l.commitment.Fee), l.units, l.commitment.Amount), true
	}
	return l.units, true
}

// focusColumns returns the FOCUS columns that a bill of nodes has, in the order of the
// specification, which is alphabetical.
func focusColumns() []tabular.Column[*Line] {
	return slices.Concat(accountColumns(), commitmentColumns(), costColumns(), resourceColumns())
}

// accountColumns returns the columns from A to Ch: the account, the period and the charge.
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
		tabular.Text("ChargeClass", always("")), // there are no corrections
		tabular.Text("ChargeDescription", (*Line).about),
		tabular.Text("ChargeFrequency", func(l *Line) string { return pick(l.node == nil, "Recurring", "Usage-Based") }),
		tabular.Time(columnPeriodEnd, func(l *Line) policy.Time { return l.period.To }),
		tabular.Time(columnPeriodStart, func(l *Line) policy.Time { return l.period.From }),
	}
}

// commitmentColumns returns the columns whose names start with CommitmentDiscount.
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

// costColumns returns the columns from Co to P: quantities, prices and vendors.
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

// resourceColumns returns the columns from R to Z: the resource, its location and its SKU.
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

// pointers iterates over pointers to lines.
func pointers(lines []Line) func(func(*Line) bool) {
	return func(yield func(*Line) bool) {
		for i := range lines {
			if !yield(&lines[i]) {
				return
			}
		}
	}
}
