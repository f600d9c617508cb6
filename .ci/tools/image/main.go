// Command imagetool makes the image of Spotter without a container engine and without
// a registry to take another image from: the program, ONNX Runtime, and packages of
// Debian 12 below them. What it makes is an OCI layout in a tar, whose bytes depend on
// the sources, on the pins in build/image.lock and on SOURCE_DATE_EPOCH alone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const usage = `usage: imagetool COMMAND …

  build [--arch A,B] [--version V] [--out FILE] [--locked] [--onnxruntime-notices FILE]
        makes the image, and a bill of materials beside it
  stage [--arch A] [--version V] --out DIR
        writes the layers above Debian's packages into a folder, for build/Dockerfile
  push ARCHIVE REPOSITORY:TAG
        sends image and bills to a registry and prints the reference by digest, and
        those of each architecture
  bill [--version V] --out FILE PROGRAM
        writes the bill of materials of a program that is released by itself
  notices --out FILE PROGRAM
        writes the licences of all that is linked into it
  lock  [--onnxruntime-notices FILE]
        pins the newest packages of Debian 12, and the file
`

// An errWrong is the fault of who calls: exit code 2.
type errWrong struct{ error }

func (e errWrong) Unwrap() error { return e.error }

func wrong(err error) error { return errWrong{err} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "imagetool:", err)
	if errors.As(err, &errWrong{}) {
		os.Exit(2)
	}
	os.Exit(3)
}

// A builder makes images.
type builder struct {
	// root is the folder of the sources, work that of what need not be kept.
	root, work string

	version, revision string

	// at is the time that everything in the image bears.
	at time.Time

	// said takes warnings, and what the tools that are run complain of.
	said io.Writer
}

// An options is what may be said to a command.
type options struct {
	arch, version, out, notices, root string
	locked                            bool
}

func run(ctx context.Context, args []string, out, said io.Writer) error {
	if len(args) == 0 {
		return wrong(errors.New("no command\n" + usage))
	}
	var o options
	f := flag.NewFlagSet(args[0], flag.ContinueOnError)
	f.SetOutput(said)
	f.Usage = func() { fmt.Fprint(said, usage) }
	f.StringVar(&o.arch, "arch", runtime.GOARCH, "")
	f.StringVar(&o.version, "version", "unknown", "")
	f.StringVar(&o.out, "out", "", "")
	f.StringVar(&o.notices, "onnxruntime-notices", "", "")
	f.StringVar(&o.root, "root", ".", "")
	f.BoolVar(&o.locked, "locked", false, "")
	if err := f.Parse(args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return wrong(err)
	}
	want := map[string]int{"build": 0, "stage": 0, "lock": 0, "push": 2, "bill": 1, "notices": 1}
	if n, ok := want[args[0]]; !ok {
		return wrong(fmt.Errorf("command %q is not known\n%s", args[0], usage))
	} else if f.NArg() != n {
		return wrong(fmt.Errorf("%s: %d arguments, want %d\n%s", args[0], f.NArg(), n, usage))
	}
	b, archs, err := newBuilder(o, said)
	if err != nil {
		return err
	}
	if args[0] == "stage" && len(archs) != 1 {
		return wrong(fmt.Errorf("--arch %s: stage takes one", o.arch))
	}
	switch args[0] {
	case "build":
		return b.build(archs, o, out)
	case "stage":
		return b.stage(archs[0], o)
	case "lock":
		return b.lock(o)
	case "bill":
		return b.programBill(f.Arg(0), o)
	case "notices":
		return b.notices(f.Arg(0), o)
	default:
		refs, err := b.push(ctx, f.Arg(0), f.Arg(1))
		for _, ref := range refs {
			fmt.Fprintln(out, ref)
		}
		return err
	}
}

// newBuilder reads what is said by flags, the environment and the checkout.
func newBuilder(o options, said io.Writer) (*builder, []string, error) {
	root, err := filepath.Abs(o.root)
	if err != nil {
		return nil, nil, err
	}
	archs := strings.Split(o.arch, ",")
	for i, a := range archs {
		if _, ok := platforms[a]; !ok || slices.Contains(archs[:i], a) {
			return nil, nil, wrong(fmt.Errorf("--arch %q: want some of %s, each once", o.arch,
				strings.Join(architectures(), ", ")))
		}
	}
	if strings.ContainsAny(o.version, " \t\n/") || o.version == "" {
		return nil, nil, wrong(fmt.Errorf("--version %q: want a word without a slash", o.version))
	}
	b := &builder{root: root, work: filepath.Join(root, "bin", "image"), version: o.version, said: said}
	b.revision, _ = gitSays(root, "rev-parse", "HEAD")
	epoch, found := os.LookupEnv("SOURCE_DATE_EPOCH")
	if !found {
		// An archive of the sources has no commit; then everything bears the time 0.
		if epoch, err = gitSays(root, "log", "-1", "--format=%ct"); err != nil {
			epoch = "0"
		}
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || seconds < 0 {
		return nil, nil, wrong(fmt.Errorf("SOURCE_DATE_EPOCH=%q: want seconds since 1970", epoch))
	}
	b.at = time.Unix(seconds, 0).UTC()
	return b, archs, os.MkdirAll(filepath.Join(b.work, "cache"), 0o755)
}

// gitSays returns one line that git prints.
func gitSays(dir string, args ...string) (string, error) {
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).Output()
	return strings.TrimSpace(string(out)), err
}

// cached is where the thing with a SHA-256 is kept.
func (b *builder) cached(sum string) string { return filepath.Join(b.work, "cache", sum) }

// run runs a program in dir with additions to the environment.
func (b *builder) run(dir string, env []string, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.Stderr = b.said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
