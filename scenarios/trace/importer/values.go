package importer

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// price reads a price; an empty one is absent.
func price(text []byte, absent policy.Money) (policy.Money, error) {
	if len(text) == 0 {
		return absent, nil
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || bytes.ContainsAny(text, "xX_") { // as 0x1p-2 and 1_000 in Go
		return 0, fmt.Errorf("price %q is no number", text)
	}
	m, ok := trace.Price(v)
	if !ok {
		return 0, fmt.Errorf("price %q is impossible", text)
	}
	return m, nil
}

// instant reads a time, as Unix seconds, in RFC 3339 or, which is then UTC and a
// warning, without a zone.
func (n *notes) instant(text []byte) (policy.Time, error) {
	var at policy.Time
	if v, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		at = policy.Time(max(-1, min(v, int64(trace.TimeMax))) * 1000)
	} else if v, err := strconv.ParseFloat(string(text), 64); err == nil && v > 0 && v < float64(trace.TimeMax) {
		at = policy.Time(v * 1000)
	} else if v, err := time.Parse(time.RFC3339Nano, string(text)); err == nil {
		at = policy.TimeOf(v)
	} else if v, err := time.Parse(time.DateTime+"Z07:00", string(text)); err == nil {
		at = policy.TimeOf(v)
	} else if v, ok := dateTime(string(text)); ok {
		at = v
		if !n.zoneless {
			n.zoneless = true
			n.warn("times without a zone, as %q, are taken as UTC", text)
		}
	} else {
		return 0, fmt.Errorf("time %q is neither Unix seconds nor RFC 3339", text)
	}
	if at < trace.TimeMin || at > trace.TimeMax {
		return 0, fmt.Errorf("time %q is not between 1970 and 2200", text)
	}
	return at, nil
}

// dateTime reads a time in one of the ways in which databases and Python print it
// without a zone, which then is UTC: with a T or with a blank in its place.
func dateTime(text string) (policy.Time, bool) {
	for _, layout := range [...]string{time.DateTime, "2006-01-02T15:04:05"} {
		if v, err := time.Parse(layout, text); err == nil {
			return policy.TimeOf(v), true
		}
	}
	return 0, false
}
