package faults

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// begin returns a proxy, where it listens, and how many writes have reached the server.
func begin(t *testing.T) (*Proxy, *atomic.Int32) {
	t.Helper()
	var reached atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			reached.Add(1)
			return
		}
		fmt.Fprintln(w, "a line")
		w.(http.Flusher).Flush()
		if r.URL.Path == "/watch" {
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	p, err := New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, &reached
}

// send returns the status of an answer, 0 where none comes.
func send(t *testing.T, p *Proxy, method, path string) int {
	t.Helper()
	r, err := http.NewRequest(method, p.URL()+path, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

func TestPart(t *testing.T) {
	p, reached := begin(t)
	resp, err := http.Get(p.URL() + "/watch")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() || lines.Text() != "a line" {
		t.Fatalf("a watch begins with %q", lines.Text())
	}
	p.Part(true)
	if lines.Scan() {
		t.Error("a watch goes on")
	}
	if got := send(t, p, "PATCH", "/a"); got != 0 || reached.Load() != 0 {
		t.Errorf("apart a write is answered by %d", got)
	}
	p.Part(false)
	if got := send(t, p, "PATCH", "/a"); got != 200 || reached.Load() != 1 {
		t.Errorf("together again a write is answered by %d", got)
	}
}

func TestAnswer(t *testing.T) {
	p, reached := begin(t)
	p.Answer(429, time.Hour)
	for path, want := range map[string]int{"/a": 429, "/apis/coordination.k8s.io/v1/namespaces/x/leases/y": 200, "/a?dryRun=All": 200} {
		if got := send(t, p, "PUT", path); got != want {
			t.Errorf("%s is answered by %d, want %d", path, got, want)
		}
	}
	if got := send(t, p, "GET", "/a"); got != 200 {
		t.Errorf("a read is answered by %d", got)
	}
	p.Answer(429, 0)
	if got := send(t, p, "PUT", "/a"); got != 200 || reached.Load() != 3 || p.Writes() != 2 {
		t.Errorf("afterwards %d; %d reached, %d counted", got, reached.Load(), p.Writes())
	}
}

func TestStrike(t *testing.T) {
	for _, after := range []bool{false, true} {
		p, reached := begin(t)
		var struck atomic.Int32
		p.Strike(2, after, func() { struck.Add(1) })
		for i, want := range []struct {
			status int
			struck int32
		}{{200, 0}, {0, 1}, {200, 1}} {
			if got := send(t, p, "POST", "/a"); got != want.status || struck.Load() != want.struck {
				t.Errorf("after %t: write %d is answered by %d, and %d were struck", after, i+1, got, struck.Load())
			}
		}
		if want := map[bool]int32{false: 2, true: 3}[after]; reached.Load() != want {
			t.Errorf("after %t: %d writes reach the server, want %d", after, reached.Load(), want)
		}
	}
}

// TestUnread: reads of one object fail for a time, by a status or by silence, and those of others do not.
func TestUnread(t *testing.T) {
	p, _ := begin(t)
	const object = "/configmaps/a"
	p.Unread(object, 403, time.Hour)
	for path, want := range map[string]int{"/api/v1/namespaces/x" + object: 403, "/api/v1/namespaces/x/configmaps/b": 200} {
		if got := send(t, p, "GET", path); got != want {
			t.Errorf("GET %s is answered by %d, want %d", path, got, want)
		}
	}
	if got := send(t, p, "PATCH", object); got != 200 {
		t.Errorf("a write is answered by %d", got)
	}
	p.Unread(object, 0, time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", p.URL()+object, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.DefaultClient.Do(r); err == nil {
		resp.Body.Close()
		t.Errorf("a read that is to hang is answered by %d", resp.StatusCode)
	}
	p.Unread(object, 500, 0)
	if got := send(t, p, "GET", object); got != 200 {
		t.Errorf("afterwards a read is answered by %d", got)
	}
}

// TestShift: the time in answers is another one for a while, also in those that the proxy gives itself.
func TestShift(t *testing.T) {
	p, _ := begin(t)
	ahead := func() time.Duration {
		t.Helper()
		resp, err := http.Get(p.URL() + "/a")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if n := len(resp.Header.Values("Date")); n != 1 {
			t.Errorf("an answer has %d dates", n)
		}
		date, err := http.ParseTime(resp.Header.Get("Date"))
		if err != nil {
			t.Fatal(err)
		}
		return time.Until(date).Round(time.Minute)
	}
	p.Shift(-5*time.Hour, time.Hour)
	if got := ahead(); got != -5*time.Hour {
		t.Errorf("the time is %v ahead, want -5h", got)
	}
	p.Unread("/a", 500, time.Hour)
	if got := ahead(); got != -5*time.Hour {
		t.Errorf("in an answer of the proxy the time is %v ahead, want -5h", got)
	}
	p.Shift(0, 0)
	if got := ahead(); got != 0 {
		t.Errorf("afterwards the time is %v ahead", got)
	}
}
