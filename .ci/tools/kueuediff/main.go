// Command kueuediff holds sim/kueue against Kueue: its real scheduler with its caches and queues, on
// random queues and workloads, cycle by cycle, with admission, borrowing and preemption.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kueuediff:", err)
		os.Exit(1)
	}
}

// A config says what is compared.
type config struct {
	number int
	seed   uint64
	state  string
	out    string
}

func run(ctx context.Context, args []string, out io.Writer) error {
	c := config{}
	flags := flag.NewFlagSet("kueuediff", flag.ContinueOnError)
	flags.IntVar(&c.number, "n", 1000, "how many states to draw: half from fixed seeds, half from fresh ones")
	flags.Uint64Var(&c.seed, "seed", 0, "first of the fresh seeds; 0 draws it")
	flags.StringVar(&c.state, "state", "", "compare on the state of this file only")
	flags.StringVar(&c.out, "out", os.TempDir(), "folder for the states of differences")
	if err := flags.Parse(args); err != nil {
		return err
	}
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	ctx = ctrl.LoggerInto(ctx, logr.Discard())
	if c.state != "" {
		st, err := readState(c.state)
		if err != nil {
			return err
		}
		t := tally{}
		if err := t.play(ctx, st, out); err != nil {
			return err
		}
		return t.print(out, 1)
	}
	if c.seed == 0 {
		c.seed = rand.Uint64()>>16 + 1
	}
	fmt.Fprintf(out, "%d states: fixed seeds 1 to %d, fresh ones from %d\n", c.number, (c.number+1)/2, c.seed)
	return c.compare(ctx, out)
}

// leastEqual is the least share of states in which all cycles are equal.
const leastEqual = 0.99

func (c *config) compare(ctx context.Context, out io.Writer) error {
	t := tally{}
	for i := range c.number {
		seed := uint64(i + 1)
		if fixed := (c.number + 1) / 2; i >= fixed {
			seed = c.seed + uint64(i-fixed)
		}
		st, before := generate(seed), t.differ
		if err := t.play(ctx, st, nil); err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		if t.differ == before {
			continue
		}
		path := fmt.Sprintf("%s/kueuediff-%d.yaml", c.out, seed)
		if err := st.write(path); err != nil {
			return err
		}
		fmt.Fprintf(out, "seed %d: %s\n  repeat with: make kueuediff STATE=%s\n", seed, t.last, path)
	}
	return t.print(out, leastEqual)
}
