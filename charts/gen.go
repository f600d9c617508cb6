//go:build ignore

// Command gen writes those files of the charts that follow from the program. It is
// run in the folder of the charts.
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
