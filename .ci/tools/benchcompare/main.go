// Command benchcompare builds the program of a base commit and that of this tree, runs both
// in turn, and fails when processor time or memory has grown by more than a tenth.
//
//	go run ./.ci/tools/benchcompare BASE
//
// The least cost of a call over its turns counts, since other work on the machine only ever
// adds to it. A call that has grown is measured once more before it counts.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
)

// growthMax is how much more a call may cost, as a part of what the base takes.
const growthMax = 0.10

// A call is a command line as a user runs it; turns is how often it is measured with each program.
type call struct {
	turns int
	args  []string
}

var calls = []call{
	{40, strings.Fields("version")},
	{15, strings.Fields("sim bench-500 --policy spotvortex")},
	{7, strings.Fields("sim bench-2000 --policy spotvortex")},
	{5, strings.Fields("sim bench-500 --policy karpetrack")},
	{3, strings.Fields("sim bench-2000 --policy karpetrack")},
	{3, strings.Fields("sim bench-500 --policy portfolio")},
	{2, strings.Fields("sim bench-2000 --policy portfolio")},
	{7, strings.Fields("eval bench-100 --policies static,spotvortex --seeds 3")},
}

// A cost is what a process took.
type cost struct {
	cpu float64 // user and system, in seconds
	mb  float64 // greatest resident size, in units of 1,000,000 bytes
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "benchcompare: %v\n", err)
	}
	os.Exit(code)
}

// run returns 1 when something has grown and 2 when nothing can be said.
func run(ctx context.Context, args []string) (int, error) {
	if len(args) != 1 || args[0] == "" {
		return 2, fmt.Errorf("name the commit to compare with: make bench-compare BASE=main")
	}
	dir, err := os.MkdirTemp("", "spotter-base-*")
	if err != nil {
		return 2, err
	}
	defer os.RemoveAll(dir)
	base, head, remove, err := build(ctx, args[0], filepath.Join(dir, "tree"))
	defer remove()
	if err != nil {
		return 2, err
	}
	grown := 0
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "CPU-s before\tafter\tchange\tMB before\tafter\tchange\t\t spotter …\t")
	for _, c := range calls {
		before, after, err := c.measure(ctx, base, head)
		if err == nil && worse(before, after) {
			before, after, err = c.measure(ctx, base, head)
		}
		if err != nil {
			return 2, err
		}
		mark := ""
		if worse(before, after) {
			mark, grown = "GROWN", grown+1
		}
		fmt.Fprintf(w, "%.3f\t%.3f\t%+.1f %%\t%.1f\t%.1f\t%+.1f %%\t%s\t %s\t\n", before.cpu, after.cpu,
			100*growth(before.cpu, after.cpu),
			before.mb, after.mb, 100*growth(before.mb, after.mb), mark, strings.Join(c.args, " "))
	}
	if err := w.Flush(); err != nil {
		return 2, err
	}
	if grown > 0 {
		return 1, fmt.Errorf("of %d calls %d take over %.0f %% more than with %s", len(calls), grown, 100*growthMax, args[0])
	}
	return 0, nil
}

// build makes the program of commit, in a worktree at tree, and that of this tree, each
// with its own Makefile. remove takes the worktree away again.
func build(ctx context.Context, commit, tree string) (base, head string, remove func(), err error) {
	remove = func() {}
	here, err := os.Getwd()
	if err != nil {
		return "", "", remove, err
	}
	if err := command(ctx, "git", "worktree", "add", "--quiet", "--detach", tree, commit); err != nil {
		return "", "", remove, err
	}
	remove = func() {
		if err := command(context.WithoutCancel(ctx), "git", "worktree", "remove", "--force", tree); err != nil {
			fmt.Fprintf(os.Stderr, "benchcompare: %v\n", err)
		}
	}
	// Resident memory counts pages of the program's file, and how many there are depends
	// on how it was written: copies are measured.
	base, head = tree+"-base", tree+"-head"
	for program, dir := range map[string]string{base: tree, head: here} {
		// What this program was called with by make is not for another Makefile.
		if err := command(ctx, "env", "-u", "MAKEFLAGS", "-u", "MAKELEVEL", "-u", "GOFLAGS", "make", "--no-print-directory",
			"-C", dir, "build"); err != nil {
			return "", "", remove, err
		}
		if err := command(ctx, "cp", filepath.Join(dir, "bin", "spotter"), program); err != nil {
			return "", "", remove, err
		}
	}
	return base, head, remove, nil
}

// command runs a command whose output is for whoever watches.
func command(ctx context.Context, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(c.Args, " "), err)
	}
	return nil
}

// measure runs c with both programs by turns and returns the least that each took.
func (c call) measure(ctx context.Context, base, head string) (before, after cost, err error) {
	for turn := range c.turns {
		for _, one := range []struct {
			program string
			least   *cost
		}{{base, &before}, {head, &after}} {
			now, err := c.process(ctx, one.program)
			if err != nil {
				return before, after, err
			}
			if turn == 0 {
				*one.least = now
			}
			one.least.cpu, one.least.mb = min(one.least.cpu, now.cpu), min(one.least.mb, now.mb)
		}
	}
	return before, after, nil
}

// process runs program and reads the kernel's account of it.
func (c call) process(ctx context.Context, program string) (cost, error) {
	p := exec.CommandContext(ctx, program, c.args...)
	if out, err := p.CombinedOutput(); err != nil {
		return cost{}, fmt.Errorf("%s: %w\n%s", strings.Join(p.Args, " "), err, out)
	}
	usage := p.ProcessState.SysUsage().(*syscall.Rusage)
	return cost{(p.ProcessState.UserTime() + p.ProcessState.SystemTime()).Seconds(),
		float64(usage.Maxrss) * 1024 / 1e6}, nil
}

// growth is how much larger after is, as a part of before.
func growth(before, after float64) float64 { return after/before - 1 }

func worse(before, after cost) bool {
	return growth(before.cpu, after.cpu) > growthMax || growth(before.mb, after.mb) > growthMax
}
