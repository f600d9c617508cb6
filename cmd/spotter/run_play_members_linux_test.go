package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/spotter-dev/spotter/test/play/faults"
	"github.com/spotter-dev/spotter/test/play/watch"
	"github.com/spotter-dev/spotter/test/testenv"
)

// A member is a replica of the controller behind a proxy of its own.
type member struct {
	stage
	name   string
	record string
	trace  string
	proxy  *faults.Proxy
	run    *replica
	ended  time.Time // when it was seen to have ended; zero while it runs
	down   bool      // it is not started again
}

// join adds a replica of the release of a stage, which keep starts unless it is down.
func (p *play) join(t *testing.T, name string, of stage, access *rest.Config, down bool) *member {
	t.Helper()
	proxy, err := faults.New(access)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	m := &member{stage: of, name: name, proxy: proxy, trace: p.trace, record: filepath.Join(t.TempDir(), "steps-"+name), down: down}
	m.kubeconfig = testenv.Kubeconfig(t, &rest.Config{Host: proxy.URL()})
	p.members = append(p.members, m)
	return m
}

// begin starts the replica. It takes the time of the API server then, whatever that is, so
// that this is the right one.
func (m *member) begin(t *testing.T) {
	t.Helper()
	m.ended = time.Time{}
	m.proxy.Shift(0, 0)
	m.run = m.start(t, "policies: manifest", "mode: active", "prices: {trace: "+m.trace+", regions: [us-east-1]}",
		"recording: {dir: "+m.record+"}", "stepInterval: 5s")
}

// runs reports whether the replica was not seen to have ended.
func (m *member) runs() bool { return m.run != nil && m.ended.IsZero() }

// kill ends the replica without asking it. It may be called by the proxy.
func (m *member) kill() func() {
	process := m.run.Cmd.Process
	return func() { _ = process.Kill() }
}

// heal ends what its proxy does, but for what the watcher knows to end by itself.
func (m *member) heal() {
	m.proxy.Part(false)
	m.proxy.Answer(0, 0)
	m.proxy.Shift(0, 0)
	m.proxy.Strike(0, false, nil)
}

// end asks the replica to end, and waits for it.
func (m *member) end(t *testing.T) {
	t.Helper()
	if m.run == nil {
		return
	}
	_ = m.run.Cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	if m.ended.IsZero() {
		<-m.run.End
	}
	m.sound(t)
}

// sound fails the test if the replica panicked.
func (m *member) sound(t *testing.T) {
	t.Helper()
	if said := m.run.Said(); strings.Contains(said, "\ngoroutine ") {
		t.Errorf("replica %s panicked", m.name)
	}
}

// keep starts replicas again a second after they ended, as Kubernetes does, and ends
// faults whose time has come.
func (p *play) keep(t *testing.T) {
	t.Helper()
	for _, m := range p.members {
		if m.runs() {
			select {
			case <-m.run.End:
				m.ended = time.Now()
				m.sound(t)
			default:
			}
		} else if !m.down && time.Since(m.ended) > time.Second {
			m.begin(t)
		}
	}
	for i := 0; i < len(p.heals); {
		if h := p.heals[i]; time.Now().After(h.at) {
			p.heals = append(p.heals[:i], p.heals[i+1:]...)
			h.f(t)
			continue
		}
		i++
	}
}

// asWatcher has this test binary be the watcher, with its options.
const asWatcher = "SPOTTER_TEST_WATCHER"

func init() {
	if text := os.Getenv(asWatcher); text != "" {
		var o watch.Options
		err := json.Unmarshal([]byte(text), &o)
		if err == nil {
			err = watch.Run(context.Background(), o, os.Stdin, os.Stdout)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// A watcher is the process that watches.
type watcher struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// watch starts the watcher.
func (p *play) watch(t *testing.T) {
	t.Helper()
	cfg := watch.DefaultConfig()
	cfg.Namespace, cfg.Quiet = p.namespace, *playQuiet
	cfg.Releases = map[string]string{"spotter": p.namespace, secondUser: p.second.namespace}
	o, err := json.Marshal(watch.Options{Config: cfg, Kubeconfig: p.env.Kubeconfig,
		AuditLog: filepath.Join(p.env.Dir, "audit.log"), Unseen: 90 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	w := &watcher{cmd: exec.Command(p.binary)}
	w.cmd.Env = append(os.Environ(), asWatcher+"="+string(o))
	w.cmd.Stderr = os.Stderr
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.out = bufio.NewScanner(out)
	p.watcher = w
	t.Cleanup(func() { _ = w.cmd.Process.Kill() })
	w.order(t, watch.OrderRest) // it reads the audit log once it answers
}

// order has the watcher look, and fails the test for each of its findings so far.
func (w *watcher) order(t *testing.T, what string) {
	t.Helper()
	if _, err := fmt.Fprintln(w.in, what); err != nil {
		t.Fatalf("the watcher has ended: %v", err)
	}
	for w.out.Scan() {
		if seen, done := strings.CutPrefix(w.out.Text(), "done: "); done {
			t.Logf("the watcher looks (%s): %s", what, seen)
			return
		}
		t.Errorf("found: %s", w.out.Text())
	}
	t.Fatal("the watcher has ended")
}

// end ends the watcher.
func (w *watcher) end(t *testing.T) {
	t.Helper()
	_ = w.in.Close()
	for w.out.Scan() {
		t.Errorf("found: %s", w.out.Text())
	}
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("the watcher says %v", err)
	}
}
