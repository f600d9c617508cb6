// Package cli holds what all commands share: how a call ends and with which code, where
// output goes, and how flags and groups of commands behave. It knows no command.
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

// A Program is one call of the command line.
type Program struct {
	// Version is what the linker set, "unknown" without it.
	Version string

	// Lacks names what this build cannot do, empty for nothing.
	Lacks string

	// Name is what the program was called as. kubectl-spotter calls itself kubectl spotter,
	// as it is called from kubectl.
	Name string

	Args           []string
	Stdout, Stderr io.Writer

	// started says that the call was understood: from then on a fault is the
	// program's or the input's and no longer the call's.
	started bool

	// quiet keeps everything but errors from standard error, which is then loud.
	quiet bool
	loud  io.Writer

	cpuProfile, memProfile string
	profile                *os.File
}

// Run does what the arguments say with the commands that it is given, and returns the
// exit code. A panic is a fault of the program and gets that code, where Go's own, 2,
// would blame the call.
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

// Log returns standard error for what --quiet does not keep back: errors, and the log of
// what runs on.
func (p *Program) Log() io.Writer {
	if p.loud != nil {
		return p.loud
	}
	return p.Stderr
}

// Main runs the commands of p with the arguments of the process, and ends it with their
// exit code. The first signal to end it cancels their context. A version that the linker
// did not set is that of the module, as of `go install`.
func Main(p *Program, commands func(*Program) []*cobra.Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// Only the first signal requests an orderly end. The second one kills the process, even where
	// nothing observes ctx.
	context.AfterFunc(ctx, stop)
	p.Name, p.Args, p.Stdout, p.Stderr = os.Args[0], os.Args[1:], os.Stdout, os.Stderr
	if info, ok := debug.ReadBuildInfo(); ok && p.Version == "unknown" && strings.HasPrefix(info.Main.Version, "v") {
		p.Version = info.Main.Version
	}
	code := p.Run(ctx, commands)
	stop()
	os.Exit(code)
}

// Root returns the command that has the others below it.
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
	// Completion keeps the writer that it finds, so it comes after them.
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	root.InitDefaultCompletionCmd(p.Args...)
	for _, c := range root.Commands() {
		if c.Name() == "completion" { // by itself it takes any word and prints help
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

// version says which build this is.
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
