package limit

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
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

// TestCheck holds that the permit of a write is checked after the wait, that nothing is sent when
// it is refused, and that its token is returned.
func TestCheck(t *testing.T) {
	refused := errors.New("refused")
	var asked []time.Time
	refuse := false
	cfg := Config{QPS: 0.1, Burst: 1, Check: func(context.Context, *http.Request) (time.Time, error) {
		asked = append(asked, time.Now())
		if refuse {
			return time.Time{}, refused
		}
		return time.Time{}, nil
	}}
	inBubble(t, cfg, func(t *testing.T, l *Limiter, s *server, ordinary, urgent *transport) {
		start := time.Now()
		for _, x := range []struct {
			sender *transport
			method string
			refuse bool
			after  time.Duration // since the start
			asked  int           // so far
		}{
			{ordinary, "POST", false, 0, 1},
			{ordinary, "POST", true, 10 * time.Second, 2},
			{ordinary, "POST", false, 10 * time.Second, 3}, // with the token of the one before
			{urgent, "POST", true, 10 * time.Second, 4},
			{ordinary, "POST", false, 20 * time.Second, 5},
			{ordinary, "GET", true, 20 * time.Second, 5}, // reads are not asked about
		} {
			refuse = x.refuse
			sent := len(s.came)
			closed := &body{}
			r, err := http.NewRequest(x.method, "http://server/api/v1/nodes/a", closed)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := x.sender.RoundTrip(r)
			if err == nil {
				_ = resp.Body.Close()
			}
			barred := x.refuse && x.method != "GET"
			if errors.Is(err, refused) != barred || (len(s.came) == sent) != barred || closed.closed != barred {
				t.Errorf("%+v: %d were sent, with %v", x, len(s.came)-sent, err)
			}
			if passed := time.Since(start); passed != x.after || len(asked) != x.asked || asked[len(asked)-1] != time.Now() {
				t.Errorf("%+v: it ended after %v and had been asked about at %v", x, passed, asked)
			}
		}
		if c := l.Counts()[0]; c.Writes != 3 || c.Refused != 2 {
			t.Errorf("counted %+v", c)
		}
	})
}

// Who gives up waiting is forgotten, and does not hold up the others.
func TestGivingUp(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Burst, cfg.QPS = 1, 0.1
	inBubble(t, cfg, func(t *testing.T, _ *Limiter, s *server, ordinary, _ *transport) {
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
			if _, err := ordinary.RoundTrip(r); !errors.Is(err, context.DeadlineExceeded) { //nolint:bodyclose // there is no answer
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

// TestDeadline: a write is over by the deadline of its permit, for the client and for the server,
// also when it has waited or requested more time. A read has no deadline.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent *http.Request
		cfg := DefaultConfig()
		cfg.Check = func(context.Context, *http.Request) (time.Time, error) { return time.Now().Add(4 * time.Second), nil }
		l, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		next := roundTripper(func(r *http.Request) (*http.Response, error) {
			sent = r
			if r.Method != http.MethodGet && r.URL.Path == "/slow" { // as a server that does not answer
				<-r.Context().Done()
				return nil, context.Cause(r.Context())
			}
			return &http.Response{StatusCode: http.StatusOK, Body: &body{}}, nil
		})
		tr := &transport{limiter: l, next: next}
		for _, x := range []struct{ method, path, timeout string }{
			{"PATCH", "/api/v1/nodes/a", "4s"}, {"PATCH", "/api/v1/nodes/a?timeout=30s&fieldManager=x", "4s"}, {"POST", "/a?timeout=2s", "2s"},
			{"GET", "/api/v1/nodes/a?timeout=30s", "30s"}, {"GET", "/api/v1/nodes/a", ""},
		} {
			r, err := http.NewRequestWithContext(t.Context(), x.method, "http://server"+x.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			before := r.URL.String()
			resp, err := tr.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			deadline, bounded := sent.Context().Deadline()
			if got := sent.URL.Query().Get("timeout"); got != x.timeout || bounded != (x.method != "GET") ||
				bounded && time.Until(deadline) != 4*time.Second {
				t.Errorf("%s %s: the server may take %q, the client until %v", x.method, x.path, got, deadline)
			}
			if r.URL.String() != before {
				t.Errorf("the request of the caller was changed to %s", r.URL)
			}
			if sent.Context().Err() != nil {
				t.Error("the answer can no longer be read")
			}
			_ = resp.Body.Close()
			if bounded && sent.Context().Err() == nil {
				t.Error("the context lives on after the body was closed")
			}
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://server/slow", nil)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := tr.RoundTrip(r); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 4*time.Second { //nolint:bodyclose // there is no answer
			t.Errorf("it ended after %v with %v", time.Since(start), err)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
