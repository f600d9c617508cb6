// Package replay implements the command that decides recorded steps again and reports the
// differences.
package replay

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/record"
	"github.com/spotter-dev/spotter/policy/registry"
)

// replayFlags are the flags of the command replay.
type replayFlags struct {
	policies []string
	show     int
	form     cli.Form
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
	flags.StringArrayVar(&f.policies, "policy", nil,
		"policy `P`, as NAME[:key=value…], a list, or given once for each, to compare with (default: the recorded one)")
	flags.IntVar(&f.show, "show", 20, "show at most `N` differences of each policy; 0 shows all")
	cli.CompleteBy(c, "policy", input.CompletePolicies)
	f.form.Register(c)
	return c
}

func run(p *cli.Program, f *replayFlags, dir string) error {
	if f.show < 0 {
		return cli.Invalid(fmt.Errorf("--show: %d is negative", f.show),
			"give the number of differences to show, or 0 for all")
	}
	r, err := input.OpenRecording(p, dir)
	if err != nil {
		return err
	}
	specs := []string{""}
	if len(f.policies) > 0 {
		if specs, err = input.ParsePolicies(strings.Join(f.policies, ",")); err != nil {
			return cli.Invalid(fmt.Errorf("--policy: %w", err), input.PolicyAdvice)
		}
	}
	for _, spec := range specs { // report errors of all policies before the work starts
		if _, err := runner.New().RecordedPolicy(cmp.Or(spec, r.Meta.Policy), nil); err != nil {
			return cli.Invalid(err, input.PolicyAdvice)
		}
	}
	total := 0
	var all []compared
	for _, spec := range specs {
		again := newReplay(spec)
		c, err := again.compare(r, f.show)
		if err != nil {
			return err
		}
		p.Warn(map[string]bool{}, again.warnings(p.Version))
		all = append(all, again.compared(r, &c))
		total += c.Total
	}
	if err := p.Print(&f.form, all, func(w io.Writer, _ bool) error { return writeAll(w, all) }); err != nil {
		return err
	}
	if len(r.Missing) > 0 {
		return cli.Invalid(fmt.Errorf("%s is incomplete: the missing decisions are unknown", dir),
			"copy the recording again, with every segment that the warnings name")
	}
	if total > 0 {
		return fmt.Errorf("%s: %d differences: %w", dir, total, cli.ErrCheck)
	}
	return nil
}

// A replay decides the steps of a recording again with one policy.
type replay struct {
	spec     string // empty for the recorded policy of each step
	policies *policies

	// recorded and versions are the policies and versions of the steps, in order of appearance.
	recorded, versions []string

	// modelled reports whether a model made a forecast in the recording. bundled are the policies
	// that require such forecasts.
	modelled bool
	bundled  []string

	// others describe bundles of policies that differ from the recorded ones.
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

// look records whether the forecasts of a step come from a model, and which policies require that.
func (a *replay) look(s *policy.Snapshot, meta *record.Meta, spec string) {
	a.modelled = a.modelled ||
		slices.ContainsFunc(s.Markets, func(m policy.Market) bool { return m.Forecast.Source == policy.SourceModel })
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

// once appends s to list if list does not contain it.
func once(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// warnings returns reasons other than the policy why decisions may differ.
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
			out = append(out,
				x+" decides on the closed form: no forecast in the recording is of a model, and a replay asks none; record with the bundle to see what it does")
		}
	}
	return append(append(out, a.others...), a.policies.refused...)
}

// A policies creates the policies of a recording, each once.
type policies struct {
	runner  *runner.Runner
	made    map[string]policy.Policy
	refused []string
}

func newPolicies() *policies {
	return &policies{runner: runner.New(), made: map[string]policy.Policy{}}
}

// of returns the policy spec for a snapshot, with the policies that its pools name. A policy of a
// pool that cannot be created is left out, as the controller does.
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
				m.refused = once(m.refused, fmt.Sprintf("the policy of a pool is dropped: %v", err))
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
