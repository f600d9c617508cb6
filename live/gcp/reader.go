package gcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spotter-dev/spotter/live/pricelist"
	"github.com/spotter-dev/spotter/policy"
)

// fields is the part of a response that is requested (Google Cloud documentation, "System
// parameters"). The whole response has about three times the size.
const fields = "nextPageToken,skus(description,category/usageType,serviceRegions," +
	"pricingInfo/pricingExpression(usageUnit,tieredRates))"

// A Reader reads the price list. It is safe for concurrent use.
type Reader struct {
	cfg      Config
	client   *pricelist.Client
	machines []machine
	others   []string
}

// NewReader returns a reader, or an error for an invalid configuration.
func NewReader(c Config) (*Reader, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	r := &Reader{cfg: c}
	r.client = pricelist.NewClient(&r.cfg.Config)
	r.machines, r.others = machines()
	return r, nil
}

// A Price is the price of a machine type in a region, per node-hour.
type Price struct {
	Region, Type string
	Spot         bool
	Price        policy.Money
}

// A List contains the prices of regions.
type List struct {
	// Prices are ascending by region and type, the on-demand price first.
	Prices []Price

	// Warnings describe what has no price, for the log.
	Warnings []string
}

// A rate is the price of an hour of a part in a region.
type rate struct {
	dollars float64
	unclear bool // there are several prices that differ
}

// Prices returns the present prices in regions. The API has no query by region: the whole list of
// Compute Engine is read, in about ten requests. A list of which a page is missing is an error and
// not a shorter list.
func (r *Reader) Prices(ctx context.Context, regions []string) (List, error) {
	rates := map[string]map[component]rate{}
	for _, region := range regions {
		rates[region] = map[component]rate{}
	}
	const what = "reading the prices of Google Cloud"
	var faults faultList
	count := 0
	first, err := url.Parse(r.cfg.Endpoint)
	if err != nil {
		return List{}, fmt.Errorf("%s: %w", what, err)
	}
	key, err := r.cfg.Key()
	if err != nil {
		return List{}, fmt.Errorf("%s: %w", what, err)
	}
	q := &pricelist.Request{What: what, First: r.page(first, ""), Header: http.Header{"X-Goog-Api-Key": {key}}}
	q.Read = func(body []byte) (string, error) {
		var p struct {
			SKUs []json.RawMessage `json:"skus"`
			Next string            `json:"nextPageToken"`
		}
		if err := json.Unmarshal(body, &p); err != nil {
			return "", fmt.Errorf("reading the response: %w", err)
		}
		count += len(p.SKUs)
		for _, raw := range p.SKUs {
			faults.add(read(raw, rates))
		}
		if p.Next == "" {
			return "", nil
		}
		return r.page(first, p.Next), nil
	}
	if _, err := r.client.List(ctx, q); err != nil {
		return List{}, err
	}
	if count == 0 {
		return List{}, errors.New(what + ": the list is empty")
	}
	return r.compose(regions, rates, faults), nil
}

// page returns the address of the page with a token.
func (r *Reader) page(first *url.URL, token string) string {
	u, q := *first, first.Query()
	q.Set("currencyCode", "USD")
	q.Set("pageSize", strconv.Itoa(r.cfg.PageSize))
	q.Set("fields", fields)
	if token != "" {
		q.Set("pageToken", token)
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// read adds the price in a SKU to the rates of its regions. It returns an error for a SKU that has
// no valid price.
func read(raw json.RawMessage, rates map[string]map[component]rate) error {
	var x sku
	if err := json.Unmarshal(raw, &x); err != nil {
		return err
	}
	c, ok := x.component()
	if !ok {
		return nil
	}
	var dollars float64
	for _, region := range x.Regions {
		of, wanted := rates[region]
		if !wanted {
			continue
		}
		if dollars == 0 {
			var err error
			if dollars, err = x.price(c.part); err != nil {
				return err
			}
		}
		known, twice := of[c]
		of[c] = rate{dollars, known.unclear || twice && math.Abs(known.dollars-dollars) > 1e-9}
	}
	return nil
}

// A faultList counts invalid SKUs.
type faultList struct {
	count int
	first error
}

func (f *faultList) add(err error) {
	if err != nil {
		f.count++
		f.first = cmp.Or(f.first, err)
	}
}

// compose returns the prices of machine types in regions.
func (r *Reader) compose(regions []string, rates map[string]map[component]rate, faults faultList) (l List) {
	var unclear []string
	for _, region := range regions {
		spot := 0
		for i := range r.machines {
			m := &r.machines[i]
			for _, option := range []bool{false, true} {
				if p, ok := m.price(rates[region], option); ok {
					l.Prices = append(l.Prices, Price{region, m.name, option, p})
					spot += map[bool]int{true: 1}[option]
				}
			}
		}
		if spot == 0 {
			l.Warnings = append(l.Warnings, "Google lists no Spot price of "+region)
		}
		for c, x := range rates[region] { // sorted below
			if x.unclear {
				unclear = append(unclear, c.name+" in "+region)
			}
		}
	}
	if faults.count > 0 {
		l.Warnings = append(l.Warnings, fmt.Sprintf("%d prices of Google are not valid, the first: %v", faults.count,
			faults.first))
	}
	if len(unclear) > 0 {
		slices.Sort(unclear)
		l.Warnings = append(l.Warnings, "Google lists several prices that differ, none of which is used, of: "+
			strings.Join(slices.Compact(unclear), ", "))
	}
	l.Warnings = append(l.Warnings, "machine types that Google's price list does not price part by part have no price: "+
		strings.Join(r.others, ", "))
	return l
}
