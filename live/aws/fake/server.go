package fake

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/spotter-dev/spotter/policy/portable"
)

// AdvisorPath is where the file of the Spot Instance Advisor is served.
const AdvisorPath = "/spot-advisor-data.json"

// A Call is a request that was answered.
type Call struct {
	Action, Region string
	Key            string // that the request was signed by
	Status         int
	Form           url.Values // of a query
}

// A Server answers as AWS would. It is an http.Handler and may be used by any
// number of clients at once.
type Server struct {
	mu     sync.Mutex
	state  *State
	faults Faults
	now    time.Time
	calls  []Call
	tokens map[string]place
	scored map[string]bool // configurations of placement scores
	served func(action string, status int)
}

// A place is where a page continues a query.
type place struct {
	query  string
	offset int
}

// New returns a server of state.
func New(state *State, faults Faults) *Server {
	return &Server{state: state, faults: faults, tokens: map[string]place{}, scored: map[string]bool{}}
}

// SetNow sets the clock: what is later has not happened yet. Zero shows all.
func (s *Server) SetNow(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now
}

// SetFaults replaces the faults.
func (s *Server) SetFaults(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
}

// SetServed calls f with each request from now on, before its answer is sent;
// nil ends that.
func (s *Server) SetServed(f func(action string, status int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served = f
}

// Change lets f change the state.
func (s *Server) Change(f func(*State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.state)
}

// Calls returns the requests so far.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// An answer is what goes over the wire when all is well.
type answer struct {
	kind string // of content
	body []byte
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	if s.faults.Silent {
		s.mu.Unlock()
		<-r.Context().Done()
		return
	}
	call, protocol := s.call(r, body)
	n := len(s.calls)
	hit := s.faults.draw(n)
	var a answer
	var no *apiError
	switch hit {
	case throttled:
		no = errThrottled
	case failing:
		no = errInternal
	default:
		if s.faults.PricesOnly && call.Action != "DescribeSpotPriceHistory" {
			protocol, no = query{s}, errUnknown(call.Action)
			break
		}
		a, no = protocol.answer(call, body)
	}
	status := http.StatusOK
	if no != nil {
		a, status = protocol.refuse(no), no.status
	}
	call.Status = status
	s.calls = append(s.calls, *call)
	served := s.served
	s.mu.Unlock()
	if served != nil {
		served(call.Action, status)
	}
	send(w, a, status, hit)
}

// send writes the answer, or as much of it as the mishap lets through.
func send(w http.ResponseWriter, a answer, status int, hit mishap) {
	w.Header().Set("Content-Type", a.kind)
	half := a.body[:len(a.body)/2]
	switch hit {
	case truncated:
		a.body = half
	case emptied:
		a.body = nil
	case reset:
		w.Header().Set("Content-Length", fmt.Sprint(len(a.body)))
		w.WriteHeader(status)
		w.Write(half) //nolint:errcheck // the connection is broken next anyhow
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(status)
	w.Write(a.body) //nolint:errcheck // a client that is gone is its own affair
}

// A protocol is how a service speaks.
type protocol interface {
	answer(c *Call, body []byte) (answer, *apiError)
	refuse(no *apiError) answer
}

// call finds out what is asked, of which region, and in which protocol.
func (s *Server) call(r *http.Request, body []byte) (*Call, protocol) {
	if r.URL.Path == AdvisorPath {
		return &Call{Action: "SpotAdvisor"}, advisor{s}
	}
	c := &Call{Region: signedRegion(r.Header.Get("Authorization"))}
	_, signed, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	c.Key, _, _ = strings.Cut(signed, "/")
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		_, c.Action, _ = strings.Cut(target, ".")
		return c, priceList{s}
	}
	form, err := url.ParseQuery(string(body))
	if err == nil {
		c.Form, c.Action = form, form.Get("Action")
	}
	return c, query{s}
}

// signedRegion returns the region that a signature is for (AWS documentation,
// "Signature Version 4": Credential=key/date/region/service/aws4_request).
func signedRegion(authorization string) string {
	_, rest, ok := strings.Cut(authorization, "Credential=")
	parts := strings.Split(rest, "/")
	if !ok || len(parts) < 5 {
		return ""
	}
	return parts[2]
}

// page returns the bounds of the page at the place that token names, and the token of the
// next page, empty at the end.
func (s *Server) page(token, of string, rows, most int) (from, to int, next string, no *apiError) {
	if token != "" {
		at, ok := s.tokens[token]
		if !ok || at.query != of || s.faults.chance("token", len(s.calls)) < s.faults.Expire {
			return 0, 0, "", errToken
		}
		from = at.offset
	}
	if s.faults.PageMax > 0 {
		most = min(most, s.faults.PageMax)
	}
	to = min(from+most, rows)
	if s.faults.chance("hollow", len(s.calls)) < s.faults.Hollow {
		return from, from, s.token(of, from), nil
	}
	if to == rows {
		return from, to, "", nil
	}
	return from, to, s.token(of, max(to-s.faults.Again, from+1)), nil
}

// token returns a new token, of which nothing can be read.
func (s *Server) token(of string, offset int) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], portable.Mix(s.faults.Seed, uint64(len(s.tokens))))
	t := hex.EncodeToString(b[:])
	s.tokens[t] = place{of, offset}
	return t
}

// query is the protocol of EC2: a form goes in and XML comes out.
type query struct{ *Server }

func (q query) answer(c *Call, _ []byte) (answer, *apiError) {
	if code := q.faults.Deny[c.Action]; code != "" {
		return answer{}, denied(code)
	}
	r := q.state.Regions[c.Region]
	if r == nil {
		return answer{}, errNoAuth
	}
	var result any
	var no *apiError
	switch c.Action {
	case "DescribeAvailabilityZones":
		if q.faults.ZonesDown {
			return answer{}, errInternal
		}
		result = q.describeAvailabilityZones(c.Region, r)
	case "DescribeRegions":
		result = q.describeRegions()
	case "DescribeSpotPriceHistory":
		result, no = q.describeSpotPriceHistory(c.Region, r, c.Form)
	case "GetSpotPlacementScores":
		result, no = q.getSpotPlacementScores(c.Form)
	case "DescribeInstanceTypes":
		result, no = q.describeInstanceTypes(c.Region, r, c.Form)
	case "DescribeInstanceTypeOfferings":
		result, no = q.describeInstanceTypeOfferings(c.Region, r, c.Form)
	default:
		no = errUnknown(c.Action)
	}
	if no != nil {
		return answer{}, no
	}
	return answer{"text/xml;charset=UTF-8", marshalXML(result)}, nil
}

func (q query) refuse(no *apiError) answer {
	type fault struct {
		XMLName   xml.Name `xml:"Response"`
		Code      string   `xml:"Errors>Error>Code"`
		Message   string   `xml:"Errors>Error>Message"`
		RequestID string   `xml:"RequestID"`
	}
	return answer{"text/xml;charset=UTF-8", marshalXML(fault{Code: no.code, Message: no.message, RequestID: "0"})}
}

func marshalXML(v any) []byte {
	body, err := xml.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fake: %v", err)) // only of types of this package
	}
	return append([]byte(xml.Header), body...)
}

func marshalJSON(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fake: %v", err)) // only of types of this package
	}
	return body
}
