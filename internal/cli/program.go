// Package cli contains what all commands share: exit codes, output, and the behaviour of flags and
// groups of commands. It does not depend on any command.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// A Program is one invocation of the command line.
type Program struct {
	// Version is set by the linker, otherwise "unknown".
	Version string

	// Lacks names features that this build does not have, empty if it has all.
	Lacks string

	// Name is the name that the program was invoked by. kubectl-spotter identifies itself as
	// kubectl spotter.
	Name string

	Args           []string
	Stdout, Stderr io.Writer

	// WithoutProject makes commands ignore the project file, which may name files to write.
	WithoutProject bool

	// Progress, if not nil, is called with the progress of the command, which is then not shown on
	// standard error. It is never called by two goroutines at the same time.
	Progress func(Step)

	// started reports whether the command line was parsed. Later errors are not errors of the
	// command line.
	started bool

	// quiet suppresses everything except errors on standard error, which is then kept in loud.
	quiet bool
	loud  io.Writer

	cpuProfile, memProfile string
	profile                *os.File
}

// A Step is the progress of a step of a command.
type Step struct {
	Name string

	// Line describes the progress in words, Name included.
	Line string

	// Total is 0 if it is not known.
	Done, Total int
}

// Run executes the arguments with the given commands, and returns the exit code. It recovers panics
// and returns [ExitError], because Go's own exit code 2 would mean an invalid command line.
func (p *Program) Run(ctx context.Context, commands func(*Program) []*cobra.Command) (code int) {
	p.Stdout, p.Stderr = plain(p.Stdout), plain(p.Stderr)
	defer func() {
		if bug := recover(); bug != nil {
			code = Report(p.Log(), fmt.Errorf("panic: %v\n%s", bug, debug.Stack()))
		}
	}()
	root := p.Root(commands(p)...)
	root.SetArgs(p.Args)
	err := checkCommand(root, p.Args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if stopErr := p.stopProfiles(); err == nil {
		err = stopErr
	}
	if err != nil && !p.started {
		err = Invalid(err, "run `spotter --help`")
	}
	return Report(p.Log(), err)
}

// Log returns the writer for what --quiet does not suppress: errors, and the logs of long-running
// commands.
func (p *Program) Log() io.Writer {
	if p.loud != nil {
		return p.loud
	}
	return p.Stderr
}

// Main runs the commands of p with the arguments of the process, and exits with their code. The
// first interrupt or termination signal cancels their context. If the linker set no version, it
// uses the version of the module, as with `go install`.
func Main(p *Program, commands func(*Program) []*cobra.Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// Only the first signal requests an orderly end. The second one kills the process, even if no
	// code observes ctx.
	context.AfterFunc(ctx, stop)
	p.Name, p.Args, p.Stdout, p.Stderr = os.Args[0], os.Args[1:], os.Stdout, os.Stderr
	if info, ok := debug.ReadBuildInfo(); ok && p.Version == "unknown" && strings.HasPrefix(info.Main.Version, "v") {
		p.Version = info.Main.Version
	}
	code := p.Run(ctx, commands)
	stop()
	os.Exit(code)
}

// Root returns the root command with the given subcommands.
func (p *Program) Root(commands ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:   "spotter",
		Short: "How much of a Kubernetes cluster to run on Spot, proven on recorded prices",
		Long: "Spotter replays recorded weeks of Spot prices against a simulated Kubernetes\n" +
			"cluster under several policies and says who saves how much at what outage.",
		Version:       p.version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			p.started = true
			if err := p.readProject(c); err != nil {
				return err
			}
			if p.quiet {
				p.loud, p.Stderr = p.Stderr, io.Discard
			}
			return p.startProfiles()
		},
	}
	if plugin, ok := strings.CutPrefix(filepath.Base(p.Name), "kubectl-"); ok {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl " + plugin}
	}
	root.SetFlagErrorFunc(flagError)
	flags := root.PersistentFlags()
	flags.StringVar(&p.cpuProfile, "cpuprofile", "", "write a CPU profile to `FILE`")
	flags.StringVar(&p.memProfile, "memprofile", "", "write a memory profile to `FILE`")
	flags.BoolVarP(&p.quiet, "quiet", "q", false, "print no progress, notes or warnings: only the result, and errors")
	for _, name := range []string{"cpuprofile", "memprofile"} {
		if err := flags.MarkHidden(name); err != nil {
			panic(err)
		}
	}
	for i := range Groups {
		if slices.ContainsFunc(commands, func(c *cobra.Command) bool { return c.GroupID == Groups[i].ID }) {
			root.AddGroup(&Groups[i])
		}
	}
	root.AddCommand(append(commands, p.versionCommand())...)
	takeAliases(root)
	root.SetHelpFunc(p.help(commands))
	root.SetHelpCommand(helpCommand())
	root.InitDefaultHelpCmd()
	// The completion command keeps the current writer, so the writer must be set before.
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	root.InitDefaultCompletionCmd(p.Args...)
	for _, c := range root.Commands() {
		if c.Name() == "completion" { // by default it accepts any word and prints help
			like := Group(c.Use, c.Short)
			c.Args, c.RunE, c.Annotations = nil, like.RunE, like.Annotations
		}
	}
	return root
}

func (p *Program) startProfiles() error {
	if p.cpuProfile == "" {
		return nil
	}
	f, err := os.Create(p.cpuProfile)
	if err != nil {
		return Invalid(err, "give --cpuprofile a file that can be written")
	}
	p.profile = f
	return pprof.StartCPUProfile(f)
}

func (p *Program) stopProfiles() error {
	if p.profile != nil {
		pprof.StopCPUProfile()
		if err := p.profile.Close(); err != nil {
			return err
		}
	}
	if p.memProfile == "" {
		return nil
	}
	return ReplaceFile(p.memProfile, func(w io.Writer) error {
		runtime.GC()
		return pprof.Lookup("allocs").WriteTo(w, 0)
	})
}

// version describes the build.
func (p *Program) version() string {
	lacks := ""
	if p.Lacks != "" {
		lacks = ", without " + p.Lacks
	}
	return fmt.Sprintf("%s (%s, %s/%s%s)", p.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH, lacks)
}

func (p *Program) versionCommand() *cobra.Command {
	var form Form
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  Arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			v := map[string]string{"version": p.Version, "go": runtime.Version(),
				"platform": runtime.GOOS + "/" + runtime.GOARCH}
			if p.Lacks != "" {
				v["lacks"] = p.Lacks
			}
			return p.Print(&form, v, func(w io.Writer, _ bool) error {
				_, err := fmt.Fprintln(w, "spotter", p.version())
				return err
			})
		},
	}
	form.Register(c)
	return c
}
