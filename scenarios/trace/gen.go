//go:build ignore

// This program draws the embedded trace anew.
package main

import (
	"fmt"
	"os"

	"github.com/spotter-dev/spotter/scenarios/trace"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run() error {
	t, err := trace.Generate(trace.DefaultGenerator())
	if err != nil {
		return err
	}
	return trace.WriteFile("embedded/default.parquet", t)
}
