package screen

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// childOf is set in the process that TestQuiet starts.
const childOf = "SPOTTER_TEST_CHILD"

// TestMain is the child of TestQuiet where it is one.
func TestMain(m *testing.M) {
	if os.Getenv(childOf) != "" {
		fmt.Printf("TERM is %s\n", os.Getenv("TERM"))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestQuiet starts this program on a terminal that answers nothing: before it has to draw, it
// must not query the terminal, and it must see the terminal as it is.
func TestQuiet(t *testing.T) {
	master, slave := pseudoTerminal(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); name != "CI" && name != "TERM" {
			c.Env = append(c.Env, e)
		}
	}
	c.Env = append(c.Env, childOf+"=1", "TERM=xterm-256color")
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	if err := slave.Close(); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	_, _ = got.ReadFrom(master) // it ends with an error when the other side is closed
	if want := "TERM is xterm-256color\r\n"; got.String() != want {
		t.Errorf("a command that draws nothing wrote %q to the terminal, not %q", got.String(), want)
	}
}

// pseudoTerminal opens both sides of a pseudo-terminal.
func pseudoTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	return master, slave
}
