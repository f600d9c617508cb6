// Command spotter compares how policies would have run a Kubernetes cluster on Spot capacity, on
// recorded or generated prices.
//
// It exits with 0 for success, 1 if a gate failed, 2 if the call or an input was invalid, and 3 if
// it broke or was stopped while running.
package main

import (
	"reflect"
	"slices"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/bill"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/capture"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/catalog"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/cleanup"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/comment"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/convert"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/crds"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/doctor"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/eval"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/explain"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/mcp"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/replay"
	runcmd "github.com/spotter-dev/spotter/cmd/spotter/internal/run"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/scenario"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/schedule"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/sim"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/status"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/sweep"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/top"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/try"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/tui"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/whatif"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/lab"
	"github.com/spotter-dev/spotter/models/onnx"
)

// version is set by the linker.
var version = "unknown"

// commands returns all commands of p.
func commands(p *cli.Program) []*cobra.Command {
	local := &program{p}
	return slices.Concat(
		cli.In("decide", try.Command(p), eval.Command(p), whatif.Command(p), sim.Command(p),
			cli.Alpha(schedule.Command(p)), cli.Alpha(sweep.Command(p)), bill.Command(p),
			scenario.Command(p, lab.ScenarioFromTrace.Forward(p), lab.ScenarioHunt.Forward(p)), local.policiesCommand(), local.metricsCommand(),
			catalog.Command(p), cli.Alpha(local.modelsCommand())),
		cli.In("look", tui.Command(p), top.Command(p), status.Command(p), doctor.Command(p), explain.Command(p),
			replay.Command(p), local.plotCommand()),
		cli.In("record", local.traceCommand(), capture.Command(p)),
		cli.In("run", runcmd.Command(p), crds.Command(p), convert.Command(p), cleanup.Command(p)),
		cli.In("ci", comment.Command(p), mcp.Command(p, commands, mcpTypes())),
		[]*cobra.Command{local.manCommand()},
	)
}

// mcpTypes returns the types of the JSON of commands that agents call.
func mcpTypes() mcp.Types {
	return mcp.Types{"try": try.Answers(), "eval": {format.ReportType()}, "whatif": {format.WhatIfType()},
		"top": {reflect.TypeFor[top.Table]()}}
}

// A program is a call of one of the commands in this package.
type program struct{ *cli.Program }

func main() {
	p := cli.Program{Version: version}
	if !onnx.Linked {
		p.Lacks = "ONNX Runtime"
	}
	cli.Main(&p, commands)
}
