package live

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// scrapeAllowed and scrapeRefused are how long a decision of the API server is reused. A
	// revoked right remains effective for at most scrapeAllowed.
	scrapeAllowed = time.Minute
	scrapeRefused = 10 * time.Second

	// scrapeDecisionsMax limits the memory that requests with invalid tokens can occupy.
	scrapeDecisionsMax = 1024

	scrapeTimeout = 10 * time.Second
)

// A scrapeGuard allows a request for metrics if the API server authenticates its bearer token
// (TokenReview) and authorizes its user for the path (SubjectAccessReview). The filter of
// controller-runtime does the same, but links 120 packages for it, including CEL.
type scrapeGuard struct {
	tokens    authenticationclient.TokenReviewInterface
	access    authorizationclient.SubjectAccessReviewInterface
	decisions *utilcache.LRUExpireCache
}

// A scrape identifies a request. It contains only the hash of the token, so that no memory dump
// contains the token.
type scrape struct {
	token      [sha256.Size]byte
	verb, path string
}

// A scrapeDecision is an HTTP status, 200 if the request is allowed, and the text for the client.
type scrapeDecision struct {
	status int
	text   string
}

// guardMetrics is a metricsserver.Options.FilterProvider.
func guardMetrics(cfg *rest.Config, c *http.Client) (metricsserver.Filter, error) {
	g, err := newScrapeGuard(cfg, c, utilcache.NewLRUExpireCache(scrapeDecisionsMax))
	if err != nil {
		return nil, err
	}
	return g.filter, nil
}

func newScrapeGuard(cfg *rest.Config, c *http.Client, decisions *utilcache.LRUExpireCache) (*scrapeGuard, error) {
	authentication, err := authenticationclient.NewForConfigAndClient(cfg, c)
	if err != nil {
		return nil, fmt.Errorf("client of TokenReviews: %w", err)
	}
	authorization, err := authorizationclient.NewForConfigAndClient(cfg, c)
	if err != nil {
		return nil, fmt.Errorf("client of SubjectAccessReviews: %w", err)
	}
	return &scrapeGuard{authentication.TokenReviews(), authorization.SubjectAccessReviews(), decisions}, nil
}

// filter is a metricsserver.Filter.
func (g *scrapeGuard) filter(log logr.Logger, next http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		decision, err := g.decide(r)
		if err != nil {
			log.Error(err, "a request for metrics was refused: the API server could not be reached")
			http.Error(w, "the API server could not be reached", http.StatusInternalServerError)
			return
		}
		if decision.status != http.StatusOK {
			http.Error(w, decision.text, decision.status)
			return
		}
		next.ServeHTTP(w, r)
	}), nil
}

// decide returns the decision for r. An error rejects this request and is not cached.
func (g *scrapeGuard) decide(r *http.Request) (scrapeDecision, error) {
	token := bearerToken(r)
	if token == "" {
		return scrapeDecision{http.StatusUnauthorized, "Unauthorized"}, nil
	}
	s := scrape{sha256.Sum256([]byte(token)), strings.ToLower(r.Method), r.URL.Path}
	if known, ok := g.decisions.Get(s); ok {
		return known.(scrapeDecision), nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), scrapeTimeout)
	defer cancel()
	decision, err := g.review(ctx, token, s)
	if err != nil {
		return scrapeDecision{}, err
	}
	ttl := scrapeRefused
	if decision.status == http.StatusOK {
		ttl = scrapeAllowed
	}
	g.decisions.Add(s, decision, ttl)
	return decision, nil
}

// review requests the decision from the API server.
func (g *scrapeGuard) review(ctx context.Context, token string, s scrape) (scrapeDecision, error) {
	who, err := g.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}},
		metav1.CreateOptions{})
	if err != nil {
		return scrapeDecision{}, fmt.Errorf("TokenReview: %w", err)
	}
	if !who.Status.Authenticated {
		return scrapeDecision{http.StatusUnauthorized, "Unauthorized"}, nil
	}
	user := who.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	may, err := g.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: s.path, Verb: s.verb},
	}}, metav1.CreateOptions{})
	if err != nil {
		return scrapeDecision{}, fmt.Errorf("SubjectAccessReview of %q: %w", user.Username, err)
	}
	if !may.Status.Allowed || may.Status.Denied {
		return scrapeDecision{http.StatusForbidden, fmt.Sprintf("user %q may not %s %s", user.Username, s.verb, s.path)}, nil
	}
	return scrapeDecision{status: http.StatusOK}, nil
}

// bearerToken returns the token of r's Authorization header, or "".
func bearerToken(r *http.Request) string {
	scheme, token, ok := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !ok || !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
