// Package script runs prices that were written in advance: the JSON files in which users of
// SpotVortex describe what a market does in a test.
//
// A script has steps for markets, written "type:zone", where either may be "*". A query for a Spot
// price advances by one step; a query for an on-demand price returns that of the next step without
// advancing.
package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// ErrFormat is returned for what is no script.
var ErrFormat = errors.New("not a script of prices")

// ErrNoPrice is returned for a market of which a script says nothing.
var ErrNoPrice = errors.New("the script has no price")

// ErrExhausted is returned behind the last step of a script that does not
// repeat it.
var ErrExhausted = errors.New("the script is at its end")

// An InjectedError is a fault that the script orders, as of an API that
// throttles.
type InjectedError struct{ Text string }

// Error returns the text of the script.
func (e *InjectedError) Error() string { return e.Text }

// A Quote is what a step says. OnDemand is 0 where the script has none.
type Quote struct {
	Spot, OnDemand policy.Money

	// History are the prices before, and Volatility a measure of their spread.
	History    []policy.Money
	Volatility float64
}

// A Key is a market to which steps belong; either name may be "*".
type Key struct{ Type, Zone string }

// String returns the key as it is written.
func (k Key) String() string { return k.Type + ":" + k.Zone }

// Exact reports whether k is one market.
func (k Key) Exact() bool { return k.Type != "*" && k.Zone != "*" }

// A Script is a set of steps and the next step of each market. It is not safe for concurrent use.
type Script struct {
	fallback *step
	repeat   bool
	series   map[Key][]step
	next     map[Key]int
}

// A step is the result of one call: a quote or an error.
type step struct {
	quote Quote
	fault string
}

// A written is a step as it is stored in a file. Values that it omits are those of the default.
type written struct {
	Current    *float64  `json:"current_price"`
	OnDemand   *float64  `json:"on_demand_price"`
	History    []float64 `json:"price_history"`
	Volatility *float64  `json:"volatility"`
	Error      *string   `json:"error"`
}

// Read reads a script. Members that no script has are refused, since one
// mistyped would silently do nothing.
func Read(r io.Reader) (*Script, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var file struct {
		Default *written             `json:"default"`
		Repeat  *bool                `json:"repeat_last"`
		Series  map[string][]written `json:"series"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, located(err, data)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: more follows behind it", ErrFormat)
	}
	if file.Default == nil && len(file.Series) == 0 {
		return nil, fmt.Errorf("%w: it needs default, series or both", ErrFormat)
	}
	s := &Script{repeat: file.Repeat == nil || *file.Repeat, series: map[Key][]step{}, next: map[Key]int{}}
	base := written{}
	if file.Default != nil {
		base = *file.Default
		fallback, err := base.step("default")
		if err != nil {
			return nil, err
		}
		s.fallback = &fallback
	}
	for _, name := range slices.Sorted(maps.Keys(file.Series)) {
		key, err := ParseKey(name)
		if err != nil {
			return nil, err
		}
		if len(file.Series[name]) == 0 {
			return nil, fmt.Errorf("%w: series %q has no step", ErrFormat, name)
		}
		for i, w := range file.Series[name] {
			st, err := w.over(base).step(fmt.Sprintf("series %q, step %d", name, i+1))
			if err != nil {
				return nil, err
			}
			s.series[key] = append(s.series[key], st)
		}
	}
	return s, nil
}

// located adds to an error of the decoder in which line it stands.
func located(err error, data []byte) error {
	line := func(offset int64) int { return 1 + bytes.Count(data[:min(int(offset), len(data))], []byte{'\n'}) }
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("%w: line %d: %w", ErrFormat, line(syntax.Offset), err)
	case errors.As(err, &mismatch):
		return fmt.Errorf("%w: line %d: %s is a %s and must be a %v",
			ErrFormat, line(mismatch.Offset), mismatch.Field, mismatch.Value, mismatch.Type)
	}
	return fmt.Errorf("%w: %w", ErrFormat, err)
}

// ParseKey reads a key of the form type:zone.
func ParseKey(text string) (Key, error) {
	kind, zone, ok := strings.Cut(text, ":")
	if !ok || kind == "" || zone == "" {
		return Key{}, fmt.Errorf("%w: market %q is not of the form TYPE:ZONE", ErrFormat, text)
	}
	return Key{kind, zone}, nil
}

// over returns w with what it leaves out taken from base.
func (w written) over(base written) written {
	if w.Current == nil {
		w.Current = base.Current
	}
	if w.OnDemand == nil {
		w.OnDemand = base.OnDemand
	}
	if w.History == nil {
		w.History = base.History
	}
	if w.Volatility == nil {
		w.Volatility = base.Volatility
	}
	if w.Error == nil {
		w.Error = base.Error
	}
	return w
}

// priceMax is above every price of a node-hour.
const priceMax = 1_000_000

// step checks w and returns it as a step. Place is where w is in the file, for errors.
func (w written) step(place string) (st step, err error) {
	money := func(name string, x float64) policy.Money {
		if !(x >= 0 && x <= priceMax) && err == nil {
			err = fmt.Errorf("%w: %s: %s is %v, must be from 0 to %d", ErrFormat, place, name, x, priceMax)
		}
		return policy.Dollars(x)
	}
	if w.Error != nil {
		st.fault = *w.Error
	}
	switch {
	case w.Current != nil:
		st.quote.Spot = money("current_price", *w.Current)
	case st.fault == "":
		return st, fmt.Errorf("%w: %s has neither current_price nor error", ErrFormat, place)
	}
	if w.OnDemand != nil {
		st.quote.OnDemand = money("on_demand_price", *w.OnDemand)
	}
	for _, x := range w.History {
		st.quote.History = append(st.quote.History, money("price_history", x))
	}
	if w.Volatility != nil {
		st.quote.Volatility = *w.Volatility
	}
	return st, err
}

// Keys returns the keys that have steps of their own, ascending.
func (s *Script) Keys() []Key {
	return slices.SortedFunc(maps.Keys(s.series), func(a, b Key) int { return strings.Compare(a.String(), b.String()) })
}

// Steps returns how many steps the key has whose steps market m follows, and
// the key itself; none if m follows the default.
func (s *Script) Steps(m Key) (Key, int) {
	for _, key := range [...]Key{m, {m.Type, "*"}, {"*", m.Zone}, {"*", "*"}} {
		if steps := s.series[key]; len(steps) > 0 {
			return key, len(steps)
		}
	}
	return Key{}, 0
}

// SpotPrice returns the Spot price of a market and advances by one step, even if that step is an
// error. Markets that share a key share its steps.
func (s *Script) SpotPrice(instanceType, zone string) (Quote, error) {
	return s.advance(Key{instanceType, zone}, 1)
}

// OnDemandPrice returns the on-demand price of a market by the step that
// SpotPrice will return next.
func (s *Script) OnDemandPrice(instanceType, zone string) (policy.Money, error) {
	q, err := s.advance(Key{instanceType, zone}, 0)
	return q.OnDemand, err
}

// advance returns what the next step of m says and advances by on steps.
func (s *Script) advance(m Key, on int) (Quote, error) {
	key, n := s.Steps(m)
	st := s.fallback
	if n > 0 {
		at := s.next[key]
		if at >= n && !s.repeat {
			return Quote{}, fmt.Errorf("%w: %s after %d steps of %s", ErrExhausted, m, n, key)
		}
		st = &s.series[key][min(at, n-1)]
		s.next[key] = min(at+on, n)
	}
	switch {
	case st == nil:
		return Quote{}, fmt.Errorf("%w: %s", ErrNoPrice, m)
	case st.fault != "":
		return Quote{}, &InjectedError{st.fault}
	}
	return st.quote, nil
}
