// Package fake plays the Azure Retail Prices API at the wire: filters, pages, and what goes wrong.
package fake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// Path is where prices are served.
const Path = "/api/retail/prices"

// A Meter is a row as the API writes it.
type Meter struct {
	CurrencyCode       string  `json:"currencyCode"`
	TierMinimumUnits   float64 `json:"tierMinimumUnits"`
	RetailPrice        any     `json:"retailPrice"`
	UnitPrice          any     `json:"unitPrice"`
	ArmRegionName      string  `json:"armRegionName"`
	Location           string  `json:"location"`
	EffectiveStartDate string  `json:"effectiveStartDate"`
	EffectiveEndDate   string  `json:"effectiveEndDate,omitempty"`
	MeterID            string  `json:"meterId"`
	MeterName          string  `json:"meterName"`
	ProductName        string  `json:"productName"`
	SkuName            string  `json:"skuName"`
	ServiceName        string  `json:"serviceName"`
	ServiceFamily      string  `json:"serviceFamily"`
	UnitOfMeasure      string  `json:"unitOfMeasure"`
	Type               string  `json:"type"`
	ArmSkuName         string  `json:"armSkuName"`
}

// A Faults says how the server misbehaves. The zero value is a good server.
type Faults struct {
	// Seed draws which requests are hit.
	Seed uint64

	// These are shares of requests: Throttle is refused with 429, Unavailable fails with 503, Reset
	// loses the connection, and Truncate sends half of the page. Their sum is at most 1.
	Throttle, Unavailable, Reset, Truncate float64

	// RetryAfter is when a throttled request may come again, in whole seconds; 0 says nothing.
	RetryAfter time.Duration

	// Link, if not empty, replaces the links to next pages.
	Link string
}

// A Server answers as the Azure Retail Prices API would. It is an http.Handler.
type Server struct {
	// PageSize is the maximum number of rows of a page; the API's is 1,000.
	PageSize int

	mu     sync.Mutex
	meters []Meter
	faults Faults
	count  uint64
	calls  []string
}

// New returns a server of meters.
func New(meters ...Meter) *Server { return &Server{PageSize: 1000, meters: meters} }

// Set replaces the meters.
func (s *Server) Set(meters ...Meter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meters = meters
}

// SetFaults replaces the faults.
func (s *Server) SetFaults(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults, s.count = f, 0
}

// Calls returns the filters of the requests so far, and forgets them.
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	s.calls = append(s.calls, q.Get("$filter"))
	f, n := s.faults, s.count
	s.count++
	u := chance.New(f.Seed, "azure-fault", "").At1(n).Float()
	switch {
	case u < f.Throttle:
		if f.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter/time.Second)))
		}
		http.Error(w, `{"Error":{"Code":"429","Message":"Too many requests. Please retry after some time."}}`,
			http.StatusTooManyRequests)
		return
	case u < f.Throttle+f.Unavailable:
		http.Error(w, "<html>\n<body>The service is unavailable.</body>\n</html>", http.StatusServiceUnavailable)
		return
	case u < f.Throttle+f.Unavailable+f.Reset:
		panic(http.ErrAbortHandler)
	}
	body, err := s.page(r, q)
	if r.URL.Path != Path || err != nil {
		http.Error(w, fmt.Sprintf(`{"Error":{"Code":"BadRequest","Message":"Invalid OData parameters supplied: %v"}}`, err),
			http.StatusBadRequest)
		return
	}
	if u < f.Throttle+f.Unavailable+f.Reset+f.Truncate {
		body = body[:len(body)/2]
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if _, err := w.Write(body); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// page returns the requested page.
func (s *Server) page(r *http.Request, q url.Values) ([]byte, error) {
	matches, err := parse(q.Get("$filter"))
	if err != nil {
		return nil, err
	}
	skip, err := strconv.Atoi(q.Get("$skip"))
	if err != nil && q.Get("$skip") != "" {
		return nil, err
	}
	var all []Meter
	for i := range s.meters {
		if matches(&s.meters[i]) {
			all = append(all, s.meters[i])
		}
	}
	items := all[min(skip, len(all)):min(skip+s.PageSize, len(all))]
	var next any
	if skip+s.PageSize < len(all) {
		q.Set("$skip", strconv.Itoa(skip+s.PageSize))
		link := "http://" + r.Host + Path + "?" + q.Encode()
		if s.faults.Link != "" {
			link = s.faults.Link
		}
		next = link
	}
	return json.Marshal(map[string]any{
		"BillingCurrency": "USD", "CustomerEntityId": "Default", "CustomerEntityType": "Retail",
		"Items": append([]Meter{}, items...), "NextPageLink": next, "Count": len(items),
	})
}

// parse returns the condition of a filter: comparisons with "eq", joined by "and", one of them a
// list in parentheses, joined by "or".
func parse(filter string) (func(*Meter) bool, error) {
	var all [][][2]string
	for part := range strings.SplitSeq(filter, " and ") {
		var any [][2]string
		for one := range strings.SplitSeq(strings.Trim(part, "()"), " or ") {
			field, value, ok := strings.Cut(one, " eq ")
			known := slices.Contains([]string{"serviceName", "priceType", "armRegionName", "armSkuName"}, field)
			if !ok || !known || len(value) < 2 || value[0] != '\'' || value[len(value)-1] != '\'' {
				return nil, fmt.Errorf("%q", one)
			}
			any = append(any, [2]string{field, strings.ReplaceAll(value[1:len(value)-1], "''", "'")})
		}
		all = append(all, any)
	}
	return func(m *Meter) bool {
		fields := map[string]string{"serviceName": m.ServiceName, "priceType": m.Type, "armRegionName": m.ArmRegionName,
			"armSkuName": m.ArmSkuName}
		for _, any := range all {
			if !slices.ContainsFunc(any, func(x [2]string) bool { return fields[x[0]] == x[1] }) {
				return false
			}
		}
		return true
	}, nil
}

// Size returns the meters of a size in a region as the API lists them: on demand and Spot for
// Linux, both for Windows at a higher price, Low Priority, and Cloud Services. since is the date of
// the prices.
func Size(region, name string, onDemand, spot float64, since time.Time) []Meter {
	short := strings.ReplaceAll(strings.TrimPrefix(name, "Standard_"), "_", " ")
	family := "Virtual Machines " + series(name) + " Series"
	of := func(product, sku string, price float64) Meter {
		return Meter{
			CurrencyCode: "USD", RetailPrice: price, UnitPrice: price, ArmRegionName: region, Location: region,
			EffectiveStartDate: since.UTC().Format(time.RFC3339), MeterID: region + "/" + sku + "/" + product,
			MeterName: sku, ProductName: product, SkuName: sku, ServiceName: "Virtual Machines", ServiceFamily: "Compute",
			UnitOfMeasure: "1 Hour", Type: "Consumption", ArmSkuName: name,
		}
	}
	return []Meter{
		of(family+" Windows", short, 2*onDemand), of(family, short, onDemand), of(family, short+" Spot", spot),
		of(family+" Windows", short+" Spot", 2*spot), of(family, short+" Low Priority", onDemand/5),
		of(series(name)+" Series Cloud Services", short, 1.5*onDemand),
	}
}

// series returns the series of a size.
func series(name string) string {
	t, _ := catalog.Lookup(catalog.Azure, name)
	return t.Family
}

// Region returns the meters of all sizes that the catalog has in a region, with a Spot price that
// is the given share of the on-demand price.
func Region(region string, share float64, since time.Time) (all []Meter) {
	for _, name := range catalog.Types(catalog.Azure) {
		if price, ok := catalog.OnDemand(catalog.Azure, region, name); ok {
			all = append(all, Size(region, name, price.Float(), share*price.Float(), since)...)
		}
	}
	return all
}
