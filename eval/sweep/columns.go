package sweep

import (
	"io"
	"iter"
	"strconv"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/eval/tabular"
)

// A runOf is a run and the result that contains it.
type runOf struct {
	*Result
	*Run
}

func (r runOf) row() *Row { return &r.Races[r.Race].Candidates[r.Run.Candidate] }

// columns returns the columns of a run: what was run, each setting by name, and every metric.
func (r *Result) columns() []tabular.Column[runOf] {
	out := []tabular.Column[runOf]{
		tabular.Of("sweep", "dict", func(x runOf) string { return x.Plan.Name }),
		tabular.Of("scenario", "dict", func(x runOf) string { return x.Result.Scenario }),
		tabular.Of("race", "", func(x runOf) int64 { return int64(x.Race + 1) }),
		tabular.Of("candidate", "dict", func(x runOf) string { return x.row().Name }),
		tabular.Of("policy", "dict", func(x runOf) string { return x.row().Policy }),
		tabular.Of("rung", "", func(x runOf) int64 { return int64(x.Rung) }),
		tabular.Of("fresh", "", func(x runOf) bool { return x.Rung == 0 }),
		tabular.Of("dropped", "", func(x runOf) bool { return x.row().Dropped }),
		tabular.Of("chosen", "", func(x runOf) bool { return x.Races[x.Race].Chosen == x.Run.Candidate }),
		tabular.Of("front", "", func(x runOf) bool { return x.row().Front }),
		tabular.Of("window", "", func(x runOf) int64 { return int64(x.Window) }),
		tabular.Of("seed", "", func(x runOf) uint64 { return x.Seed }),
	}
	for i := range r.Plan.Spec.Conditions {
		out = append(out, r.Plan.Spec.Conditions[i].column(func(x runOf) []Setting { return x.Races[x.Race].Conditions }))
	}
	for i := range r.Plan.Spec.Parameters {
		out = append(out, r.Plan.Spec.Parameters[i].column(func(x runOf) []Setting { return x.row().Settings }))
	}
	return append(out, format.MetricColumns(func(x runOf) *eval.RunRow { return &x.RunRow })...)
}

// column returns the column of a setting: a number if all its values are numbers, null for the
// candidate that changes nothing.
func (a *Axis) column(settings func(runOf) []Setting) tabular.Column[runOf] {
	name := a.Parameter + a.Set
	value := func(x runOf) string {
		for _, s := range settings(x) {
			if s.Parameter == a.Parameter && s.Set == a.Set {
				return s.Value
			}
		}
		return ""
	}
	for _, v := range a.all {
		if _, err := strconv.ParseFloat(v, 64); err != nil {
			return tabular.Text(name, value)
		}
	}
	return tabular.Of(name, "optional", func(x runOf) *float64 {
		v, err := strconv.ParseFloat(value(x), 64)
		if err != nil {
			return nil
		}
		return &v
	})
}

// rows iterates over the runs.
func (r *Result) rows() iter.Seq[runOf] {
	return func(yield func(runOf) bool) {
		for i := range r.Runs {
			if !yield(runOf{r, &r.Runs[i]}) {
				return
			}
		}
	}
}

// WriteParquet writes a row for each run of a candidate. Equal results result in equal bytes.
func (r *Result) WriteParquet(w io.Writer) error {
	return tabular.WriteParquet(w, r.columns(), r.rows())
}
