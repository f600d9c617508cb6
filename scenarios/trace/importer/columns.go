package importer

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spotter-dev/spotter/internal/nearest"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// A role is the meaning of a column of a recording.
type role uint8

const (
	roleTime role = iota
	roleCloud
	roleRegion
	roleZone
	roleZoneID
	roleType
	roleProduct
	roleSpot
	roleOnDemand
	roleCurrency
	roleBidP20
	roleBidP50
	roleBidP80
	roleScore
	roleFrequency
	roleRequested
	roleLaunched
	roles
)

// columnNames are the names that a column of each role may have, in the form of [normal]. If a
// recording has several such columns, the one in the earliest list is used: a column called
// spot_price is the Spot price even if another is called price.
var columnNames = [roles][][]string{
	roleTime: {
		{"timestamp", "datetime", "t", "timestamputc", "datetimeutc", "spotpricetimestamp"},
		{"time", "date", "ts", "timeutc", "pricetime", "effectivedate", "unixtime", "epoch"},
	},
	roleCloud:  {{"cloud", "cloudprovider", "provider"}},
	roleRegion: {{"region", "awsregion", "regionname", "regioncode", "regionid"}},
	roleZone: {
		{"availabilityzone", "az", "availabilityzonename", "azname"},
		{"zone", "zonename", "availzone", "awszone"},
	},
	roleZoneID: {{"availabilityzoneid", "azid", "zoneid"}},
	roleType: {
		{"instancetype", "serverclass", "instancetypename", "ec2instancetype"},
		{"type", "instance", "machinetype", "instancename"},
	},
	roleProduct: {{"productdescription"}, {"product"}, {"os", "operatingsystem", "platform"}},
	roleSpot: {
		{"spotprice", "spot", "spotpriceusd", "spotpriceperhour", "spotpricehourly", "spotusd"},
		{"price", "priceusd", "usdprice", "marketprice", "priceperhour", "pricehourly", "hourlyprice", "priceusdperhour"},
	},
	roleOnDemand: {{
		"ondemandprice", "ondemand", "ondemandpriceusd", "ondemandpriceperhour", "ondemandusd", "odprice", "priceondemand",
	}},
	roleCurrency:  {{"currency", "currencycode"}},
	roleBidP20:    {{"bidp20"}},
	roleBidP50:    {{"bidp50"}},
	roleBidP80:    {{"bidp80"}},
	roleScore:     {{"sps"}},
	roleFrequency: {{"if"}},
	roleRequested: {{"requested"}},
	roleLaunched:  {{"launched"}},
}

// roleTitles are the names of roles in errors, and examples the column names that errors suggest.
var (
	roleTitles = map[role]string{roleTime: "time", roleZone: "zone", roleType: "instance type", roleSpot: "price"}
	examples   = map[role]string{
		roleTime: "timestamp", roleZone: "availability_zone", roleType: "instance_type", roleSpot: "spot_price",
	}
)

// title returns the name of a role in errors.
func (r role) title() string { return cmp.Or(roleTitles[r], columnNames[r][0][0]) }

// A meaning is the role of a column and the rank of its name; 0 is best.
type meaning struct {
	role role
	rank int
}

// meanings maps the names in columnNames to their meaning.
var meanings = sync.OnceValue(func() map[string]meaning {
	all := map[string]meaning{}
	for r, lists := range columnNames {
		for rank, list := range lists {
			for _, name := range list {
				all[name] = meaning{role(r), rank}
			}
		}
	}
	return all
})

// meaningOf returns the meaning of a column, and whether it is known. The part of the name before a
// dot is the structure that contains the column.
func meaningOf(name string) (meaning, bool) {
	m, ok := meanings()[normal(name)]
	if !ok {
		m, ok = meanings()[normal(name[strings.LastIndexByte(name, '.')+1:])]
	}
	return m, ok
}

// normal returns the letters and digits of name, in lower case.
func normal(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, name)
}

// isIndex reports whether a column contains row numbers, as written by pandas.
func isIndex(name string) bool {
	n := normal(name)
	return n == "" || n == "index" || n == "rownumber" || strings.HasPrefix(n, "unnamed")
}

// A dialect is a set of conventions of a table.
type dialect struct {
	name     string
	provider string

	// marks are the columns that identify the dialect, in lower case. needs are the other required
	// columns.
	marks []string
	needs []role

	// gaps reports that a missing price means that the market was not offered. minus reports that a
	// missing number is written as -1 or left empty. gone reports that the price GONE means that
	// the market is not offered from then on.
	gaps, minus, gone bool

	// byRegion reports that markets are sold by region, so that a region is its own zone.
	byRegion bool
}

// dialects are in the order in which they are tried.
var dialects = []*dialect{
	{
		name: "requested and launched nodes", provider: catalog.GCP, marks: []string{"requested", "launched"},
		needs: []role{roleTime, roleZone},
	},
	{
		name: "the Rackspace Spot market", provider: catalog.Rackspace, byRegion: true,
		marks: []string{"serverclass", "market_price", "bid_p20", "bid_p50", "bid_p80"}, needs: []role{roleTime, roleRegion},
	},
	{
		// SpotLake documents the meaning of its columns. T2 and T3 are the largest requests with a
		// score of 2 and 3, whereas a trace contains the score of a single node.
		name: "SpotLake", provider: catalog.AWS, gaps: true, minus: true,
		marks: []string{"time", "instancetype", "region", "az", "spotprice"},
	},
	{
		// A row with an accelerator and without a machine is named like acc:V100:8, and its price
		// is for the accelerators only.
		name: "prices on Google Cloud", provider: catalog.GCP, gaps: true, gone: true,
		marks: []string{"accel", "accel_count"}, needs: []role{roleTime, roleZone, roleType, roleSpot, roleOnDemand},
	},
	{
		name: "prices by region", provider: catalog.Azure, gaps: true, byRegion: true,
		marks: []string{"cloud", "region"}, needs: []role{roleTime, roleType, roleSpot},
	},
	{
		name: "Spot and on-demand prices", provider: catalog.AWS, gaps: true,
		needs: []role{roleTime, roleZone, roleType, roleSpot, roleOnDemand},
	},
	spotPrices,
}

// spotPrices is the dialect of DescribeSpotPriceHistory and of similar tables.
var spotPrices = &dialect{
	name: "Spot prices", provider: catalog.AWS, needs: []role{roleTime, roleZone, roleType, roleSpot},
}

// A layout is a dialect with the index of the column of each role.
type layout struct {
	*dialect
	columns int
	at      [roles]int // -1 if there is no such column

	// clock is the column of the time of day if the time column contains only the date, or else -1.
	clock int

	// constant are the values of roles without a column. They apply to all rows.
	constant [roles][]byte

	// counted is the prefix of row numbers in errors; empty if they are line numbers.
	counted string

	// unused are the names of columns without a role.
	unused []string
}

// has reports whether rows of l have a value for a role.
func (l *layout) has(r role) bool {
	return l.at[r] >= 0 || len(l.constant[r]) > 0 ||
		r == roleZone && (l.has(roleZoneID) || l.has(roleRegion))
}

// A columnsError describes why the columns of a table are not those of prices.
type columnsError struct {
	names   []string
	known   int // number of columns with a known role
	missing []role
	twice   string // error about two columns with the same role
}

// Error lists the columns, the missing roles and the most similar columns.
func (e *columnsError) Error() string {
	if e.twice != "" {
		return e.twice
	}
	parts := make([]string, len(e.missing))
	for i, r := range e.missing {
		parts[i] = fmt.Sprintf("the %s (as %s)", r.title(), examples[r])
		if name, ok := e.nearest(r); ok {
			parts[i] += fmt.Sprintf(", of which column %q comes nearest", name)
		}
	}
	names := slices.Clone(e.names)
	for i, name := range names {
		names[i] = fmt.Sprintf("%q", clip(name, 40))
	}
	return fmt.Sprintf("its columns are %s; missing are %s", some(names, 20), strings.Join(parts, "; "))
}

// nearest returns the unknown column whose name is most similar to the names of a role.
func (e *columnsError) nearest(r role) (string, bool) {
	synonyms := slices.Concat(columnNames[r]...)
	for _, name := range e.names {
		n := normal(name)
		if _, known := meaningOf(name); known || len(n) < 2 {
			continue
		}
		_, near := nearest.Of(n, synonyms)
		contains := func(synonym string) bool { return len(synonym) > 3 && strings.Contains(n, synonym) }
		if near || slices.ContainsFunc(synonyms, contains) {
			return name, true
		}
	}
	return "", false
}

// layoutOf returns the layout of a table with columns of these names.
func (im *importer) layoutOf(names []string) (*layout, *columnsError) {
	l := &layout{columns: len(names), constant: im.constants()}
	for r := range l.at {
		l.at[r] = -1
	}
	fault := &columnsError{names: names}
	var ranks [roles]int
	var twice [roles]string
	lower := make([]string, len(names))
	for i, name := range names {
		lower[i] = strings.ToLower(strings.ReplaceAll(name, " ", ""))
		m, ok := meaningOf(name)
		if !ok {
			continue
		}
		fault.known++
		switch at := l.at[m.role]; {
		case at < 0 || m.rank < ranks[m.role]:
			l.at[m.role], ranks[m.role], twice[m.role] = i, m.rank, ""
		case m.rank == ranks[m.role]:
			twice[m.role] = fmt.Sprintf("columns %q and %q may both be the %s: leave one out", names[at], name, m.role.title())
		}
	}
	l.clock = -1
	date, clock := slices.Index(lower, "date"), slices.Index(lower, "time")
	if twice[roleTime] != "" && date >= 0 && clock >= 0 {
		l.at[roleTime], l.clock, twice[roleTime] = date, clock, ""
	}
	if fault.twice = cmp.Or(twice[:]...); fault.twice != "" {
		return nil, fault
	}
	for i, name := range names {
		if !slices.Contains(l.at[:], i) && i != l.clock && !isIndex(name) {
			l.unused = append(l.unused, name)
		}
	}
	for _, d := range dialects {
		marked := !slices.ContainsFunc(d.marks, func(mark string) bool { return !slices.Contains(lower, mark) })
		if marked && !slices.ContainsFunc(d.needs, func(r role) bool { return !l.has(r) }) {
			l.dialect = d
			return l, nil
		}
	}
	for _, r := range spotPrices.needs {
		if !l.has(r) {
			fault.missing = append(fault.missing, r)
		}
	}
	return nil, fault
}

// constants returns the values in the options and in the folder names of the source, such as
// instance_type=m5.large, which apply to all its rows.
func (im *importer) constants() (values [roles][]byte) {
	values[roleZone], values[roleType] = []byte(im.o.Zone), []byte(im.o.Type)
	for part := range strings.SplitSeq(filepath.ToSlash(filepath.Dir(im.path)), "/") {
		key, value, stated := strings.Cut(part, "=")
		value, err := url.PathUnescape(value)
		if m, known := meaningOf(key); known && stated && err == nil && m.role >= roleCloud && m.role <= roleProduct {
			values[m.role] = []byte(value)
		}
	}
	return values
}

// take records that the source, in a kind of file, has a layout.
func (im *importer) take(container string, l *layout) {
	im.took(container + " of " + l.name)
	for _, name := range l.unused {
		if !slices.Contains(im.report.Unused, name) {
			im.report.Unused = append(im.report.Unused, name)
		}
	}
}

// notUnderstood returns the error for a source of an unknown format.
func notUnderstood(why string) error {
	return fmt.Errorf("%w: %s; %s", trace.ErrFormat, why, Understood)
}
