// Command spotter-lab has the commands of spotter that research needs and users do not:
// drawing and judging prices, training models, turning recorded workloads into scenarios,
// and looking for scenarios in which a policy does worst. spotter runs all but the last.
package main

import (
	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/internal/cli"
)

// version is set by the linker.
var version = "unknown"

// commands returns all commands of p.
func commands(p *cli.Program) []*cobra.Command {
	local := &program{p}
	group := func(use, short string, below ...*cobra.Command) *cobra.Command {
		c := cli.Group(use, short)
		c.AddCommand(below...)
		return c
	}
	return []*cobra.Command{
		group("models", "Make and judge bundles of trained models", local.modelsDatasetCommand(),
			local.modelsEvaluateCommand(), local.modelsTrainCommand()),
		group("scenario", "Make scenarios of recorded workloads, and look for hard ones", local.scenarioFromTraceCommand(),
			local.scenarioHuntCommand()),
		group("trace", "Draw and judge traces", local.traceCheckCommand(), local.traceForecastCommand(),
			local.traceGenerateCommand()),
	}
}

// A program runs one of the commands of this package.
type program struct{ *cli.Program }

func main() { cli.Main(&cli.Program{Version: version}, commands) }
