//go:build ignore

// Command gen writes the generated files of the Helm charts. It must run in the folder of the
// charts.
package main

import (
	"fmt"
	"os"

	"github.com/spotter-dev/spotter/charts"
)

func main() {
	if err := charts.Write("."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
