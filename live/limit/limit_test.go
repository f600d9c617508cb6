package limit

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A server answers requests and notes when they came.
type server struct {
	mu     sync.Mutex
	came   []request
	answer func(*http.Request) *http.Response // nil means 200
}

type request struct {
	what string
	at   time.Time
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.came = append(s.came, request{r.Method + " " + r.URL.Path, time.Now()})
	if s.answer != nil {
		if resp := s.answer(r); resp != nil {
			return resp, nil
		}
	}
	return respond(http.StatusOK, nil), nil
}

func respond(code int, header map[string]string) *http.Response {
	resp := &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}
	for k, v := range header {
		resp.Header.Set(k, v)
	}
	return resp
}

// inBubble gives f a limiter and its transports, where time is waited for.
func inBubble(t *testing.T, cfg Config, f func(t *testing.T, l *Limiter, s *server, ordinary, urgent *transport)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		s := &server{}
		f(t, l, s, &transport{limiter: l, next: s}, &transport{limiter: l, next: s, urgent: true})
	})
}

// sendAll sends n writes side by side, which wait then end.
func sendAll(t *testing.T, wait *sync.WaitGroup, x *transport, n int) {
	t.Helper()
	for range n {
		wait.Go(func() {
			if _, err := send(x, "PATCH", "/api/v1/nodes/a"); err != nil {
				t.Error(err)
			}
		})
	}
}

// send returns the header of the answer.
func send(t *transport, method, url string) (http.Header, error) {
	r, err := http.NewRequest(method, "http://server"+url, strings.NewReader("{}"))
	if err != nil {
		return nil, err
	}
	resp, err := t.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	return resp.Header, resp.Body.Close()
}

// TestRule19Rate holds the pace: 200 writes at once, and then 50 a second.
func TestRule19Rate(t *testing.T) {
	inBubble(t, DefaultConfig(), func(t *testing.T, l *Limiter, s *server, ordinary, _ *transport) {
		start := time.Now()
		var wait sync.WaitGroup
		for i := range 400 {
			wait.Go(func() {
				method := []string{"POST", "PUT", "PATCH", "DELETE"}[i%4]
				if _, err := send(ordinary, method, "/api/v1/namespaces/a/pods"); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		for n, r := range s.came {
			want := time.Duration(max(0, n-199)) * 20 * time.Millisecond
			if got := r.at.Sub(start); (got - want).Abs() > time.Millisecond {
				t.Fatalf("write %d was sent after %v, want %v", n+1, got, want)
			}
		}
		total := uint64(0)
		for _, c := range l.Counts() {
			if c.Writes != 100 {
				t.Errorf("%s: %d writes", c.Verb, c.Writes)
			}
			total += c.Writes
		}
		if total != 400 {
			t.Errorf("%d writes were counted", total)
		}
	})
}

// TestRule19Passes holds what never waits: reads, what changes nothing, and
// Leases, without which the leader would be lost.
func TestRule19Passes(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Burst, cfg.QPS = 1, 0.001
	inBubble(t, cfg, func(t *testing.T, l *Limiter, s *server, ordinary, _ *transport) {
		s.answer = func(r *http.Request) *http.Response {
			if strings.HasSuffix(r.URL.Path, "/pods") && r.Method == http.MethodPost {
				return respond(http.StatusTooManyRequests, map[string]string{"Retry-After": "30"})
			}
			return nil
		}
		if _, err := send(ordinary, "POST", "/api/v1/namespaces/a/pods"); err != nil { // takes the only token, and meets a pause
			t.Fatal(err)
		}
		start := time.Now()
		for _, x := range []struct{ method, url string }{
			{"GET", "/api/v1/pods"},
			{"PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/x"},
			{"POST", "/api/v1/namespaces/a/pods/p/eviction?dryRun=All"},
			{"POST", "/apis/authentication.k8s.io/v1/tokenreviews"},
			{"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews"},
		} {
			if _, err := send(ordinary, x.method, x.url); err != nil {
				t.Error(err)
			}
		}
		if waited := time.Since(start); waited > 0 {
			t.Errorf("they waited for %v", waited)
		}
		if got := fmt.Sprint(l.Counts()); !strings.Contains(got, "lease 1") || len(l.Counts()) != 2 {
			t.Errorf("counted %v", got)
		}
	})
}

// TestRule19Urgent holds that urgent writes do not wait, whoever waits already, that the
// rest go in the order in which they came, and that they make up for the urgent ones.
func TestRule19Urgent(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Burst, cfg.QPS = 5, 1
	inBubble(t, cfg, func(t *testing.T, l *Limiter, s *server, ordinary, urgent *transport) {
		start := time.Now()
		var wait sync.WaitGroup
		sendAll(t, &wait, ordinary, 5) // the burst
		synctest.Wait()
		for i := range 3 {
			wait.Go(func() {
				if _, err := send(ordinary, "PATCH", fmt.Sprintf("/%d", i)); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		sendAll(t, &wait, urgent, 2)
		synctest.Wait()
		s.mu.Lock()
		n := len(s.came)
		s.mu.Unlock()
		if passed := time.Since(start); n != 7 || passed != 0 {
			t.Errorf("%d writes were sent after %v, want the burst and the urgent ones at once", n, passed)
		}
		wait.Wait()
		var order []string
		for _, r := range s.came[7:] {
			order = append(order, fmt.Sprint(r.what, " ", r.at.Sub(start)))
		}
		if want := "[PATCH /0 1s PATCH /1 4s PATCH /2 5s]"; fmt.Sprint(order) != want {
			t.Errorf("the others were sent in the order %v, want %s", order, want)
		}
		if c := l.Counts()[0]; c.Urgent != 2 || c.Waited != 10*time.Second {
			t.Errorf("counted %+v, want 2 urgent ones and 1+4+5 s waited", c)
		}
	})
}

// TestRule19Debt holds that ordinary writes continue soon after a flood of urgent ones: they make
// up for no more than a burst, and the urgent ones are counted while others wait.
func TestRule19Debt(t *testing.T) {
	inBubble(t, DefaultConfig(), func(t *testing.T, _ *Limiter, s *server, ordinary, urgent *transport) {
		start := time.Now()
		var wait sync.WaitGroup
		sendAll(t, &wait, urgent, 5000)
		synctest.Wait()
		if n, passed := len(s.came), time.Since(start); n != 5000 || passed != 0 {
			t.Errorf("%d of 5000 urgent writes were sent after %v", n, passed)
		}
		sendAll(t, &wait, ordinary, 1)
		wait.Wait()
		if got, want := time.Since(start).Round(time.Millisecond), 201*20*time.Millisecond; got != want {
			t.Errorf("the next ordinary write was sent after %v, want %v", got, want)
		}
		start = time.Now()
		sendAll(t, &wait, ordinary, 500)
		synctest.Wait() // 499 of them queue behind one
		sendAll(t, &wait, urgent, 100)
		wait.Wait()
		if got, want := time.Since(start).Round(time.Millisecond), 600*20*time.Millisecond; got != want {
			t.Errorf("500 writes and 100 urgent ones took %v, want %v", got, want)
		}
	})
}

// TestRule19Settings holds that the bounds can be changed while writes wait.
func TestRule19Settings(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Burst, cfg.QPS = 1, 0.1
	inBubble(t, cfg, func(t *testing.T, l *Limiter, _ *server, ordinary, _ *transport) {
		start := time.Now()
		var wait sync.WaitGroup
		sendAll(t, &wait, ordinary, 102)
		synctest.Wait()
		if err := l.SetLimits(100, 10); err != nil {
			t.Fatal(err)
		}
		wait.Wait()
		if got := time.Since(start); got > 12*time.Second {
			t.Errorf("102 writes took %v at 100 a second, after one that waited for 10 s", got)
		}
		if err := l.SetLimits(0, 10); err == nil {
			t.Error("no writes a second are taken as a limit")
		}
	})
}

// TestRule19Leases holds that Leases never wait and that the rate is that of all writes,
// theirs included.
func TestRule19Leases(t *testing.T) {
	cfg := DefaultConfig()
	cfg.QPS, cfg.Burst = 5, 10
	inBubble(t, cfg, func(t *testing.T, _ *Limiter, s *server, ordinary, _ *transport) {
		start := time.Now()
		var wait sync.WaitGroup
		wait.Go(func() {
			for range 60 {
				asked := time.Now()
				if _, err := send(ordinary, "PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/x"); err != nil {
					t.Error(err)
				}
				if waited := time.Since(asked); waited != 0 {
					t.Errorf("the lease waited for %v", waited)
				}
				time.Sleep(time.Second)
			}
		})
		for time.Since(start) < time.Minute {
			if _, err := send(ordinary, "PATCH", "/api/v1/nodes/a"); err != nil {
				t.Fatal(err)
			}
		}
		wait.Wait()
		if n, most := len(s.came), cfg.Burst+60*5+1; n > most || n < most-5 {
			t.Errorf("%d writes in a minute, want the %d of the rate after a quiet time", n, most)
		}
	})
}

// TestRule19RetryAfter holds that an overloaded server is left alone for as long as it
// asks by all that can wait and by the request itself, and that the answer of
// a disruption budget concerns one pod only.
func TestRule19RetryAfter(t *testing.T) {
	for _, x := range []struct {
		name, url   string
		code        int
		contentType string
		pause       time.Duration
		header      bool // client-go sends it again after Retry-After
	}{
		{"overloaded", "/api/v1/nodes/a", 429, "text/plain; charset=utf-8", 7 * time.Second, true},
		{"unavailable", "/api/v1/nodes/a", 503, "application/json", 7 * time.Second, true},
		{"budget", "/api/v1/namespaces/a/pods/p/eviction", 429, "application/json", 0, false},
		{"overloaded at an eviction", "/api/v1/namespaces/a/pods/p/eviction", 429, "text/plain; charset=utf-8", 7 * time.Second, true},
		{"rehearsed eviction", "/api/v1/namespaces/a/pods/p/eviction?dryRun=All", 429, "application/json", 0, false},
		{"conflict", "/api/v1/nodes/a", 409, "application/json", 0, true},
	} {
		inBubble(t, DefaultConfig(), func(t *testing.T, _ *Limiter, s *server, ordinary, urgent *transport) {
			s.answer = func(*http.Request) *http.Response {
				return respond(x.code, map[string]string{"Retry-After": "7", "Content-Type": x.contentType})
			}
			header, err := send(urgent, "POST", x.url)
			if err != nil {
				t.Fatal(err)
			}
			if got := header.Get("Retry-After") != ""; got != x.header {
				t.Errorf("%s: the caller sees Retry-After %t, want %t", x.name, got, x.header)
			}
			s.answer = nil
			start := time.Now()
			if _, err := send(urgent, "PATCH", "/api/v1/nodes/b"); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(start); got != 0 {
				t.Errorf("%s: the next urgent write waited for %v", x.name, got)
			}
			if _, err := send(ordinary, "PATCH", "/api/v1/nodes/b"); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(start); got != x.pause {
				t.Errorf("%s: the next ordinary write waited for %v, want %v", x.name, got, x.pause)
			}
		})
	}
}

// TestRule19AfterPause holds that writes that wait through a pause are not all sent at its
// end, and that a pause ends.
func TestRule19AfterPause(t *testing.T) {
	cfg := DefaultConfig()
	cfg.QPS, cfg.Burst = 1, 2
	inBubble(t, cfg, func(t *testing.T, l *Limiter, s *server, ordinary, _ *transport) {
		start := time.Now()
		l.throttled("PATCH", time.Hour)
		var wait sync.WaitGroup
		sendAll(t, &wait, ordinary, 4)
		wait.Wait()
		var at []time.Duration
		for _, r := range s.came {
			at = append(at, r.at.Sub(start))
		}
		if want := "[30s 30s 31s 32s]"; fmt.Sprint(at) != want {
			t.Errorf("sent at %v, want %s", at, want)
		}
		start = time.Now()
		sendAll(t, &wait, ordinary, 1) // waits for a token
		synctest.Wait()
		l.throttled("PATCH", 7*time.Second)
		wait.Wait()
		if got := time.Since(start); got != 7*time.Second {
			t.Errorf("a write that waited when the pause began was sent after %v", got)
		}
	})
}

func TestConfig(t *testing.T) {
	for _, x := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.QPS = 0 }, "limit: QPS 0 is not above 0"},
		{func(c *Config) { c.QPS = math.NaN() }, "limit: QPS NaN is not above 0"},
		{func(c *Config) { c.Burst = 0 }, "limit: burst 0 is less than 1"},
	} {
		cfg := DefaultConfig()
		x.change(&cfg)
		if _, err := New(cfg); err == nil || err.Error() != x.want {
			t.Errorf("%v, want %s", err, x.want)
		}
	}
}
