package sweep

import (
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/internal/ranges"
	"github.com/spotter-dev/spotter/scenarios/chance"
	"github.com/spotter-dev/spotter/scenarios/edit"
)

// A Setting is one setting with one value.
type Setting struct {
	Parameter, Set, Value string
}

// Short formats the setting for tables.
func (s Setting) Short() string {
	if s.Set != "" {
		return edit.Short(s.Set + "=" + s.Value)
	}
	return s.Parameter + "=" + s.Value
}

// at returns the value at position part of an axis, in [0, 1).
func (a *Axis) at(part float64) string {
	if a.Range != "" {
		return a.span.At(part)
	}
	return a.all[int(part*float64(len(a.all)))]
}

func (a *Axis) with(value string) Setting { return Setting{a.Parameter, a.Set, value} }

// grid returns all combinations of values; the last axis varies fastest. Without axes it returns
// one empty combination. If there are more than pointsMax combinations, it returns only some of
// them, but more than pointsMax.
func grid(axes []Axis) [][]Setting {
	all := make([][]Setting, len(axes))
	for i := range axes {
		for _, v := range axes[i].all {
			all[i] = append(all[i], axes[i].with(v))
		}
	}
	return ranges.Product(all, pointsMax)
}

// count returns the number of candidates.
func (s *Spec) count() int {
	if s.Method == Grid {
		return len(grid(s.Parameters))
	}
	return s.Points
}

// Candidates returns the distinct settings of all candidates, in order. Values of a range are
// rounded to short decimals.
func (s *Spec) Candidates() [][]Setting {
	var points [][]float64
	switch n := len(s.Parameters); s.Method {
	case Grid:
		return grid(s.Parameters)
	case Latin:
		points = chance.LatinHypercube(*s.Seed, "sweep", s.Points, n)
	default:
		for i := range s.Points {
			point := make([]float64, n)
			for d := range point {
				point[d] = chance.Stream(*s.Seed, "sweep").At2(uint64(i), uint64(d)).Float()
			}
			points = append(points, point)
		}
	}
	var out [][]Setting
	for _, point := range points {
		var all []Setting
		for d := range s.Parameters {
			all = append(all, s.Parameters[d].with(s.Parameters[d].at(point[d])))
		}
		if !slices.ContainsFunc(out, func(o []Setting) bool { return slices.Equal(o, all) }) {
			out = append(out, all)
		}
	}
	return out
}

// ConditionSets returns all combinations of the conditions, or one empty combination.
func (s *Spec) ConditionSets() [][]Setting { return grid(s.Conditions) }

// Name formats settings as one text.
func Name(settings []Setting) string {
	var parts []string
	for _, s := range settings {
		parts = append(parts, s.Short())
	}
	return strings.Join(parts, ", ")
}

// SpecOf returns policy with the parameters among settings.
func SpecOf(policy string, settings []Setting) string {
	for _, s := range settings {
		if s.Parameter != "" {
			policy += ":" + s.Parameter + "=" + s.Value
		}
	}
	return policy
}

// Edit returns the text of a scenario with the fields among settings changed. name is the
// scenario's name in errors. If settings contains no field, the text is unchanged.
func Edit(name string, text []byte, settings []Setting) ([]byte, error) {
	if !slices.ContainsFunc(settings, func(s Setting) bool { return s.Set != "" }) {
		return text, nil
	}
	file, err := edit.Read(name, text)
	if err != nil {
		return nil, err
	}
	for _, s := range settings {
		if s.Set == "" {
			continue
		}
		if err := file.Set(s.Set + "=" + s.Value); err != nil {
			return nil, err
		}
	}
	return file.Text()
}
