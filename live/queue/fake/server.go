// Package fake is an SQS server for tests: a hand-written stand-in for a service
// that cannot be had, at the wire, in the JSON protocol of the real SDK.
package fake

import (
	"crypto/md5" //nolint:gosec // the protocol asks for it
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Faults say how the server misbehaves. The zero value is a good server.
type Faults struct {
	// Throttle, Internal and Expired are how many of the next requests are refused
	// as too many, fail with 500, and are refused for credentials that have
	// expired, in this order.
	Throttle, Internal, Expired int

	// Silent never answers.
	Silent bool

	// Missing says that there is no such queue, and Denied that it may not be used.
	Missing, Denied bool

	// Twice delivers each message once more while it is hidden, as SQS may.
	Twice bool

	// Backwards delivers the newest messages first.
	Backwards bool

	// Undeleted is how many of the next deletions of a message fail.
	Undeleted int
}

// A Call is a request that was answered.
type Call struct {
	Action string
	Status int
	Queue  string // its URL

	// Messages are how many messages it received or deleted.
	Messages int
}

// A Server holds one queue. It is an http.Handler and may be used by any number of
// clients at once.
type Server struct {
	mu       sync.Mutex
	faults   Faults
	messages []*message
	made     int
	handles  int
	calls    []Call
	changed  chan struct{} // closed when a message comes
}

type message struct {
	id, body string
	handles  []string
	receives int
	twice    bool
	hidden   time.Time
}

// New returns a server of an empty queue.
func New() *Server { return &Server{changed: make(chan struct{})} }

// SetFaults replaces the faults.
func (s *Server) SetFaults(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
}

// Send puts messages into the queue.
func (s *Server) Send(bodies ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range bodies {
		s.made++
		s.messages = append(s.messages, &message{id: "m-" + strconv.Itoa(s.made), body: b})
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// Show ends the time for which received messages are hidden.
func (s *Server) Show() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages {
		m.hidden = time.Time{}
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// Len returns how many messages the queue holds, hidden or not.
func (s *Server) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.messages)
}

// Calls returns the requests so far.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// An apiError is an answer that says no.
type apiError struct {
	status        int
	code, message string
}

var (
	errThrottled = &apiError{http.StatusBadRequest, "RequestThrottled", "Rate exceeded"}
	errInternal  = &apiError{http.StatusInternalServerError, "InternalFailure", "An internal error has occurred"}
	errExpired   = &apiError{http.StatusForbidden, "ExpiredToken", "The security token included in the request is expired"}
	errMissing   = &apiError{http.StatusBadRequest, "AWS.SimpleQueueService.NonExistentQueue",
		"The specified queue does not exist."}
	errDenied = &apiError{http.StatusForbidden, "AccessDenied", "Access to the resource is denied."}
)

// request is the union of what the actions are asked.
type request struct {
	QueueUrl            string //nolint:staticcheck // as SQS names it
	MaxNumberOfMessages int
	WaitTimeSeconds     int
	VisibilityTimeout   int
	Entries             []struct{ ID, ReceiptHandle string }
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	body, err := io.ReadAll(r.Body)
	var in request
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err != nil {
		return
	}
	s.mu.Lock()
	silent := s.faults.Silent
	s.mu.Unlock()
	if silent {
		<-r.Context().Done()
		return
	}
	var out any
	n, no := 0, s.mishap()
	switch {
	case no != nil:
	case action == "ReceiveMessage":
		out, n = s.receive(r, in)
	case action == "DeleteMessageBatch":
		out, n = s.remove(in)
	default:
		no = &apiError{http.StatusBadRequest, "InvalidAction", "The action " + action + " is not valid for this endpoint."}
	}
	status := http.StatusOK
	if no != nil {
		status = no.status
		out = map[string]string{"__type": "com.amazonaws.sqs#" + no.code, "message": no.message}
		w.Header().Set("X-Amzn-Query-Error", no.code+";Sender")
	}
	s.mu.Lock()
	s.calls = append(s.calls, Call{action, status, in.QueueUrl, n})
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(out) //nolint:errcheck // a client that is gone is its own affair
}

// mishap returns what goes wrong with the next request.
func (s *Server) mishap() *apiError {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &s.faults
	switch {
	case f.Throttle > 0:
		f.Throttle--
		return errThrottled
	case f.Internal > 0:
		f.Internal--
		return errInternal
	case f.Expired > 0:
		f.Expired--
		return errExpired
	case f.Missing:
		return errMissing
	case f.Denied:
		return errDenied
	}
	return nil
}

// receive waits for messages as long as it is asked to.
func (s *Server) receive(r *http.Request, in request) (any, int) {
	until := time.NewTimer(time.Duration(in.WaitTimeSeconds) * time.Second)
	defer until.Stop()
	for {
		s.mu.Lock()
		list, next, changed := s.take(in), s.next(), s.changed
		s.mu.Unlock()
		if len(list) > 0 {
			return map[string]any{"Messages": list}, len(list)
		}
		shown := time.NewTimer(next)
		select {
		case <-r.Context().Done():
		case <-until.C:
		case <-shown.C:
			continue
		case <-changed:
			shown.Stop()
			continue
		}
		shown.Stop()
		return map[string]any{}, 0
	}
}

// take returns messages that are not hidden and hides them.
func (s *Server) take(in request) []any {
	now := time.Now()
	order := slices.Clone(s.messages)
	if s.faults.Backwards {
		slices.Reverse(order)
	}
	var list []any
	for _, m := range order {
		again := s.faults.Twice && m.receives == 1 && !m.twice
		if len(list) == max(1, in.MaxNumberOfMessages) || m.hidden.After(now) && !again {
			continue
		}
		m.twice = m.twice || again
		m.receives++
		m.hidden = now.Add(time.Duration(in.VisibilityTimeout) * time.Second)
		s.handles++
		handle := fmt.Sprintf("%s-%d", m.id, s.handles)
		m.handles = append(m.handles, handle)
		sum := md5.Sum([]byte(m.body)) //nolint:gosec // the protocol asks for it
		list = append(list, map[string]any{
			"MessageId": m.id, "ReceiptHandle": handle, "Body": m.body, "MD5OfBody": hex.EncodeToString(sum[:]),
			"Attributes": map[string]string{"ApproximateReceiveCount": strconv.Itoa(m.receives)},
		})
	}
	return list
}

// next returns how long until a message is shown again, an hour without one.
func (s *Server) next() time.Duration {
	least := time.Hour
	for _, m := range s.messages {
		least = min(least, time.Until(m.hidden))
	}
	return max(least, time.Millisecond)
}

// remove deletes messages by receipts.
func (s *Server) remove(in request) (any, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	good, bad := []any{}, []any{}
	for _, e := range in.Entries {
		if s.faults.Undeleted > 0 {
			s.faults.Undeleted--
			bad = append(bad, map[string]any{"Id": e.ID, "SenderFault": false, "Code": "InternalError", "Message": "try again"})
			continue
		}
		s.messages = slices.DeleteFunc(s.messages, func(m *message) bool {
			return slices.Contains(m.handles,
				e.ReceiptHandle)
		})
		good = append(good, map[string]string{"Id": e.ID})
	}
	return map[string]any{"Successful": good, "Failed": bad}, len(good)
}
