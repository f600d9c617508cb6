package fake

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Call is a request that was answered. Action is that of IAM, such as
// "autoscaling:SetDesiredCapacity".
type Call struct {
	Action string
	Status int
	Form   url.Values // of a query
	Body   string     // of a REST request
}

// Write reports whether the call was to change something.
func (c *Call) Write() bool {
	_, name, _ := strings.Cut(c.Action, ":")
	return !strings.HasPrefix(name, "Describe") && !strings.HasPrefix(name, "List") && !strings.HasPrefix(name, "Get")
}

// Delays are how long things take by the server's clock.
type Delays struct {
	Start     time.Duration // from a new desired size to the first launch or end
	Boot      time.Duration // from Pending to InService
	End       time.Duration // from Terminating to gone
	Hook      time.Duration // that a termination hook adds
	Retry     time.Duration // from a refused launch to the next try
	Rebalance time.Duration // from unbalanced zones to doing something about it
	Update    time.Duration // of a managed node group
}

// A Server answers as AWS would. It is an http.Handler and may be used by any
// number of clients at once.
type Server struct {
	// Delays are read whenever an operation starts; set them before the first use.
	Delays Delays

	region string
	mu     sync.Mutex
	groups *groupSim
	iam    *iamPolicy
	faults Faults
	calls  []Call
	before func(Call) error
	lose   bool
	tokens map[string]int
}

// New returns a server whose clock is at now.
func New(region string, now time.Time) *Server {
	s := &Server{
		Delays: Delays{Start: 5 * time.Second, Boot: 30 * time.Second, End: 40 * time.Second, Hook: time.Minute,
			Retry: time.Minute, Rebalance: time.Minute, Update: 20 * time.Second},
		region: region, tokens: map[string]int{},
	}
	s.groups = &groupSim{delays: &s.Delays, faults: &s.faults, region: region, clock: now, byName: map[string]*held{},
		shut: map[string]bool{}}
	s.iam = &iamPolicy{region: region, groups: s.groups}
	return s
}

// AddGroup adds a group with its desired number of instances in service.
func (s *Server) AddGroup(g Group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &held{Group: g.clone(), ngTags: map[string]string{}, status: "ACTIVE"}
	if h.Tags == nil {
		h.Tags = map[string]string{}
	}
	if h.Nodegroup != "" {
		h.Tags["eks:nodegroup-name"], h.Tags["eks:cluster-name"] = h.Nodegroup, h.Cluster
	}
	s.groups.byName[g.Name] = h
	for h.live() < h.Desired && s.groups.launch(h, h.zones(), "the making of the group") {
		h.Instances[len(h.Instances)-1].State = InService
		h.activities[0].Status, h.activities[0].End = "Successful", s.groups.clock
	}
	s.groups.keep()
}

// DropGroup makes a group vanish with its instances.
func (s *Server) DropGroup(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.groups.byName, name)
}

// Edit lets f change a group as its owner would. What f does to instances is not
// looked at.
func (s *Server) Edit(name string, f func(*Group)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.groups.byName[name].Group)
	s.groups.keep()
}

// Group returns a copy of a group as it is now.
func (s *Server) Group(name string) Group {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.groups.byName[name].clone()
}

// NodegroupTags returns the tags of the managed node group of a group.
func (s *Server) NodegroupTags(name string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.groups.byName[name].ngTags)
}

// Ended returns the instances that were asked to end, in that order.
func (s *Server) Ended() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.groups.ended)
}

// Complete lets an instance out of Pending:Wait.
func (s *Server) Complete(group, instance string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.groups.byName[group].find(instance); i != nil && i.State == PendingWait {
		i.State = InService
	}
	s.groups.keep()
}

// Shut takes the capacity of markets away, and Open gives it back.
func (s *Server) Shut(markets ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups.setShut(true, markets)
}

// Open gives markets their capacity back.
func (s *Server) Open(markets ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups.setShut(false, markets)
}

// Now returns the server's clock.
func (s *Server) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.groups.clock
}

// Advance moves the clock on in steps of at most five seconds, and lets each
// group do what is due.
func (s *Server) Advance(d time.Duration) {
	const step = 5 * time.Second
	s.mu.Lock()
	defer s.mu.Unlock()
	for ; d > 0; d -= step {
		s.groups.clock = s.groups.clock.Add(min(d, step))
		for _, name := range slices.Sorted(maps.Keys(s.groups.byName)) {
			s.groups.react(s.groups.byName[name])
		}
	}
	s.groups.keep()
}

// SetFaults replaces the faults.
func (s *Server) SetFaults(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
	s.groups.keep()
}

// SetBefore calls f with each request before it is carried out; nil ends that.
// An error of f breaks the connection: the request never arrived. f may itself
// use the server.
func (s *Server) SetBefore(f func(Call) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// LoseNext has the next request, or the one that SetBefore's function learns of,
// carried out without an answer.
func (s *Server) LoseNext() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose = true
}

// Calls returns the requests so far.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Forget empties the list of requests.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = nil
}

// An answer is what goes over the wire.
type answer struct {
	status int
	kind   string // of content
	fault  string // for the header that REST services name errors in
	body   []byte
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, err := s.serve(r)
	if err != nil {
		panic(http.ErrAbortHandler) // the client sees a broken connection
	}
	w.Header().Set("Content-Type", a.kind)
	if a.fault != "" {
		w.Header().Set("X-Amzn-ErrorType", a.fault)
	}
	w.WriteHeader(a.status)
	w.Write(a.body) //nolint:errcheck // a client that is gone is its own affair
}

// Do answers a request without a connection, so that the SDK can be given the
// server in place of an HTTP client.
func (s *Server) Do(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	a, err := s.serve(r)
	if err != nil {
		return nil, err
	}
	h := http.Header{"Content-Type": {a.kind}}
	if a.fault != "" {
		h.Set("X-Amzn-ErrorType", a.fault)
	}
	return &http.Response{StatusCode: a.status, Status: http.StatusText(a.status), Proto: "HTTP/1.1", ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     h, Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: r}, nil
}

// serve carries a request out. An error breaks the connection.
func (s *Server) serve(r *http.Request) (answer, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return answer{}, err
		}
	}
	c, p, err := s.protocolOf(r, body)
	if err != nil {
		return answer{http.StatusBadRequest, "text/plain", "", []byte(err.Error())}, nil
	}
	s.mu.Lock()
	before := s.before
	s.mu.Unlock()
	if before != nil {
		if err := before(*c); err != nil {
			return answer{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	hit, no := s.faults.draw(len(s.calls), c)
	if s.lose {
		hit, no, s.lose = lost, nil, false
	}
	if no == nil {
		no = s.iam.denied(c, p)
	}
	var a answer
	if no == nil {
		a, no = p.answer(c)
	}
	if no != nil {
		a = p.refuse(no)
	}
	c.Status = a.status
	s.calls = append(s.calls, *c)
	s.groups.keep()
	if hit == lost {
		return answer{}, fmt.Errorf("fake: the answer to %s got lost: %w", c.Action, io.ErrUnexpectedEOF)
	}
	return a, nil
}

// A protocol is how a service speaks.
type protocol interface {
	answer(c *Call) (answer, *apiError)
	refuse(no *apiError) answer
}

// protocolOf finds out what is asked and in which protocol, by the service that
// the signature is for (AWS documentation, "Signature Version 4":
// Credential=key/date/region/service/aws4_request).
func (s *Server) protocolOf(r *http.Request, body []byte) (*Call, protocol, error) {
	_, scope, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	parts := strings.Split(scope, "/")
	if len(parts) < 5 {
		return nil, nil, fmt.Errorf("the request is not signed")
	}
	c := &Call{Body: string(body)}
	switch service := parts[3]; service {
	case "autoscaling", "ec2":
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, nil, err
		}
		c.Form, c.Action = form, service+":"+form.Get("Action")
		if service == "ec2" {
			return c, compute{s}, nil
		}
		return c, scaling{s}, nil
	case "eks":
		p := &managed{Server: s, path: r.URL.Path, query: r.URL.Query()}
		c.Action = p.action(r.Method)
		return c, p, nil
	default:
		return nil, nil, fmt.Errorf("service %q is not served", service)
	}
}

// Has reports whether there is a group.
func (s *Server) Has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.groups.byName[name] != nil
}
