package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/scenarios/trace/check"
)

func (p *program) traceCommand() *cobra.Command {
	c := group("trace", "Import recorded prices and look at traces")
	c.AddCommand(p.traceImportCommand(), p.traceForecastCommand(), p.traceGenerateCommand(), p.traceInfoCommand(), p.traceCheckCommand(), p.traceRecordCommand())
	return c
}

func (p *program) traceInfoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "info [DIR|FILE]",
		Short: "Say what a trace holds; without an argument, the embedded one",
		Args:  arguments(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			path := ""
			if len(args) == 1 {
				path = args[0]
			}
			t, err := openTrace(path)
			if err != nil {
				return err
			}
			p.warn(map[string]bool{}, t.Warnings)
			return p.output("", func(w io.Writer) error {
				_, err := io.WriteString(w, check.Info(t).Text())
				return err
			})
		},
	}
}
