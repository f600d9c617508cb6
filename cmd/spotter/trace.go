package main

import (
	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/cli"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/trace"
)

func (p *program) traceCommand() *cobra.Command {
	c := cli.Group("trace", "Import recorded prices and look at traces")
	c.AddCommand(trace.ImportCommand(p.Program), p.traceForecastCommand(), p.traceGenerateCommand(), trace.InfoCommand(p.Program), p.traceCheckCommand(), trace.RecordCommand(p.Program))
	return c
}
