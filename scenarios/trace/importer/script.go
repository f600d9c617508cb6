package importer

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// A script is a sequence of prices written in advance: the JSON files with which users of
// SpotVortex describe the behaviour of a market in a test. It contains steps for markets,
// identified by "type:zone", where either may be "*", and the index of the next step of each.
type script struct {
	fallback *scriptStep
	repeat   bool
	series   map[scriptKey][]scriptStep
	next     map[scriptKey]int
}

// A scriptKey identifies the markets of steps; either name may be "*".
type scriptKey struct{ kind, zone string }

// String returns the key as it is written in files.
func (k scriptKey) String() string { return k.kind + ":" + k.zone }

// exact reports whether k identifies a single market.
func (k scriptKey) exact() bool { return k.kind != "*" && k.zone != "*" }

// A scriptStep is the result of one call: prices, of which onDemand is 0 if the script has none, or
// an injected fault, such as throttling by an API.
type scriptStep struct {
	spot, onDemand policy.Money
	fault          string
}

// A writtenStep is a step as it is stored in a file. Omitted values are those of the default. The
// last two fields have no effect on prices.
type writtenStep struct {
	Current    *float64  `json:"current_price"`
	OnDemand   *float64  `json:"on_demand_price"`
	Error      *string   `json:"error"`
	History    []float64 `json:"price_history"`
	Volatility *float64  `json:"volatility"`
}

// readScript reads a script. Unknown members are errors, since a mistyped one would otherwise have
// no effect.
func readScript(r io.Reader) (*script, error) {
	var file struct {
		Default *writtenStep             `json:"default"`
		Repeat  *bool                    `json:"repeat_last"`
		Series  map[string][]writtenStep `json:"series"`
	}
	if err := whole(r, &file, true); err != nil {
		return nil, err
	}
	if file.Default == nil && len(file.Series) == 0 {
		return nil, fmt.Errorf("%w: a script needs default, series or both", trace.ErrFormat)
	}
	s := &script{repeat: file.Repeat == nil || *file.Repeat, series: map[scriptKey][]scriptStep{}, next: map[scriptKey]int{}}
	base := writtenStep{}
	if file.Default != nil {
		base = *file.Default
		fallback, err := base.step("default")
		if err != nil {
			return nil, err
		}
		s.fallback = &fallback
	}
	for _, name := range slices.Sorted(maps.Keys(file.Series)) {
		key, err := parseScriptKey(name)
		if err != nil {
			return nil, err
		}
		if len(file.Series[name]) == 0 {
			return nil, fmt.Errorf("%w: series %q has no step", trace.ErrFormat, name)
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

// parseScriptKey parses a key of the form type:zone.
func parseScriptKey(text string) (scriptKey, error) {
	kind, zone, ok := strings.Cut(text, ":")
	if !ok || kind == "" || zone == "" {
		return scriptKey{}, fmt.Errorf("%w: market %q is not of the form TYPE:ZONE", trace.ErrFormat, text)
	}
	return scriptKey{kind, zone}, nil
}

// over returns w with omitted values taken from base.
func (w writtenStep) over(base writtenStep) writtenStep {
	return writtenStep{Current: cmp.Or(w.Current, base.Current), OnDemand: cmp.Or(w.OnDemand, base.OnDemand),
		Error: cmp.Or(w.Error, base.Error)}
}

// step checks w and converts it. Place is its position in the file, for errors.
func (w writtenStep) step(place string) (st scriptStep, err error) {
	if w.Error != nil {
		st.fault = *w.Error
	}
	if w.Current == nil && st.fault == "" {
		return st, fmt.Errorf("%w: %s has neither current_price nor error", trace.ErrFormat, place)
	}
	for _, x := range []struct {
		name string
		from *float64
		to   *policy.Money
	}{{"current_price", w.Current, &st.spot}, {"on_demand_price", w.OnDemand, &st.onDemand}} {
		if x.from == nil {
			continue
		}
		price, ok := trace.Price(*x.from)
		if !ok {
			return st, fmt.Errorf("%w: %s: %s is %v, must be from 0 to 1000000", trace.ErrFormat, place, x.name, *x.from)
		}
		*x.to = price
	}
	return st, nil
}

// keys returns the keys that have steps, ascending.
func (s *script) keys() []scriptKey {
	return slices.SortedFunc(maps.Keys(s.series), func(a, b scriptKey) int { return strings.Compare(a.String(), b.String()) })
}

// steps returns the key whose steps market m follows, and their number; 0 if m follows the default.
func (s *script) steps(m scriptKey) (scriptKey, int) {
	for _, key := range [...]scriptKey{m, {m.kind, "*"}, {"*", m.zone}, {"*", "*"}} {
		if steps := s.series[key]; len(steps) > 0 {
			return key, len(steps)
		}
	}
	return scriptKey{}, 0
}

// errNoPrice is returned for a market that is not in the script. errExhausted is returned after the
// last step of a script that does not repeat it.
var (
	errNoPrice   = errors.New("the script has no price")
	errExhausted = errors.New("the script is at its end")
)

// call returns the next step of market m and advances, even if that step is an error. Markets that
// share a key share its steps.
func (s *script) call(m scriptKey) (scriptStep, error) {
	key, n := s.steps(m)
	st := s.fallback
	if n > 0 {
		at := s.next[key]
		if at >= n && !s.repeat {
			return scriptStep{}, fmt.Errorf("%w: %s after %d steps of %s", errExhausted, m, n, key)
		}
		st = &s.series[key][min(at, n-1)]
		s.next[key] = min(at+1, n)
	}
	switch {
	case st == nil:
		return scriptStep{}, fmt.Errorf("%w: %s", errNoPrice, m)
	case st.fault != "":
		return scriptStep{}, errors.New(st.fault)
	}
	return *st, nil
}
