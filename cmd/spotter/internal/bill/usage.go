package bill

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/bill"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/sim"
)

// ofRuns are the flags that define the run of a scenario.
var ofRuns = []string{"policy", "seed", "trace", "from", "intensity", "truth", "karpenter-version", "node-fee", "start"}

// usages returns the usages for the arguments, which name a recording, runs of a results file, or a
// scenario to run once.
func (f *billFlags) usages(ctx context.Context, p *cli.Program, args []string) ([]*bill.Usage, error) {
	what, runs := args[0], args[1:]
	given := slices.ContainsFunc(ofRuns, f.Flags.Changed)
	if info, err := os.Stat(what); err == nil && info.IsDir() || strings.HasPrefix(what, "s3://") {
		if given || len(runs) > 0 {
			return nil, cli.Invalid(fmt.Errorf("%s: a recording is of one run, with its own prices, policy and seed", what),
				"leave RUN and the flags of a run out")
		}
		u, err := f.recorded(p, what)
		return []*bill.Usage{u}, err
	}
	results, err := input.ReadResults(what)
	if err != nil {
		return nil, err
	}
	if results == nil {
		if len(runs) > 0 {
			return nil, cli.Invalid(fmt.Errorf("%s: a scenario has no run %s", what, runs[0]),
				"choose the run of a scenario by --policy and --seed; RUN is for a file of results")
		}
		u, err := f.simulated(ctx, p, &f.MarketFlags, what, f.policy, f.seed, "")
		return []*bill.Usage{u}, err
	}
	if given {
		return nil, cli.Invalid(fmt.Errorf("%s: its runs have their own prices, policies and seeds", what),
			"choose runs as POLICY@SEED, and leave the flags of a run out")
	}
	return f.again(ctx, p, what, results, runs)
}

// again repeats the named runs of a results file.
func (f *billFlags) again(ctx context.Context, p *cli.Program, path string, results *format.Results,
	named []string) ([]*bill.Usage, error) {
	if len(named) == 0 {
		first := results.Runs[0]
		return nil, cli.Invalid(fmt.Errorf("%s: it has %d runs, and none is named", path, len(results.Runs)),
			fmt.Sprintf("name some of them, as in `spotter bill %s %s`", path, runName(&first)))
	}
	var chosen []*format.ResultRun
	for _, name := range named {
		before := len(chosen)
		for i := range results.Runs {
			if x := &results.Runs[i]; runName(x) == name {
				chosen = append(chosen, x)
			}
		}
		if len(chosen) == before {
			return nil, cli.Invalid(fmt.Errorf("%s: it has no run %s", path, name),
				"name a run POLICY@SEED, as in "+runName(&results.Runs[0]))
		}
	}
	if f.form == formOpenCost && len(chosen) > 1 {
		return nil, cli.Invalid(fmt.Errorf("%s: %d runs are named, and OpenCost's answer covers one cluster", path,
			len(chosen)), "name one run, of results of one scenario and window")
	}
	var out []*bill.Usage
	for _, x := range chosen {
		if x.Error != "" {
			return nil, cli.Invalid(fmt.Errorf("%s: the run %s broke: %s", path, runName(x), x.Error), "name another run")
		}
		var of input.MarketFlags
		if err := of.OfRun(x); err != nil {
			return nil, err
		}
		u, err := f.simulated(ctx, p, &of, x.Scenario, x.Policy, x.Seed, x.Hash)
		if err != nil {
			return nil, err
		}
		out = append(out, u)
	}
	return out, nil
}

// runName returns the name of a run of a results file, POLICY@SEED.
func runName(x *format.ResultRun) string { return x.Policy + "@" + strconv.FormatUint(x.Seed, 10) }

// simulated simulates one run. If hash is not empty, the run must have that hash.
func (f *billFlags) simulated(ctx context.Context, p *cli.Program, of *input.MarketFlags, scenario, spec string,
	seed uint64, hash string) (*bill.Usage, error) {
	sc, err := of.LoadScenario(ctx, p, scenario)
	if err != nil {
		return nil, err
	}
	w, err := of.Bind(sc, input.Traces{}, 0)
	if err != nil {
		return nil, err
	}
	p.Warn(map[string]bool{}, w.Warnings)
	job := eval.Job{Case: eval.Case{Scenario: scenario, Bound: w}, Policy: spec, Seed: seed}
	runs := runner.New()
	cfg, err := runs.Config(job)
	if err != nil {
		return nil, err
	}
	name := spec + "@" + strconv.FormatUint(seed, 10)
	watch := bill.NewWatch(&cfg, bill.About{Account: cmp.Or(f.account, "simulated/"+sc.Name), Run: name,
		Tags: simulatedTags(sc.Name)})
	r, err := runs.Simulate(ctx, job, cfg)
	if err != nil {
		return nil, err
	}
	p.Warn(map[string]bool{}, append(r.Warnings, runs.Unanswered()...))
	if err := sameRun(r, hash); err != nil {
		return nil, cli.Invalid(fmt.Errorf("%s: %s: %w", scenario, name, err),
			"write the results again with `spotter eval --out`")
	}
	return watch.Usage(), nil
}

// sameRun returns an error if hash is not empty and r does not have that hash.
func sameRun(r *sim.Result, hash string) error {
	if hash != "" && hex.EncodeToString(r.Hash[:]) != hash {
		return errors.New("repeated, it differs from the run in the file: another version of spotter or of the scenario made that")
	}
	return nil
}

// simulatedTags returns the tags that mark simulated nodes.
func simulatedTags(scenario string) []policy.Label {
	return []policy.Label{{Key: "spotter.dev/scenario", Value: scenario}, {Key: "spotter.dev/simulated", Value: "true"}}
}

// recorded reads the recording of a simulation or of a cluster.
func (f *billFlags) recorded(p *cli.Program, dir string) (*bill.Usage, error) {
	r, err := input.OpenRecording(p, dir)
	if err != nil {
		return nil, err
	}
	if len(r.Missing) > 0 {
		return nil, cli.Invalid(fmt.Errorf("%s is incomplete: the nodes in the missing segments are unknown", dir),
			"copy the recording again, with every segment that the warnings name")
	}
	about := bill.About{Account: f.account}
	if strings.HasPrefix(r.Meta.Note, "spotter sim ") {
		about = bill.About{Account: cmp.Or(f.account, "simulated/"+r.Meta.Scenario), Run: r.Meta.Policy + "@" +
			strconv.FormatUint(r.Meta.Seed, 10), Tags: simulatedTags(r.Meta.Scenario)}
	}
	u, err := bill.Load(r, about)
	if err != nil {
		return nil, input.RecordingError(err)
	}
	return u, nil
}
