// Package mcp implements the command that serves other commands as tools of the Model Context
// Protocol (https://modelcontextprotocol.io/specification/2025-11-25), for AI agents.
//
// A tool runs its command in this process with captured output, as the user would run it with
// -o json, and returns the JSON that the command printed. No tool writes files or changes a cluster:
// the inputs have no field for a flag that does, and the project file, which could set one, is not
// read.
package mcp

import (
	"context"
	"errors"
	"io"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/spotter-dev/spotter/internal/cli"
)

// Commands returns the commands of a program, which the tools run.
type Commands func(*cli.Program) []*cobra.Command

// Command returns the command mcp. types are the types of the JSON objects that commands print.
func Command(p *cli.Program, commands Commands, types Types) *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "Serve AI agents: savings, evaluations and reasons of decisions; nothing is changed",
		Long: "mcp serves the Model Context Protocol on standard input and output, for an agent\n" +
			"that starts it (docs/mcp.md). Its tools run the commands try, whatif, eval, explain,\n" +
			"scenario validate, policies and top, and return their JSON. They write no files and\n" +
			"change no cluster, and ignore " + cli.ProjectFile + ". Paths are relative to the folder in\n" +
			"which it was started. Logs go to standard error.",
		Example: "  claude mcp add spotter -- spotter mcp",
		Args:    cli.Arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			return serve(c.Context(), p, commands, types)
		},
	}
}

// instructions are passed to the agent's model.
const instructions = "Spotter compares policies for running a Kubernetes cluster on Spot capacity: what they save, and " +
	"what outages they cause, simulated on recorded or generated prices. To estimate what Spot would save a cluster, call " +
	"try; to compare policies on a scenario, eval; to compare changes to a scenario, whatif; to find out why a node was " +
	"bought, moved or removed, explain with the folder of a recording. Report the uncertainty of figures (intervals, " +
	"assumptions, what was left out), not medians alone, and the command that repeats them."

// serve serves the protocol on standard input and output until the input or ctx ends.
func serve(ctx context.Context, p *cli.Program, commands Commands, types Types) error {
	out, ok := cli.File(p.Stdout)
	in := os.Stdin
	if !ok || term.IsTerminal(int(in.Fd())) {
		return cli.Invalid(errors.New("it speaks with the program that starts it, over pipes"),
			"configure an agent to start `spotter mcp`: docs/mcp.md")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s, err := NewServer(ctx, p, commands, types, in)
	if err != nil {
		return err
	}
	// Nothing else may read from or write to the streams of the protocol.
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer func(was *os.File) { os.Stdin, os.Stdout = in, was }(os.Stdout)
	os.Stdin, os.Stdout = null, os.Stderr
	err = s.Run(ctx, &sdk.IOTransport{Reader: &ending{in, stop}, Writer: out})
	if ctx.Err() != nil {
		return nil // the input ended, or a signal ended the process
	}
	return err
}

// An ending calls end when its input ends: the client is gone, and calls that still run are stopped.
type ending struct {
	io.ReadCloser

	end func()
}

// Read implements io.Reader.
func (e *ending) Read(b []byte) (int, error) {
	n, err := e.ReadCloser.Read(b)
	if err != nil {
		e.end()
	}
	return n, err
}
