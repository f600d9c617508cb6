//go:build ignore

// This program makes the embedded trace of recorded prices: go run gen.go DATA, where DATA is the
// folder of recordings.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/recorded"
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
	t, err := recorded.Make(filepath.Join(args[0], recorded.Source))
	if err != nil {
		return err
	}
	return trace.WriteFile("scenarios/trace/embedded/"+trace.Recorded+".parquet", t)
}
