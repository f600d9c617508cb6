package importer

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// ScriptOptions control how a script of prices is run.
type ScriptOptions struct {
	// Tick is the time between two calls; 0 means DefaultTick.
	Tick time.Duration

	// For is the duration of the run; 0 means until each market has reached its last step.
	For time.Duration

	// Markets are the markets to query, as TYPE:ZONE, in addition to those that the script
	// identifies exactly.
	Markets []string
}

// DefaultTick is the interval at which a controller queries prices.
const DefaultTick = 30 * time.Second

// formatScript is the name of the format in reports.
const formatScript = "script of prices"

// fromScript reports whether any source is a script.
func (n *notes) fromScript() bool { return slices.Contains(n.report.Formats, formatScript) }

// ticksMax is the maximum number of ticks of a script.
const ticksMax = 10_000_000

// script runs a script: at each tick it takes the next step of every market, ascending by name.
// After an error, the previous prices continue to apply.
func (im *importer) script(r io.Reader) error {
	im.took(formatScript)
	s, err := readScript(r)
	if err != nil {
		return err
	}
	if im.o.From == 0 {
		return fmt.Errorf("%w: a script has no start time", trace.ErrUnnamed)
	}
	keys, err := im.scripted(s)
	if err != nil {
		return err
	}
	markets := make([]int32, len(keys))
	for i, key := range keys {
		markets[i], err = im.market("", catalog.AWS, nil, []byte(key.zone), []byte(key.kind), nil)
		if err != nil {
			return fmt.Errorf("%w: %w", trace.ErrNoRegion, err)
		}
	}
	tick := cmp.Or(im.o.Script.Tick, DefaultTick)
	ticks := int64(scriptTicks(s, keys))
	if im.o.Script.For > 0 {
		ticks = int64((im.o.Script.For + tick - 1) / tick)
	}
	if tick < time.Millisecond || ticks*int64(len(keys)) > ticksMax {
		return fmt.Errorf("%w: %d markets asked %d times, every %v", trace.ErrValue, len(keys), ticks, tick)
	}
	failed, first := 0, error(nil)
	for n := range ticks {
		at := im.o.From.Add(time.Duration(n) * tick)
		for i, key := range keys {
			im.report.Rows++
			e, err := quoted(s, key)
			if err != nil {
				failed, first = failed+1, cmp.Or(first, err)
				continue
			}
			e.market, e.at = markets[i], at
			im.add(e)
		}
	}
	im.from, im.to = min(im.from, im.o.From), max(im.to, im.o.From.Add(time.Duration(ticks)*tick))
	if failed > 0 {
		im.warn("%s: %d of %d calls failed, where the last price is kept (the first: %v)",
			filepath.Base(im.path), failed, int(ticks)*len(keys), first)
	}
	return nil
}

// quoted returns the prices in the next step of a market.
func quoted(s *script, key scriptKey) (e event, err error) {
	st, err := s.call(key)
	if err != nil {
		return e, err
	}
	e.spot, e.onDemand, e.says = st.spot, st.onDemand, saysSpot
	if e.onDemand > 0 {
		e.says |= saysOnDemand
	}
	return e, nil
}

// scripted returns the markets to query, ascending.
func (im *importer) scripted(s *script) ([]scriptKey, error) {
	var keys []scriptKey
	for _, key := range s.keys() {
		if key.exact() {
			keys = append(keys, key)
		}
	}
	for _, text := range im.o.Script.Markets {
		key, err := parseScriptKey(text)
		if err == nil && !key.exact() {
			err = fmt.Errorf("market %q names no single one", text)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", trace.ErrUnnamed, err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: the script names no market in full", trace.ErrUnnamed)
	}
	slices.SortFunc(keys, func(a, b scriptKey) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(keys), nil
}

// scriptTicks returns the number of ticks after which the last step has been reached in all series
// of steps that the markets in keys follow.
func scriptTicks(s *script, keys []scriptKey) int {
	sharing := map[scriptKey]int{}
	for _, m := range keys {
		key, _ := s.steps(m)
		sharing[key]++
	}
	most := 1
	for _, m := range keys {
		key, n := s.steps(m)
		most = max(most, (n+sharing[key]-1)/sharing[key])
	}
	return most
}
