package live

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"
)

// A reviewServer answers TokenReviews and SubjectAccessReviews as an API server does. It
// knows the tokens "scraper" and "stranger", and only users of the group "scrapers" may
// get /metrics.
type reviewServer struct {
	tokens, access atomic.Int32

	// revoked takes the scraper's right away; brokenTokens and brokenAccess have the reviews fail.
	revoked, brokenTokens, brokenAccess atomic.Bool
}

func (s *reviewServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.Method + " " + r.URL.Path {
	case "POST /apis/authentication.k8s.io/v1/tokenreviews":
		s.tokens.Add(1)
		reply(w, r, s.brokenTokens.Load(), s.authenticate)
	case "POST /apis/authorization.k8s.io/v1/subjectaccessreviews":
		s.access.Add(1)
		reply(w, r, s.brokenAccess.Load(), s.authorize)
	default:
		http.NotFound(w, r)
	}
}

func (s *reviewServer) authenticate(review *authenticationv1.TokenReview) {
	switch review.Spec.Token {
	case "scraper":
		review.Status.Authenticated = true
		review.Status.User = authenticationv1.UserInfo{Username: "prometheus", UID: "7", Groups: []string{"scrapers"},
			Extra: map[string]authenticationv1.ExtraValue{"pod": {"p-0"}}}
	case "stranger":
		review.Status.Authenticated = true
		review.Status.User = authenticationv1.UserInfo{Username: "passer-by"}
	default:
		review.Status.Error = "invalid bearer token"
	}
}

func (s *reviewServer) authorize(review *authorizationv1.SubjectAccessReview) {
	a := review.Spec.NonResourceAttributes
	known := review.Spec.UID == "7" && len(review.Spec.Extra["pod"]) == 1 && slices.Contains(review.Spec.Groups, "scrapers")
	review.Status.Allowed = known && a != nil && a.Path == "/metrics" && a.Verb == "get"
	review.Status.Denied = s.revoked.Load()
}

// reply reads a review, completes it and writes it back.
func reply[T any](w http.ResponseWriter, r *http.Request, broken bool, complete func(*T)) {
	if broken {
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}`,
			http.StatusInternalServerError)
		return
	}
	review := new(T)
	if err := json.NewDecoder(r.Body).Decode(review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	complete(review)
	_ = json.NewEncoder(w).Encode(review)
}

// guardedMetrics returns a handler behind the filter that a manager would have, and the
// clock that its decisions age by.
func guardedMetrics(t *testing.T, s *reviewServer) (http.Handler, *testclock.FakeClock) {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	cfg := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c := testclock.NewFakeClock(time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC))
	g, err := newScrapeGuard(cfg, client, utilcache.NewLRUExpireCacheWithClock(scrapeDecisionsMax, c))
	if err != nil {
		t.Fatal(err)
	}
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "spotter_leader 1") })
	guarded, err := g.filter(logr.Discard(), metrics)
	if err != nil {
		t.Fatal(err)
	}
	return guarded, c
}

// ask sends a request with an Authorization header, which may be empty, and fails the test
// unless it is answered with status, and with metrics in no other case than 200.
func ask(t *testing.T, h http.Handler, method, path, header string, status int) {
	t.Helper()
	r := httptest.NewRequest(method, path, http.NoBody)
	if header != "" {
		r.Header.Set("Authorization", header)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != status || strings.Contains(w.Body.String(), "spotter_leader") != (status == http.StatusOK) {
		t.Errorf("%s %s with %q: %d %q, want %d", method, path, header, w.Code, w.Body, status)
	}
}

func TestScrapeGuard(t *testing.T) {
	h, _ := guardedMetrics(t, &reviewServer{})
	for _, c := range []struct {
		method, path, header string
		status               int
	}{
		{"GET", "/metrics", "", http.StatusUnauthorized},
		{"GET", "/metrics", "Bearer", http.StatusUnauthorized},
		{"GET", "/metrics", "Bearer ", http.StatusUnauthorized},
		{"GET", "/metrics", "scraper", http.StatusUnauthorized},
		{"GET", "/metrics", "Basic scraper", http.StatusUnauthorized},
		{"GET", "/metrics", "Bearer forged", http.StatusUnauthorized},
		{"GET", "/metrics", "Bearer scraper more", http.StatusUnauthorized},
		{"GET", "/metrics", "Bearer stranger", http.StatusForbidden},
		{"GET", "/metrics", "Bearer scraper", http.StatusOK},
		{"GET", "/metrics", "bearer  scraper", http.StatusOK},
		{"POST", "/metrics", "Bearer scraper", http.StatusForbidden},
		{"GET", "/debug", "Bearer scraper", http.StatusForbidden},
	} {
		ask(t, h, c.method, c.path, c.header, c.status)
	}
}

func TestScrapeGuardReusesDecisions(t *testing.T) {
	s := &reviewServer{}
	h, c := guardedMetrics(t, s)
	for range 3 {
		ask(t, h, "GET", "/metrics", "Bearer scraper", http.StatusOK)
	}
	if s.tokens.Load() != 1 || s.access.Load() != 1 {
		t.Errorf("%d TokenReviews and %d SubjectAccessReviews for one token, want 1 and 1", s.tokens.Load(), s.access.Load())
	}
	s.revoked.Store(true)
	c.Step(scrapeAllowed + time.Second)
	ask(t, h, "GET", "/metrics", "Bearer scraper", http.StatusForbidden)
	s.revoked.Store(false)
	ask(t, h, "GET", "/metrics", "Bearer scraper", http.StatusForbidden)
	c.Step(scrapeRefused + time.Second)
	ask(t, h, "GET", "/metrics", "Bearer scraper", http.StatusOK)
}

func TestScrapeGuardRefusesWithoutAPIServer(t *testing.T) {
	s := &reviewServer{}
	h, _ := guardedMetrics(t, s)
	for _, broken := range []*atomic.Bool{&s.brokenTokens, &s.brokenAccess} {
		broken.Store(true)
		ask(t, h, "GET", "/metrics", "Bearer scraper", http.StatusInternalServerError)
		broken.Store(false)
	}
	ask(t, h, "GET", "/metrics", "Bearer scraper", http.StatusOK)
}
