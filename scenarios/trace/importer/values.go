package importer

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// price parses a price in dollars. It returns absent for an empty text.
func price(text []byte, absent policy.Money) (policy.Money, error) {
	if len(text) == 0 {
		return absent, nil
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if errors.Is(err, strconv.ErrSyntax) {
		plain, why := dollars(string(text))
		if why != nil {
			return 0, why
		}
		v, err = strconv.ParseFloat(plain, 64)
	}
	if err != nil && !errors.Is(err, strconv.ErrRange) || bytes.ContainsAny(text, "xX_") { // such as 0x1p-2 and 1_000 in Go
		return 0, fmt.Errorf("price %q is not a number", text)
	}
	m, ok := trace.Price(v)
	if !ok {
		return 0, fmt.Errorf("price %q is impossible", text)
	}
	return m, nil
}

// inDollars matches an amount of dollars, or of dollars per hour. inAnother matches an amount of
// another currency.
var (
	inDollars = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^(?:US\$|\$|USD)?\s*([0-9.,]+)\s*(?:USD|\$)?\s*(?:(?:/|per )\s*(?:h|hr|hour))?$`)
	})
	inAnother = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:\pL{1,3}|\p{Sc}|\pL{0,2}\p{Sc})\s*[0-9.,]+$|^[0-9.,]+\s*(?:\pL{3}|\p{Sc})$`)
	})
	thousands = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d{1,3}(?:,\d{3})+\.\d*$`) })
)

// dollars returns the number in an amount such as $0.0123, 0.0123 USD or 0,0123.
func dollars(text string) (string, error) {
	m := inDollars().FindStringSubmatch(text)
	switch {
	case m == nil && inAnother().MatchString(text):
		return "", fmt.Errorf("price %q is not in dollars", text)
	case m == nil:
		return "", fmt.Errorf("price %q is not a number", text)
	case thousands().MatchString(m[1]):
		return strings.ReplaceAll(m[1], ",", ""), nil
	}
	whole, fraction, comma := strings.Cut(m[1], ",")
	if !comma || strings.ContainsAny(fraction, ",.") || strings.Contains(whole, ".") {
		return m[1], nil
	}
	if len(fraction) == 3 && strings.Trim(whole, "0") != "" {
		return "", fmt.Errorf("price %q is not clear: it may be %s.%s or %s%s", text, whole, fraction, whole, fraction)
	}
	return whole + "." + fraction, nil
}

// instant parses a time: seconds, milliseconds, microseconds or nanoseconds since 1970, RFC 3339 or
// a similar format. A time without a zone is UTC and causes a warning.
func (n *notes) instant(text []byte) (policy.Time, error) {
	var at policy.Time
	s := string(text)
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		at = sinceEpoch(v)
	} else if v, err := strconv.ParseFloat(s, 64); err == nil && v > 0 && v < 1e19 {
		at = sinceEpoch(int64(v))
		if v < secondsMax {
			at = policy.Time(v * 1000)
		}
	} else if v, err := time.Parse(time.RFC3339Nano, s); err == nil {
		at = policy.TimeOf(v)
	} else if v, zone, ok := written(s); ok {
		at = policy.TimeOf(v)
		if !zone && !n.zoneless {
			n.zoneless = true
			n.warn("times without a zone, as %q, are taken as UTC", text)
		}
	} else if dayOrMonth().MatchString(s) {
		return 0, fmt.Errorf("time %q is not clear: its day may be its month; write it as 2026-01-31", text)
	} else {
		return 0, fmt.Errorf("time %q is neither Unix seconds nor RFC 3339", text)
	}
	if at < trace.TimeMin || at > trace.TimeMax {
		return 0, fmt.Errorf("time %q is not between 1970 and 2200", text)
	}
	return at, nil
}

// secondsMax is above the number of seconds since 1970 of any time. A greater number is in
// milliseconds, microseconds or nanoseconds. This is unambiguous since all prices are from after
// 1973, when the number of milliseconds exceeded it.
const secondsMax = 100_000_000_000

// sinceEpoch returns the time v seconds after 1970, or v milliseconds, microseconds or nanoseconds,
// depending on the size of v.
func sinceEpoch(v int64) policy.Time {
	switch {
	case v < secondsMax:
		return policy.Time(max(-1, v) * 1000)
	case v < secondsMax*1000:
		return policy.Time(v)
	case v < secondsMax*1_000_000:
		return policy.Time(v / 1000)
	}
	return policy.Time(v / 1_000_000)
}

// dayOrMonth matches a date that ends with the year.
var dayOrMonth = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}\b`) })

// written parses a time in one of the formats of databases, spreadsheets and programming languages.
// Zone reports whether it has a time zone.
func written(text string) (at time.Time, zone, ok bool) {
	for _, utc := range [...]string{" UTC", "UTC", " GMT", " Z"} {
		if rest, found := strings.CutSuffix(text, utc); found {
			text = rest + "Z"
			break
		}
	}
	if len(text) > 10 && text[4] == '/' && text[7] == '/' {
		text = strings.ReplaceAll(text[:10], "/", "-") + text[10:]
	}
	if len(text) > 10 && text[10] == ' ' && text[4] == '-' {
		text = text[:10] + "T" + strings.TrimLeft(text[10:], " ")
	}
	// Layouts do not need the fraction of a second.
	for _, layout := range [...]string{
		"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05 Z07:00", "2006-01-02T15:04:05 Z0700",
		"2006-01-02T15:04:05Z07", "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05,999Z07:00", "20060102T150405Z07:00",
		"Mon, 02 Jan 2006 15:04:05Z07:00",
	} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, true, true
		}
	}
	for _, layout := range [...]string{"2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, false, true
		}
	}
	if at, err := time.Parse("Mon Jan _2 15:04:05Z 2006", strings.Replace(text, " UTC ", "Z ", 1)); err == nil {
		return at, true, true
	}
	return at, false, false
}

// products maps short descriptions of products, in lower case, to those of AWS.
var products = map[string]string{
	"linux": trace.ProductLinux, "linux/unix": trace.ProductLinux, "unix/linux": trace.ProductLinux,
	"windows": "Windows", "suse": "SUSE Linux", "suse linux": "SUSE Linux",
	"rhel": "Red Hat Enterprise Linux", "red hat enterprise linux": "Red Hat Enterprise Linux",
}

// product returns the AWS description of a product that text abbreviates, or text itself.
func product(text []byte) []byte {
	if string(text) == trace.ProductLinux || len(text) == 0 {
		return text
	}
	if name, ok := products[strings.ToLower(string(text))]; ok {
		return []byte(name)
	}
	return text
}
