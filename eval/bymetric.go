package eval

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Values are the metrics of a run, in the order of [Metrics]. Their JSON is an object with the
// known ones.
type Values []Value

// MarshalJSON writes a number or a boolean for each known metric.
func (v Values) MarshalJSON() ([]byte, error) {
	return byMetric(func(m int) (any, bool) {
		switch {
		case m >= len(v) || !v[m].Known:
			return nil, false
		case metrics[m].YesNo():
			return v[m].V != 0, true
		}
		return v[m].V, true
	})
}

// UnmarshalJSON reads the output of MarshalJSON, which may be from another version. It ignores
// names outside [Metrics].
func (v *Values) UnmarshalJSON(text []byte) error {
	var found map[string]any
	if err := json.Unmarshal(text, &found); err != nil {
		return err
	}
	*v = make(Values, len(metrics))
	for m := range metrics {
		switch x := found[metrics[m].Name].(type) {
		case nil:
		case bool:
			(*v)[m] = Value{yes(x), true}
		case float64:
			(*v)[m] = Value{x, true}
		default:
			return fmt.Errorf("metrics: %s: %v is neither a number nor true or false", metrics[m].Name, x)
		}
	}
	return nil
}

// Of returns the value of the metric called name, which must be one of [Metrics]. The value is
// unknown if v is empty.
func (v Values) Of(name string) Value {
	if m := mustMetric(name); m < len(v) {
		return v[m]
	}
	return Value{}
}

// Medians are the medians of the metrics over several runs, in the order of [Metrics].
type Medians []Value

// MarshalJSON writes a number for each known metric.
func (v Medians) MarshalJSON() ([]byte, error) {
	return byMetric(func(m int) (any, bool) { return v[m], v[m].Known })
}

// Summaries has a summary of each metric, in the order of [Metrics].
type Summaries []Summary

// MarshalJSON writes the summary of each metric.
func (v Summaries) MarshalJSON() ([]byte, error) {
	return byMetric(func(m int) (any, bool) { return v[m], !v[m].left })
}

// Only returns a copy of g of which JSON has the metrics called names alone. Each must be one of
// [Metrics].
func (g Group) Only(names []string) Group {
	keep := make([]bool, len(metrics))
	for _, name := range names {
		keep[mustMetric(name)] = true
	}
	g.Policies = slices.Clone(g.Policies)
	for i := range g.Policies {
		p := &g.Policies[i]
		p.Summaries, p.Windows = slices.Clone(p.Summaries), slices.Clone(p.Windows)
		for m := range p.Summaries {
			p.Summaries[m].left = !keep[m]
		}
		for w := range p.Windows {
			medians := slices.Clone(p.Windows[w].Medians)
			for m := range medians {
				medians[m].Known = medians[m].Known && keep[m]
			}
			p.Windows[w].Medians = medians
		}
	}
	return g
}

// byMetric encodes an object with the results of function of for each metric, in order. It omits
// metrics for which the function returns false.
func byMetric(of func(m int) (any, bool)) ([]byte, error) {
	text := []byte{'{'}
	for m := range metrics {
		x, ok := of(m)
		if !ok {
			continue
		}
		value, err := json.Marshal(x)
		if err != nil {
			return nil, err
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(append(strconv.AppendQuote(text, metrics[m].Name), ':'), value...)
	}
	return append(text, '}'), nil
}
