package eval

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/ranges"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

const (
	// versionWait bounds the time in which another build must print its version.
	versionWait = time.Minute

	// stopWait bounds the time in which it must exit after an interrupt.
	stopWait = 10 * time.Second

	// stderrMax is the size in bytes of the end of its standard error that is kept, which has the
	// reason of a failure.
	stderrMax = 4 << 10

	// versionMax is the maximum size of its version output, in bytes.
	versionMax = 4 << 10
)

// unknownVersion is the version of a build for which the linker set none.
const unknownVersion = "unknown"

const otherAdvice = "give --compare the path of another build of spotter, as the one of the base branch"

const filesAdvice = "give --compare-scenarios a folder with the files to compare with, as `git worktree add ../base main` makes one"

// An otherBuild is another build of this program, or this build in another folder, run as a
// process. It must support only `spotter version` and `spotter eval --format json`, whose schema
// docs/reference-eval.md describes.
type otherBuild struct {
	path, version string

	// own is the version of this program.
	own string

	// name describes the other build to the user.
	name string

	// dir is the working directory of the process. If empty, it is the current one.
	dir string

	// flags are the flags of this call that determine what is run.
	flags []string

	// say reports progress to the user.
	say func(format string, args ...any)
}

// openOther returns the build of the program at path. It returns an error if the program is not a
// spotter binary whose reports can be read.
func openOther(ctx context.Context, path, own string) (*otherBuild, error) {
	found, err := exec.LookPath(path)
	if err != nil {
		return nil, cli.Invalid(fmt.Errorf("--compare: %w", err), otherAdvice)
	}
	if found, err = filepath.Abs(found); err != nil { // it may be run in another folder
		return nil, cli.Invalid(fmt.Errorf("--compare: %w", err), otherAdvice)
	}
	short, cancel := context.WithTimeout(ctx, versionWait)
	defer cancel()
	o := &otherBuild{path: found, own: own}
	var out []byte
	stderr, err := o.call(short, []string{"version"}, func(r io.Reader) (err error) {
		out, err = io.ReadAll(io.LimitReader(r, versionMax))
		if err == nil && len(out) == versionMax {
			err = errors.New("it writes more than a version")
		}
		return err
	})
	if ctx.Err() != nil {
		return nil, fmt.Errorf("asking %s for its version: stopped: %w", path, ctx.Err())
	}
	fields := strings.Fields(string(out))
	if err != nil || len(fields) < 2 || fields[0] != "spotter" {
		why := fmt.Sprintf("`%s version` says %s", path, strconv.Quote(firstOf(string(out))))
		if err != nil {
			why = fmt.Sprintf("`%s version`: %v%s", path, err, because(stderr))
		}
		return nil, cli.Invalid(fmt.Errorf("--compare: %s is not a spotter binary: %s", path, why), otherAdvice)
	}
	o.version, o.name = fields[1], "spotter "+fields[1]
	return o, o.checkSchema(ctx)
}

// checkSchema requests a small report, so that a build with an unsupported schema is rejected
// before anything is run. Other errors are reported by [otherBuild.Runs].
func (o *otherBuild) checkSchema(ctx context.Context) error {
	args := []string{"eval", "tiny", "--policies", eval.OnDemand, "--baseline", eval.OnDemand, "--seeds", "1",
		"--format", "json"}
	_, err := o.call(ctx, args, func(r io.Reader) error {
		_, err := format.ReadRuns(r)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("asking %s for a report: stopped: %w", o.path, ctx.Err())
	case errors.Is(err, format.ErrSchema):
		return cli.Invalid(fmt.Errorf("--compare: %s cannot be compared with this one, spotter %s: %w", o.name, o.own, err),
			"give --compare a build that writes the schema_version of this one")
	}
	return nil
}

// Runs returns the runs of the other build. It implements [eval.Other].
func (o *otherBuild) Runs(ctx context.Context, scenario string, policies []string, seeds []uint64) ([]eval.OtherRun,
	error) {
	args := append([]string{"eval"}, o.flags...)
	args = append(args, "--policies", strings.Join(policies, ","), "--seeds", ranges.Text(seeds),
		"--format", "json", "--", scenario)
	o.say("comparing with %s: %s, seeds %s", o.name, scenario, ranges.Text(seeds))
	var runs []eval.OtherRun
	stderr, err := o.call(ctx, args, func(r io.Reader) (err error) {
		runs, err = format.ReadRuns(r)
		return err
	})
	if ctx.Err() != nil {
		return nil, fmt.Errorf("comparing with %s: stopped: %w", o.path, ctx.Err())
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == cli.ExitInvalid:
		return nil, fmt.Errorf("%w: %s", eval.ErrRefused, reason(stderr))
	case errors.As(err, &exit) && exit.ExitCode() == cli.ExitError && len(runs) > 0:
		return runs, nil // some runs broke, and each has its error
	case err != nil:
		return nil, fmt.Errorf("comparing with %s: `%s`: %w%s", o.path, cli.Shell(append([]string{o.path}, args...)), err,
			because(stderr))
	}
	return runs, nil
}

// call runs the program and passes its standard output to read. It returns the end of its standard
// error. If the output ends too early, an exit status of the process takes precedence over the
// error of read.
func (o *otherBuild) call(ctx context.Context, args []string, read func(io.Reader) error) (stderr string, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c := exec.CommandContext(ctx, o.path, args...)
	c.Dir = o.dir
	c.Env = append(os.Environ(), cli.ProjectVariable+"=off") // every relevant flag is set
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = stopWait
	var kept tail
	c.Stderr = &kept
	out, err := c.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := c.Start(); err != nil {
		return "", err
	}
	readErr := read(out)
	if readErr == nil {
		_, readErr = io.Copy(io.Discard, out)
	}
	if ended := errors.Is(readErr, io.EOF) || errors.Is(readErr, io.ErrUnexpectedEOF); readErr != nil && !ended {
		stop()
		_ = c.Wait() // it was stopped, so its exit status has no meaning
		return kept.String(), readErr
	}
	if err := c.Wait(); err != nil {
		return kept.String(), err
	}
	return kept.String(), readErr
}

// because returns the reason in stderr as a suffix for an error; empty if stderr is empty.
func because(stderr string) string {
	if r := reason(stderr); r != "" {
		return ": " + r
	}
	return ""
}

// reason returns the line of stderr that contains the reason of a failure: the first that starts
// with the program's name, otherwise the last.
func reason(stderr string) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	for _, l := range lines {
		if text, ok := strings.CutPrefix(l, "spotter: "); ok {
			return text
		}
	}
	return lines[len(lines)-1]
}

func firstOf(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	return first
}

// A tail keeps the last stderrMax bytes that are written to it.
type tail struct{ b []byte }

func (t *tail) Write(b []byte) (int, error) {
	t.b = append(t.b, b...)
	if len(t.b) > stderrMax {
		t.b = t.b[len(t.b)-stderrMax:]
	}
	return len(b), nil
}

func (t *tail) String() string { return string(t.b) }

// openCompare returns the build that --compare and --compare-scenarios select, or nil without these
// flags.
func openCompare(ctx context.Context, p *cli.Program, f *evalFlags, args []string) (*otherBuild, error) {
	if err := f.checkFiles(args); err != nil {
		return nil, err
	}
	var o *otherBuild
	var err error
	switch {
	case f.compare != "":
		if o, err = openOther(ctx, f.compare, p.Version); err != nil {
			return nil, err
		}
	case f.Flags.Changed("compare"):
		return nil, cli.Invalid(errors.New("--compare: it names no program"), otherAdvice)
	case f.files != "":
		path, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("finding this program to run it in %s: %w", f.files, err)
		}
		o = &otherBuild{path: path, name: "the files in " + f.files}
	default:
		return nil, nil
	}
	o.dir = f.files
	o.say = func(format string, args ...any) { fmt.Fprintf(p.Stderr, format+"\n", args...) }
	for _, name := range []string{"trace", "from", "intensity", "truth", "node-fee", "start", "windows", "every"} {
		fl := f.Flags.Lookup(name)
		if !fl.Changed {
			continue
		}
		value := fl.Value.String()
		if name == "trace" && o.dir != "" && !trace.IsEmbedded(value) {
			// A trace that the call names is used on both sides.
			if value, err = filepath.Abs(value); err != nil {
				return nil, cli.Invalid(fmt.Errorf("--trace: %w", err), "give the path of a trace")
			}
		}
		o.flags = append(o.flags, "--"+name, value)
	}
	// Only the runs of the compared policies are needed, and every build has this baseline.
	o.flags = append(o.flags, "--baseline", eval.OnDemand)
	return o, nil
}

// checkFiles returns an error if the scenarios args cannot be found in the folder of
// --compare-scenarios.
func (f *evalFlags) checkFiles(args []string) error {
	if f.files == "" {
		if f.Flags.Changed("compare-scenarios") {
			return cli.Invalid(errors.New("--compare-scenarios: it names no folder"), filesAdvice)
		}
		return nil
	}
	switch about, err := os.Stat(f.files); {
	case err != nil:
		return cli.Invalid(fmt.Errorf("--compare-scenarios: %w", err), filesAdvice)
	case !about.IsDir():
		return cli.Invalid(fmt.Errorf("--compare-scenarios: %s is not a folder", f.files), filesAdvice)
	}
	for _, a := range args {
		if !filepath.IsLocal(a) {
			return cli.Invalid(fmt.Errorf("--compare-scenarios: %s is not below this folder, so %s has no file of the same path", a, f.files),
				"run eval in the folder that holds the scenarios, and name them from there")
		}
	}
	return nil
}

// compare adds the comparison with the other build to report.
func compare(ctx context.Context, f *evalFlags, o *otherBuild, cfg *eval.Config, report *eval.Report,
	runner eval.Runner) error {
	if o == nil {
		return nil
	}
	a := eval.Against{Other: o, Program: f.compare, Version: o.version, Files: f.files}
	if f.files != "" {
		// a manifest also changes policies that the user did not name
		a.Judged = cfg.Policies
	}
	return report.Compare(ctx, a, runner)
}

// seedsOf returns the seeds of a call. A number of seeds starts at 1, or at a number derived from a
// text such as the commit that a change is compared with: then the author of a change cannot choose
// its seeds, and all its comparisons have the same.
func (f *evalFlags) seedsOf(o *otherBuild) ([]uint64, error) {
	seeds, err := f.ParsedSeeds()
	if err != nil {
		return nil, err
	}
	from := f.seedsFrom
	if f.Flags.Changed("seeds-from") && from == "" {
		return nil, cli.Invalid(errors.New("--seeds-from: it is empty"), "give the commit that the change is compared with")
	}
	if !ranges.Counts(f.Seeds) {
		if from != "" {
			return nil, cli.Invalid(fmt.Errorf("--seeds-from: --seeds %s already states where they start", f.Seeds),
				"give --seeds a number of seeds")
		}
		return seeds, nil
	}
	if from == "" && o != nil && o.version != unknownVersion {
		from = o.version
	}
	if from == "" {
		return seeds, nil
	}
	first := FirstSeed(from)
	for i := range seeds {
		seeds[i] = first + uint64(i)
	}
	return seeds, nil
}

// seedsFirstMax is the maximum first seed that is derived from a text. Nine digits can be read and
// typed.
const seedsFirstMax = 999_999_999

// FirstSeed returns the first seed for a text, in [1, 999999999].
func FirstSeed(text string) uint64 {
	sum := sha256.Sum256([]byte(strings.TrimSpace(text)))
	n := uint64(0)
	for _, b := range sum[:7] {
		n = n<<8 | uint64(b)
	}
	return 1 + n%seedsFirstMax
}
