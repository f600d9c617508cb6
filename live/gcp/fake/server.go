// Package fake plays the Cloud Billing Catalog API at the wire: pages, the API key, and what goes
// wrong.
package fake

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"

	pricelist "github.com/spotter-dev/spotter/live/pricelist/fake"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// Path is where the SKUs of Compute Engine are served, and Key the API key that is valid.
const (
	Path = "/v1/services/6F81-5844-456A/skus"
	Key  = "AIza-of-the-test"
)

// An SKU is a SKU as the API writes it, without the fields that no test needs.
type SKU struct {
	Name           string    `json:"name"`
	ID             string    `json:"skuId"`
	Description    string    `json:"description"`
	Category       Category  `json:"category"`
	ServiceRegions []string  `json:"serviceRegions"`
	PricingInfo    []Pricing `json:"pricingInfo"`
	Provider       string    `json:"serviceProviderName"`
}

// A Category is what kind of resource a SKU sells.
type Category struct {
	Service   string `json:"serviceDisplayName"`
	Family    string `json:"resourceFamily"`
	Group     string `json:"resourceGroup"`
	UsageType string `json:"usageType"`
}

// A Pricing is the price of a SKU from a time on.
type Pricing struct {
	EffectiveTime string     `json:"effectiveTime"`
	Expression    Expression `json:"pricingExpression"`
}

// An Expression is a price by usage.
type Expression struct {
	UsageUnit   string `json:"usageUnit"`
	BaseUnit    string `json:"baseUnit"`
	TieredRates []Rate `json:"tieredRates"`
}

// A Rate is a price from an amount of usage on.
type Rate struct {
	StartUsageAmount float64 `json:"startUsageAmount"`
	UnitPrice        Money   `json:"unitPrice"`
}

// A Money is an amount of a currency, in units and billionths.
type Money struct {
	CurrencyCode string `json:"currencyCode"`
	Units        string `json:"units,omitempty"`
	Nanos        any    `json:"nanos,omitempty"`
}

// A Faults says how the server misbehaves. The zero value is a good server.
type Faults = pricelist.Faults

// A Server answers as the API would. It is an http.Handler.
type Server struct {
	pricelist.Server

	mu   sync.Mutex
	skus []SKU
}

// New returns a server of SKUs.
func New(skus ...SKU) *Server {
	s := &Server{skus: skus}
	s.Throttled = refusal(http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", "Quota exceeded.")
	return s
}

// Set replaces the SKUs.
func (s *Server) Set(skus ...SKU) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skus = skus
}

// refusal returns an error as Google's APIs write it.
func refusal(code int, status, message string) string {
	return fmt.Sprintf("{\n  \"error\": {\n    \"code\": %d,\n    \"message\": %q,\n    \"status\": %q\n  }\n}", code, message, status)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Serve(w, r.URL.RawQuery, func() (int, []byte) {
		s.mu.Lock()
		defer s.mu.Unlock()
		q := r.URL.Query()
		size, err := strconv.Atoi(q.Get("pageSize"))
		from, err2 := strconv.Atoi("0" + strings.TrimPrefix(q.Get("pageToken"), "from-"))
		switch {
		case r.Header.Get("X-Goog-Api-Key") != Key:
			return http.StatusBadRequest,
				[]byte(refusal(http.StatusBadRequest, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."))
		case r.URL.Path != Path, err != nil, err2 != nil, size < 1, size > 5000, q.Get("currencyCode") != "USD":
			return http.StatusBadRequest, []byte(refusal(http.StatusBadRequest, "INVALID_ARGUMENT", "Request is invalid."))
		}
		page := map[string]any{"nextPageToken": ""}
		if part := s.skus[min(from, len(s.skus)):min(from+size, len(s.skus))]; len(part) > 0 {
			page["skus"] = part
		}
		if from+size < len(s.skus) {
			page["nextPageToken"] = fmt.Sprintf("from-%d", from+size)
			if other := s.Link(); other != "" {
				page["nextPageToken"] = other
			}
		}
		body, err := json.Marshal(page)
		if err != nil {
			panic(err)
		}
		return http.StatusOK, body
	})
}

// Part returns the SKUs on demand and as Spot of a part of machines in a region, at prices per hour:
// of a product, such as "N2 Instance", and what of it, "Core", "Ram" or "GPU".
func Part(region, product, what string, onDemand, spot float64) []SKU {
	of := func(description, usage string, price float64) SKU {
		unit, group := "h", "CPU"
		switch what {
		case "Ram":
			unit, group = "GiBy.h", "RAM"
		case "GPU":
			group = "GPU"
		}
		units := math.Floor(price)
		return SKU{
			Name: "services/6F81-5844-456A/skus/" + description, ID: description, Description: description, Provider: "Google",
			Category:       Category{"Compute Engine", "Compute", group, usage},
			ServiceRegions: []string{region},
			PricingInfo: []Pricing{{"2026-09-01T00:00:00Z", Expression{unit, "s", []Rate{{0, Money{"USD",
				strconv.FormatFloat(units, 'f', -1, 64), int64(math.Round((price - units) * 1e9))}}}}}},
		}
	}
	name := product + " " + what
	first, second := "Spot Preemptible "+name+" running in "+region, name+" running in "+region
	if what == "GPU" {
		first = name + " attached to Spot Preemptible VMs running in " + region
	}
	all := []SKU{
		of(second, "OnDemand", onDemand), of(first, "Preemptible", spot),
		of("Commitment v1: "+name+" in "+region+" for 1 Year", "Commit1Yr", 0.6*onDemand),
	}
	if before, after, ok := strings.Cut(second, " Instance"); ok {
		all = append(all, of(before+" Sole Tenancy Instance"+after, "OnDemand", 1.1*onDemand+0.001),
			of(before+" Custom Instance"+after, "OnDemand", 1.05*onDemand+0.001))
	}
	return all
}

// familyProducts are the products of machine families, and of their accelerators.
var familyProducts = []struct{ family, product, accelerator string }{
	{"e2", "E2 Instance", ""}, {"n1", "N1 Predefined Instance", ""}, {"n2", "N2 Instance", ""}, {"n2d", "N2D AMD Instance", ""},
	{"t2d", "T2D AMD Instance", ""}, {"t2a", "T2A Arm Instance", ""}, {"c2", "Compute optimized", ""},
	{"c2d", "C2D AMD Instance", ""}, {"c3", "C3 Instance", ""}, {"m1", "Memory-optimized Instance", ""},
	{"m3", "M3 Memory-optimized Instance", ""}, {"g2", "G2 Instance", "Nvidia L4"}, {"a2", "A2 Instance", "Nvidia Tesla A100"},
}

// memoryShare is the ratio of the price of a GiB to that of a core, for families whose machines all
// have the same memory per core.
const memoryShare = 0.134

// Region returns the SKUs of a region at which machines have the catalog's on-demand prices, with
// Spot prices that are the given share of them. The prices of parts follow from those of two machine
// types.
func Region(region string, share float64) (all []SKU) {
	for _, f := range familyProducts {
		core, memory, accelerator, ok := parts(region, f.family, f.accelerator != "")
		if !ok {
			continue
		}
		all = append(all, Part(region, f.product, "Core", core, share*core)...)
		all = append(all, Part(region, f.product, "Ram", memory, share*memory)...)
		if f.accelerator != "" {
			all = append(all, Part(region, f.accelerator, "GPU", accelerator, share*accelerator)...)
		}
	}
	return all
}

// parts returns the prices of a core, of a GiB and of an accelerator of a family in a region, from
// its first two machine types that determine them.
func parts(region, family string, accelerated bool) (core, memory, accelerator float64, ok bool) {
	type point struct{ x, y, price float64 } // cores and memory, or both together and accelerators
	var first *point
	for _, name := range catalog.Types(catalog.GCP) {
		t, _ := catalog.Lookup(catalog.GCP, name)
		price, sold := catalog.OnDemand(catalog.GCP, region, name)
		if t.Family != family || !sold || strings.Count(name, "-") != 2 || strings.Contains(name, "ultragpu") ||
			family == "n1" && strings.Contains(name, "mem") && !strings.Contains(name, "highmem") {
			continue
		}
		text, _ := policy.FindLabel(t.Labels, "karpenter.k8s.gcp/instance-memory")
		mib, err := strconv.ParseFloat(text, 64)
		if err != nil {
			panic(err)
		}
		p := point{float64(t.VCPU), mib / 1024, price.Float()}
		if accelerated {
			p = point{p.x + memoryShare*p.y, float64(t.Capacity.GPU), p.price}
		}
		if first == nil {
			first = &p
			continue
		}
		d := first.x*p.y - p.x*first.y
		if math.Abs(d) < 0.05*first.x*p.y {
			continue // they have nearly the same memory per core
		}
		x, y := (first.price*p.y-p.price*first.y)/d, (first.x*p.price-p.x*first.price)/d
		if accelerated {
			return x, memoryShare * x, y, true
		}
		return x, y, 0, true
	}
	if first == nil || accelerated {
		return 0, 0, 0, false
	}
	core = first.price / (first.x + memoryShare*first.y)
	return core, memoryShare * core, 0, true
}
