package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"

	"github.com/spf13/cobra"
)

// A program is one call of the command line.
type program struct {
	args           []string
	stdout, stderr io.Writer

	// started says that the call was understood: from then on a fault is the
	// program's or the input's and no longer the call's.
	started bool

	cpuProfile, memProfile string
	profile                *os.File
}

// run does what args say and returns the exit code. A panic is a fault of the
// program and gets that code, where Go's own, 2, would blame the call.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	defer func() {
		if bug := recover(); bug != nil {
			code = tell(stderr, fmt.Errorf("panic: %v\n%s", bug, debug.Stack()))
		}
	}()
	p := &program{args: args, stdout: stdout, stderr: stderr}
	root := p.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if stopErr := p.stopProfiles(); err == nil {
		err = stopErr
	}
	if err != nil && !p.started {
		err = wrong(err, "run `spotter --help`")
	}
	return tell(stderr, err)
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "spotter",
		Short: "How much of a Kubernetes cluster to run on Spot, proven on recorded prices",
		Long: "Spotter replays recorded weeks of Spot prices against a simulated Kubernetes\n" +
			"cluster under several policies and says who saves how much at what outage.",
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			p.started = true
			return p.startProfiles()
		},
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return wrong(err, "run `"+c.CommandPath()+" --help`")
	})
	flags := root.PersistentFlags()
	flags.StringVar(&p.cpuProfile, "cpuprofile", "", "write a CPU profile to `FILE`")
	flags.StringVar(&p.memProfile, "memprofile", "", "write a memory profile to `FILE`")
	for _, name := range []string{"cpuprofile", "memprofile"} {
		if err := flags.MarkHidden(name); err != nil {
			panic(err)
		}
	}
	root.AddCommand(p.evalCommand(), p.simCommand(), p.traceCommand(), p.scenarioCommand(),
		p.catalogCommand(), p.convertCommand(), p.captureCommand(), p.explainCommand(), p.replayCommand(), p.plotCommand(), p.versionCommand(), p.tuiCommand(), p.modelsCommand(), p.runCommand(), p.cleanupCommand(), p.statusCommand())
	// Completion keeps the writer that it finds, so it comes after them.
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.InitDefaultCompletionCmd(p.args...)
	for _, c := range root.Commands() {
		if c.Name() == "completion" { // by itself it takes any word and prints help
			like := group(c.Use, c.Short)
			c.Args, c.RunE = like.Args, like.RunE
		}
	}
	return root
}

// arguments makes what check finds wrong a wrong call.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return wrong(err, "run `"+c.CommandPath()+" --help`")
		}
		return nil
	}
}

// group returns a command that only has others below it.
func group(use, short string) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return wrong(fmt.Errorf("unknown command %q for %q", args[0], c.CommandPath()), "run `"+c.CommandPath()+" --help`")
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
}

func (p *program) startProfiles() error {
	if p.cpuProfile == "" {
		return nil
	}
	f, err := os.Create(p.cpuProfile)
	if err != nil {
		return wrong(err, "give --cpuprofile a file that can be written")
	}
	p.profile = f
	return pprof.StartCPUProfile(f)
}

func (p *program) stopProfiles() error {
	if p.profile != nil {
		pprof.StopCPUProfile()
		if err := p.profile.Close(); err != nil {
			return err
		}
	}
	if p.memProfile == "" {
		return nil
	}
	return replaceFile(p.memProfile, func(w io.Writer) error {
		runtime.GC()
		return pprof.Lookup("allocs").WriteTo(w, 0)
	})
}

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(p.stdout, "spotter %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
