package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/spotter-dev/spotter/internal/cli"
)

// A server runs the commands of tools.
type server struct {
	version, lacks string // of the program
	commands       Commands

	// input carries the protocol, or is nil if it is not a file.
	input *os.File
	log   *slog.Logger

	// ended ends all calls.
	ended context.Context

	// simulating has room for the calls that simulate at the same time. One uses all processors, and
	// two would need twice the memory and end no earlier.
	simulating chan struct{}
}

// simulatingMax is the maximum number of simulations at the same time. Further ones wait.
const simulatingMax = 1

// NewServer returns a server of the protocol, whose calls end with ctx, for the commands of p. input
// is the file that carries the protocol, which no command may read, or nil if it is not a file.
func NewServer(ctx context.Context, p *cli.Program, commands Commands, types Types, input *os.File) (*sdk.Server,
	error) {
	s := &server{version: p.Version, lacks: p.Lacks, commands: commands, input: input, ended: ctx,
		log: slog.New(slog.NewTextHandler(p.Log(), nil)), simulating: make(chan struct{}, simulatingMax)}
	all, err := tools()
	if err != nil {
		return nil, err
	}
	out := sdk.NewServer(&sdk.Implementation{Name: "spotter", Title: "Spotter", Version: s.version},
		&sdk.ServerOptions{Instructions: instructions, Logger: s.log,
			Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}})
	for _, t := range all {
		output, err := outputSchema(types[t.name])
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", t.name, err)
		}
		out.AddTool(t.definition(output), func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return s.call(ctx, t, r), nil
		})
	}
	return out, nil
}

// call runs the command of t. Errors of arguments and of the command are results that are marked as
// errors, so that the agent's model reads them.
func (s *server) call(ctx context.Context, t *tool, r *sdk.CallToolRequest) *sdk.CallToolResult {
	in, err := t.decode(r.Params.Arguments)
	if err == nil {
		err = checkPaths(reflect.ValueOf(in), s.input)
	}
	if err != nil {
		return failed(fmt.Sprintf("spotter: %s: arguments: %v", t.name, err))
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(s.ended, stop)()
	progress := newReporter(ctx, r)
	if t.simulates {
		select {
		case s.simulating <- struct{}{}:
		default:
			progress.report(cli.Step{Name: "waiting", Line: "waiting until another simulation ends"})
			select {
			case s.simulating <- struct{}{}:
			case <-ctx.Done():
				return failed("spotter: stopped before it began")
			}
		}
		defer func() { <-s.simulating }()
	}
	return s.run(ctx, t, wordsOf(t.command, in), progress)
}

// run runs a command and returns its result.
func (s *server) run(ctx context.Context, t *tool, words []string, progress *reporter) *sdk.CallToolResult {
	var out, log bytes.Buffer
	p := &cli.Program{Version: s.version, Lacks: s.lacks, Args: words,
		Stdout: &out, Stderr: &log, WithoutProject: true, Progress: progress.report}
	begun := time.Now()
	code := p.Run(ctx, s.commands)
	s.log.Info("called", "tool", t.name, "command", p.Invocation(), "exit", code, "took", time.Since(begun).Round(time.Millisecond))
	if code != cli.ExitOK && code != cli.ExitFailed || ctx.Err() != nil {
		return failed(log.String())
	}
	return t.result(repeated(p), out.Bytes(), log.String())
}

// failed returns a result that is an error.
func failed(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: strings.TrimSpace(text)}}}
}

// result returns the result of a command that printed text, and remarks on standard error. Clients
// that read no structured content find the JSON as a text, as the specification advises
// (server/tools#structured-content); an array has no other place there.
func (t *tool) result(command string, text []byte, remarks string) *sdk.CallToolResult {
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return failed(fmt.Sprintf("spotter: %s printed no JSON: %v\n%s", command, err, remarks))
	}
	words := "command: " + command
	if t.decisions != nil {
		switch ids := t.decisions(text); len(ids) {
		case 0:
		case 1:
			words += "\ndecision id: " + ids[0]
		default:
			words += "\ndecision ids: " + cli.FirstOf(ids, idsMax)
		}
	}
	if remarks = strings.TrimSpace(remarks); remarks != "" {
		words += "\n" + remarks
	}
	out := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: words}, &sdk.TextContent{Text: compact.String()}}}
	if compact.Bytes()[0] == '{' {
		out.StructuredContent = json.RawMessage(compact.Bytes())
	}
	return out
}

// idsMax is the maximum number of ids of decisions in the text of a result. All are in its JSON.
const idsMax = 10

// repeated returns the command that repeats the call of p in a shell, where the project file would
// be read.
func repeated(p *cli.Program) string {
	if _, err := os.Stat(cli.ProjectFile); err != nil {
		return p.Invocation()
	}
	return cli.ProjectVariable + "=off " + p.Invocation()
}
