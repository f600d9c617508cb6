package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A webhook takes requests, and answers each as the test says.
type webhook struct {
	mu      sync.Mutex
	answers []func(http.ResponseWriter, *http.Request) // of the next requests; then 204
	bodies  []string
	headers []http.Header
}

func (h *webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	h.bodies, h.headers = append(h.bodies, string(body)), append(h.headers, r.Header)
	answer := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }
	if len(h.answers) > 0 {
		answer, h.answers = h.answers[0], h.answers[1:]
	}
	h.mu.Unlock()
	answer(w, r)
}

func (h *webhook) got() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.bodies)
}

func status(code int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// hang answers once its client has gone.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// A fixture is a sender to a webhook, with short times, and what became of its events.
type fixture struct {
	*Sender
	hook     *webhook
	mu       sync.Mutex
	outcomes []string
	log      bytes.Buffer
	stop     func()
}

func newFixture(t *testing.T, change func(*Config)) *fixture {
	t.Helper()
	f := &fixture{hook: &webhook{}}
	server := httptest.NewServer(f.hook)
	cfg := DefaultConfig()
	cfg.URL, cfg.Source = server.URL+"/hook?token=s3cret", "/spotter/test"
	cfg.Timeout, cfg.RetryMin, cfg.RetryMax, cfg.Tries = 200*time.Millisecond, time.Millisecond, 20*time.Millisecond, 3
	cfg.Counted = func(outcome string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.outcomes = append(f.outcomes, outcome)
	}
	cfg.Log = slog.New(slog.NewTextHandler(&f.log, nil))
	if change != nil {
		change(&cfg)
	}
	f.Sender = New(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = f.Run(ctx) }()
	f.stop = func() { cancel(); <-done }
	t.Cleanup(func() { f.stop(); server.CloseClientConnections(); server.Close() })
	return f
}

func (f *fixture) await(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		f.mu.Lock()
		got = slices.Clone(f.outcomes)
		f.mu.Unlock()
		if slices.Equal(got, want) {
			return
		}
	}
	t.Fatalf("outcomes %q, want %q", got, want)
}

// TestStructuredMode: a request holds one event with all that CloudEvents 1.0 requires.
func TestStructuredMode(t *testing.T) {
	file := filepath.Join(t.TempDir(), "header")
	if err := os.WriteFile(file, []byte("Bearer one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, func(c *Config) { c.Header, c.HeaderFile = "X-Token", file })
	f.Notify(Event{KillSwitchChanged, "spotter-kill-switch", map[string]bool{"on": true}})
	f.await(t, "sent")
	if err := os.WriteFile(file, []byte("Bearer two"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.Notify(Event{DrainUndone, "n1", nil})
	f.await(t, "sent", "sent")
	var first, second map[string]any
	for i, into := range []*map[string]any{&first, &second} {
		if err := json.Unmarshal([]byte(f.hook.got()[i]), into); err != nil {
			t.Fatal(err)
		}
	}
	for key, want := range map[string]string{
		"specversion": "1.0", "source": "/spotter/test", "type": "dev.spotter.killswitch.changed", "subject": "spotter-kill-switch", "datacontenttype": "application/json",
	} {
		if first[key] != want {
			t.Errorf("%s is %v, want %s", key, first[key], want)
		}
	}
	if _, err := time.Parse(time.RFC3339Nano, first["time"].(string)); err != nil || first["data"].(map[string]any)["on"] != true {
		t.Errorf("%v: %v", first, err)
	}
	if first["id"] == "" || first["id"] == second["id"] {
		t.Errorf("identifiers %v and %v", first["id"], second["id"])
	}
	if h := f.hook.headers; h[0].Get("Content-Type") != "application/cloudevents+json; charset=UTF-8" ||
		h[0].Get("X-Token") != "Bearer one" || h[1].Get("X-Token") != "Bearer two" {
		t.Errorf("headers %v", h)
	}
}

// TestRetries: an event is sent again, with its identifier, while the webhook fails, hangs or
// wants less, and never where it refuses the event itself.
func TestRetries(t *testing.T) {
	redirect := func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }
	late := func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusOK)
	}
	busy := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	for name, c := range map[string]struct {
		answers []func(http.ResponseWriter, *http.Request)
		outcome string
		tries   int
	}{
		"fails once":    {[]func(http.ResponseWriter, *http.Request){status(503)}, "sent", 2},
		"hangs once":    {[]func(http.ResponseWriter, *http.Request){hang}, "sent", 2},
		"late":          {[]func(http.ResponseWriter, *http.Request){late}, "sent", 1},
		"busy":          {[]func(http.ResponseWriter, *http.Request){busy}, "sent", 2},
		"token rotated": {[]func(http.ResponseWriter, *http.Request){status(401)}, "sent", 2},
		"down":          {[]func(http.ResponseWriter, *http.Request){status(500), hang, status(502)}, DroppedFailed, 3},
		"refuses":       {[]func(http.ResponseWriter, *http.Request){status(400)}, DroppedRefused, 1},
		"is gone":       {[]func(http.ResponseWriter, *http.Request){status(410)}, DroppedRefused, 1},
		"leads astray":  {[]func(http.ResponseWriter, *http.Request){redirect}, DroppedRefused, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			f.hook.answers = c.answers
			f.Notify(Event{RampChanged, "web", 1})
			f.await(t, c.outcome)
			got := f.hook.got()
			if len(got) != c.tries {
				t.Errorf("sent %d times, want %d", len(got), c.tries)
			}
			if slices.Sort(got); len(slices.Compact(got)) != 1 {
				t.Errorf("the tries differ: %q", got)
			}
			f.stop()
			if strings.Contains(f.log.String(), "s3cret") {
				t.Errorf("the log shows the URL: %s", f.log.String())
			}
		})
	}
}

// TestNeverBlocks: while the webhook hangs events are dropped and counted, and no caller waits.
func TestNeverBlocks(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.QueueMax, c.Timeout = 4, 10*time.Second })
	release := make(chan struct{})
	f.hook.answers = []func(http.ResponseWriter, *http.Request){func(w http.ResponseWriter, _ *http.Request) { <-release }}
	f.Notify(Event{GateChanged, "first", nil})
	for len(f.hook.got()) == 0 {
		time.Sleep(time.Millisecond)
	}
	for i := range 1000 { // one that waited for the webhook would wait for ever
		f.Notify(Event{GateChanged, fmt.Sprint(i), nil})
	}
	close(release)
	want := slices.Repeat([]string{DroppedFull}, 996)
	f.await(t, append(want, "sent", "sent", "sent", "sent", "sent")...)
}

// TestStops: what waits when the process ends is sent once more, and not waited for.
func TestStops(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.RetryMin, c.RetryMax = time.Hour, time.Hour })
	f.hook.answers = []func(http.ResponseWriter, *http.Request){status(500), status(204), status(204), status(500)}
	for i := range 3 {
		f.Notify(Event{GateChanged, fmt.Sprint(i), nil})
	}
	for len(f.hook.got()) == 0 {
		time.Sleep(time.Millisecond)
	}
	f.stop()
	f.await(t, "sent", "sent", DroppedStopping)

	var none *Sender
	none.Notify(Event{GateChanged, "x", nil})
}

// TestUnreadableHeader: an event is not sent without the header that it needs.
func TestUnreadableHeader(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.HeaderFile = filepath.Join(t.TempDir(), "missing") })
	f.Notify(Event{GateChanged, "x", nil})
	f.await(t, DroppedFailed)
	if n := len(f.hook.got()); n != 0 {
		t.Errorf("%d requests without the header", n)
	}
}
