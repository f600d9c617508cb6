package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// A role is what the values of a column of a recording mean.
type role uint8

const (
	roleTime role = iota
	roleCloud
	roleRegion
	roleZone
	roleType
	roleProduct
	roleSpot
	roleOnDemand
	roleBidP20
	roleBidP50
	roleBidP80
	roleScore
	roleFrequency
	roleRequested
	roleLaunched
	roleIgnored
	roles
)

// A csvColumn is a column of a recording, by its name in small letters.
type csvColumn struct {
	name     string
	role     role
	optional bool
}

// A csvShape is a set of columns that is understood, in any order.
type csvShape struct {
	name     string
	provider string
	columns  []csvColumn

	// gaps says that a missing price means that the market was not offered.
	// minus says that a missing number is written -1, or left empty, and gone
	// that a market which is no longer offered is written GONE.
	gaps, minus, gone bool
}

var csvShapes = []csvShape{
	{
		name: "CSV of spot and on-demand prices", provider: catalog.AWS, gaps: true,
		columns: []csvColumn{
			{"t", roleTime, false}, {"region", roleRegion, false}, {"az", roleZone, false},
			{"instance_type", roleType, false}, {"spot", roleSpot, false}, {"ondemand", roleOnDemand, false},
		},
	},
	{
		name: "CSV of spot price history", provider: catalog.AWS,
		columns: []csvColumn{
			{"t", roleTime, false}, {"az", roleZone, false}, {"instance_type", roleType, false}, {"price", roleSpot, false},
		},
	},
	{
		name: "CSV of DescribeSpotPriceHistory", provider: catalog.AWS,
		columns: []csvColumn{
			{"timestamp", roleTime, false}, {"availabilityzone", roleZone, false}, {"instancetype", roleType, false},
			{"productdescription", roleProduct, false}, {"spotprice", roleSpot, false},
		},
	},
	{
		// SpotLake's documentation has the meaning of its columns. T2 and T3
		// are the largest requests that scored 2 and 3; a trace holds the score
		// of a single node.
		name: "CSV of SpotLake", provider: catalog.AWS, gaps: true, minus: true,
		columns: []csvColumn{
			{"time", roleTime, false}, {"instancetype", roleType, false}, {"region", roleRegion, false}, {"az", roleZone, false},
			{"sps", roleScore, true}, {"if", roleFrequency, true}, {"ondemandprice", roleOnDemand, true},
			{"spotprice", roleSpot, false}, {"t3", roleIgnored, true}, {"t2", roleIgnored, true}, {"savings", roleIgnored, true},
		},
	},
	{
		// A row with an accelerator and no machine is named acc:V100:8 and its
		// price is that of the accelerators alone.
		name: "CSV of prices on Google Cloud", provider: catalog.GCP, gaps: true, gone: true,
		columns: []csvColumn{
			{"t", roleTime, false}, {"region", roleRegion, false}, {"az", roleZone, false}, {"instance_type", roleType, false},
			{"accel", roleIgnored, false}, {"accel_count", roleIgnored, false},
			{"spot", roleSpot, false}, {"ondemand", roleOnDemand, false},
		},
	},
	{
		name: "CSV of prices by region", provider: catalog.Azure, gaps: true,
		columns: []csvColumn{
			{"t", roleTime, false}, {"cloud", roleCloud, false}, {"region", roleRegion, false},
			{"instance_type", roleType, false}, {"spot", roleSpot, false}, {"ondemand", roleOnDemand, false},
		},
	},
	{
		name: "CSV of the Rackspace Spot market", provider: catalog.Rackspace,
		columns: []csvColumn{
			{"t", roleTime, false}, {"region", roleRegion, false}, {"generation", roleIgnored, true},
			{"serverclass", roleType, false}, {"category", roleIgnored, true}, {"cpu", roleIgnored, true},
			{"memory", roleIgnored, true}, {"market_price", roleSpot, false},
			{"bid_p20", roleBidP20, false}, {"bid_p50", roleBidP50, false}, {"bid_p80", roleBidP80, false},
		},
	},
	{
		name: "CSV of requested and launched nodes", provider: catalog.GCP,
		columns: []csvColumn{
			{"t", roleTime, false}, {"zone", roleZone, false}, {"requested", roleRequested, false}, {"launched", roleLaunched, false},
			{"region", roleRegion, true}, {"instance_type", roleType, true},
		},
	},
}

// A layout is a shape with the place of each role among the columns of a file,
// -1 if none has it.
type layout struct {
	csvShape
	at      [roles]int
	columns int
}

// findShape returns the shape that has all columns of header, and of which
// header has all that are not optional.
func findShape(header string) (layout, bool) {
	names := strings.Split(strings.ToLower(strings.NewReplacer(" ", "", `"`, "").Replace(header)), ",")
	for _, shape := range csvShapes {
		l := layout{csvShape: shape, columns: len(names)}
		for r := range l.at {
			l.at[r] = -1
		}
		fits := true
		for i, name := range names {
			k := slices.IndexFunc(shape.columns, func(c csvColumn) bool { return c.name == name })
			if k < 0 || slices.Index(names, name) != i {
				fits = false
				break
			}
			l.at[shape.columns[k].role] = i
		}
		for _, c := range shape.columns {
			fits = fits && (c.optional || slices.Contains(names, c.name))
		}
		if fits {
			return l, true
		}
	}
	return layout{}, false
}

// csvFieldsMax is above the number of fields of every shape.
const csvFieldsMax = 16

// csv reads rows up to the end. A row is a line, so that a broken one spoils
// no other.
func (im *importer) csv(r *bufio.Reader, l layout) error {
	if l.at[roleLaunched] >= 0 && l.at[roleType] < 0 && im.o.Type == "" {
		return fmt.Errorf("%w: no column instance_type says which type was requested", trace.ErrUnnamed)
	}
	var fields [csvFieldsMax][]byte
	headed := false
	return eachLine(r, func(line int, row []byte) error {
		if !headed {
			headed = true
			return nil
		}
		im.report.Rows++
		e, err := im.row(splitRow(row, fields[:0]), &l)
		if err != nil {
			return im.bad(line, err)
		}
		im.add(e)
		return nil
	})
}

// eachLine calls visit with each line that is not empty, trimmed.
func eachLine(r io.Reader, visit func(line int, row []byte) error) error {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 0, 1<<16), 1<<20)
	for line := 1; scanner.Scan(); line++ {
		if row := bytes.TrimSpace(scanner.Bytes()); len(row) > 0 {
			if err := visit(line, row); err != nil {
				return err
			}
		}
	}
	if err := scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("%w: a line of more than 1 MiB", trace.ErrFormat)
	} else if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// splitRow cuts a line at its commas but for those within quotes.
func splitRow(row []byte, fields [][]byte) [][]byte {
	for {
		row = bytes.TrimLeft(row, " \t")
		field, rest, more := cutQuoted(row)
		if field == nil {
			field, rest, more = bytes.Cut(row, []byte{','})
			field = bytes.TrimSpace(field)
		}
		if fields = append(fields, field); !more || len(fields) == csvFieldsMax {
			return fields
		}
		row = rest
	}
}

// cutQuoted returns the field in quotes with which row begins, in which a quote
// is written twice, and what follows the comma behind it. The field is nil if
// there is none, as where a quote is left open: what is no field must not eat
// the ones behind it.
func cutQuoted(row []byte) (field, rest []byte, more bool) {
	if len(row) == 0 || row[0] != '"' {
		return nil, nil, false
	}
	end := 1
	for doubled := false; end < len(row); end++ {
		if row[end] != '"' {
			continue
		}
		if end+1 < len(row) && row[end+1] == '"' {
			end, doubled = end+1, true
			continue
		}
		rest = bytes.TrimLeft(row[end+1:], " \t")
		if len(rest) > 0 && rest[0] != ',' {
			return nil, nil, false
		}
		if field = row[1:end]; doubled {
			field = bytes.ReplaceAll(field, []byte(`""`), []byte(`"`))
		}
		if field = bytes.TrimSpace(field); field == nil {
			field = []byte{}
		}
		return field, bytes.TrimPrefix(rest, []byte{','}), len(rest) > 0
	}
	return nil, nil, false
}

// row makes an event of the fields of a line.
func (im *importer) row(fields [][]byte, l *layout) (e event, err error) {
	if len(fields) != l.columns {
		return e, fmt.Errorf("%d fields instead of %d", len(fields), l.columns)
	}
	field := func(r role) []byte {
		i := l.at[r]
		if i < 0 || l.minus && (string(fields[i]) == "-1" || string(fields[i]) == "-1.0") {
			return nil
		}
		return fields[i]
	}
	if l.at[roleLaunched] >= 0 {
		return im.depthRow(field, l.provider)
	}
	zone := field(roleZone)
	if l.at[roleZone] < 0 { // sold by region, which then is its own zone
		zone = field(roleRegion)
	}
	e, err = im.priced(rawEvent{
		named: strings.ToLower(string(field(roleCloud))), usual: l.provider,
		time: field(roleTime), region: field(roleRegion), zone: zone, kind: field(roleType),
		product: field(roleProduct), spot: field(roleSpot), onDemand: field(roleOnDemand),
		gaps: l.gaps, gone: l.gone,
	})
	if err != nil {
		return e, err
	}
	if l.at[roleOnDemand] >= 0 {
		e.says |= saysOnDemand
	}
	if l.at[roleBidP20] >= 0 {
		err = im.takeBids(&e, field(roleBidP20), field(roleBidP50), field(roleBidP80))
	}
	if l.at[roleScore] >= 0 && err == nil {
		e.says |= saysScore
		e.score, err = score(field(roleScore))
	}
	if l.at[roleFrequency] >= 0 && err == nil {
		e.says |= saysBand
		e.band, err = frequencyBand(field(roleFrequency))
	}
	return e, err
}

// takeBids reads the percentiles of bids; an empty one is unknown.
func (c *collection) takeBids(e *event, texts ...[]byte) error {
	var bids [3]policy.Money
	for k, text := range texts {
		bid, err := price(text, 0)
		if err != nil {
			return fmt.Errorf("bid: %w", err)
		}
		bids[k] = bid
	}
	e.says |= saysBids
	e.bids = int32(len(c.bids))
	c.bids = append(c.bids, bids)
	return nil
}

// score reads a placement score; nothing is unknown.
func score(text []byte) (int8, error) {
	if len(text) == 0 {
		return -1, nil
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(v >= 0 && v <= trace.ScoreMax) || v != float64(int8(v)) {
		return 0, fmt.Errorf("placement score %q is no whole number up to %d", text, trace.ScoreMax)
	}
	return int8(v), nil
}

// frequencyBand returns the interruption band that SpotLake writes as a mark
// from 3.0, the least interrupted, down to 1.0; nothing is unknown.
func frequencyBand(text []byte) (int8, error) {
	if len(text) == 0 {
		return -1, nil
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err == nil {
		for band, mark := range [...]float64{3, 2.5, 2, 1.5, 1} {
			if v == mark {
				return int8(band), nil
			}
		}
	}
	return 0, fmt.Errorf("interruption frequency %q is none of 3, 2.5, 2, 1.5 and 1", text)
}

// A rawEvent is a row of prices as it is written.
type rawEvent struct {
	named, usual                                      string // provider
	time, region, zone, kind, product, spot, onDemand []byte

	// gaps says that a missing price means that the market was not offered,
	// gone that this may be written GONE.
	gaps, gone bool
}

// priced makes an event of a row of prices.
func (im *importer) priced(r rawEvent) (e event, err error) {
	if e.at, err = im.instant(r.time); err != nil {
		return e, err
	}
	if r.gone && string(r.spot) == "GONE" {
		r.spot = nil
	}
	if len(r.kind) == 0 {
		return e, errors.New("no instance type")
	}
	// Some collectors write the count of acc:V100:8 as a float. It is one type.
	if kind, float := bytes.CutSuffix(r.kind, []byte(".0")); float && bytes.HasPrefix(kind, []byte("acc:")) {
		r.kind = kind
	}
	if len(r.spot) == 0 && !r.gaps {
		return e, errors.New("no price")
	}
	if e.market, err = im.market(r.named, r.usual, r.region, r.zone, r.kind, r.product); err != nil {
		return e, err
	}
	if e.spot, err = price(r.spot, policy.NoPrice); err != nil {
		return e, err
	}
	if e.onDemand, err = price(r.onDemand, 0); err != nil {
		return e, err
	}
	if e.onDemand == 0 && len(r.onDemand) > 0 {
		im.zeros++
	}
	e.says = saysSpot
	return e, nil
}
