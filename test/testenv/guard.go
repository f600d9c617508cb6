package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
)

// A guard ends the servers of a folder when this process ends, whatever ended it:
// it is a process that waits for the end of a pipe which only we hold open.
type guard struct {
	cmd  *exec.Cmd
	hold *os.File

	mu   sync.Mutex
	over bool
}

// sweep kills the process groups of all servers, and removes the folder, which one
// of them may still have written to.
const sweep = `cat >/dev/null
for f in "$0"/*.pid; do [ -f "$f" ] && kill -9 "-$(cat "$f")" 2>/dev/null; done
rm -rf "$0" || { sleep 1; rm -rf "$0"; }
`

func newGuard(dir string) (*guard, error) {
	read, hold, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	cmd := exec.Command("sh", "-c", sweep, dir)
	cmd.Stdin = read
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		hold.Close()
		return nil, fmt.Errorf("starting the guard: %w", err)
	}
	return &guard{cmd: cmd, hold: hold}, nil
}

// end has the guard do its work and waits for it.
func (g *guard) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return
	}
	g.over = true
	g.hold.Close()
	_ = g.cmd.Wait()
}

// ended reports whether the servers were ended on purpose.
func (g *guard) ended() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.over
}
