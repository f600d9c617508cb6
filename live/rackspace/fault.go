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

// errCredentials says that Rackspace does not take the credentials.
var errCredentials = errors.New("the credentials were not accepted")

// errLogin says that the login does not take the refresh token. Another access token
// would not help, as it may where the API refuses one.
var errLogin = fmt.Errorf("%w by the login", errCredentials)

// An unsure is the failure of a request of which an earlier attempt may have been
// carried out: what the last answer says need not hold.
type unsure struct{ err error }

// Error returns that of the last attempt.
func (u *unsure) Error() string {
	return u.err.Error() + " (an earlier attempt got no response and may have been carried out)"
}

// Unwrap returns the error of the last attempt.
func (u *unsure) Unwrap() error { return u.err }

// A fault is an answer of the API that is not a success.
type fault struct {
	What   string // what was done to which object
	Status int
	Reason string // of a Kubernetes status: AlreadyExists…
	Text   string
	Wait   time.Duration // the wait that the API requested
}

// Error says what was done, to what, and what the answer was.
func (f *fault) Error() string {
	return fmt.Sprintf("%s: %d %s: %s", f.What, f.Status, http.StatusText(f.Status), f.Text)
}

// Unwrap makes a refused token recognisable.
func (f *fault) Unwrap() error {
	if f.Status == http.StatusUnauthorized {
		return errCredentials
	}
	return nil
}

// passes reports whether the same request may succeed a little later.
func (f *fault) passes() bool {
	return f.Status == http.StatusTooManyRequests || f.Status >= 500 ||
		f.Status == http.StatusConflict && f.Reason == "Conflict"
}

// faultOf reads an answer. A Kubernetes status reports its reason; what else may
// come, such as the page of a proxy, is cut to one line.
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

// line returns s on one line, cut to 300 bytes.
func line(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 300 {
		s = s[:300] + "…"
	}
	return s
}

// has reports whether err is an answer with this status.
func has(err error, status int) bool {
	var f *fault
	return errors.As(err, &f) && f.Status == status
}

// exists reports whether err means that an object of that name already exists.
func exists(err error) bool {
	var f *fault
	return errors.As(err, &f) && f.Status == http.StatusConflict && f.Reason != "Conflict"
}

// answered reports whether err is an answer that says that nothing was done. What
// ended without one, or with a failure of the server, may have been done.
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

// A refusal is the answer of the admission webhook to a bid. Floor is the least
// bid that it takes, 0 where it names none.
type refusal struct {
	Floor policy.Money
	Text  string

	// Market says that the market gives nothing at this bid; else the account or
	// the cloudspace may not buy, which the user should read.
	Market bool
}

// floorText finds the least bid in what the webhook says. The real message speaks
// of the market price.
var floorText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:market price|minimum bid price|min(?:imum)? bid) of \$?([0-9]+(?:\.[0-9]+)?)`)
})

// refusalOf returns what the webhook said, if err is its answer.
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
	// A class of which the provider's own least bid cannot be read is not sold.
	r.Market = r.Market || strings.Contains(f.Text, "min bid price") ||
		strings.Contains(strings.ToLower(f.Text), "capacity")
	return r, true
}
