package importer

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// typeShape matches the name of an AWS instance type.
var typeShape = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9-]*\.[0-9]*[a-z][a-z0-9-]*$`) })

// timeShape matches the start of a time that is written as a date and not as a number, even if day
// and month are ambiguous.
var timeShape = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:\d{4}[-/]\d|\d{1,2}[-/.]\d{1,2}[-/.]\d)`) })

// shapes are the roles that can be recognised by their values.
var shapes = []struct {
	role role
	fits func(value []byte) bool
}{
	{roleTime, func(v []byte) bool {
		n, err := strconv.ParseFloat(string(v), 64)
		return err == nil && n >= 1e9 || timeShape().Match(v)
	}},
	{roleZone, func(v []byte) bool { region, id := regionOf(string(v)); return region != "" && !id }},
	{roleZoneID, func(v []byte) bool { region, id := regionOf(string(v)); return region != "" && id }},
	{roleType, func(v []byte) bool { return typeShape().Match(v) }},
	{roleSpot, func(v []byte) bool { _, err := price(v, 0); return err == nil }},
	{roleProduct, func(v []byte) bool {
		_, known := products[strings.ToLower(strings.TrimSuffix(string(v), " (Amazon VPC)"))]
		return known
	}},
	{roleRegion, func(v []byte) bool {
		region, _ := regionOf(string(v) + "a")
		return region == string(v)
	}},
}

// errShapeless is returned for rows that do not resemble prices.
var errShapeless = errors.New("nothing in it looks like a Spot price")

// shapeOf returns the layout of a table without a header. Rows are its first rows; the columns are
// recognised by their values.
func (im *importer) shapeOf(rows [][][]byte) (*layout, error) {
	if len(rows) == 0 {
		return nil, errShapeless
	}
	l := &layout{dialect: spotPrices, columns: len(rows[0]), clock: -1, constant: im.constants()}
	for r := range l.at {
		l.at[r] = -1
	}
	taken := make([]bool, l.columns)
	for _, shape := range shapes {
		var found []int
		for i := range l.columns {
			if !taken[i] && columnFits(rows, i, shape.fits) {
				found = append(found, i)
			}
		}
		if shape.role == roleSpot && len(found) > 1 { // row numbers are integers
			found = fractions(rows, found)
		}
		if len(found) > 1 {
			return nil, fmt.Errorf("its columns %d and %d both look like the %s: "+
				"put a line with names before the rows, as timestamp,availability_zone,instance_type,spot_price",
				found[0]+1, found[1]+1, shape.role.title())
		}
		for _, i := range found {
			l.at[shape.role], taken[i] = i, true
		}
	}
	var missing []string
	for _, r := range spotPrices.needs {
		if !l.has(r) {
			missing = append(missing, r.title())
		}
	}
	switch {
	case len(missing) > 2:
		return nil, errShapeless
	case len(missing) > 0:
		return nil, fmt.Errorf("no column looks like the %s in %q", strings.Join(missing, " or the "),
			clip(string(bytes.Join(rows[0], []byte(" | "))), 120))
	}
	return l, nil
}

// columnFits reports whether all non-empty values of column i fit, in the rows with as many fields
// as the first, and at least one value exists.
func columnFits(rows [][][]byte, i int, fits func([]byte) bool) bool {
	some := false
	for _, row := range rows {
		if len(row) != len(rows[0]) || len(row[i]) == 0 {
			continue
		}
		if !fits(row[i]) {
			return false
		}
		some = true
	}
	return some
}

// fractions returns the columns with a value that is not an integer.
func fractions(rows [][][]byte, columns []int) (found []int) {
	for _, i := range columns {
		if !columnFits(rows, i, func(v []byte) bool { return len(bytes.Trim(v, "0123456789")) == 0 }) {
			found = append(found, i)
		}
	}
	return found
}
