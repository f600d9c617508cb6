package fake

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/spotter-dev/spotter/scenarios/chance"
)

// Faults say how the server misbehaves. The zero value is a good server.
type Faults struct {
	// Seed draws which requests are hit, and which instance a group gives up.
	Seed uint64

	// Throttle, Internal and Lost are the shares of requests that are refused as
	// too many, fail with 500, and are carried out without an answer. Busy is the
	// share of writes that are refused because the group is at work. Their sum is
	// at most 1.
	Throttle, Internal, Lost, Busy float64

	// Stale is the share of reads that show how things were a Lag ago.
	Stale float64
	Lag   time.Duration

	// PageMax bounds the rows of a page; 0 means as many as are requested.
	PageMax int

	// Deny refuses actions with a code of AWS, such as AccessDenied. Once does so
	// for as many requests as there are codes, the first code first; "lost"
	// has a request carried out without an answer, and "" refuses nothing.
	Deny map[string]string
	Once map[string][]string
}

// A mishap is what happens to the answer of a request that is carried out.
type mishap uint8

const (
	fine mishap = iota
	lost
)

// draw returns what happens to the n-th request.
func (f *Faults) draw(n int, c *Call) (mishap, *apiError) {
	if code := f.Deny[c.Action]; code != "" {
		return fine, errorOf(code)
	}
	if queue := f.Once[c.Action]; len(queue) > 0 {
		f.Once[c.Action] = slices.Clone(queue[1:])
		if queue[0] == "lost" {
			return lost, nil
		}
		if queue[0] != "" {
			return fine, errorOf(queue[0])
		}
		return fine, nil
	}
	u := f.chance("mishap", n)
	switch busy := f.Busy; {
	case u < f.Throttle:
		return fine, errorOf("Throttling")
	case u < f.Throttle+f.Internal:
		return fine, errorOf("InternalFailure")
	case u < f.Throttle+f.Internal+f.Lost:
		return lost, nil
	case u < f.Throttle+f.Internal+f.Lost+busy && c.Write():
		if n%2 == 0 {
			return fine, errorOf("ScalingActivityInProgress")
		}
		return fine, errorOf("ResourceContention")
	}
	return fine, nil
}

func (f *Faults) chance(stream string, n int) float64 {
	if f.Seed == 0 && f.Throttle+f.Internal+f.Lost+f.Busy+f.Stale == 0 {
		return 1
	}
	return chance.New(f.Seed, stream, strconv.Itoa(n)).Float()
}

// stale reports whether the read now being answered is old, and how old.
func (p scaling) stale() (time.Duration, bool) {
	if p.s.faults.Stale == 0 || p.s.faults.chance("stale", len(p.s.calls)) >= p.s.faults.Stale {
		return 0, false
	}
	return p.s.faults.Lag, true
}

// seen returns the group as a read shows it.
func (p scaling) seen(g *held) Group {
	lag, old := p.stale()
	if !old {
		return g.clone()
	}
	then := p.s.groups.clock.Add(-lag)
	for i := len(g.past) - 1; i >= 0; i-- {
		if !g.past[i].at.After(then) {
			return g.past[i].group.clone()
		}
	}
	return g.clone()
}

// An apiError is an answer that says no.
type apiError struct {
	status        int
	code, message string
}

// errorOf returns the answer with a code of AWS.
func errorOf(code string) *apiError {
	status, message := http.StatusBadRequest, "The request is refused."
	switch code {
	case "Throttling":
		message = "Rate exceeded"
	case "InternalFailure":
		status, message = http.StatusInternalServerError, "An internal error has occurred"
	case "ResourceContention":
		status, message = http.StatusInternalServerError, "You already have a pending update to an Amazon EC2 Auto Scaling resource."
	case "ScalingActivityInProgress":
		message = "Scaling activity is in progress for the group and must complete first."
	case "AccessDenied", "AccessDeniedException", "UnauthorizedOperation":
		status, message = http.StatusForbidden, "User is not authorized to perform this action"
	case "ExpiredToken", "ExpiredTokenException":
		status, message = http.StatusForbidden, "The security token included in the request is expired"
	case "ResourceInUseException":
		status, message = http.StatusConflict, "Nodegroup cannot be updated as it is currently not in Active State"
	case "ResourceNotFoundException":
		status, message = http.StatusNotFound, "No node group found"
	}
	return &apiError{status, code, message}
}

func invalid(message string) *apiError {
	return &apiError{http.StatusBadRequest, "ValidationError", message}
}
