package shard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/sim"
)

// Collect returns the part of a plan that done contains, without unfinished runs and bounds. mine
// reports whether a job belongs to the share.
func Collect(head Head, done []*eval.Done, js *Jobs, keys *Keys, mine func(eval.Job) bool) (*Part, error) {
	p := &Part{Head: head}
	add := func(j eval.Job, set func(*Cell)) error {
		in, err := keys.Input(j)
		if err != nil {
			return err
		}
		c := Cell{
			Key: js.Key(j), Input: in, Truth: j.Bound.Truth.String(), Scenario: j.Scenario, Window: j.Window,
			From: j.Bound.Start, Seed: j.Seed, Policy: j.Policy,
		}
		set(&c)
		p.Cells = append(p.Cells, c)
		return nil
	}
	for _, d := range done {
		for i := range d.Runs {
			r := &d.Runs[i]
			if r.Unfinished() {
				continue
			}
			if err := add(r.Job, func(c *Cell) {
				if c.Result = r.Result; r.Err != nil {
					c.Err = r.Err.Error()
				}
			}); err != nil {
				return nil, err
			}
		}
		seeds := d.Config.Seeds
		for i := range d.Bounds {
			j := eval.Job{Case: d.Config.Cases[i/len(seeds)], Policy: eval.OracleName, Seed: seeds[i%len(seeds)]}
			if b := &d.Bounds[i]; !b.Case.Open && !b.Seed.Open && mine(j) {
				if err := add(j, func(c *Cell) { c.Bounds = b }); err != nil {
					return nil, err
				}
			}
		}
	}
	return p, nil
}

// Check returns the plan of parts. It returns an error unless the parts are all parts of one plan,
// and complete results of the given build.
func Check(parts []*Part, build Build) (*Plan, error) {
	if len(parts) == 0 {
		return nil, errors.New("there is no part to merge")
	}
	first := parts[0]
	have := map[int]string{}
	for _, p := range parts {
		switch before, twice := have[p.Share.I]; {
		case p.Build != build:
			return nil, refused(p.Name, "spotter %v made it, and this is %v", p.Build, build)
		case p.Plan.Digest() != first.Plan.Digest():
			return nil, refused(p.Name, "it is of another plan than %s: %s", first.Name, difference(&p.Plan, &first.Plan))
		case p.Share.N != first.Share.N:
			return nil, refused(p.Name, "it is part %v, and %s is part %v", p.Share, first.Name, first.Share)
		case twice:
			return nil, refused(p.Name, "part %v is there twice, as %s too", p.Share, before)
		case len(p.Cells) != p.Jobs:
			return nil, refused(p.Name, "it was stopped before its end, with %d of its %d cells", len(p.Cells), p.Jobs)
		}
		have[p.Share.I] = p.Name
	}
	var missing []string
	for i := 1; i <= first.Share.N; i++ {
		if _, ok := have[i]; !ok {
			missing = append(missing, Share{i, first.Share.N}.String())
		}
	}
	if len(missing) > 0 {
		return nil, refused(first.Name, "it is part %v, and these are missing: %s", first.Share, strings.Join(missing, ", "))
	}
	return &first.Plan, nil
}

// difference describes what plan a contains and b does not.
func difference(a, b *Plan) string {
	if !slices.Equal(a.Args, b.Args) {
		return fmt.Sprintf("`%s`, and not `%s`", strings.Join(a.Args, " "), strings.Join(b.Args, " "))
	}
	for name, text := range a.Files {
		if b.Files[name] != text {
			return name + " has another text"
		}
	}
	return "it names other files"
}

// Known maps keys to cells.
type Known map[string]*Cell

// KnownOf returns the cells of parts. If again is true, it omits failed runs, so that they are
// repeated.
func KnownOf(parts []*Part, again bool) Known {
	known := Known{}
	for _, p := range parts {
		for i := range p.Cells {
			if c := &p.Cells[i]; c.Err == "" || !again {
				known[c.Key] = c
			}
		}
	}
	return known
}

// errBroke is the error of a failed run in a part.
type errBroke string

func (e errBroke) Error() string { return string(e) }

// Runner returns a runner that returns known results, and executes all other runs with do.
func (k Known) Runner(js *Jobs, do eval.Runner) eval.Runner {
	return func(ctx context.Context, j eval.Job) (*sim.Result, error) {
		c, ok := k[js.Key(j)]
		switch {
		case !ok:
			return do(ctx, j)
		case c.Err != "":
			return nil, errBroke(c.Err)
		}
		return c.Result, nil
	}
}

// Bounds returns the function for [eval.Config.Known].
func (k Known) Bounds(js *Jobs) func(eval.Job) (eval.Bounds, bool) {
	return func(j eval.Job) (eval.Bounds, bool) {
		c, ok := k[js.Key(j)]
		if !ok || c.Bounds == nil {
			return eval.Bounds{}, false
		}
		return *c.Bounds, true
	}
}

// Cover returns an error if parts that [Check] accepted lack one of the jobs, because they were
// made from other inputs than those on this machine.
func (k Known) Cover(js *Jobs, of []eval.Config, keys *Keys, parts []*Part) error {
	there := map[at]*Cell{}
	holds := map[at]*Part{}
	for _, p := range parts {
		for i := range p.Cells {
			there[p.Cells[i].at()], holds[p.Cells[i].at()] = &p.Cells[i], p
		}
	}
	for _, x := range js.order {
		if _, ok := k[x.key]; ok {
			continue
		}
		c, ok := there[x.at]
		if !ok {
			return refused(parts[0].Name, "neither it nor another part has %s, window %d, seed %d under %s", x.scenario,
				x.window, x.seed, x.policy)
		}
		j, err := x.job(of)
		if err != nil {
			return err
		}
		in, err := keys.Input(j)
		if err != nil {
			return err
		}
		return refused(holds[x.at].Name, "its %s, window %d, under %s is made of another %s", x.scenario, x.window,
			x.policy, in.differs(&c.Input))
	}
	return nil
}

// job returns the job that x identifies.
func (x *keyed) job(of []eval.Config) (eval.Job, error) {
	for i := range of {
		for _, k := range of[i].Cases {
			if j := (eval.Job{Case: k, Policy: x.policy, Seed: x.seed}); atOf(j) == x.at {
				return j, nil
			}
		}
	}
	return eval.Job{}, fmt.Errorf("%s, window %d is not among what is compared", x.scenario, x.window)
}

// differs names the first input that differs between in and b, with its digests.
func (in *Input) differs(b *Input) string {
	for _, x := range []struct{ what, here, there string }{
		{"scenario", in.Scenario, b.Scenario}, {"trace", in.Trace, b.Trace},
		{"model or runtime file", in.Files, b.Files}, {"catalog of instance types", in.Bound, b.Bound},
	} {
		if x.here != x.there {
			return fmt.Sprintf("%s: its digest is %.12s…, and %.12s… here", x.what, x.there, x.here)
		}
	}
	return "build"
}
