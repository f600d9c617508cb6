package limit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
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
		f(t, l, s, &transport{limiter: l, next: s}, &transport{limiter: l, next: s, rank: urgent})
	})
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

// TestRule19Rate holds the pace: 50 writes at once, and then 5 a second.
func TestRule19Rate(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Kept, cfg.Reserved = 0, 0
	inBubble(t, cfg, func(t *testing.T, l *Limiter, s *server, ordinary, _ *transport) {
		start := time.Now()
		var wait sync.WaitGroup
		for i := range 100 {
			wait.Go(func() {
				method := []string{"POST", "PUT", "PATCH", "DELETE"}[i%4]
				if _, err := send(ordinary, method, "/api/v1/namespaces/a/pods"); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		for n, r := range s.came {
			want := time.Duration(max(0, n-49)) * 200 * time.Millisecond
			if got := r.at.Sub(start); (got - want).Abs() > time.Millisecond {
				t.Fatalf("write %d was sent after %v, want %v", n+1, got, want)
			}
		}
		total := uint64(0)
		for _, c := range l.Counts() {
			if c.Writes != 25 {
				t.Errorf("%s: %d writes", c.Verb, c.Writes)
			}
			total += c.Writes
		}
		if total != 100 {
			t.Errorf("%d writes were counted", total)
		}
	})
}

// TestRule19Passes holds what never waits: reads, what changes nothing, and
// Leases, without which the leader would be lost.
func TestRule19Passes(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Burst, cfg.Kept, cfg.Reserved, cfg.Rate = 1, 0, 0, 0.001
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

// TestRule19Urgent holds that drains under a notice go first, also before those
// who have waited longer, and that the rest go in the order in which they came.
func TestRule19Urgent(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Burst, cfg.Kept, cfg.Reserved, cfg.Rate = 1, 0, 0, 1
	inBubble(t, cfg, func(t *testing.T, l *Limiter, s *server, ordinary, urgent *transport) {
		var wait sync.WaitGroup
		for i, x := range []*transport{ordinary, ordinary, ordinary, urgent, urgent} {
			wait.Go(func() {
				if _, err := send(x, "PATCH", fmt.Sprintf("/%d", i)); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		wait.Wait()
		var order []string
		for _, r := range s.came {
			order = append(order, r.what)
		}
		if want := "[PATCH /0 PATCH /3 PATCH /4 PATCH /1 PATCH /2]"; fmt.Sprint(order) != want {
			t.Errorf("sent in the order %v, want %s", order, want)
		}
		if c := l.Counts()[0]; c.Urgent != 2 || c.Waited != 10*time.Second {
			t.Errorf("counted %+v, want 2 urgent ones and 1+2+3+4 s waited", c)
		}
	})
}

// TestRule19Ahead holds that what a step waits for goes before all others and without
// waiting while they wait, that no more than the burst goes at once with it, and that the
// rate is that of all together.
func TestRule19Ahead(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Kept, cfg.Reserved = 20, 20 // of 50 at once
	inBubble(t, cfg, func(t *testing.T, l *Limiter, s *server, ordinary, urgent *transport) {
		first := &transport{limiter: l, next: s, rank: ahead}
		start := time.Now()
		var wait sync.WaitGroup
		for i := range 60 {
			x := ordinary
			if i%2 == 0 {
				x = urgent
			}
			wait.Go(func() {
				if _, err := send(x, "PATCH", "/other"); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if n := len(s.came); n != 30 {
			t.Fatalf("%d others were sent at once, want 30", n)
		}
		for i := range 21 {
			if _, err := send(first, "PUT", "/memory"); err != nil {
				t.Fatal(err)
			}
			want := time.Duration(max(0, i-19)) * 200 * time.Millisecond
			if got := time.Since(start); got != want {
				t.Fatalf("write %d ahead was sent after %v, want %v", i+1, got, want)
			}
		}
		wait.Wait()
		for n, r := range s.came {
			least := time.Duration(max(0, n-49)) * 200 * time.Millisecond
			if got := r.at.Sub(start); got < least {
				t.Fatalf("write %d was sent after %v: more than 50 at once and 5 a second", n+1, got)
			}
		}
		if got := s.came[len(s.came)-1].at.Sub(start); got != (81-30)*200*time.Millisecond {
			t.Errorf("the last was sent after %v: what went ahead is not paid back", got)
		}
	})
}

// TestRule19Reserved holds that what is urgent need not wait because all others have
// written as much as they may, and leaves enough for what goes ahead.
func TestRule19Reserved(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Burst, cfg.Kept, cfg.Reserved = 50, 40, 20
	inBubble(t, cfg, func(t *testing.T, l *Limiter, s *server, ordinary, urgent *transport) {
		first := &transport{limiter: l, next: s, rank: ahead}
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		most := 0
		for _, x := range []struct {
			name   string
			sender *transport
			free   int // writes that do not wait
		}{{"ordinary", ordinary, 10}, {"urgent", urgent, 20}, {"ahead", first, 20}} {
			for range x.free + 7 { // the last of which wait until the end of ctx
				wait.Go(func() {
					if r, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://server/"+x.name, nil); err != nil {
						t.Error(err)
					} else if resp, err := x.sender.RoundTrip(r); err == nil {
						_ = resp.Body.Close()
					}
				})
			}
			synctest.Wait()
			if most += x.free; len(s.came) != most {
				t.Errorf("with those that are %s %d were sent at once, want %d", x.name, len(s.came), most)
			}
		}
		cancel()
		wait.Wait()
		if got := time.Since(start); got != 0 {
			t.Errorf("it took %v", got)
		}
	})
}

// TestRule19Hasten holds that all may use what is kept from them while they are hastened,
// those too that wait already, no more than that, and none of it afterwards.
func TestRule19Hasten(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Burst, cfg.Kept, cfg.Reserved = 50, 40, 20
	inBubble(t, cfg, func(t *testing.T, l *Limiter, s *server, ordinary, _ *transport) {
		start := time.Now()
		var wait sync.WaitGroup
		write := func(n int) {
			for range n {
				wait.Go(func() {
					if _, err := send(ordinary, "PATCH", "/node"); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
		}
		write(40)
		if n := len(s.came); n != 10 {
			t.Fatalf("%d were sent at once, want 10", n)
		}
		end := l.Hasten()
		synctest.Wait()
		if n := len(s.came); n != 40 || time.Since(start) != 0 {
			t.Errorf("hastened %d are sent after %v, want the 40 that there are at once", n, time.Since(start))
		}
		write(12)
		if n := len(s.came); n != 50 {
			t.Errorf("hastened %d are sent, want the burst of 50", n)
		}
		end()
		end() // twice is once
		wait.Wait()
		if got := time.Since(start); got != (52-10)*200*time.Millisecond {
			t.Errorf("the last was sent after %v: what was hastened is not paid back", got)
		}
		inner, outer := l.Hasten(), l.Hasten()
		inner()
		write(40)
		if n := len(s.came); n != 52+40 {
			t.Errorf("%d are sent while one of two still hastens, want %d", n, 52+40)
		}
		outer()
		wait.Wait()
	})
}

// TestRule19Leases holds that Leases never wait and that the rate is that of all writes,
// theirs included.
func TestRule19Leases(t *testing.T) {
	cfg := DefaultConfig()
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
		if n, most := len(s.came), cfg.Burst-cfg.Kept+60*5+1; n > most || n < most-5 {
			t.Errorf("%d writes in a minute, want the %d of the rate after a quiet time", n, most)
		}
	})
}

// TestRule19RetryAfter holds that an overloaded server is left alone for as long
// as it asks, and that the answer of a disruption budget concerns one pod only.
func TestRule19RetryAfter(t *testing.T) {
	for _, x := range []struct {
		name, url   string
		code        int
		contentType string
		pause       time.Duration
		header      bool // the caller still sees Retry-After
	}{
		{"overloaded", "/api/v1/nodes/a", 429, "text/plain; charset=utf-8", 7 * time.Second, true},
		{"unavailable", "/api/v1/nodes/a", 503, "application/json", 7 * time.Second, true},
		{"budget", "/api/v1/namespaces/a/pods/p/eviction", 429, "application/json", 0, false},
		{"overloaded at an eviction", "/api/v1/namespaces/a/pods/p/eviction", 429, "text/plain; charset=utf-8", 7 * time.Second, false},
		{"rehearsed eviction", "/api/v1/namespaces/a/pods/p/eviction?dryRun=All", 429, "application/json", 0, false},
		{"conflict", "/api/v1/nodes/a", 409, "application/json", 0, true},
	} {
		inBubble(t, DefaultConfig(), func(t *testing.T, _ *Limiter, s *server, ordinary, urgent *transport) {
			s.answer = func(*http.Request) *http.Response {
				return respond(x.code, map[string]string{"Retry-After": "7", "Content-Type": x.contentType})
			}
			header, err := send(ordinary, "POST", x.url)
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
			if got := time.Since(start); got != x.pause {
				t.Errorf("%s: the next write waited for %v, want %v", x.name, got, x.pause)
			}
		})
	}
}

// Who gives up waiting is forgotten, and does not hold up the others.
func TestGivingUp(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Burst, cfg.Kept, cfg.Reserved, cfg.Rate = 1, 0, 0, 0.1
	inBubble(t, cfg, func(t *testing.T, l *Limiter, s *server, ordinary, urgent *transport) {
		if _, err := send(ordinary, "POST", "/0"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		closed := &body{}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://server/1", closed)
		if err != nil {
			t.Fatal(err)
		}
		var wait sync.WaitGroup
		wait.Go(func() {
			if _, err := urgent.RoundTrip(r); !errors.Is(err, context.DeadlineExceeded) { //nolint:bodyclose // there is no answer
				t.Errorf("it ended with %v", err)
			}
		})
		synctest.Wait()
		wait.Go(func() {
			if _, err := send(ordinary, "POST", "/2"); err != nil {
				t.Error(err)
			}
		})
		wait.Wait()
		if !closed.closed {
			t.Error("the body of the request was not closed")
		}
		if len(s.came) != 2 || s.came[1].at.Sub(s.came[0].at) != 10*time.Second {
			t.Errorf("sent %v", s.came)
		}
		if l.head() != nil {
			t.Error("somebody is still waiting")
		}
	})
}

type body struct{ closed bool }

func (b *body) Read([]byte) (int, error) { return 0, io.EOF }
func (b *body) Close() error             { b.closed = true; return nil }

// TestClient has client-go itself write through the limiter: an eviction that a
// budget refuses comes back at once, with the time to wait in its status.
func TestClient(t *testing.T) {
	http429 := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,"details":{"retryAfterSeconds":10}}`
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "10")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, http429)
	}))
	defer s.Close()
	l, err := New(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	cfg := &rest.Config{Host: s.URL, QPS: 1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	c, err := kubernetes.NewForConfig(l.Wrap(cfg, false))
	if err != nil {
		t.Fatal(err)
	}
	err = c.CoreV1().RESTClient().Post().Namespace("a").Resource("pods").Name("p").SubResource("eviction").
		Body(&metav1.Status{}).Do(t.Context()).Into(&corev1.Pod{})
	if seconds, ok := apierrors.SuggestsClientDelay(err); !ok || seconds != 10 || asked != 1 {
		t.Errorf("asked %d times, with %v", asked, err)
	}
	if cfg.QPS != 1 || cfg.WrapTransport != nil {
		t.Error("the configuration that was given was changed")
	}
}

func TestConfig(t *testing.T) {
	for _, x := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Rate = 0 }, "limit: rate 0 is not above 0"},
		{func(c *Config) { c.Burst = 0 }, "limit: burst 0 is less than 1"},
		{func(c *Config) { c.Kept = -1 }, "limit: kept -1 is not between 0 and burst 50"},
		{func(c *Config) { c.Kept = 50 }, "limit: kept 50 is not between 0 and burst 50"},
		{func(c *Config) { c.Reserved = -1 }, "limit: reserved -1 is not between 0 and kept 40"},
		{func(c *Config) { c.Reserved = 41 }, "limit: reserved 41 is not between 0 and kept 40"},
		{func(c *Config) { c.PauseMax = -1 }, "limit: pause max -1ns is negative"},
		{func(c *Config) { c.Clock = nil }, "limit: clock is not set"},
	} {
		cfg := DefaultConfig()
		x.change(&cfg)
		if _, err := New(cfg); err == nil || err.Error() != x.want {
			t.Errorf("%v, want %s", err, x.want)
		}
	}
}
