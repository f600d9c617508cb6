package eval

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spotter-dev/spotter/eval"
	"github.com/spotter-dev/spotter/eval/evaltest"
	"github.com/spotter-dev/spotter/sim"
)

func TestLoopback(t *testing.T) {
	for text, want := range map[string]string{
		":8080": "127.0.0.1:8080", ":0": "127.0.0.1:0", "localhost:99": "127.0.0.1:99", "127.0.0.9:7": "127.0.0.9:7", "[::1]:7": "[::1]:7",
		"0.0.0.0:80": "", "[::]:80": "", "example.com:80": "", "10.0.0.1:80": "", "8080": "", "": "",
	} {
		if got, err := loopback(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q (%v), want %q", text, got, err, want)
		}
	}
}

// A request sees the runs that are done by then, and one by another name than that of this machine
// sees nothing.
func TestServe(t *testing.T) {
	cfg := eval.DefaultConfig()
	cfg.Policies, cfg.Baseline, cfg.Seeds = []string{"spot"}, eval.OnDemand, eval.DefaultSeeds(2)
	cfg.Cases = []eval.Case{{Scenario: "shop", Bound: evaltest.Scenario("shop", 0)}}
	s := &server{cfg: cfg, done: map[eval.Job]outcome{}}
	get := func(host string) (int, string) {
		q := httptest.NewRequest(http.MethodGet, "/", nil)
		q.Host = host
		w := httptest.NewRecorder()
		s.ServeHTTP(w, q)
		return w.Code, w.Body.String()
	}
	if code, page := get("127.0.0.1:9"); code != 200 || !strings.Contains(page, "Running: 0 of 4 runs done") {
		t.Errorf("before the first run: %d, %.300s", code, page)
	}
	run := s.noting(func(_ context.Context, j eval.Job) (*sim.Result, error) {
		return &sim.Result{Scenario: "shop", Policy: j.Policy, Seed: j.Seed, Bill: 5_000_000}, nil
	})
	for _, p := range []string{eval.OnDemand, "spot"} {
		if _, err := run(t.Context(), eval.Job{Case: cfg.Cases[0], Policy: p, Seed: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if code, page := get("localhost:9"); code != 200 || !strings.Contains(page, "Running: 2 of 4 runs done") {
		t.Errorf("after two runs: %d, %.300s", code, page)
	}
	if code, _ := get("evil.example:9"); code != http.StatusForbidden {
		t.Errorf("another host has the answer %d", code)
	}
}
