package eval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/report"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/sim"
)

// A server serves the report of the runs that are done so far to browsers on this machine. It is
// safe for concurrent use.
type server struct {
	cfg eval.Config

	mu   sync.Mutex
	done map[eval.Job]outcome
}

// An outcome is the result of a run.
type outcome struct {
	result *sim.Result
	err    error
}

// loopback returns the loopback address for text, such as :PORT, localhost:PORT or 127.0.0.1:PORT.
// Port 0 means any free port.
func loopback(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", err
	}
	if !isLoopback(host) && host != "" {
		return "", fmt.Errorf("%s is not a loopback address", host)
	}
	if host == "" || host == "localhost" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// serve starts serving the report of cfg. It records the runs of the runner that it returns, and
// serves until stop is called.
func (f *evalFlags) serve(p *cli.Program, cfg *eval.Config, run eval.Runner) (eval.Runner, func(), error) {
	if !f.given("serve") {
		return run, func() {}, nil
	}
	const advice = "give a port of this machine, as --serve=:8080, or --serve alone for one that is free"
	if f.merged != nil {
		return nil, nil, cli.Invalid(errors.New("--serve: nothing is run for a merge"), "leave --serve out")
	}
	address, err := loopback(f.serveAt)
	if err != nil {
		return nil, nil, cli.Invalid(fmt.Errorf("--serve: %q: %w", f.serveAt, err), advice)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, nil, cli.Invalid(fmt.Errorf("--serve: %w", err), advice)
	}
	s := &server{cfg: *cfg, done: map[eval.Job]outcome{}}
	h := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go h.Serve(listener) //nolint:errcheck // it ends when it is closed
	fmt.Fprintf(p.Stderr, "report of the runs so far at http://%s\n", listener.Addr())
	return s.noting(run), func() { h.Close() }, nil
}

// noting returns a runner that calls run and records its outcomes.
func (s *server) noting(run eval.Runner) eval.Runner {
	return func(ctx context.Context, j eval.Job) (*sim.Result, error) {
		r, err := run(ctx, j)
		if ctx.Err() == nil {
			s.mu.Lock()
			s.done[j] = outcome{r, err}
			s.mu.Unlock()
		}
		return r, err
	}
}

// ServeHTTP writes the report so far. A request with another host name comes from a page elsewhere
// whose name resolves to this machine (DNS rebinding), and is refused.
func (s *server) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	host, _, err := net.SplitHostPort(q.Host)
	if err != nil {
		host = q.Host
	}
	switch {
	case !isLoopback(host):
		http.Error(w, "this report is for the machine that it runs on", http.StatusForbidden)
		return
	case q.URL.Path != "/":
		http.NotFound(w, q)
		return
	case q.Method != http.MethodGet && q.Method != http.MethodHead:
		http.Error(w, "a report can only be read", http.StatusMethodNotAllowed)
		return
	}
	var page bytes.Buffer
	r, err := eval.Interim(s.cfg, s.outcome)
	if err == nil {
		err = report.Write(&page, r, report.Options{Running: true})
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Write(page.Bytes()) //nolint:errcheck // a browser that is gone needs no page
}

// outcome returns the result of the run of j, or false if it is not done.
func (s *server) outcome(j eval.Job) (*sim.Result, error, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.done[j]
	return o.result, o.err, ok
}
