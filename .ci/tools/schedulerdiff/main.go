// Command schedulerdiff holds the simulator's scheduler against kube-scheduler: the
// real framework with all default plugins, on random clusters, pod by pod, with
// preemption.
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
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "schedulerdiff:", err)
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
	flags := flag.NewFlagSet("schedulerdiff", flag.ContinueOnError)
	flags.IntVar(&c.number, "n", 1000, "how many clusters to draw: half from fixed seeds, half from fresh ones")
	flags.Uint64Var(&c.seed, "seed", 0, "first of the fresh seeds; 0 draws it")
	flags.StringVar(&c.state, "state", "", "compare on the cluster of this file only")
	flags.StringVar(&c.out, "out", os.TempDir(), "folder for the clusters of differences")
	if err := flags.Parse(args); err != nil {
		return err
	}
	klog.SetLogger(logr.Discard())
	if c.state != "" {
		st, err := readState(c.state)
		if err != nil {
			return err
		}
		total, err := compareState(ctx, st)
		if err != nil {
			return err
		}
		for _, text := range total.differences {
			fmt.Fprintln(out, text)
		}
		return total.print(out, true)
	}
	if c.seed == 0 {
		c.seed = rand.Uint64()>>16 + 1
	}
	fmt.Fprintf(out, "%d clusters: fixed seeds 1 to %d, fresh ones from %d\n", c.number, (c.number+1)/2, c.seed)
	return c.compare(ctx, out)
}

func (c *config) compare(ctx context.Context, out io.Writer) error {
	var total tally
	for i := range c.number {
		seed := uint64(i + 1)
		if fixed := (c.number + 1) / 2; i >= fixed {
			seed = c.seed + uint64(i-fixed)
		}
		st := generate(seed)
		one, err := compareState(ctx, st)
		if err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		total.add(one)
		if len(one.differences) == 0 {
			continue
		}
		path := fmt.Sprintf("%s/schedulerdiff-%d.yaml", c.out, seed)
		if err := st.write(path); err != nil {
			return err
		}
		fmt.Fprintf(out, "seed %d: %s\n  repeat with: make schedulerdiff STATE=%s\n", seed, one.differences[0], path)
	}
	return total.print(out, false)
}
