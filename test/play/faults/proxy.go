// Package faults stands between a controller and the API server and misbehaves as
// networks and servers do.
package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// A Proxy passes requests on to an API server, as the user of its configuration. It
// listens without TLS, at an address of this machine.
type Proxy struct {
	server *httptest.Server
	pass   http.Handler

	mu     sync.Mutex
	cut    context.CancelFunc // ends what is under way; replaced by each partition
	epoch  context.Context
	apart  bool
	answer int       // of writes until until; 0 answers none
	until  time.Time // with a Retry-After of a second
	nth    int       // of the next writes, at which strike is called; 0 calls none
	after  bool      // strike once the API server has answered
	strike func()
	writes int

	unread      string // reads of an object whose path ends so are answered by unreadBy until unreadUntil
	unreadBy    int    // a status; 0 answers none
	unreadUntil time.Time

	shift      time.Duration // of the time in answers until shiftUntil
	shiftUntil time.Time
}

// New returns a proxy to the API server of cfg. Close ends it.
func New(cfg *rest.Config) (*Proxy, error) {
	to, err := url.Parse(cfg.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("proxy to %s: %w", cfg.Host, err)
	}
	p := &Proxy{}
	p.pass = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: transport, FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error { p.date(r.Header); return nil },
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // the connection breaks, as to a server that is gone
	}
	p.epoch, p.cut = context.WithCancel(context.Background())
	p.server = httptest.NewServer(p)
	return p, nil
}

// URL is where the proxy listens.
func (p *Proxy) URL() string { return p.server.URL }

// Close ends the proxy and what is under way.
func (p *Proxy) Close() {
	p.Part(true)
	p.server.Close()
}

// Part takes the controller and the API server apart, or brings them together again.
// What is under way ends, and nothing else gets through.
func (p *Proxy) Part(apart bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.apart = apart
	if apart {
		p.cut()
		return
	}
	p.epoch, p.cut = context.WithCancel(context.Background())
}

// Answer has all writes but those of Leases answered by a status, such as 429 or 500, and
// with a Retry-After of a second, for a time.
func (p *Proxy) Answer(status int, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer, p.until = status, time.Now().Add(d)
}

// Unread has reads of the object whose path ends so answered by a status, such as 403, for a time; 0 answers none of them.
func (p *Proxy) Unread(path string, status int, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unread, p.unreadBy, p.unreadUntil = path, status, time.Now().Add(d)
}

// Shift has the time that answers give be another one for a while, as that of a server whose
// clock was set.
func (p *Proxy) Shift(by, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shift, p.shiftUntil = by, time.Now().Add(d)
}

// date writes the time of an answer.
func (p *Proxy) date(h http.Header) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Before(p.shiftUntil) {
		h.Set("Date", now.Add(p.shift).UTC().Format(http.TimeFormat))
	}
}

// Strike calls f at the nth write from now on: before it is passed on, or after it has
// been done and before its answer is. Its answer never comes. 0 strikes no more.
func (p *Proxy) Strike(nth int, after bool, f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nth, p.after, p.strike = nth, after, f
}

// Writes returns how many writes came so far, without those of Leases.
func (p *Proxy) Writes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writes
}

// A fate is what becomes of a request.
type fate struct {
	epoch  context.Context
	apart  bool
	answer int
	strike func()
	after  bool
	silent bool // no answer comes until the caller gives up
}

// fateOf decides what becomes of a request.
func (p *Proxy) fateOf(r *http.Request) fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := fate{epoch: p.epoch, apart: p.apart}
	if r.Method == http.MethodGet && p.unread != "" && strings.HasSuffix(r.URL.Path, p.unread) &&
		time.Now().Before(p.unreadUntil) {
		f.answer, f.silent = p.unreadBy, p.unreadBy == 0
	}
	if !counts(r) || p.apart {
		return f
	}
	p.writes++
	if time.Now().Before(p.until) {
		f.answer = p.answer
	}
	if p.nth > 0 {
		if p.nth--; p.nth == 0 {
			f.strike, f.after = p.strike, p.after
		}
	}
	return f
}

func counts(r *http.Request) bool {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return !strings.Contains(r.URL.Path, "/leases") && !strings.Contains(r.URL.Path, "reviews") &&
			r.URL.Query().Get("dryRun") == ""
	}
	return false
}

// errApart ends the requests in progress when a partition starts.
var errApart = errors.New("apart")

// ServeHTTP passes a request on, or does not.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f := p.fateOf(r)
	switch {
	case f.apart:
		panic(http.ErrAbortHandler)
	case f.strike != nil && !f.after:
		f.strike()
		panic(http.ErrAbortHandler)
	case f.silent:
		select {
		case <-r.Context().Done():
		case <-f.epoch.Done():
		}
		panic(http.ErrAbortHandler)
	case f.answer != 0:
		w.Header().Set("Retry-After", "1")
		p.date(w.Header())
		http.Error(w, http.StatusText(f.answer), f.answer)
		return
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(f.epoch, func() { cancel(errApart) })()
	r = r.WithContext(ctx)
	if f.strike != nil {
		p.pass.ServeHTTP(httptest.NewRecorder(), r)
		f.strike()
		panic(http.ErrAbortHandler)
	}
	p.pass.ServeHTTP(w, r)
}
