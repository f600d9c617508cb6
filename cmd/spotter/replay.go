package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/record"
	"github.com/spotter-dev/spotter/policy/registry"
)

// replayFlags are the flags of replay.
type replayFlags struct {
	policy string
	show   int
}

func (p *program) replayCommand() *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use:   "replay DIR",
		Short: "Take recorded decisions again and say where they differ",
		Long: "replay takes every decision of a recording again, from the snapshot and the memory\n" +
			"that it was taken from, and compares plan and memory bit by bit. With --policy it\n" +
			"says what another policy would have decided at each step in the same place. It\n" +
			"exits with 1 when anything differs.",
		Example: "  spotter replay steps\n" +
			"  spotter replay steps --policy static:share=0.7 --show 5",
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return p.replay(&f, args[0]) },
	}
	flags := c.Flags()
	flags.StringVar(&f.policy, "policy", "", "policy `P`, as NAME[:key=value…] (default: the recorded one)")
	flags.IntVar(&f.show, "show", 20, "show at most `N` differences; 0 shows all")
	complete(c, "policy", registry.Names())
	return c
}

func (p *program) replay(f *replayFlags, dir string) error {
	if f.show < 0 {
		return wrong(fmt.Errorf("--show: %d is negative", f.show), "give the number of differences to show, or 0 for all")
	}
	r, err := p.openSteps(dir)
	if err != nil {
		return err
	}
	spec := f.policy
	if spec == "" {
		spec = r.Meta.Policy
		if r.Meta.Version != version {
			p.warn(map[string]bool{}, []string{fmt.Sprintf("recorded by version %s, taken again by version %s", r.Meta.Version, version)})
		}
	}
	again, err := recordedPolicy(r, spec)
	if err != nil {
		return err
	}
	steps, differences, err := record.Replay(r, again)
	if err != nil {
		return broken(err)
	}
	if err := p.output("", func(w io.Writer) error { return f.report(w, r, spec, steps, differences) }); err != nil {
		return err
	}
	if len(differences) > 0 {
		return fmt.Errorf("%s: %d differences: %w", dir, len(differences), errCheck)
	}
	return nil
}

// recordedPolicy makes a policy for the pools of a recording.
func recordedPolicy(r *record.Recording, spec string) (policy.Policy, error) {
	var manifests []string
	for s, err := range r.Steps() {
		if err != nil {
			return nil, broken(err)
		}
		for i := range s.Snapshot.Pools {
			if named := s.Snapshot.Pools[i].Policy; named != "" && !slices.Contains(manifests, named) {
				manifests = append(manifests, named)
			}
		}
		if spec != registry.Manifest {
			break // only the manifests' policies can be named in a later step for the first time
		}
	}
	p, err := registry.New(spec, registry.Options{ReadRuntime: newRunner().readRuntime, Manifests: manifests})
	if err != nil {
		return nil, wrong(err, policyAdvice)
	}
	return p, nil
}

func (f *replayFlags) report(out io.Writer, r *record.Recording, spec string, steps int, differences []record.Difference) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "%d steps of %s", steps, r.Meta.Scenario)
	if r.Meta.Seed != 0 {
		fmt.Fprintf(w, ", seed %d", r.Meta.Seed)
	}
	fmt.Fprintf(w, ", recorded under %s, taken again by %s: ", r.Meta.Policy, spec)
	if len(differences) == 0 {
		fmt.Fprintln(w, "every plan is the same, bit for bit")
		return w.Flush()
	}
	at := map[int64]bool{}
	for i := range differences {
		at[differences[i].Step] = true
	}
	fmt.Fprintf(w, "%d differ\n", len(at))
	shown := differences
	if f.show > 0 && len(shown) > f.show {
		shown = shown[:f.show]
	}
	for i := range shown {
		fmt.Fprint(w, shown[i].String())
	}
	if rest := len(differences) - len(shown); rest > 0 {
		fmt.Fprintf(w, "and %d differences more; --show 0 shows all\n", rest)
	}
	return w.Flush()
}
