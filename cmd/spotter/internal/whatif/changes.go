package whatif

import (
	"errors"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/spotter-dev/spotter/internal/cli"
)

// The flags that change something.
const (
	flagSet       = "set"
	flagSweep     = "sweep"
	flagPools     = "nodepools"
	flagKarpenter = "karpenter-version"
	flagSpot      = "allow-spot"
	flagPolicy    = "policy"
	flagPlan      = "savings-plan"
	flagWith      = "with"
)

// A change is one flag of the call that changes something.
type change struct{ flag, value string }

// A changes is the changes of a call in their order. A group of changes is one variant, or several
// if a change has several values.
type changes struct {
	groups [][]change
	joins  bool
	wrong  error
}

func (c *changes) add(x change) {
	if n := len(c.groups); c.joins && n > 0 {
		c.groups[n-1] = append(c.groups[n-1], x)
	} else {
		c.groups = append(c.groups, []change{x})
	}
	c.joins = false
}

// join adds the next change to the previous group.
func (c *changes) join() {
	if len(c.groups) == 0 || c.joins {
		c.wrong = errors.New("--with: no change comes before it")
	}
	c.joins = true
}

// checked returns the groups. It returns an error without groups, or if they are inconsistent.
func (c *changes) checked() ([][]change, error) {
	const advice = "give what changes, as --set capacitypool/general.spec.disruption.consolidateAfter=30m; --with joins two changes to one variant"
	switch {
	case c.wrong != nil:
		return nil, cli.Invalid(c.wrong, advice)
	case c.joins:
		return nil, cli.Invalid(errors.New("--with: no change follows it"), advice)
	case len(c.groups) == 0:
		return nil, cli.Invalid(errors.New("nothing is changed"), advice)
	}
	sweeps := 0
	for _, group := range c.groups {
		for _, x := range group {
			if x.flag == flagSweep {
				sweeps++
			}
		}
	}
	if sweeps > 0 && (sweeps > 1 || len(c.groups) > 1) {
		return nil, cli.Invalid(errors.New("--sweep: its values must be the only variants"),
			"join other changes by --with, and sweep one setting at a time")
	}
	return c.groups, nil
}

// A changeFlag is a flag that records a change. All such flags share one list, so that the order of
// the call is preserved.
type changeFlag struct {
	all  *changes
	name string
	kind string // empty for a flag without a value
}

// String returns an empty string: a change has no default.
func (f *changeFlag) String() string { return "" }

// Type returns the name of the value in the help.
func (f *changeFlag) Type() string {
	if f.kind == "" {
		return "bool"
	}
	return f.kind
}

// Set adds the change.
func (f *changeFlag) Set(value string) error {
	if f.kind == "" {
		yes, err := strconv.ParseBool(value)
		if err != nil || !yes {
			return err
		}
	}
	if f.name == flagWith {
		f.all.join()
		return nil
	}
	f.all.add(change{f.name, value})
	return nil
}

// register adds the flag of a change.
func (c *changes) register(flags *pflag.FlagSet, name, kind, usage string) {
	flags.Var(&changeFlag{c, name, kind}, name, usage)
	if kind == "" {
		flags.Lookup(name).NoOptDefVal = "true"
	}
}
