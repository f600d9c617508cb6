package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/spotter-dev/spotter/test/testenv"
)

// A traceSink is a collector that keeps the names of spans and of their services.
type traceSink struct {
	mu       sync.Mutex
	spans    map[string]int
	services map[string]bool
}

func (s *traceSink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var batch tracepb.TracesData
	if err := errors.Join(err, proto.Unmarshal(body, &batch)); err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, fmt.Sprintf("%s: %v", r.URL.Path, err), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range batch.ResourceSpans {
		for _, a := range r.Resource.Attributes {
			if a.Key == "service.name" {
				s.services[a.Value.GetStringValue()] = true
			}
		}
		for _, scope := range r.ScopeSpans {
			for _, span := range scope.Spans {
				s.spans[span.Name]++
			}
		}
	}
}

// TestRunTelemetry: metrics are served over TLS, only to authenticated clients that may read
// them; and the spans of a step arrive at a collector.
func TestRunTelemetry(t *testing.T) {
	sink := &traceSink{spans: map[string]int{}, services: map[string]bool{}}
	server := httptest.NewServer(sink)
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_SERVICE_NAME", "spotter-test")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100")

	s := newStage(t, shadowRules)
	r := s.start(t, "metrics: {secure: true}")
	s.leads(t, r)
	url := strings.Replace(r.metric, "http://", "https://", 1)
	reader := s.env.ServiceAccount(t, s.namespace, "reader", rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}})
	stranger := s.env.ServiceAccount(t, s.namespace, "stranger")
	for _, c := range []struct {
		who, token string
		want       int
	}{
		{"nobody", "", http.StatusUnauthorized},
		{"a stranger", stranger.BearerToken, http.StatusForbidden},
		{"a reader", reader.BearerToken, http.StatusOK},
	} {
		testenv.Eventually(t, c.who+" is answered", func() error {
			status, body, err := scrape(t.Context(), url, c.token)
			switch {
			case err != nil:
				return err
			case status != c.want:
				return fmt.Errorf("%s gets %d, want %d", c.who, status, c.want)
			case (status == http.StatusOK) != strings.Contains(body, "spotter_leader 1"):
				return fmt.Errorf("%s reads %d bytes", c.who, len(body))
			}
			return nil
		})
	}
	testenv.Eventually(t, "the spans of a step arrive", func() error {
		sink.mu.Lock()
		defer sink.mu.Unlock()
		for _, name := range []string{"step", "observe", "decide", "save"} {
			if sink.spans[name] == 0 {
				return fmt.Errorf("no span %s among %v", name, sink.spans)
			}
		}
		if !sink.services["spotter-test"] {
			return errors.New("they do not say whose they are")
		}
		return nil
	})
}

// scrape reads metrics with a token, which may be empty.
func scrape(ctx context.Context, url, token string) (status int, body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}} //nolint:gosec // its certificate is its own
	answer, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}
