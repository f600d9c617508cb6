package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/spotter-dev/spotter/eval/shard"
	"github.com/spotter-dev/spotter/internal/cli"
)

// planFlags are those that decide what the result of a comparison is. All others say where
// it goes and how it is made.
var planFlags = []string{
	"baseline", "compare", "compare-scenarios", "discount-1y", "discount-3y", "every", "from", "gate", "intensity",
	"karpenter-version", "node-fee", "policies", "recursive", "seeds", "seeds-from", "start", "stress", "trace", "truth", "windows",
}

// words returns the words after `spotter eval` that decide what the result is, the same
// for every order of the flags.
func (f *evalFlags) words(args []string) []string {
	var words []string
	f.Flags.VisitAll(func(x *pflag.Flag) {
		if !x.Changed || !slices.Contains(planFlags, x.Name) {
			return
		}
		if x.NoOptDefVal != "" {
			words = append(words, "--"+x.Name+"="+x.Value.String())
			return
		}
		values := []string{x.Value.String()}
		if many, ok := x.Value.(pflag.SliceValue); ok {
			values = many.GetSlice()
		}
		for _, v := range values {
			words = append(words, "--"+x.Name, v)
		}
	})
	if slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") }) {
		return slices.Concat(words, []string{"--"}, args)
	}
	return slices.Concat(args, words)
}

// planOf returns the plan of a call, once its scenarios are read.
func (f *evalFlags) planOf(args []string) shard.Plan {
	return shard.Plan{Args: f.words(args), Files: f.texts}
}

// planned returns the flags and arguments of a plan, with what f says of where the result
// goes.
func (f *evalFlags) planned(plan *shard.Plan) (*evalFlags, []string, error) {
	var g evalFlags
	flags := pflag.NewFlagSet("eval", pflag.ContinueOnError)
	g.register(flags)
	if err := flags.Parse(plan.Args); err != nil {
		return nil, nil, cli.Invalid(fmt.Errorf("the plan: `spotter eval %s`: %w", cli.Shell(plan.Args), err),
			"run the build of spotter that made the plan")
	}
	f.Flags.Visit(func(x *pflag.Flag) {
		if to := flags.Lookup(x.Name); to != nil {
			to.Changed = true
		}
	})
	g.outputs, g.texts = f.outputs, plan.Files
	return &g, flags.Args(), nil
}

// readPlan reads what --plan names.
func readPlan(name string, data []byte) (*shard.Plan, error) {
	var plan shard.Plan
	if err := json.Unmarshal(data, &plan); err != nil || plan.Args == nil {
		return nil, cli.Invalid(errors.Join(fmt.Errorf("--plan: %s is not a plan of a comparison", name), err),
			"give the file that `spotter eval --on kubernetes` made")
	}
	return &plan, nil
}
