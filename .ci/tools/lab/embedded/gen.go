//go:build ignore

// This program makes the embedded traces: in .ci/tools/lab, go run embedded/gen.go DATA, where DATA is the folder of
// recordings. Without DATA it draws the synthetic ones alone.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spotter-dev/spotter/.ci/tools/lab/embedded"
	"github.com/spotter-dev/spotter/scenarios/trace"
	"github.com/spotter-dev/spotter/scenarios/trace/generate"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	drawn, err := embedded.Drawn()
	if err != nil {
		return err
	}
	traces := map[string]*trace.Trace{}
	for name, c := range drawn {
		if traces[name], err = generate.Generate(c); err != nil {
			return err
		}
	}
	if len(args) > 0 {
		if traces[trace.Recorded], err = embedded.Make(filepath.Join(args[0], embedded.Source)); err != nil {
			return err
		}
	}
	for name, t := range traces {
		if err := trace.WriteFile("../../../scenarios/trace/embedded/"+name+".parquet", t); err != nil {
			return err
		}
	}
	return nil
}
