package trace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// market returns the codes of the names of a market; those that are empty are
// taken from the options or, as the region, from the others. A provider that a
// row names is passed as named, that which its format stands for as usual.
func (im *importer) market(named, usual string, region, zone, kind, product []byte) (m marketCode, err error) {
	provider := cmp.Or(named, im.o.Provider, usual)
	if len(kind) == 0 {
		return m, errors.New("no instance type")
	}
	m[0] = im.symbols.code([]byte(provider))
	if m[2], m[1], err = im.place(provider, region, zone); err != nil {
		return m, err
	}
	m[3], m[4] = im.symbols.code(kind), im.linux
	if len(product) > 0 {
		m[4] = im.symbols.code(product)
	}
	return m, nil
}

// place returns the codes of a zone and its region.
func (im *importer) place(provider string, region, zone []byte) (zoneCode, regionCode int32, err error) {
	if len(zone) == 0 {
		return 0, 0, errors.New("no zone")
	}
	zoneCode = im.symbols.code(zone)
	known := im.regionOf(provider, zoneCode)
	switch {
	case len(region) > 0:
		return zoneCode, im.symbols.code(region), nil
	case known >= 0:
		return zoneCode, known, nil
	case im.o.Region == "":
		return 0, 0, fmt.Errorf("zone %q does not tell its region; name the region", zone)
	}
	return zoneCode, im.symbols.code([]byte(im.o.Region)), nil
}

// regionOf returns the region of a zone, -1 if its name does not tell, looking
// it up once.
func (im *importer) regionOf(provider string, zone int32) int32 {
	if code, ok := im.regions[zone]; ok {
		return code
	}
	code := int32(-1)
	name := im.symbols.names[zone]
	region := ""
	switch provider {
	case catalog.AWS:
		found, id := regionOf(name)
		if region = found; region != "" {
			im.ids, im.names = im.ids || id, im.names || !id
		}
	case catalog.GCP:
		// A zone of Google Cloud is its region and a letter: us-central1-a.
		if cut := strings.LastIndexByte(name, '-'); cut > 0 && cut == len(name)-2 {
			region = name[:cut]
		}
	}
	if region != "" {
		code = im.symbols.code([]byte(region))
	}
	im.regions[zone] = code
	return code
}

// lookUpPrices adds what the given trace says of the prices of markets whose
// availability was read. The price in force at the begin is stated as of then.
func (im *importer) lookUpPrices() {
	if im.o.Prices == nil {
		return
	}
	known := map[string]marketCode{}
	for i := range im.events {
		if e := &im.events[i]; e.says&saysAvailable != 0 {
			s := im.series(e.market)
			known[s.Name()] = e.market
		}
	}
	from, to := im.from, im.to
	for i := range im.o.Prices.Series {
		s := &im.o.Prices.Series[i]
		market, ok := known[s.Name()]
		if !ok {
			continue
		}
		for k, at := range s.At {
			inForce := at < from && (k+1 == len(s.At) || s.At[k+1] > from)
			if at > to || at < from && !inForce {
				continue
			}
			e := event{market: market, at: max(at, from), spot: s.Spot[k], says: saysSpot}
			if e.onDemand = s.onDemand(k); e.onDemand > 0 {
				e.says |= saysOnDemand
			}
			im.add(e)
		}
	}
}

// modelPrices gives markets of which only the availability is known a price,
// and returns a sentence on what it has done; empty if nothing.
func (im *importer) modelPrices(series []Series) string {
	ratio := im.o.PriceRatio
	if ratio == 0 {
		ratio = DefaultPriceRatio
	}
	for i := range series {
		s := &series[i]
		priced := slices.ContainsFunc(s.Spot, func(m policy.Money) bool { return m != policy.NoPrice })
		if s.Available == nil || priced {
			continue
		}
		onDemand, ok := catalog.OnDemand(s.Provider, s.Region, s.Type)
		if !ok {
			onDemand, _, ok = catalog.OnDemandModelled(s.Provider, s.Region, s.Type)
		}
		if !ok {
			im.warn("%s has no price: neither a recording nor the catalog knows one on demand", s.Name())
			continue
		}
		spot := policy.Dollars(ratio * onDemand.Float())
		for k := range s.Spot {
			s.Spot[k] = spot
		}
		im.report.Modelled = append(im.report.Modelled, s.Name())
	}
	if len(im.report.Modelled) == 0 {
		return ""
	}
	slices.Sort(im.report.Modelled)
	return fmt.Sprintf("spot prices not recorded, modelled as %g of those on demand: %s", ratio, some(im.report.Modelled, 3))
}

// fill completes the report.
func (im *importer) fill(t *Trace) {
	r := im.report
	r.Markets, r.From, r.To, r.Warnings = len(t.Series), t.From, t.To, t.Warnings
	seen := map[string]bool{} // types, by provider and name
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
		if s.OnDemand == nil && !catalogued(s) {
			r.WithoutOnDemand = append(r.WithoutOnDemand, s.Name())
		}
	}
	slices.Sort(r.UnknownTypes)
}

// catalogued reports whether the catalog has an on-demand price of the market,
// published or derived.
func catalogued(s *Series) bool {
	if _, ok := catalog.OnDemand(s.Provider, s.Region, s.Type); ok {
		return true
	}
	_, _, ok := catalog.OnDemandModelled(s.Provider, s.Region, s.Type)
	return ok
}

// some returns the first names, and how many there are beyond them.
func some(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
