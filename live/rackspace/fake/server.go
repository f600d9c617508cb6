package fake

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/spotter-dev/spotter/policy"
)

const (
	spotPools       = "spotnodepools"
	onDemandPools   = "ondemandnodepools"
	cloudspaceLabel = "ngpc.rxt.io/cloudspace"
)

// PricesPath is where the price feed is served.
const PricesPath = "/percentiles.json"

// A Call is a request that came, and when it was answered.
type Call struct {
	At           policy.Time
	Method, Path string
	Status       int // 0 where the connection was lost
	Body         string
}

// A Server answers as Rackspace Spot would. It is an http.Handler.
type Server struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	state  State
	faults Faults
	pools  map[string]*pool
	calls  []Call
	count  uint64
	serial int
	ended  []Life
	issued map[string]time.Time // access tokens and their ends
}

// New returns a server of state that lives by clock.
func New(state State, clock clock.PassiveClock) *Server {
	return &Server{clock: clock, state: state, pools: map[string]*pool{}, issued: map[string]time.Time{}}
}

// SetFaults replaces the faults.
func (s *Server) SetFaults(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults, s.count = f, 0
}

// Calls returns the requests so far.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// Revoke ends all access tokens.
func (s *Server) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issued = map[string]time.Time{}
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	s.mu.Lock()
	f, n := s.faults, s.count
	s.count++
	s.mu.Unlock()
	if f.Slow > 0 {
		time.Sleep(f.Slow)
	}
	what := f.draw(n)
	if what == reset {
		s.log(r, 0, body)
		panic(http.ErrAbortHandler)
	}
	answer := httptest.NewRecorder()
	if !s.fail(answer, r, &f, what) {
		s.mu.Lock()
		api{s}.route(answer, r, body)
		s.mu.Unlock()
	}
	out := answer.Body.Bytes()
	if what == lost {
		s.log(r, 0, body)
		panic(http.ErrAbortHandler)
	}
	s.log(r, answer.Code, body)
	for k, v := range answer.Header() {
		w.Header()[k] = v
	}
	if what == truncated && len(out) > 1 {
		out = out[:len(out)/2]
	}
	w.WriteHeader(answer.Code)
	if _, err := w.Write(out); err != nil {
		panic(http.ErrAbortHandler)
	}
}

func (s *Server) log(r *http.Request, status int, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := string(body)
	if strings.HasPrefix(r.URL.Path, "/oauth/") {
		text = "" // it holds a secret
	}
	s.calls = append(s.calls, Call{s.now(), r.Method, r.URL.RequestURI(), status, text})
}

// fail answers with a fault, if one is to come.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, f *Faults, what mishap) bool {
	if f.Hook != nil {
		if code, body := f.Hook(r); code != 0 {
			w.WriteHeader(code)
			fmt.Fprint(w, body)
			return true
		}
	}
	switch what {
	case throttled:
		if f.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter/time.Second)))
		}
		refuse(w, http.StatusTooManyRequests, "TooManyRequests", "too many requests")
	case internal:
		refuse(w, http.StatusInternalServerError, "InternalError", "internal error")
	case unavailable:
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, "<html>\n<body>upstream unavailable</body>\n</html>")
	case conflict:
		refuse(w, http.StatusConflict, "Conflict",
			"the object has been modified; please apply your changes to the latest version")
	case expired:
		if strings.HasPrefix(r.URL.Path, "/oauth/") || r.URL.Path == PricesPath {
			return false
		}
		refuse(w, http.StatusUnauthorized, "Unauthorized", "Unauthorized")
	default:
		return false
	}
	return true
}

// refuse writes a Kubernetes status.
func refuse(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	send(w, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason,
		"message": message, "code": code})
}

func send(w io.Writer, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(err)
	}
}

// route answers a request; s.mu is held.
func (a api) route(w http.ResponseWriter, r *http.Request, body []byte) {
	path := r.URL.Path
	switch {
	case path == "/oauth/token" && r.Method == http.MethodPost:
		a.login(w, string(body))
		return
	case path == PricesPath:
		a.prices(w)
		return
	}
	if end, ok := a.s.issued[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]; !ok ||
		!a.s.clock.Now().Before(end) {
		refuse(w, http.StatusUnauthorized, "Unauthorized", "Unauthorized")
		return
	}
	namespaced, inside := strings.CutPrefix(path, "/apis/ngpc.rxt.io/v1/namespaces/"+a.s.namespace()+"/")
	switch part := strings.Split(namespaced, "/"); {
	case path == "/apis/auth.ngpc.rxt.io/v1/organizations":
		send(w, map[string]any{"organizations": []any{map[string]any{"name": a.s.state.Organization, "id": a.s.state.ID,
			"display": "x"}}})
	case path == "/apis/ngpc.rxt.io/v1/serverclasses":
		a.classes(w, r)
	case inside && len(part) == 2 && part[0] == "cloudspaces":
		a.cloudspace(w, part[1])
	case inside && (part[0] == spotPools || part[0] == onDemandPools):
		a.nodePools(w, r, part, body)
	default:
		refuse(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
	}
}

// login gives an access token for the refresh token.
func (a api) login(w http.ResponseWriter, form string) {
	if !strings.Contains(form, "refresh_token="+a.s.state.Refresh) || !strings.Contains(form, "grant_type=refresh_token") {
		w.WriteHeader(http.StatusForbidden)
		send(w, map[string]any{"error": "invalid_grant", "error_description": "Unknown or invalid refresh token."})
		return
	}
	end := a.s.clock.Now().Add(a.s.state.TokenLife)
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	token := part(map[string]string{"alg": "none"}) + "." + part(map[string]any{"exp": end.Unix(),
		"n": len(a.s.issued)}) + ".x"
	a.s.issued[token] = end
	send(w, map[string]any{"id_token": token, "token_type": "Bearer"})
}

func (a api) cloudspace(w http.ResponseWriter, name string) {
	region, ok := a.s.state.Regions[name]
	if !ok {
		refuse(w, http.StatusNotFound, "NotFound", "cloudspaces.ngpc.rxt.io \""+name+"\" not found")
		return
	}
	send(w, map[string]any{
		"apiVersion": "ngpc.rxt.io/v1", "kind": "CloudSpace", "metadata": map[string]any{"name": name},
		"spec":   map[string]any{"region": region, "cloud": "default", "webhook": ""},
		"status": map[string]any{"phase": "Ready", "health": "Healthy"},
	})
}

func (s *Server) now() policy.Time { return policy.TimeOf(s.clock.Now()) }
