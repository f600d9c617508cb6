// Command spotter compares how policies would have run a Kubernetes cluster on
// Spot capacity, on recorded or generated prices.
//
// It exits with 0 when all went well, 1 when a gate failed, 2 when the call or
// an input was wrong, and 3 when it broke or was stopped while running.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/capture"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/catalog"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/cleanup"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/cli"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/convert"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/eval"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/explain"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/replay"
	runcmd "github.com/spotter-dev/spotter/cmd/spotter/internal/run"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/scenario"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/sim"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/status"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui"
)

// version is set by the linker.
var version = "unknown"

// run does what args say and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	p := &cli.Program{Version: version, Args: args, Stdout: stdout, Stderr: stderr}
	return p.Run(ctx, commands)
}

// commands returns all commands of p.
func commands(p *cli.Program) []*cobra.Command {
	local := &program{p}
	return []*cobra.Command{
		capture.Command(p), catalog.Command(p), cleanup.Command(p), convert.Command(p), eval.Command(p), explain.Command(p), local.modelsCommand(),
		local.plotCommand(), replay.Command(p), runcmd.Command(p), scenario.Command(p, local.scenarioFromTraceCommand()), sim.Command(p),
		status.Command(p), local.traceCommand(), tui.Command(p),
	}
}

// A program is a call of one of the commands that lie here.
type program struct{ *cli.Program }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// Only the first signal asks for an orderly end: the second one kills, even
	// where nothing looks at ctx.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
