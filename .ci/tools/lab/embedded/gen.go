//go:build ignore

// This program makes the embedded trace of recorded prices: in .ci/tools/lab, go run embedded/gen.go DATA, where DATA is the
// folder of recordings.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spotter-dev/spotter/.ci/tools/lab/embedded"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("give the folder of recordings")
	}
	t, err := embedded.Make(filepath.Join(args[0], embedded.Source))
	if err != nil {
		return err
	}
	return trace.WriteFile("../../../scenarios/trace/embedded/"+trace.Recorded+".parquet", t)
}
