package steady

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

var (
	_ clock.WithTicker = (*Clock)(nil)

	noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
)

const day = 24 * time.Hour

// A machine has a time of day that can be set, and a monotonic clock.
type machine struct {
	wall    time.Time
	elapsed time.Duration
	log     bytes.Buffer
	clock   *Clock
	server  time.Time
}

func start(wall, server time.Time) *machine {
	m := &machine{wall: wall, elapsed: 77 * time.Hour, server: server}
	m.clock = newClock(slog.New(slog.NewTextHandler(&m.log, nil)), func() (time.Time, time.Duration) { return m.wall, m.elapsed })
	return m
}

// pass lets time pass everywhere.
func (m *machine) pass(d time.Duration) {
	m.wall, m.server, m.elapsed = m.wall.Add(d), m.server.Add(d), m.elapsed+d
}

// answer has the API server give its time.
func (m *machine) answer() { m.clock.answered(m.server.Truncate(time.Second), m.elapsed) }

func (m *machine) expect(t *testing.T, want time.Time, jumps int) {
	t.Helper()
	if got := m.clock.Now(); got.Sub(want).Abs() > time.Second {
		t.Errorf("it is %v, want %v", got, want)
	}
	if got := m.clock.State().Jumps; got != jumps || strings.Count(m.log.String(), "a clock was set") != jumps {
		t.Errorf("%d jumps are counted, want %d:\n%s", got, jumps, m.log.String())
	}
}

// TestJumpOfTheMachine sets the machine's time of day back and forth while the process
// lives: as much time passes as passes.
func TestJumpOfTheMachine(t *testing.T) {
	for _, jump := range []time.Duration{day, -day, time.Hour, -10 * time.Second, 365 * day} {
		m := start(noon, noon)
		m.answer()
		m.pass(time.Minute)
		m.wall = m.wall.Add(jump)
		m.expect(t, noon.Add(time.Minute), 1)
		for range 600 {
			m.pass(time.Second)
			m.answer()
			m.expect(t, m.server, 1)
		}
		if got := m.clock.State().Local; (got - jump).Abs() > time.Second {
			t.Errorf("the machine is %v ahead, want %v", got, jump)
		}
		m.wall = m.wall.Add(-jump)
		m.expect(t, m.server, 2)
	}
}

// TestStartWithAWrongTime starts on a machine whose time of day is wrong: the API server's
// is taken with the first answer, and is kept.
func TestStartWithAWrongTime(t *testing.T) {
	for _, wrong := range []time.Duration{day, -day, 30 * time.Second} {
		m := start(noon.Add(wrong), noon)
		m.answer()
		m.expect(t, noon, 0)
		if !strings.Contains(m.log.String(), "is not the API server's") {
			t.Errorf("nothing is logged: %s", m.log.String())
		}
		m.pass(time.Hour)
		m.answer()
		m.expect(t, noon.Add(time.Hour), 0)
	}
}

// TestJumpOfTheServer sets the API server's clock, with or without the machine's, as where
// both are one machine: the time follows by no more than a hundredth of what passes, and
// never goes back.
func TestJumpOfTheServer(t *testing.T) {
	for _, jump := range []time.Duration{day, -day} {
		m := start(noon, noon)
		m.answer()
		m.server, m.wall = m.server.Add(jump), m.wall.Add(jump)
		before := m.clock.Now()
		for range 3600 {
			m.pass(time.Second)
			m.answer()
			now := m.clock.Now()
			if d := now.Sub(before); d < 980*time.Millisecond || d > 1020*time.Millisecond {
				t.Fatalf("a second takes %v", d)
			}
			before = now
		}
		if moved := before.Sub(noon.Add(time.Hour)); moved.Abs() < 35*time.Second || moved.Abs() > 37*time.Second || (moved > 0) != (jump > 0) {
			t.Errorf("after an hour it is moved by %v for a jump of %v", moved, jump)
		}
		if s := m.clock.State(); s.Jumps != 2 || (s.Server-jump).Abs() > time.Minute {
			t.Errorf("%+v", s)
		}
	}
}

// TestSlowAnswers: an answer that took long says nothing of now.
func TestSlowAnswers(t *testing.T) {
	m := start(noon, noon)
	sent := m.elapsed
	m.pass(time.Minute)
	m.clock.answered(noon, sent)
	m.expect(t, noon.Add(time.Minute), 0)
}

// TestDrift follows a machine whose monotonic clock is slow by a thousandth.
func TestDrift(t *testing.T) {
	m := start(noon, noon)
	for range 10_000 {
		m.pass(time.Second)
		m.elapsed -= time.Millisecond
		m.answer()
	}
	if off := m.clock.Now().Sub(m.server).Abs(); off > agreeMax+time.Second {
		t.Errorf("it is off by %v", off)
	}
	if n := m.clock.State().Jumps; n != 0 {
		t.Errorf("%d jumps", n)
	}
}

// TestTransport takes the time of a server's answers, whatever they are.
func TestTransport(t *testing.T) {
	later, asked := time.Now().Add(day), ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path
		w.Header().Set("Date", later.UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusForbidden)
	}))
	defer s.Close()
	c := New(slog.New(slog.DiscardHandler))
	if err := c.Sync(t.Context(), c.Wrap(&rest.Config{Host: s.URL})); err != nil || asked != "/version" {
		t.Fatalf("%q is asked for: %v", asked, err)
	}
	if off := c.Now().Sub(later).Abs(); off > 5*time.Second {
		t.Errorf("it is off by %v", off)
	}
	s.Close()
	if err := c.Sync(t.Context(), c.Wrap(&rest.Config{Host: s.URL})); err == nil {
		t.Error("no server says nothing")
	}
}
