package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// A csvShape is a set of columns that is understood.
type csvShape struct {
	name   string
	header string

	// The places of the columns; -1 if there is none.
	time, region, zone, kind, product, spot, onDemand int

	// gaps says that an empty price means that the market was not offered.
	gaps bool
}

var csvShapes = []csvShape{
	{
		name: "CSV of spot and on-demand prices", header: "t,region,az,instance_type,spot,ondemand",
		time: 0, region: 1, zone: 2, kind: 3, product: -1, spot: 4, onDemand: 5, gaps: true,
	},
	{
		name: "CSV of spot price history", header: "t,az,instance_type,price",
		time: 0, region: -1, zone: 1, kind: 2, product: -1, spot: 3, onDemand: -1,
	},
	{
		name:   "CSV of DescribeSpotPriceHistory",
		header: "timestamp,availabilityzone,instancetype,productdescription,spotprice",
		time:   0, region: -1, zone: 1, kind: 2, product: 3, spot: 4, onDemand: -1,
	},
}

func findShape(header string) (csvShape, bool) {
	header = strings.ToLower(strings.NewReplacer(" ", "", `"`, "").Replace(header))
	for _, s := range csvShapes {
		if s.header == header {
			return s, true
		}
	}
	return csvShape{}, false
}

// csvFieldsMax is above the number of fields of every shape.
const csvFieldsMax = 8

// csv reads rows up to the end. A row is a line, so that a broken one spoils
// no other.
func (im *importer) csv(r *bufio.Reader, shape csvShape) error {
	want := strings.Count(shape.header, ",") + 1
	var fields [csvFieldsMax][]byte
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 0, 1<<16), 1<<20)
	headed := false
	for line := 1; scanner.Scan(); line++ {
		row := bytes.TrimSpace(scanner.Bytes())
		if len(row) == 0 {
			continue
		}
		if !headed {
			headed = true
			continue
		}
		im.report.Rows++
		e, err := im.row(splitRow(row, fields[:0]), want, &shape)
		if err != nil {
			if err := im.bad(line, err); err != nil {
				return err
			}
			continue
		}
		im.events = append(im.events, e)
	}
	if err := scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("%w: a line of more than 1 MiB", ErrFormat)
	} else if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// splitRow cuts a line at its commas. None of the values can hold one.
func splitRow(row []byte, fields [][]byte) [][]byte {
	for {
		field, rest, more := bytes.Cut(row, []byte{','})
		field = bytes.TrimSpace(field)
		if n := len(field); n >= 2 && field[0] == '"' && field[n-1] == '"' {
			field = field[1 : n-1]
		}
		if fields = append(fields, field); !more || len(fields) == csvFieldsMax {
			return fields
		}
		row = rest
	}
}

// row makes an event of the fields of a line.
func (im *importer) row(fields [][]byte, want int, shape *csvShape) (e event, err error) {
	if len(fields) != want {
		return e, fmt.Errorf("%d fields instead of %d", len(fields), want)
	}
	field := func(i int) []byte {
		if i < 0 {
			return nil
		}
		return fields[i]
	}
	return im.event(rawEvent{
		time: field(shape.time), region: field(shape.region), zone: field(shape.zone), kind: field(shape.kind),
		product: field(shape.product), spot: field(shape.spot), onDemand: field(shape.onDemand), gaps: shape.gaps,
	})
}

// A rawEvent is a row as it is written.
type rawEvent struct {
	time, region, zone, kind, product, spot, onDemand []byte

	// gaps says that an empty price means that the market was not offered.
	gaps bool
}

func (im *importer) event(r rawEvent) (e event, err error) {
	if e.at, err = instant(r.time); err != nil {
		return e, err
	}
	if len(r.kind) == 0 {
		return e, errors.New("no instance type")
	}
	if len(r.spot) == 0 && !r.gaps {
		return e, errors.New("no price")
	}
	zone, region, err := im.zone(r.zone, r.region)
	if err != nil {
		return e, err
	}
	if e.spot, err = price(r.spot, policy.NoPrice); err != nil {
		return e, err
	}
	if e.onDemand, err = price(r.onDemand, 0); err != nil {
		return e, err
	}
	product := im.linux
	if len(r.product) > 0 {
		product = im.symbols.code(r.product)
	}
	e.market = marketCode{im.provider, region, zone, im.symbols.code(r.kind), product}
	e.order = int32(len(im.events))
	return e, nil
}
