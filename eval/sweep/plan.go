package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/internal/ranges"
	"github.com/spotter-dev/spotter/scenarios"
)

// The apiVersion and kind of a plan.
const (
	APIVersion = "spotter.dev/v1alpha1"
	Kind       = "Sweep"
)

// A Method is a way to generate candidates.
type Method string

// The methods.
const (
	Grid   Method = "grid"            // all combinations of all values
	Random Method = "random"          // independent, uniformly distributed values
	Latin  Method = "latin-hypercube" // random, but with values from every part of every range
)

// A Plan is the content of a sweep's file.
type Plan struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              Spec `json:"spec"`

	// File is the path that the plan was read from.
	File string `json:"-"`
}

// A Spec is the specification of a Plan.
type Spec struct {
	// Scenario is the name of an embedded scenario, or a path relative to the folder of the plan.
	Scenario string `json:"scenario"`

	// Policy is the policy, with the parameters that all candidates share.
	Policy string `json:"policy"`

	// Method generates candidates; empty means Grid. Points is the number of candidates for the
	// other methods, and Seed the seed of their random numbers.
	Method Method  `json:"method"`
	Points int     `json:"points"`
	Seed   *uint64 `json:"seed"`

	// Parameters are the settings to choose.
	Parameters []Axis `json:"parameters"`

	// Conditions are fields of the scenario that cannot be chosen. There is a separate race for
	// each combination of their values.
	Conditions []Axis `json:"conditions"`

	// Rungs is the maximum number of times that candidates can be dropped, from 1 to 3; 0 means 3.
	// Each rung has twice the seeds of the one before.
	Rungs int `json:"rungs"`

	// Fresh is the number of fresh seeds for the chosen candidate; 0 means 20.
	Fresh int `json:"fresh"`
}

// An Axis is a setting with its possible values.
type Axis struct {
	// Parameter is a parameter of the policy, Set a field of the scenario in the form
	// KIND/NAME.path. Exactly one of them must be set.
	Parameter string `json:"parameter"`
	Set       string `json:"set"`

	// Values lists the values; Range is in the format of [ranges.Parse]. Exactly one of them must
	// be set.
	Values []Value `json:"values"`
	Range  string  `json:"range"`

	span ranges.Range
	all  []string // the values of Values or Range
}

// A Value is written as a string or a number.
type Value string

// UnmarshalJSON keeps the text of a value as written.
func (v *Value) UnmarshalJSON(raw []byte) error {
	text := string(raw)
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
	}
	if text == "" {
		return errors.New("it is empty")
	}
	*v = Value(text)
	return nil
}

// The limits of a plan.
const (
	pointsMax     = 1000
	conditionsMax = 50
	freshDefault  = 20
	freshMax      = 1000
	rungsMax      = 3
)

// ReadPlan parses a plan. Its errors name the file, the field and the value.
func ReadPlan(file string, data []byte) (*Plan, error) {
	p := &Plan{File: file}
	problem, err := scenarios.DecodeFile(file, data, p)
	if err != nil {
		return nil, scenarios.InOrder([]error{err})
	}
	var errs []error
	fail := func(format string, value any, path ...string) {
		errs = append(errs, problem(path, format, value))
	}
	s := &p.Spec
	for _, x := range []struct {
		good        bool
		format      string
		value, path string
	}{
		{p.APIVersion == APIVersion, "%q, want " + APIVersion, p.APIVersion, "apiVersion"},
		{p.Kind == Kind, "%q, want " + Kind, p.Kind, "kind"},
		{p.Name != "", "must be set%s", "", "metadata.name"},
		{s.Scenario != "", "must be set%s", "", "spec.scenario"},
		{s.Policy != "", "must be set%s", "", "spec.policy"},
		{len(s.Parameters) > 0, "names nothing to choose%s", "", "spec.parameters"},
		{s.Rungs >= 0 && s.Rungs <= rungsMax, "%s is not from 0 to 3", fmt.Sprint(s.Rungs), "spec.rungs"},
		{s.Fresh >= 0 && s.Fresh <= freshMax, "%s is not from 0 to 1000", fmt.Sprint(s.Fresh), "spec.fresh"},
	} {
		if !x.good {
			fail(x.format, x.value, strings.Split(x.path, ".")...)
		}
	}
	errs = append(errs, s.method(problem)...)
	for _, list := range []struct {
		name string
		axes []Axis
	}{{"parameters", s.Parameters}, {"conditions", s.Conditions}} {
		for i := range list.axes {
			if where, err := list.axes[i].read(list.name == "conditions"); err != nil {
				errs = append(errs, problem([]string{"spec", list.name, scenarios.Index(i), where}, "%v", err))
			}
		}
	}
	if len(errs) > 0 {
		return nil, scenarios.InOrder(errs)
	}
	if n := len(grid(s.Conditions)); n > conditionsMax {
		fail("are %d combinations, more than 50", n, "spec", "conditions")
	}
	if n := s.count(); n > pointsMax {
		fail("are %d candidates, more than 1000", n, "spec", "parameters")
	}
	if len(errs) > 0 {
		return nil, scenarios.InOrder(errs)
	}
	s.Rungs, s.Fresh = orDefault(s.Rungs, rungsMax), orDefault(s.Fresh, freshDefault)
	return p, nil
}

func orDefault(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// method checks the fields about the generation of candidates.
func (s *Spec) method(problem func([]string, string, ...any) error) (errs []error) {
	if s.Method == "" {
		s.Method = Grid
	}
	switch s.Method {
	case Grid:
		if s.Points != 0 {
			errs = append(errs, problem([]string{"spec", "points"}, "%d: a grid has as many as its values make", s.Points))
		}
	case Random, Latin:
		if s.Points < 2 || s.Points > pointsMax {
			errs = append(errs, problem([]string{"spec", "points"}, "%d is not from 2 to 1000", s.Points))
		}
	default:
		errs = append(errs, problem([]string{"spec", "method"}, "%q is not grid, random or latin-hypercube", s.Method))
	}
	if s.Seed == nil {
		one := uint64(1)
		s.Seed = &one
	}
	return errs
}

// read checks an axis and parses its range. On error, where is the name of the invalid field.
func (a *Axis) read(condition bool) (where string, err error) {
	switch {
	case condition && a.Set == "":
		return "set", errors.New("must be set: conditions are fields of the scenario")
	case condition && a.Parameter != "":
		return "parameter", fmt.Errorf("%q: conditions are fields of the scenario, and no policy's", a.Parameter)
	case a.Parameter == "" && a.Set == "":
		return "set", errors.New("must be set, or else parameter")
	case a.Parameter != "" && a.Set != "":
		return "set", fmt.Errorf("%q is set together with parameter %q: set one of the two", a.Set, a.Parameter)
	case strings.ContainsAny(a.Parameter, ":=,"):
		return "parameter", fmt.Errorf("%q is not the name of a parameter", a.Parameter)
	case len(a.Values) == 0 && a.Range == "":
		return "values", errors.New("must be set, or else range")
	case len(a.Values) > 0 && a.Range != "":
		return "range", fmt.Errorf("%q is set together with %d values: set one of the two", a.Range, len(a.Values))
	}
	for i, v := range a.Values {
		a.all = append(a.all, string(v))
		if strings.ContainsAny(string(v), ":,") && a.Parameter != "" {
			return "values", fmt.Errorf("%q: no parameter has such a value", v)
		}
		for _, o := range a.Values[:i] {
			if o == v {
				return "values", fmt.Errorf("%q is listed twice", v)
			}
		}
	}
	if a.Range != "" {
		if a.span, err = ranges.Parse(a.Range); err != nil {
			return "range", err
		}
		a.all = a.span.Values()
	}
	return "", nil
}
