package main

import (
	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/trace"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/lab"
)

func (p *program) traceCommand() *cobra.Command {
	c := cli.Group("trace", "Import recorded prices and look at traces")
	c.AddCommand(trace.CompactCommand(p.Program), trace.ImportCommand(p.Program), trace.InfoCommand(p.Program),
		trace.RecordCommand(p.Program),
		lab.TraceCheck.Forward(p.Program), lab.TraceForecast.Forward(p.Program), lab.TraceGenerate.Forward(p.Program))
	return c
}
