// Package fake contains the parts that servers of price lists for tests share: faults at the wire,
// and a record of the requests.
package fake

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/spotter-dev/spotter/scenarios/chance"
)

// A Faults says how a server misbehaves. The zero value is a good server.
type Faults struct {
	// Seed draws which requests are hit.
	Seed uint64

	// These are shares of requests: Throttle is refused with 429, Unavailable fails with 503, Reset
	// loses the connection, and Truncate sends half of the page. Their sum is at most 1.
	Throttle, Unavailable, Reset, Truncate float64

	// RetryAfter is when a throttled request may come again, in whole seconds; 0 says nothing.
	RetryAfter time.Duration

	// Link, if not empty, replaces the link or token of next pages.
	Link string
}

// A Server answers requests with pages, or with faults.
type Server struct {
	// Throttled is the body of a response with the status 429.
	Throttled string

	mu     sync.Mutex
	faults Faults
	count  uint64
	calls  []string
}

// SetFaults replaces the faults.
func (s *Server) SetFaults(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults, s.count = f, 0
}

// Calls returns the names of the requests so far, and forgets them.
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

// Link returns the link that replaces those of next pages, or an empty string.
func (s *Server) Link() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.Link
}

// Serve records a request by a name and answers it with a page, unless a fault hits it. The page is
// a status and a body.
func (s *Server) Serve(w http.ResponseWriter, name string, page func() (status int, body []byte)) {
	s.mu.Lock()
	s.calls = append(s.calls, name)
	f, n := s.faults, s.count
	s.count++
	s.mu.Unlock()
	u := chance.New(f.Seed, "price-list-fault", "").At1(n).Float()
	switch {
	case u < f.Throttle:
		if f.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter/time.Second)))
		}
		http.Error(w, s.Throttled, http.StatusTooManyRequests)
		return
	case u < f.Throttle+f.Unavailable:
		http.Error(w, "<html>\n<body>The service is unavailable.</body>\n</html>", http.StatusServiceUnavailable)
		return
	case u < f.Throttle+f.Unavailable+f.Reset:
		panic(http.ErrAbortHandler)
	}
	status, body := page()
	if status == http.StatusOK && u < f.Throttle+f.Unavailable+f.Reset+f.Truncate {
		body = body[:len(body)/2]
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	if _, err := w.Write(body); err != nil {
		panic(http.ErrAbortHandler)
	}
}
