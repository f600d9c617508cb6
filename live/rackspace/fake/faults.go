package fake

import (
	"net/http"
	"time"

	"github.com/spotter-dev/spotter/scenarios/chance"
)

// Faults say how the server misbehaves. The zero value is a good server.
type Faults struct {
	// Seed draws which requests are hit.
	Seed uint64

	// These are shares of requests: Throttle is refused as too many, Internal and
	// Unavailable fail with 500 and 503, Conflict with a 409 that passes, Expire
	// with a 401. Reset loses the connection before anything is done, Lose after
	// it was, and Truncate sends half of the answer. Their sum is at most 1.
	Throttle, Internal, Unavailable, Conflict, Expire, Reset, Lose, Truncate float64

	// RetryAfter is when a throttled request may come again, in whole seconds of the
	// clock of the server; 0 says nothing.
	RetryAfter time.Duration

	// Slow delays every answer in real time.
	Slow time.Duration

	// Hook answers a request by itself when it returns a status.
	Hook func(*http.Request) (status int, body string)
}

// A mishap is what happens to one request.
type mishap int

const (
	none mishap = iota
	throttled
	internal
	unavailable
	conflict
	expired
	reset
	lost
	truncated
)

// draw returns what happens to the n-th request.
func (f *Faults) draw(n uint64) mishap {
	u := chance.New(f.Seed, "rackspace-fault", "").At1(n).Float()
	for i, share := range []float64{f.Throttle, f.Internal, f.Unavailable, f.Conflict, f.Expire, f.Reset, f.Lose,
		f.Truncate} {
		if u < share {
			return mishap(i + 1)
		}
		u -= share
	}
	return none
}
