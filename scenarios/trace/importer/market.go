package importer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// A market consists of provider, region, zone, instance type and product.
type market [5]string

// series returns an empty series for m.
func (m *market) series() trace.Series {
	return trace.Series{Provider: m[0], Region: m[1], Zone: m[2], Type: m[3], Product: m[4]}
}

// market returns the index of a market. Empty names are taken from the options; an empty region is
// first derived from the zone. Named is the provider in the row, and usual is the default provider
// of the format.
func (c *collection) market(named, usual string, region, zone, kind, product []byte) (int32, error) {
	provider := c.provider(named, usual)
	if len(kind) == 0 {
		return 0, errors.New("no instance type")
	}
	if len(zone) == 0 {
		return 0, errors.New("no zone")
	}
	known := c.regionOf(provider, zone)
	switch {
	case len(known) > 0 && len(region) > 0 && !bytes.Equal(known, region):
		// For a region name such as "US East (N. Virginia)", the zone implies the code.
		if code, _ := regionOf(string(region) + "a"); code != "" || provider != catalog.AWS {
			return 0, fmt.Errorf("zone %q is not in region %q", zone, region)
		}
		region = known
	case len(region) > 0:
	case len(known) > 0:
		region = known
	case c.o.Region == "":
		return 0, fmt.Errorf("zone %q does not tell its region; name the region", zone)
	default:
		region = []byte(c.o.Region)
	}
	if len(product) == 0 {
		product = productLinux
	}
	// As the key of a look-up, the names are not copied.
	n, ok := c.numbers[market{provider, string(region), string(zone), string(kind), string(product)}]
	if !ok {
		n = int32(len(c.markets))
		m := market{provider, string(region), string(zone), string(kind), string(product)}
		c.markets, c.numbers[m] = append(c.markets, m), n
	}
	return n, nil
}

// provider returns the provider of a row's market.
func (c *collection) provider(named, usual string) string { return cmp.Or(named, c.o.Provider, usual) }

var productLinux = []byte(trace.ProductLinux)

// regionOf returns the region of a zone, or nothing if its name does not imply one. It caches the
// result.
func (c *collection) regionOf(provider string, zone []byte) []byte {
	if region, ok := c.regions[string(zone)]; ok {
		return region
	}
	name, region := string(zone), ""
	switch provider {
	case catalog.AWS:
		found, id := regionOf(name)
		if region = found; region != "" {
			c.ids, c.names = c.ids || id, c.names || !id
		}
	case catalog.GCP:
		// A zone of Google Cloud is its region, a hyphen and a letter: us-central1-a.
		if cut := strings.LastIndexByte(name, '-'); cut > 0 && cut == len(name)-2 {
			region = name[:cut]
		}
	}
	c.regions[name] = []byte(region)
	return c.regions[name]
}

// lookUpPrices adds the prices in the options to the markets whose availability was recorded. The
// price that applies at the start of the recording is added at that start.
func (c *collection) lookUpPrices() {
	if c.o.Prices == nil {
		return
	}
	known := map[string]int32{} // markets by the name of their series
	for i := range c.events {
		if e := &c.events[i]; e.says&saysAvailable != 0 {
			s := c.markets[e.market].series()
			known[s.Name()] = e.market
		}
	}
	from, to := c.from, c.to
	for i := range c.o.Prices.Series {
		s := &c.o.Prices.Series[i]
		number, ok := known[s.Name()]
		if !ok {
			continue
		}
		for k, at := range s.At {
			inForce := at < from && (k+1 == len(s.At) || s.At[k+1] > from)
			if at > to || at < from && !inForce {
				continue
			}
			e := event{market: number, at: max(at, from), spot: s.Spot[k], says: saysSpot}
			if e.onDemand = s.Sample(k).OnDemand; e.onDemand > 0 {
				e.says |= saysOnDemand
			}
			c.add(e)
		}
	}
}

// modelPrices sets the price of markets for which only availability was recorded. It returns a
// sentence about them, or "".
func (a *assembly) modelPrices(series []trace.Series) string {
	ratio := a.o.PriceRatio
	if ratio == 0 {
		ratio = DefaultPriceRatio
	}
	for i := range series {
		s := &series[i]
		priced := slices.ContainsFunc(s.Spot, func(m policy.Money) bool { return m != policy.NoPrice })
		if s.Available == nil || priced {
			continue
		}
		onDemand, _ := catalog.OnDemandOrModelled(s.Provider, s.Region, s.Type)
		if onDemand == 0 {
			a.warn("%s has no price: neither a recording nor the catalog knows one on demand", s.Name())
			continue
		}
		spot := policy.Dollars(ratio * onDemand.Float())
		for k := range s.Spot {
			s.Spot[k] = spot
		}
		a.report.Modelled = append(a.report.Modelled, s.Name())
	}
	if len(a.report.Modelled) == 0 {
		return ""
	}
	slices.Sort(a.report.Modelled)
	return fmt.Sprintf("Spot prices not recorded, modelled as %g of on-demand prices: %s", ratio,
		some(a.report.Modelled, 3))
}

// fill sets the remaining fields of the report.
func (a *assembly) fill(t *trace.Trace) {
	r := a.report
	r.Markets, r.From, r.To, r.Warnings = len(t.Series), t.From, t.To, t.Warnings
	seen := map[string]bool{} // types, as provider and name
	for i := range t.Series {
		s := &t.Series[i]
		r.Changes += len(s.At)
		name := s.Provider + "/" + s.Type
		if !seen[name] {
			seen[name] = true
			if _, known := catalog.Lookup(s.Provider, s.Type); !known {
				r.UnknownTypes = append(r.UnknownTypes, name)
			}
		}
		if price, _ := catalog.OnDemandOrModelled(s.Provider, s.Region, s.Type); s.OnDemand == nil && price == 0 {
			r.WithoutOnDemand = append(r.WithoutOnDemand, s.Name())
		}
	}
	slices.Sort(r.UnknownTypes)
}

// some returns the first names and the number of the others.
func some(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
