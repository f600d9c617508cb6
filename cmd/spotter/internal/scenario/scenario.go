// Package scenario implements the command that lists, shows and validates scenarios.
package scenario

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/runner"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/policy/registry"
	"github.com/spotter-dev/spotter/scenarios"
)

// Command returns the command scenario with its subcommands and more.
func Command(p *cli.Program, more ...*cobra.Command) *cobra.Command {
	c := cli.Group("scenario", "List, show and check scenarios")
	c.AddCommand(
		listCommand(p),
		&cobra.Command{
			Use:               "show NAME|FILE",
			Short:             "Print a scenario, to copy and change",
			Args:              cli.Arguments(cobra.ExactArgs(1)),
			ValidArgsFunction: input.CompleteScenarios,
			RunE: func(_ *cobra.Command, args []string) error {
				text, err := scenarios.Source(args[0])
				if err != nil {
					return cli.Invalid(fmt.Errorf("scenario: %w", err), input.ScenarioAdvice)
				}
				return p.Output("", func(w io.Writer) error {
					_, err := w.Write(text)
					return err
				})
			},
		},
		validateCommand(p),
	)
	c.AddCommand(more...)
	return c
}

func validateCommand(p *cli.Program) *cobra.Command {
	var m input.MarketFlags
	var form cli.Form
	c := &cobra.Command{
		Use:   "validate SCENARIO…",
		Short: "Check scenarios, and with --trace that they can run on its prices",
		Long: "validate checks scenarios, and with --trace that they can run on its prices.\n\n" +
			"spec.faults of a Scenario are a list. Each starts at a time since the start and lasts for\n" +
			"a duration. zone, instanceType and capacityType limit those of markets; zoneNumber: 1 is\n" +
			"the first zone by name. The kinds are:\n\n" + faultText,
		Args: cli.Arguments(cobra.MinimumNArgs(1)),

		ValidArgsFunction: input.CompleteScenarios,
		RunE: func(c *cobra.Command, args []string) error {
			return validateScenarios(c.Context(), p, &m, &form,
				args)
		},
	}
	m.Register(c.Flags())
	form.Register(c)
	return c
}

// faultText is the help text about the kinds of faults.
const faultText = `  zonal-shift           Karpenter buys nothing in the zone and takes down nothing there;
                        nothing is reclaimed because of it
  zone-outage           every node of the zone is lost without notice, launches are refused
  squeeze               spot launches are refused, and the share of the nodes is taken
                        within three minutes
  price-ramp            prices rise linearly to factor times themselves, and fall back at the end
  on-demand-refused     nothing can be launched on demand
  api-throttle          calls fail with the probability share
  api-error             all calls fail
  late-notice           the share of notices comes delay late; without a delay, never
  slow-nodes            nodes and pods take factor times as long to start
  controller-down       nothing is decided; afterwards only what was saved is known
  model-fails           the bundle of a policy gives no usable answer: how is gone (errors),
                        late (none in time) or nan (no numbers)`

// A validated is a valid scenario.
type validated struct {
	Scenario    string  `json:"scenario"`
	Hours       float64 `json:"hours"`
	WarmUpHours float64 `json:"warm_up_hours"`

	Commitments []covered `json:"commitments"`
}

// A covered is the scope of a commitment.
type covered struct {
	Name  string `json:"name"`
	Scope string `json:"scope"`
}

// validateScenarios validates all scenarios before it reports, so that all errors are shown at
// once.
func validateScenarios(ctx context.Context, p *cli.Program, m *input.MarketFlags, form *cli.Form,
	names []string) error {
	var errs []error
	good := []validated{}
	opened := input.Traces{}
	warned := map[string]bool{}
	for _, name := range names {
		sc, err := m.LoadScenario(ctx, p, name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p.Warn(warned, sc.Warnings)
		if err := manifestPolicies(name, sc); err != nil {
			errs = append(errs, err)
			continue
		}
		if m.Trace != "" {
			w, err := m.Bind(sc, opened, 0)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			p.Warn(warned, w.Warnings)
		}
		v := validated{name, sc.Duration.Hours(), sc.WarmUp.Hours(), []covered{}}
		owned := sc.Commitments()
		for i := range owned {
			v.Commitments = append(v.Commitments, covered{owned[i].Name, owned[i].Scope()})
		}
		good = append(good, v)
	}
	err := p.Print(form, good, func(w io.Writer, _ bool) error { return writeValidated(w, good) })
	return errors.Join(append(errs, err)...)
}

func writeValidated(w io.Writer, good []validated) error {
	b := bufio.NewWriter(w)
	for i := range good {
		v := &good[i]
		fmt.Fprintf(b, "%s: good, runs %.4g h after %.4g h of warm-up\n", v.Scenario, v.Hours, v.WarmUpHours)
		for _, c := range v.Commitments {
			fmt.Fprintf(b, "  commitment %s covers %s\n", c.Name, c.Scope)
		}
	}
	return b.Flush()
}

// manifestPolicies returns an error if a policy that a pool of sc names cannot be created.
func manifestPolicies(file string, sc *scenarios.Scenario) error {
	r := runner.New()
	for _, pool := range sc.Pools() {
		if pool.Policy == "" {
			continue
		}
		if _, err := registry.New(registry.Manifest, registry.Options{ReadRuntime: r.ReadRuntime, OpenBundle: r.CheckBundle,
			Manifests: []string{pool.Policy}}); err != nil {
			return cli.Invalid(fmt.Errorf("%s: CapacityPool %s: %w", file, pool.Name, err), "correct spec.policy of that pool")
		}
	}
	return nil
}

// A listed is an embedded scenario in the list.
type listed struct {
	Name  string `json:"name"`
	About string `json:"about"`

	// Days are the metered days, which follow WarmUpHours of warm-up.
	Days        float64 `json:"days"`
	WarmUpHours float64 `json:"warm_up_hours"`
	Pools       int     `json:"pools"`
}

func listCommand(p *cli.Program) *cobra.Command {
	var form cli.Form
	c := &cobra.Command{
		Use:   "list",
		Short: "List the embedded scenarios",
		Args:  cli.Arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := listScenarios(c.Context())
			if err != nil {
				return err
			}
			return p.Print(&form, all, func(w io.Writer, wide bool) error { return writeList(w, p.Width(""), all, wide) })
		},
	}
	form.Register(c)
	return c
}

func listScenarios(ctx context.Context) (all []listed, err error) {
	for _, name := range slices.Concat(scenarios.Names(), scenarios.Hunted()) {
		text, err := scenarios.Source(name)
		if err != nil {
			return nil, err
		}
		sc, err := input.LoadScenario(ctx, name)
		if err != nil {
			return nil, err
		}
		all = append(all, listed{name, about(string(text)), sc.Duration.Hours() / 24, sc.WarmUp.Hours(), len(sc.Pools())})
	}
	return all, nil
}

func writeList(w io.Writer, width int, all []listed, wide bool) error {
	var heading []string
	var rows [][]string
	if wide {
		heading = []string{"NAME", "ABOUT", "DAYS", "WARM-UP", "POOLS"}
	}
	for _, x := range all {
		row := []string{x.Name, x.About}
		if wide {
			row = append(row, fmt.Sprintf("%.3g", x.Days), fmt.Sprintf("%g h", x.WarmUpHours), fmt.Sprint(x.Pools))
		}
		rows = append(rows, row)
	}
	return cli.WrappedColumns(w, width, heading, rows)
}

// about returns the first sentence, or its part before a colon, of the comment at the start of a
// scenario.
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
