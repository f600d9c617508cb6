package install

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"
)

// tail is how much of what was shown last is looked at, in bytes: some screens.
const tail = 64 << 10

// onTerminal runs c on a terminal of 40 lines and 120 columns until it shows want, a regular
// expression, types keys, and waits for its end.
func onTerminal(t *testing.T, c *exec.Cmd, want, keys string) error {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120}); err != nil {
		t.Fatal(err)
	}
	c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_ = slave.Close()
	var mu sync.Mutex
	var shown bytes.Buffer
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			mu.Lock()
			shown.Write(buffer[:n])
			mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		mu.Lock()
		text := ansi.Strip(string(shown.Bytes()[max(0, shown.Len()-tail):]))
		mu.Unlock()
		if regexp.MustCompile(want).MatchString(text) {
			break
		}
		if time.Now().After(end) {
			_ = c.Process.Kill()
			t.Fatalf("%q is not shown; what is ends with\n%s", want, text[max(0, len(text)-2000):])
		}
	}
	if _, err := master.WriteString(keys); err != nil {
		t.Fatal(err)
	}
	return c.Wait()
}
