package fake

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/policy/portable"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

type historyAnswer struct {
	XMLName   xml.Name      `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ DescribeSpotPriceHistoryResponse"`
	RequestID string        `xml:"requestId"`
	Items     []historyItem `xml:"spotPriceHistorySet>item"`
	NextToken string        `xml:"nextToken"`
}

type historyItem struct {
	Type    string `xml:"instanceType"`
	Product string `xml:"productDescription"`
	Price   string `xml:"spotPrice"`
	At      string `xml:"timestamp"`
	Zone    string `xml:"availabilityZone"`
	ZoneID  string `xml:"availabilityZoneId,omitempty"`
}

// describeSpotPriceHistory answers with the events of a window, and with the
// last before it of each market, which is in force at its begin. The newest
// come first.
func (s *Server) describeSpotPriceHistory(region string, r *Region, form url.Values) (any, *apiError) {
	from, err := time.Parse(time.RFC3339, form.Get("StartTime"))
	until, err2 := time.Parse(time.RFC3339, form.Get("EndTime"))
	if err != nil || err2 != nil {
		return nil, badParameter("Invalid value for StartTime or EndTime")
	}
	rows := s.rows(r, form, from, until)
	most, _ := strconv.Atoi(form.Get("MaxResults"))
	if most < 1 || most > 1000 {
		most = 1000
	}
	token := form.Get("NextToken")
	asked := url.Values{}
	for key, v := range form {
		if key != "NextToken" {
			asked[key] = v
		}
	}
	of := region + " " + asked.Encode()
	if s.faults.Shuffle {
		key := chance.Stream(s.faults.Seed, of)
		slices.SortStableFunc(rows, func(a, b Event) int { return cmp.Compare(key.At1(hash(a)), key.At1(hash(b))) })
	}
	begin, end, next, no := s.page(token, of, len(rows), most)
	if no != nil {
		return nil, no
	}
	a := historyAnswer{RequestID: "0", NextToken: next}
	for _, e := range rows[begin:end] {
		z := r.zone(e.Zone)
		if s.faults.NoZoneIDs {
			z.ID = ""
		}
		a.Items = append(a.Items, historyItem{e.Type, e.Product, e.Price, e.At.UTC().Format("2006-01-02T15:04:05.000Z"),
			z.Name, z.ID})
	}
	return a, nil
}

func hash(e Event) uint64 { return portable.HashString(fmt.Sprint(e.At.Unix(), e.market())) }

// rows returns all that answers a query, the newest first.
func (s *Server) rows(r *Region, form url.Values, from, until time.Time) []Event {
	products, kinds := numbered(form, "ProductDescription"), filter(form, "instance-type")
	last, older := map[string]Event{}, map[string]Event{}
	later := map[string]bool{}
	var rows []Event
	for _, e := range r.Events {
		if !s.now.IsZero() && (e.At.After(s.now) || e.Published.After(s.now)) || !fits(kinds, e.Type) {
			continue
		}
		if !s.faults.Strangers && !fits(products, e.Product) {
			continue
		}
		switch {
		case e.At.Before(from):
			if before, ok := last[e.market()]; ok && s.faults.Strangers {
				older[e.market()] = before
			}
			last[e.market()] = e
		case !e.At.After(until):
			rows = append(rows, e)
		case s.faults.Strangers && !later[e.market()]:
			later[e.market()] = true
			rows = append(rows, e)
		}
	}
	for _, e := range last {
		rows = append(rows, e)
	}
	for _, e := range older {
		rows = append(rows, e)
	}
	slices.SortFunc(rows, func(a, b Event) int { return compareEvents(b, a) })
	return rows
}

// fits reports whether a name fits one of the patterns; no patterns fit all.
func fits(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return p == name || ok && err == nil
	})
}

// numbered returns the values of name.1, name.2 and so on.
func numbered(form url.Values, name string) []string {
	var values []string
	for i := 1; ; i++ {
		v, ok := form[name+"."+strconv.Itoa(i)]
		if !ok {
			return values
		}
		values = append(values, v[0])
	}
}

// filter returns the values of the filter of this name.
func filter(form url.Values, name string) []string {
	for i := 1; ; i++ {
		prefix := "Filter." + strconv.Itoa(i)
		switch form.Get(prefix + ".Name") {
		case "":
			return nil
		case name:
			return numbered(form, prefix+".Value")
		}
	}
}
