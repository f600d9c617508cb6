package rackspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/spotter-dev/spotter/live/backend"
	"github.com/spotter-dev/spotter/policy"
)

// errCredentials means that Rackspace rejects the credentials.
var errCredentials = errors.New("the credentials were not accepted")

// errLogin means that the login service rejects the refresh token. If the API rejects an access
// token, a new token may help; here it would not.
var errLogin = fmt.Errorf("%w by the login", errCredentials)

// An unsure is the error of a request whose earlier attempt may have succeeded, so that the last
// response does not determine the result.
type unsure struct{ err error }

// Error returns the message of the last attempt's error, with a note that an earlier attempt may
// have succeeded.
func (u *unsure) Error() string {
	return u.err.Error() + " (an earlier attempt got no response and may have been carried out)"
}

// Unwrap returns the error of the last attempt.
func (u *unsure) Unwrap() error { return u.err }

// A fault is an unsuccessful response of the API.
type fault struct {
	What   string // the action and its object
	Status int
	Reason string // reason in a Kubernetes status, such as AlreadyExists
	Text   string
	Wait   time.Duration // wait that the API requested
}

// Error returns the action, its object and the response.
func (f *fault) Error() string {
	return fmt.Sprintf("%s: %d %s: %s", f.What, f.Status, http.StatusText(f.Status), f.Text)
}

// Unwrap returns errCredentials if the access token was rejected.
func (f *fault) Unwrap() error {
	if f.Status == http.StatusUnauthorized {
		return errCredentials
	}
	return nil
}

// passes reports whether the same request may succeed later.
func (f *fault) passes() bool {
	return f.Status == http.StatusTooManyRequests || f.Status >= 500 ||
		f.Status == http.StatusConflict && f.Reason == "Conflict"
}

// faultOf returns the fault for a response. Its reason and text come from a Kubernetes status if
// the body is one. Any other body, such as the error page of a proxy, is shortened to one line.
func faultOf(what string, status int, body []byte, wait time.Duration) *fault {
	f := &fault{What: what, Status: status, Wait: wait}
	var s struct {
		Reason      string `json:"reason"`
		Message     string `json:"message"`
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &s) == nil {
		f.Reason = s.Reason
		f.Text = s.Message
		if s.Error != "" {
			f.Text = strings.TrimSuffix(s.Error+": "+s.Description, ": ")
		}
	}
	if f.Text == "" {
		f.Text = string(body)
	}
	f.Text = line(f.Text)
	return f
}

// line returns s as one line of at most 300 bytes.
func line(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 300 {
		s = s[:300] + "…"
	}
	return s
}

// has reports whether err is a response with this status.
func has(err error, status int) bool {
	var f *fault
	return errors.As(err, &f) && f.Status == status
}

// exists reports whether err means that an object with this name already exists.
func exists(err error) bool {
	var f *fault
	return errors.As(err, &f) && f.Status == http.StatusConflict && f.Reason != "Conflict"
}

// answered reports whether err means that the request had no effect. A request without a response
// or with a server error may have had an effect.
func answered(err error) bool {
	var u *unsure
	if errors.As(err, &u) {
		return false
	}
	var f *fault
	if errors.As(err, &f) {
		return f.Status < 500
	}
	return errors.Is(err, errCredentials) || errors.As(err, new(*backend.FencedError))
}

// A refusal is the response of the admission webhook that rejects a bid. Floor is the minimum bid
// in the response, 0 if it contains none.
type refusal struct {
	Floor policy.Money
	Text  string

	// Market reports whether the market has no capacity at this bid. If it is false, the account or
	// the cloudspace may not buy, which the user must fix.
	Market bool
}

// floorText matches the minimum bid in the webhook's message. The actual message calls it the
// market price.
var floorText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:market price|minimum bid price|min(?:imum)? bid) of \$?([0-9]+(?:\.[0-9]+)?)`)
})

// refusalOf returns the refusal in err, and reports whether err is a response of the webhook.
func refusalOf(err error) (refusal, bool) {
	var f *fault
	if !answered(err) || !errors.As(err, &f) || f.Status >= 500 || f.Status == http.StatusUnauthorized ||
		!strings.Contains(f.Text, "admission webhook") || !strings.Contains(f.Text, "denied the request") {
		return refusal{}, false
	}
	r := refusal{Text: f.Text}
	if m := floorText().FindStringSubmatch(f.Text); m != nil {
		r.Floor, r.Market, _ = amount{m[1]}.money()
	}
	// A class whose minimum bid at the provider cannot be read is not sold.
	r.Market = r.Market || strings.Contains(f.Text, "min bid price") ||
		strings.Contains(strings.ToLower(f.Text), "capacity")
	return r, true
}
