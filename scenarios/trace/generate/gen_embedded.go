//go:build ignore

// This program draws the synthetic embedded traces.
package main

import (
	"fmt"
	"os"

	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/generate"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gen_embedded:", err)
		os.Exit(1)
	}
}

func run() error {
	for _, name := range []string{"synthetic", "rackspace"} {
		c, err := generate.Embedded(name)
		if err != nil {
			return err
		}
		t, err := generate.Generate(c)
		if err != nil {
			return err
		}
		if err := trace.WriteFile("../embedded/"+name+".parquet", t); err != nil {
			return err
		}
	}
	return nil
}
