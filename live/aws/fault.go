package aws

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/spotter-dev/spotter/live/aws/wire"
	"github.com/spotter-dev/spotter/live/flock"
	"github.com/spotter-dev/spotter/scenarios/catalog"
)

// Kinds of error that a user can fix, for use with errors.Is.
var (
	ErrNoCredentials = errors.New("no credentials found")
	ErrCredentials   = errors.New("credentials were refused")
	ErrExpired       = errors.New("credentials have expired")
	ErrPermission    = errors.New("no permission")
	ErrRegion        = errors.New("region is not usable")
	ErrUnreachable   = errors.New("not reachable")
	ErrTimeout       = errors.New("the time limit was reached")
	ErrUnfinished    = errors.New("another recording is unfinished")
	ErrBusy          = flock.ErrBusy
	ErrFolder        = errors.New("not a folder of a recorder")
	ErrRefused       = errors.New("the request was refused")
	ErrUpload        = errors.New("the copy was not made")
	ErrZones         = errors.New("zones cannot be distinguished")
)

// A RequestError is the final failure of a request.
type RequestError struct {
	// Action is the IAM action, such as ec2:DescribeSpotPriceHistory.
	Action, Region string

	// Kind is one of the errors above, or nil. Err is the underlying error.
	Kind, Err error
}

// Error names the action and the region, and describes the cause.
func (e *RequestError) Error() string {
	if e.Kind == nil {
		return fmt.Sprintf("%s in %s: %v", e.Action, e.Region, cause(e.Err))
	}
	return fmt.Sprintf("%s in %s: %v: %v", e.Action, e.Region, e.Kind, cause(e.Err))
}

// Unwrap returns the kind, if it is not nil, and the underlying error.
func (e *RequestError) Unwrap() []error {
	if e.Kind == nil {
		return []error{e.Err}
	}
	return []error{e.Kind, e.Err}
}

// Causes returns the distinct causes in err, each on one line. Failed requests with the same cause
// count as one, and the first of them is named with the number of the others.
func Causes(err error) []string {
	var causes []string
	first, more := map[string]string{}, map[string]int{}
	for _, x := range parts(err) {
		request, text := "", oneLine(x.Error())
		if e := (*RequestError)(nil); errors.As(x, &e) && e.Kind != nil {
			request, text = e.Action+" in "+e.Region, oneLine(fmt.Sprintf("%v: %s", e.Kind, cause(e.Err)))
		}
		if slices.Contains(causes, text) {
			more[text]++
			continue
		}
		causes, first[text] = append(causes, text), request
	}
	for i, text := range causes {
		if request := first[text]; request != "" && more[text] > 0 {
			causes[i] += fmt.Sprintf(" (%s and %d more)", request, more[text])
		} else if request != "" {
			causes[i] += " (" + request + ")"
		}
	}
	return causes
}

// parts returns the errors that were joined as err.
func parts(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var lines []string
	var all []error
	for _, x := range joined.Unwrap() {
		lines, all = append(lines, x.Error()), append(all, parts(x)...)
	}
	if err.Error() != strings.Join(lines, "\n") {
		return []error{err}
	}
	return all
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// cause returns the informative part of an SDK error: the message of AWS or of the network.
func cause(err error) string {
	var said smithy.APIError
	if errors.As(err, &said) && said.ErrorCode() != codeUnknown {
		return fmt.Sprintf("%s: %s", said.ErrorCode(), said.ErrorMessage())
	}
	var dial *net.OpError
	if errors.As(err, &dial) {
		return dial.Error()
	}
	if cut := (*cutShortError)(nil); errors.As(err, &cut) {
		return cut.Error()
	}
	if status := wire.StatusOf(err); status != 0 {
		return statusError(status).Error()
	}
	return err.Error()
}

// codeUnknown is the SDK's code of an error that the response does not describe.
const codeUnknown = "UnknownError"

// kinds maps the errors that every AWS service may return, and that a user can fix, to the errors
// above.
var kinds = map[wire.Kind]error{
	wire.KindDenied: ErrPermission, wire.KindCredentials: ErrCredentials, wire.KindExpired: ErrExpired,
}

// fault returns err as a RequestError. If ctx has ended, it returns the reason of that instead.
func fault(ctx context.Context, action, region string, err error) error {
	if ctx.Err() != nil {
		if errors.Is(context.Cause(ctx), ErrTimeout) {
			return fmt.Errorf("%s in %s: %w", action, region, ErrTimeout)
		}
		return ctx.Err()
	}
	e := &RequestError{Action: action, Region: region, Err: err}
	var said smithy.APIError
	var dns *net.DNSError
	var dial *net.OpError
	var cut *cutShortError
	switch {
	case errors.As(err, &said):
		if e.Kind = kinds[wire.KindOf(err)]; said.ErrorCode() == "OptInRequired" || said.ErrorCode() == "UnknownRegion" {
			e.Kind = ErrRegion
		}
	case errors.As(err, &dns) && dns.IsNotFound && !slices.Contains(catalog.Regions(catalog.AWS), region):
		e.Kind = ErrRegion
	case errors.As(err, &dns), errors.As(err, &dial), errors.As(err, &cut), errors.Is(err, errAttemptTimeout):
		e.Kind = ErrUnreachable
	}
	if e.Kind == nil && refuses(wire.StatusOf(err)) {
		e.Kind = ErrRefused
	}
	return e
}

// refuses reports whether a status means that a retry cannot succeed.
func refuses(status int) bool {
	return status >= 400 && status < 500 && !busy(status) || status == http.StatusNotImplemented
}

// busy reports whether a status below 500 requests a later retry.
func busy(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
}

// tokenRefused reports whether err means that a page can no longer be requested, so that its window
// must be read from the start.
func tokenRefused(err error) bool {
	var said smithy.APIError
	if !errors.As(err, &said) {
		return false
	}
	code := said.ErrorCode()
	return slices.Contains([]string{"InvalidNextToken", "InvalidNextTokenException", "ExpiredNextTokenException",
		"InvalidPaginationToken", "InvalidPaginationTokenException"}, code) ||
		code == "InvalidParameterValue" && strings.Contains(strings.ToLower(said.ErrorMessage()), "token")
}
