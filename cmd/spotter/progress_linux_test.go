package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spotter-dev/spotter/internal/cli"
)

// A terminalText is what was written to a terminal.
type terminalText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *terminalText) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(b)
}

func (w *terminalText) has(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains(w.text.String(), text)
}

// terminalOf opens both sides of a pseudo-terminal of 24 lines and 100 columns.
func terminalOf(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 100}); err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// On a terminal eval shows what it does and what is finished, and takes it away when
// it is stopped, which Ctrl-C typed there does.
func TestEvalOnTerminal(t *testing.T) {
	master, slave := terminalOf(t)
	c := exec.CommandContext(t.Context(), otherSpotter(t, "v1"), "eval", file(t, "tiny.yaml", tiny), "--trace",
		"synthetic", "--policies", "spot", "--seeds", "5000", "--format", "json")
	var out bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = slave, &out, slave
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	c.Env = append(os.Environ(), "TERM=xterm-256color")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_ = slave.Close()
	var shown terminalText
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			_, _ = shown.Write(buffer[:n])
			if err != nil {
				return
			}
		}
	}()
	wait := func(want string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !shown.has(want); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				_ = c.Process.Kill()
				t.Fatalf("%q is not shown; what is is %q", want, shown.text.String())
			}
		}
	}
	wait("runs ░")
	wait("SAVED %")
	wait("of 5000 cells")
	if _, err := master.Write([]byte{3}); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	wait("stopping: once more ends it at once")
	wait("spotter: INCOMPLETE: stopped after ")
	if err := c.Wait(); err == nil || c.ProcessState.ExitCode() != cli.ExitError {
		t.Errorf("it ended with %v", err)
	}
	if !bytes.Contains(out.Bytes(), []byte(`"incomplete": true`)) || bytes.Contains(out.Bytes(), []byte("\x1b")) {
		t.Errorf("standard output has no incomplete report, or what is for the terminal:\n%.300s", out.String())
	}
	shown.mu.Lock()
	defer shown.mu.Unlock()
	// The table is wiped out, and the cursor that was hidden is there again.
	text := shown.text.String()
	after := text[strings.LastIndex(text, "SAVED %"):]
	if wiped := strings.Index(after, "\x1b[J"); wiped < 0 || !strings.Contains(after[wiped:], "\x1b[?25h") {
		t.Errorf("the terminal is left as %q", after)
	}
}

// What is binary is not written to a terminal, and says so before anything runs.
func TestParquetOnTerminal(t *testing.T) {
	_, slave := terminalOf(t)
	var stderr bytes.Buffer
	c := exec.CommandContext(t.Context(), otherSpotter(t, "v1"), "eval", file(t, "tiny.yaml", tiny), "--trace",
		"synthetic", "--seeds", "5000", "--format", "parquet")
	c.Stdout, c.Stderr = slave, &stderr
	if err := c.Run(); err == nil || c.ProcessState.ExitCode() != cli.ExitInvalid ||
		!strings.Contains(stderr.String(), "--out results.parquet") {
		t.Errorf("%v: %s", err, stderr.String())
	}
}
