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

// planFlags are the flags that determine the result of a comparison. All others determine where it
// is written and how it is computed.
var planFlags = []string{
	"baseline", "compare", "compare-scenarios", "discount-1y", "discount-3y", "every", "from", "gate", "intensity",
	"karpenter-version", "node-fee", "policies", "recursive", "seeds", "seeds-from", "start", "stress", "trace", "truth", "windows",
}

// words returns the command-line arguments that determine the result, in an order that does not
// depend on the order of the flags.
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

// planOf returns the plan of a call. It must be called after the scenarios are read.
func (f *evalFlags) planOf(args []string) shard.Plan {
	return shard.Plan{Args: f.words(args), Files: f.texts}
}

// planned returns the flags and arguments of a plan, combined with the output flags of f.
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

// readPlan parses the plan in the file name.
func readPlan(name string, data []byte) (*shard.Plan, error) {
	var plan shard.Plan
	if err := json.Unmarshal(data, &plan); err != nil || plan.Args == nil {
		return nil, cli.Invalid(errors.Join(fmt.Errorf("--plan: %s is not a plan of a comparison", name), err),
			"give the file that `spotter eval --on kubernetes` made")
	}
	return &plan, nil
}
