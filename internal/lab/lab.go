// Package lab lists the commands of spotter-lab, which contains what research requires and users do
// not, and lets spotter run them.
package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/internal/cli"
)

// Program is the name of the program with the commands.
const Program = "spotter-lab"

// A Command contains the usage and the short description of a command.
type Command struct{ Use, Short string }

// The commands, in the groups models, scenario and trace.
var (
	ModelsDataset  = Command{"dataset --out DIR", "Make the data that a forecaster is trained and judged on"}
	ModelsEvaluate = Command{"evaluate DATA --bundle DIR",
		"Judge a forecaster on the rows of a data set that were held out"}
	ModelsTrain       = Command{"train --out DIR", "Train the network behind the policy model against the simulator"}
	ScenarioFromTrace = Command{"from-trace FILE…", "Turn a recorded workload into a scenario"}
	ScenarioHunt      = Command{"hunt", "Look for the scenarios in which a policy does worst, and write the smallest"}
	TraceCheck        = Command{"check A [--against B]",
		"Say in figures what a trace is like, or how far it is from another"}
	TraceForecast = Command{"forecast [TRACE] --out DIR",
		"Write the forecasts of a trained model for a trace into its column hazard"}
	TraceGenerate = Command{"generate (--preset NAME | --like TRACE) --out DIR",
		"Draw synthetic prices like those of a preset, or of a trace"}
)

// errMissing is the error if the program is not installed.
var errMissing = errors.New("is part of " + Program + ", which is neither next to this program nor in PATH")

const advice = "build it in a clone of the repository: `make build` makes bin/spotter and bin/" + Program

// Forward returns a command that replaces p with [Program], with the same arguments.
func (c Command) Forward(p *cli.Program) *cobra.Command {
	forwarded := &cobra.Command{
		Use:   c.Use,
		Short: c.Short,
		Long: c.Short + ". The command is part of the program\n" + Program +
			", which spotter runs if it is next to it or in PATH.",

		DisableFlagParsing:    true,
		DisableFlagsInUseLine: true,
		RunE:                  func(c *cobra.Command, _ []string) error { return invoke(p, c) },
		ValidArgsFunction: func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			_ = invoke(p, c) // without the program there are no completions
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
	}
	forwarded.SetHelpFunc(func(c *cobra.Command, args []string) {
		if invoke(p, c) != nil {
			c.Parent().HelpFunc()(c, args)
		}
	})
	return forwarded
}

// invoke runs the program with the arguments of p. It only returns on failure.
func invoke(p *cli.Program, c *cobra.Command) error {
	path, err := find()
	if err != nil {
		return cli.Invalid(fmt.Errorf("%s %w", c.CommandPath(), err), advice)
	}
	if err := replace(path, p.Args); err != nil {
		return fmt.Errorf("running %s: %w", path, err)
	}
	return nil
}

// find returns the path of the program: in the folder of this one, else in PATH.
func find() (string, error) {
	if self, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), Program)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(Program)
	if err != nil {
		return "", errMissing
	}
	return path, nil
}
