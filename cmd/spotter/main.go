// Command spotter compares how policies would have run a Kubernetes cluster on
// Spot capacity, on recorded or generated prices.
//
// It exits with 0 when all went well, 1 when a gate failed, 2 when the call or
// an input was wrong, and 3 when it broke or was stopped while running.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the linker.
var version = "unknown"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// Only the first signal asks for an orderly end: the second one kills, even
	// where nothing looks at ctx.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
