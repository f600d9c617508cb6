package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
)

func (p *program) scenarioCommand() *cobra.Command {
	c := group("scenario", "List, show and check scenarios")
	c.AddCommand(
		&cobra.Command{
			Use:   "list",
			Short: "List the embedded scenarios",
			Args:  arguments(cobra.NoArgs),
			RunE:  func(*cobra.Command, []string) error { return p.output("", listScenarios) },
		},
		&cobra.Command{
			Use:               "show NAME|FILE",
			Short:             "Print a scenario, to copy and change",
			Args:              arguments(cobra.ExactArgs(1)),
			ValidArgsFunction: completeScenarios,
			RunE: func(_ *cobra.Command, args []string) error {
				text, err := scenarios.Source(args[0])
				if err != nil {
					return wrong(fmt.Errorf("scenario: %w", err), scenarioAdvice)
				}
				return p.output("", func(w io.Writer) error {
					_, err := w.Write(text)
					return err
				})
			},
		},
		p.scenarioValidateCommand(),
		p.scenarioFromTraceCommand(),
	)
	return c
}

const scenarioAdvice = "give a file, or one of the names that `spotter scenario list` prints"

func (p *program) scenarioValidateCommand() *cobra.Command {
	var m market
	c := &cobra.Command{
		Use:   "validate SCENARIO…",
		Short: "Check scenarios, and with --trace that they can run on its prices",
		Args:  arguments(cobra.MinimumNArgs(1)),

		ValidArgsFunction: completeScenarios,
		RunE:              func(_ *cobra.Command, args []string) error { return p.validateScenarios(&m, args) },
	}
	m.register(c.Flags())
	return c
}

// validateScenarios checks all of them before it reports, so that one look
// shows everything that is wrong.
func (p *program) validateScenarios(m *market, names []string) error {
	var errs []error
	opened := traces{}
	warned := map[string]bool{}
	for _, name := range names {
		sc, err := loadScenario(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p.warn(warned, sc.Warnings)
		owned := sc.Commitments()
		if err := manifestPolicies(name, sc); err != nil {
			errs = append(errs, err)
			continue
		}
		if m.trace != "" {
			w, err := m.bind(sc, opened, 0)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			p.warn(warned, w.Warnings)
		}
		if err := p.output("", func(w io.Writer) error {
			if _, err := fmt.Fprintf(w, "%s: good, runs %s after %s of warm-up\n", name, hours(sc.Duration), hours(sc.WarmUp)); err != nil {
				return err
			}
			for i := range owned {
				if _, err := fmt.Fprintf(w, "  commitment %s covers %s\n", owned[i].Name, owned[i].Scope()); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// manifestPolicies checks that the policies which the pools of sc name can be
// made.
func manifestPolicies(file string, sc *scenarios.Scenario) error {
	r := newRunner()
	for _, pool := range sc.Pools() {
		if pool.Policy == "" {
			continue
		}
		if _, err := registry.New(registry.Manifest, registry.Options{ReadRuntime: r.readRuntime, OpenBundle: r.checkBundle, Manifests: []string{pool.Policy}}); err != nil {
			return wrong(fmt.Errorf("%s: CapacityPool %s: %w", file, pool.Name, err), "mend spec.policy of that pool")
		}
	}
	return nil
}

func listScenarios(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, name := range scenarios.Names() {
		text, err := scenarios.Source(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(t, "%s\t%s\n", name, about(string(text)))
	}
	return t.Flush()
}

// about returns the first sentence of the comment that a scenario begins with.
func about(text string) string {
	var words []string
	for _, line := range strings.Split(text, "\n") {
		comment, ok := strings.CutPrefix(line, "#")
		if !ok {
			break
		}
		words = append(words, strings.Fields(comment)...)
	}
	all := strings.Join(words, " ")
	for _, end := range []string{": ", ". "} {
		if first, _, found := strings.Cut(all, end); found {
			all = first
		}
	}
	return strings.TrimSuffix(all, ".")
}
