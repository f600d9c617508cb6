package fake

import (
	"net/http"
	"strconv"

	"github.com/spotter-dev/spotter/scenarios/chance"
)

// Faults are how the server misbehaves. The zero value has no faults, and pages as large as
// requested.
type Faults struct {
	// Seed draws which requests are hit.
	Seed uint64

	// Throttle, Internal, Reset, Truncate and Empty are the shares of requests
	// that are refused as too many, fail with 500, lose their connection in the
	// middle of the answer, are answered by half of it as if that were all, and
	// by nothing at all. Their sum is at most 1.
	Throttle, Internal, Reset, Truncate, Empty float64

	// Expire is the share of tokens that are refused when they come back.
	Expire float64

	// Hollow is the share of pages without a row that are not the last.
	Hollow float64

	// PageMax bounds the rows of a page; 0 means as many as requested.
	PageMax int

	// Again is how many rows of a page come again on the next.
	Again int

	// Shuffle returns rows in random order. Strangers adds rows that were not requested:
	// other products, a price from before the one in force, and the next after the window.
	Shuffle, Strangers bool

	// NoZoneIDs leaves the IDs of zones out of prices, as older versions of the
	// API do.
	NoZoneIDs bool

	// PricesOnly refuses all but prices, and that in the protocol of EC2, as a
	// server that knows no more does.
	PricesOnly bool

	// Silent never answers.
	Silent bool

	// ZonesDown answers 500 to whoever lists zones.
	ZonesDown bool

	// Deny refuses actions with a code of AWS, as UnauthorizedOperation.
	Deny map[string]string

	// ScoresMax is how many configurations of placement scores are taken; 0
	// means any number.
	ScoresMax int
}

// A mishap is what happens to one answer.
type mishap uint8

const (
	fine mishap = iota
	throttled
	failing
	reset
	truncated
	emptied
)

// draw returns what happens to the n-th request.
func (f *Faults) draw(n int) mishap {
	u := f.chance("mishap", n)
	for _, c := range []struct {
		share float64
		kind  mishap
	}{{f.Throttle, throttled}, {f.Internal, failing}, {f.Reset, reset}, {f.Truncate, truncated}, {f.Empty, emptied}} {
		if u < c.share {
			return c.kind
		}
		u -= c.share
	}
	return fine
}

func (f *Faults) chance(stream string, n int) float64 {
	return chance.New(f.Seed, stream, strconv.Itoa(n)).Float()
}

// An apiError is an answer that says no.
type apiError struct {
	status        int
	code, message string
}

var (
	errThrottled = &apiError{http.StatusServiceUnavailable, "RequestLimitExceeded", "Request limit exceeded."}
	errInternal  = &apiError{http.StatusInternalServerError, "InternalError", "An internal error has occurred"}
	errToken     = &apiError{http.StatusBadRequest, "InvalidNextToken", "The specified NextToken is not valid."}
	errNoAuth    = &apiError{http.StatusUnauthorized, "AuthFailure",
		"AWS was not able to validate the provided access credentials"}
	errScores = &apiError{http.StatusBadRequest, "MaxConfigLimitExceeded",
		"You have exceeded the maximum number of configurations in 24 hours"}
)

// denied says no with a code of a test's choice.
func denied(code string) *apiError {
	return &apiError{http.StatusForbidden, code, "You are not authorized to perform this operation."}
}

func errUnknown(action string) *apiError {
	return &apiError{http.StatusBadRequest, "InvalidAction", "The action " + action +
		" is not valid for this web service."}
}

func badParameter(message string) *apiError {
	return &apiError{http.StatusBadRequest, "InvalidParameterValue", message}
}
