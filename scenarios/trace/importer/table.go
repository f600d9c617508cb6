package importer

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// row reads a row of a table. Number is its line or another number.
func (im *importer) row(number int, fields [][]byte, l *layout) error {
	im.report.Rows++
	e, err := im.eventOf(fields, l)
	if err != nil {
		return im.badAt(l.counted+strconv.Itoa(number), err)
	}
	im.add(e)
	return nil
}

// eventOf returns the event of the fields of a row.
func (im *importer) eventOf(fields [][]byte, l *layout) (e event, err error) {
	if len(fields) != l.columns {
		return e, fmt.Errorf("%d fields instead of %d", len(fields), l.columns)
	}
	field := func(r role) []byte {
		i := l.at[r]
		switch {
		case r == roleTime && l.clock >= 0:
			return atClock(fields[i], fields[l.clock])
		case i < 0:
			return l.constant[r]
		case l.minus && (string(fields[i]) == "-1" || string(fields[i]) == "-1.0"):
			return nil
		}
		return fields[i]
	}
	if l.at[roleLaunched] >= 0 {
		return im.depthRow(field, l)
	}
	if e, err = im.priced(field, l); err != nil {
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

// atClock joins a date and a time of day. It returns clock itself if it is more than a time of day.
func atClock(date, clock []byte) []byte {
	if hour, _, ok := bytes.Cut(clock, []byte{':'}); !ok || len(hour) > 2 {
		return clock
	}
	return slices.Concat(date, []byte{' '}, clock)
}

// priced returns the event of a row of prices.
func (im *importer) priced(field func(role) []byte, l *layout) (e event, err error) {
	if e.at, err = im.instant(field(roleTime)); err != nil {
		return e, err
	}
	spot, kind := field(roleSpot), field(roleType)
	if l.gone && string(spot) == "GONE" {
		spot = nil
	}
	if len(kind) == 0 {
		return e, errors.New("no instance type")
	}
	// Some collectors write the count in acc:V100:8 as a float. It is the same type.
	if name, float := bytes.CutSuffix(kind, []byte(".0")); float && bytes.HasPrefix(name, []byte("acc:")) {
		kind = name
	}
	if len(spot) == 0 && !l.gaps {
		return e, errors.New("no price")
	}
	if c := field(roleCurrency); len(c) > 0 && !isDollar(c) {
		return e, fmt.Errorf("currency %q is not USD", c)
	}
	named := strings.ToLower(string(field(roleCloud)))
	zone, region, err := im.placeOf(field, l, named)
	if err != nil {
		return e, err
	}
	if e.market, err = im.market(named, l.provider, region, zone, kind, product(field(roleProduct))); err != nil {
		return e, err
	}
	if e.spot, err = price(spot, policy.NoPrice); err != nil {
		return e, err
	}
	onDemand := field(roleOnDemand)
	if e.onDemand, err = price(onDemand, 0); err != nil {
		return e, err
	}
	if e.onDemand == 0 && len(onDemand) > 0 {
		im.zeros++
	}
	e.says = saysSpot
	return e, nil
}

// placeOf returns the zone and the region of a row. In some tables, the region column contains
// zones. If a zone has a name and an ID, the name is used.
func (im *importer) placeOf(field func(role) []byte, l *layout, named string) (zone, region []byte, err error) {
	zone, region = field(roleZone), field(roleRegion)
	if len(zone) == 0 {
		zone = field(roleZoneID)
	}
	provider := im.provider(named, l.provider)
	if len(zone) == 1 && len(region) > 0 && provider == catalog.AWS { // the letter of a zone
		zone = slices.Concat(region, zone)
	}
	if l.at[roleZone] >= 0 || l.at[roleZoneID] >= 0 || len(zone) > 0 {
		return zone, region, nil
	}
	if l.byRegion || provider != catalog.AWS {
		return region, region, nil
	}
	if len(im.regionOf(provider, region)) == 0 {
		return nil, nil, fmt.Errorf("region %q is not a zone, and AWS prices differ by zone", region)
	}
	return region, nil, nil
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

// score parses a placement score; an empty text means unknown.
func score(text []byte) (int8, error) {
	if len(text) == 0 {
		return -1, nil
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(v >= 0 && v <= trace.ScoreMax) || v != float64(int8(v)) {
		return 0, fmt.Errorf("placement score %q is not an integer up to %d", text, trace.ScoreMax)
	}
	return int8(v), nil
}

// frequencyBand returns the interruption band of a SpotLake value, which ranges from 3.0, the least
// interrupted, to 1.0; an empty text means unknown.
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
	return 0, fmt.Errorf("interruption frequency %q is not 3, 2.5, 2, 1.5 or 1", text)
}

// isDollar reports whether a currency code or sign is that of the US dollar.
func isDollar(currency []byte) bool {
	return bytes.EqualFold(currency, []byte("USD")) || bytes.EqualFold(currency, []byte("US$")) || string(currency) == "$"
}
