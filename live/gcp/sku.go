package gcp

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// A sku is a SKU in the response of the API.
type sku struct {
	Description string `json:"description"`
	Category    struct {
		UsageType string `json:"usageType"`
	} `json:"category"`
	Regions []string `json:"serviceRegions"`
	Pricing []struct {
		Expression struct {
			Unit  string `json:"usageUnit"`
			Rates []struct {
				From  json.Number `json:"startUsageAmount"`
				Price struct {
					Currency string      `json:"currencyCode"`
					Units    json.Number `json:"units"`
					Nanos    json.Number `json:"nanos"`
				} `json:"unitPrice"`
			} `json:"tieredRates"`
		} `json:"pricingExpression"`
	} `json:"pricingInfo"`
}

// The usage types of SKUs that are read. Commitments and reservations have others.
const (
	usageOnDemand = "OnDemand"
	usageSpot     = "Preemptible"
)

// A part is what a SKU sells an hour of: a core, a GiB of memory or an accelerator.
type part uint8

const (
	partCore part = iota
	partMemory
	partAccelerator
)

// products maps the product in the description of a SKU to the machine family, or for accelerators
// to their name in the catalog. A description of anything else, such as custom machine types, sole
// tenancy or the premium of M2, has another product.
var products = map[string]string{
	"E2 Instance": "e2", "N1 Predefined Instance": "n1", "N2 Instance": "n2", "N2D AMD Instance": "n2d",
	"T2D AMD Instance": "t2d", "T2A Arm Instance": "t2a", "C2D AMD Instance": "c2d", "C3 Instance": "c3",
	"Compute optimized": "c2", "Compute optimized Instance": "c2", // the second in newer regions
	"Memory-optimized Instance": "m1", "M3 Memory-optimized Instance": "m3", "A2 Instance": "a2", "G2 Instance": "g2",
	"Nvidia Tesla A100": "a100", "Nvidia L4": "l4",
}

// descriptions matches the descriptions of parts of machines, as in
//
//	Spot Preemptible N2 Instance Core running in Americas
//	Nvidia L4 GPU attached to Spot Preemptible VMs running in Virginia
var descriptions = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(Spot Preemptible )?(.+) (Core|Ram|GPU)( attached to Spot Preemptible VMs)? running in .`)
})

// A component is the part of a machine that a SKU sells.
type component struct {
	name string // machine family, or name of an accelerator
	part part
	spot bool
}

// component returns the part of a machine that a SKU sells, and whether it sells one.
func (x *sku) component() (c component, ok bool) {
	m := descriptions().FindStringSubmatch(x.Description)
	if m == nil || x.Category.UsageType != usageOnDemand && x.Category.UsageType != usageSpot {
		return c, false
	}
	c.name, c.part = products[m[2]], map[string]part{"Core": partCore, "Ram": partMemory, "GPU": partAccelerator}[m[3]]
	c.spot = x.Category.UsageType == usageSpot
	accelerator := strings.HasPrefix(m[2], "Nvidia ")
	return c, c.name != "" && accelerator == (c.part == partAccelerator) && c.spot == (m[1] != "" || m[4] != "")
}

// priceMax is the maximum valid price of an hour of a part, in dollars. It exceeds all published
// prices tenfold.
const priceMax = 1000

// gibPerGB is the factor from a price of a gigabyte to one of a GiB.
const gibPerGB = float64(1<<30) / 1e9

// price returns the price of an hour of a part, in dollars.
func (x *sku) price(p part) (float64, error) {
	if len(x.Pricing) == 0 {
		return 0, fmt.Errorf("%q has no price", x.Description)
	}
	e := &x.Pricing[len(x.Pricing)-1].Expression // in chronological order
	if len(e.Rates) != 1 || e.Rates[0].From != "" && e.Rates[0].From != "0" {
		return 0, fmt.Errorf("%q has %d prices by usage", x.Description, len(e.Rates))
	}
	r := &e.Rates[0].Price
	if r.Currency != "USD" {
		return 0, fmt.Errorf("the price of %q is in %q, not in USD", x.Description, r.Currency)
	}
	factor := map[part]map[string]float64{
		partCore: {"h": 1}, partAccelerator: {"h": 1}, partMemory: {"GiBy.h": 1, "GBy.h": gibPerGB},
	}[p][e.Unit]
	if factor == 0 {
		return 0, fmt.Errorf("the price of %q is per %q", x.Description, e.Unit)
	}
	units, err := strconv.ParseInt(orZero(r.Units), 10, 64)
	nanos, err2 := strconv.ParseInt(orZero(r.Nanos), 10, 64)
	dollars := float64(units) + float64(nanos)/1e9
	if err != nil || err2 != nil || !(dollars > 0 && dollars <= priceMax) || math.Abs(float64(nanos)) >= 1e9 {
		return 0, fmt.Errorf("the price of %q is %q and %q billionths", x.Description, r.Units, r.Nanos)
	}
	return dollars * factor, nil
}

// orZero returns a number, or 0 if it is missing: the API omits fields that are zero.
func orZero(n json.Number) string {
	if n == "" {
		return "0"
	}
	return n.String()
}
