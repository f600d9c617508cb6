package sweep

import (
	"context"
	"errors"
	"fmt"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/sim"
)

// AsItIs is the name of the candidate that changes nothing.
const AsItIs = "as it is"

// A Candidate is one combination of settings under one set of conditions.
type Candidate struct {
	Name     string
	Settings []Setting

	// Policy is the policy, Text the scenario.
	Policy string
	Text   []byte
}

// candidates returns the candidates for a set of conditions; the first is AsItIs. It returns an
// error if one of them cannot be run, or changes something that is not a choice.
func (c *Config) candidates(ctx context.Context, conditions []Setting) ([]Candidate, error) {
	s := &c.Plan.Spec
	base, err := Edit(c.Scenario, c.Text, conditions)
	if err != nil {
		return nil, fmt.Errorf("%s: spec.conditions: %s: %w", c.Plan.File, Name(conditions), err)
	}
	cases, err := c.Bind(base)
	if err != nil {
		return nil, fmt.Errorf("%s: spec.conditions: %s: %w", c.Plan.File, Name(conditions), err)
	}
	all := []Candidate{{Name: AsItIs, Policy: s.Policy, Text: base}}
	if err := c.Check(s.Policy, cases); err != nil {
		return nil, fmt.Errorf("%s: spec.policy: %w", c.Plan.File, err)
	}
	for _, settings := range s.Candidates() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		x, err := c.candidate(settings, base, cases)
		if err != nil {
			return nil, fmt.Errorf("%s: spec.parameters: %s: %w", c.Plan.File, Name(settings), err)
		}
		all = append(all, x)
	}
	return all, nil
}

// candidate returns one candidate, and checks it against the unchanged scenario.
func (c *Config) candidate(settings []Setting, base []byte, cases []eval.Case) (Candidate, error) {
	x := Candidate{Name: Name(settings), Settings: settings, Policy: SpecOf(c.Plan.Spec.Policy, settings)}
	var err error
	if x.Text, err = Edit(c.Scenario, base, settings); err != nil {
		return x, err
	}
	if string(x.Text) != string(base) {
		own, err := c.Bind(x.Text)
		if err != nil {
			return x, err
		}
		v := eval.Variant{Cases: own}
		if err := v.Alike(cases); err != nil {
			return x, fmt.Errorf("%w: put it among spec.conditions", err)
		}
		for i := range own {
			if eval.EvidenceOf(own[i].Bound).Demand != eval.EvidenceOf(cases[i].Bound).Demand {
				return x, errors.New("it changes what workloads request: put it in spec.conditions")
			}
		}
		cases = own
	}
	return x, c.Check(x.Policy, cases)
}

// A Store stores runs by key, so that a stopped sweep can continue. It must be safe for concurrent
// use.
type Store interface {
	Get(key string) (*sim.Result, bool)
	Put(key string, r *sim.Result) error
}

// kept returns a runner that uses stored runs, and stores the runs that it executes.
func (c *Config) kept() eval.Runner {
	run, keyOf := c.NewRunner(), c.NewKey()
	return func(ctx context.Context, j eval.Job) (*sim.Result, error) {
		key, err := keyOf(j)
		if err != nil {
			return nil, err
		}
		if r, ok := c.Store.Get(key); ok {
			return r, nil
		}
		r, err := run(ctx, j)
		if err == nil {
			err = c.Store.Put(key, r)
		}
		return r, err
	}
}
