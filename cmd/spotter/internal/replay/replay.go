// Package replay is the command that decides recorded steps again and says where they differ.
package replay

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/record"
	"github.com/spotter-dev/spotter/policy/registry"
)

// replayFlags are the flags of replay.
type replayFlags struct {
	policies []string
	show     int
}

// Command returns the command replay.
func Command(p *cli.Program) *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use:   "replay DIR",
		Short: "Take recorded decisions again and say where they differ",
		Long: "replay takes every decision of a recording again, from the snapshot and the memory\n" +
			"that it was taken from, and compares plan and memory bit by bit. With --policy it\n" +
			"says what another policy would have decided at each step in the same place. The\n" +
			"recording may be one that is being written. It exits with 1 when anything differs,\n" +
			"and with 2 when segments of the recording are missing.",
		Example: "  spotter replay steps\n" +
			"  spotter replay steps --policy static:share=0.7 --show 5\n" +
			"  spotter replay /var/lib/spotter/record --policy spot --policy portfolio",
		Args: cli.Arguments(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error { return run(p, &f, args[0]) },
	}
	flags := c.Flags()
	flags.StringArrayVar(&f.policies, "policy", nil, "policy `P`, as NAME[:key=value…], given once for each to compare with (default: the recorded one)")
	flags.IntVar(&f.show, "show", 20, "show at most `N` differences of each policy; 0 shows all")
	cli.CompleteBy(c, "policy", input.CompletePolicy)
	return c
}

func run(p *cli.Program, f *replayFlags, dir string) error {
	if f.show < 0 {
		return cli.Invalid(fmt.Errorf("--show: %d is negative", f.show), "give the number of differences to show, or 0 for all")
	}
	r, err := input.OpenRecording(p, dir)
	if err != nil {
		return err
	}
	specs := f.policies
	if len(specs) == 0 {
		specs = []string{""}
	}
	for _, spec := range specs { // all faults of the call before the work begins
		if _, err := runner.New().RecordedPolicy(cmp.Or(spec, r.Meta.Policy), nil); err != nil {
			return cli.Invalid(err, input.PolicyAdvice)
		}
	}
	total := 0
	for i, spec := range specs {
		again := newReplay(spec)
		c, err := again.compare(r, f.show)
		if err != nil {
			return err
		}
		p.Warn(map[string]bool{}, again.warnings(p.Version))
		if err := p.Output("", func(w io.Writer) error { return again.report(w, i, r, &c) }); err != nil {
			return err
		}
		total += c.Total
	}
	if len(r.Missing) > 0 {
		return cli.Invalid(fmt.Errorf("%s is not whole: nothing is known of the decisions that are missing", dir), "copy the recording again, with every segment that the warnings name")
	}
	if total > 0 {
		return fmt.Errorf("%s: %d differences: %w", dir, total, cli.ErrCheck)
	}
	return nil
}

// A replay takes a recording again with one policy.
type replay struct {
	spec     string // empty for what each step was recorded under
	policies *policies

	// recorded are the policies and versions of the steps, in the order in which
	// they came.
	recorded, versions []string

	// modelled says that a model made a forecast of the recording, bundled are the
	// policies that decide on such.
	modelled bool
	bundled  []string

	// others say of which bundles the recorded forecasts are not.
	others []string
	judged map[judgedBundle]bool
}

func newReplay(spec string) *replay {
	return &replay{spec: spec, policies: newPolicies(), judged: map[judgedBundle]bool{}}
}

func (a *replay) compare(r *record.Recording, most int) (record.Comparison, error) {
	var failed error
	c, err := record.Compare(r, func(s *record.Step) (policy.Policy, error) {
		a.recorded, a.versions = once(a.recorded, s.Meta.Policy), once(a.versions, s.Meta.Version)
		a.look(s.Snapshot, s.Meta, cmp.Or(a.spec, s.Meta.Policy))
		p, err := a.policies.of(cmp.Or(a.spec, s.Meta.Policy), s.Snapshot)
		if err != nil {
			failed = cli.Invalid(fmt.Errorf("step %d: %w", s.Number, err), input.PolicyAdvice)
		}
		return p, err
	}, record.Comparing{Memory: a.spec == "", Most: most})
	if failed != nil {
		return c, failed
	}
	if err != nil {
		return c, input.RecordingError(err)
	}
	return c, nil
}

// look takes note of what the forecasts of a step are of, and of who wants them.
func (a *replay) look(s *policy.Snapshot, meta *record.Meta, spec string) {
	a.modelled = a.modelled || slices.ContainsFunc(s.Markets, func(m policy.Market) bool { return m.Forecast.Source == policy.SourceModel })
	specs := []string{spec}
	if spec == registry.Manifest {
		for i := range s.Pools {
			specs = append(specs, s.Pools[i].Policy)
		}
	}
	for _, x := range specs {
		if b, err := registry.BundleOf(x); err == nil && b.Dir != "" {
			a.bundled = once(a.bundled, x)
			a.judge(meta, b.Dir)
		}
	}
}

// once appends s to list if it is not in it.
func once(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// warnings says what may make decisions differ, besides the policy.
func (a *replay) warnings(own string) (out []string) {
	if a.spec == "" {
		for _, v := range a.versions {
			if v != own {
				out = append(out, fmt.Sprintf("recorded by version %s, taken again by version %s", v, own))
			}
		}
	}
	if !a.modelled {
		for _, x := range a.bundled {
			out = append(out, x+" decides on the closed form: no forecast in the recording is of a model, and a replay asks none; record with the bundle to see what it does")
		}
	}
	return append(append(out, a.others...), a.policies.refused...)
}

// policies makes the policies of a recording, each once.
type policies struct {
	runner  *runner.Runner
	made    map[string]policy.Policy
	refused []string
}

func newPolicies() *policies {
	return &policies{runner: runner.New(), made: map[string]policy.Policy{}}
}

// of returns the policy spec for a snapshot, with what the manifests of its pools
// name. One of these that cannot be made is left out, as a controller leaves it out.
func (m *policies) of(spec string, s *policy.Snapshot) (policy.Policy, error) {
	var named []string
	if spec == registry.Manifest {
		for i := range s.Pools {
			if x := s.Pools[i].Policy; x != "" {
				named = once(named, x)
			}
		}
		slices.Sort(named)
	}
	key := strings.Join(append([]string{spec}, named...), "\x00")
	if p := m.made[key]; p != nil {
		return p, nil
	}
	p, err := m.runner.RecordedPolicy(spec, named)
	if err != nil && len(named) > 0 {
		good := slices.DeleteFunc(slices.Clone(named), func(x string) bool {
			_, err := m.runner.RecordedPolicy(spec, []string{x})
			if err != nil {
				m.refused = once(m.refused, fmt.Sprintf("the policy of a pool is left out: %v", err))
			}
			return err != nil
		})
		p, err = m.runner.RecordedPolicy(spec, good)
	}
	if err == nil {
		m.made[key] = p
	}
	return p, err
}

// report writes what a comparison found, after an empty line where it is not the first.
func (a *replay) report(out io.Writer, place int, r *record.Recording, c *record.Comparison) error {
	w := bufio.NewWriter(out)
	if place > 0 {
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%d steps of %s", c.Steps, r.Meta.Scenario)
	if r.Meta.Seed != 0 {
		fmt.Fprintf(w, ", seed %d", r.Meta.Seed)
	}
	recorded := strings.Join(a.recorded, ", then ")
	fmt.Fprintf(w, ", recorded under %s, taken again by %s: ", recorded, cmp.Or(a.spec, recorded))
	switch {
	case c.Total > 0:
		fmt.Fprintf(w, "%d differ\n", c.Differing)
	case len(r.Missing) > 0:
		fmt.Fprintln(w, "the plans that are there are the same, bit for bit")
	default:
		fmt.Fprintln(w, "every plan is the same, bit for bit")
	}
	leftOut(w, c.Gaps)
	if c.Total == 0 {
		return w.Flush()
	}
	if err := tallies(w, &c.Recorded, &c.Again); err != nil {
		return err
	}
	for i := range c.Differences {
		fmt.Fprint(w, c.Differences[i].String())
	}
	if rest := c.Total - len(c.Differences); rest > 0 {
		fmt.Fprintf(w, "and %d differences more; --show 0 shows all\n", rest)
	}
	return w.Flush()
}

// leftOut writes which steps are not in a recording.
func leftOut(w io.Writer, gaps []record.Span) {
	const most = 5
	for _, g := range gaps[:min(most, len(gaps))] {
		fmt.Fprintf(w, "%s not in the recording\n", g.Are("step"))
	}
	if rest := len(gaps) - most; rest > 0 {
		fmt.Fprintf(w, "and %d gaps more\n", rest)
	}
}

// tallies writes what the plans of both sides ask for, side by side.
func tallies(out io.Writer, recorded, again *record.Tally) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\trecorded\tagain\t")
	for _, row := range []struct {
		name string
		a, b int
	}{
		{"steers", recorded.Steers, again.Steers}, {"launches", recorded.Launches, again.Launches},
		{"drains", recorded.Drains, again.Drains}, {"deletion costs", recorded.DeletionCosts, again.DeletionCosts},
		{"gates", recorded.Gates, again.Gates}, {"pauses", recorded.Pauses, again.Pauses},
		{"evictions", recorded.Evicts, again.Evicts}, {"holds", recorded.Holds, again.Holds},
		{"entries with dollars", recorded.Priced, again.Priced},
	} {
		if row.a != 0 || row.b != 0 {
			fmt.Fprintf(w, "%s\t%d\t%d\t\n", row.name, row.a, row.b)
		}
	}
	if recorded.Priced+again.Priced > 0 {
		fmt.Fprintf(w, "$/h without them\t%s\t%s\t\n", recorded.Before.Short(), again.Before.Short())
		fmt.Fprintf(w, "$/h with them\t%s\t%s\t\n", recorded.After.Short(), again.After.Short())
	}
	return w.Flush()
}
