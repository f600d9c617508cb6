package azure

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A row is a meter in the response of the API.
type row struct {
	Currency string      `json:"currencyCode"`
	Price    json.Number `json:"retailPrice"`
	MinUnits json.Number `json:"tierMinimumUnits"`
	Region   string      `json:"armRegionName"`
	Since    string      `json:"effectiveStartDate"`
	Until    string      `json:"effectiveEndDate"`
	Meter    string      `json:"meterName"`
	Product  string      `json:"productName"`
	SKU      string      `json:"skuName"`
	Unit     string      `json:"unitOfMeasure"`
	Kind     string      `json:"type"`
	Type     string      `json:"armSkuName"`
}

// otherProducts are parts of the names of products that are not a Linux virtual machine of the
// customer's own: some products for Windows end in " Win" and Cloud Services are written in two ways
// (skypilot-org/skypilot, sky/catalog/data_fetchers/fetch_azure.py).
var otherProducts = []string{" Win", "Cloud Services", "CloudServices", "Dedicated Host"}

// otherMeters are suffixes of the names of SKUs and meters of other purchase options than on demand and
// Spot. Low Priority machines are bought through Azure Batch only.
var otherMeters = []string{" Low Priority", " Expired", " Dedicated Host"}

const (
	kindConsumption = "Consumption"
	unitHour        = "1 Hour"
	suffixSpot      = " Spot"
)

// foreign reports whether a row has no price of a Linux virtual machine, so that it is left out
// without a warning.
func (x *row) foreign() bool {
	return x.Type == "" || x.Kind != kindConsumption ||
		slices.ContainsFunc(otherProducts, func(part string) bool { return strings.Contains(x.Product, part) }) ||
		slices.ContainsFunc(otherMeters, func(end string) bool {
			return strings.HasSuffix(x.SKU, end) || strings.HasSuffix(x.Meter, end)
		})
}

// A Price is the price of a type in a region, per node-hour.
type Price struct {
	Type string
	Spot bool

	Price policy.Money

	// Since is when the price came into force.
	Since policy.Time
}

// read returns the price in a row, and whether it is in force at now. It returns an error for a row
// that has no valid price.
func (x *row) read(region string, now policy.Time) (p Price, inForce bool, err error) {
	p = Price{Type: x.Type, Spot: strings.HasSuffix(x.SKU, suffixSpot) || strings.HasSuffix(x.Meter, suffixSpot)}
	if x.Region != region {
		return p, false, fmt.Errorf("%s is in region %q", x.Type, x.Region)
	}
	if x.Currency != "USD" {
		return p, false, fmt.Errorf("the price of %s is in %q, not in USD", x.Type, x.Currency)
	}
	if x.Unit != unitHour {
		return p, false, fmt.Errorf("the price of %s is per %q, not per %q", x.Type, x.Unit, unitHour)
	}
	dollars, err := x.Price.Float64()
	if err != nil || dollars <= 0 || dollars > priceMax {
		return p, false, fmt.Errorf("the price of %s is %q", x.Type, x.Price)
	}
	if p.Price = policy.Dollars(dollars); p.Price <= 0 {
		return p, false, fmt.Errorf("the price of %s is %q", x.Type, x.Price)
	}
	since, err := time.Parse(time.RFC3339, x.Since)
	if err != nil {
		return p, false, fmt.Errorf("the price of %s is in force since %q", x.Type, x.Since)
	}
	p.Since = max(1, policy.TimeOf(since))
	inForce = p.Since <= now
	if x.Until != "" {
		until, err := time.Parse(time.RFC3339, x.Until)
		if err != nil {
			return p, false, fmt.Errorf("the price of %s is in force until %q", x.Type, x.Until)
		}
		inForce = inForce && policy.TimeOf(until) > now
	}
	units, err := cmp.Or(x.MinUnits, "0").Float64()
	if err != nil {
		return p, false, fmt.Errorf("the price of %s is for more than %q hours", x.Type, x.MinUnits)
	}
	return p, inForce && units == 0, nil // another tier is a discount after some hours
}

// priceMax is the maximum valid price of a node-hour, in dollars. It exceeds all published prices
// tenfold.
const priceMax = 10_000

// A List contains the prices of a region.
type List struct {
	// Prices contains at most one price for each type and capacity type, ascending by type, the
	// on-demand price first.
	Prices []Price

	// Warnings describe rows that have no valid price, for the log.
	Warnings []string

	pages int
}

// listOf returns the prices of a region that are in force at now. Of several prices of a type the
// one that came into force last counts; two different prices of the same date are left out, because
// nothing tells which one is charged.
func listOf(rows []json.RawMessage, region string, now policy.Time) List {
	type key struct {
		kind string
		spot bool
	}
	newest, unclear := map[key]Price{}, map[key]bool{}
	var l List
	invalid, first := 0, error(nil)
	for _, raw := range rows {
		var x row
		err := json.Unmarshal(raw, &x)
		if err == nil && x.foreign() {
			continue
		}
		var p Price
		var inForce bool
		if err == nil {
			p, inForce, err = x.read(region, now)
		}
		if err != nil {
			invalid++
			first = cmp.Or(first, err)
			continue
		}
		if !inForce {
			continue
		}
		k := key{p.Type, p.Spot}
		switch known, is := newest[k]; {
		case !is || p.Since > known.Since:
			newest[k], unclear[k] = p, false
		case p.Since == known.Since && p.Price != known.Price:
			unclear[k] = true
		}
	}
	var twice []string
	for k, p := range newest { // sorted below
		if unclear[k] {
			twice = append(twice, k.kind)
			continue
		}
		l.Prices = append(l.Prices, p)
	}
	slices.SortFunc(l.Prices, func(a, b Price) int {
		if a.Type == b.Type && a.Spot != b.Spot {
			return map[bool]int{false: -1, true: 1}[a.Spot]
		}
		return strings.Compare(a.Type, b.Type)
	})
	if invalid > 0 {
		l.Warnings = append(l.Warnings, fmt.Sprintf("%d prices of %s are not valid, the first: %v", invalid, region, first))
	}
	if len(twice) > 0 {
		slices.Sort(twice)
		l.Warnings = append(l.Warnings, fmt.Sprintf("%d prices of %s are listed twice and differ, the first of %s",
			len(twice), region, twice[0]))
	}
	return l
}
