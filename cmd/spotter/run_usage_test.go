package main

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/cluster"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// TestUsageCall refuses what cannot be meant of Prometheus, by field and value.
func TestUsageCall(t *testing.T) {
	none, junk := filepath.Join(t.TempDir(), "none"), file(t, "junk.pem", "no certificate")
	const url = "https://prometheus.monitoring:9090"
	for want, prometheus := range map[string]string{
		"usage.prometheus.url: Required value: Prometheus is not asked without it": "cpuQuery: up",
		`usage.prometheus.url: "prometheus:9090" does not have the form`:           "url: 'prometheus:9090'",
		"usage.prometheus.url: http://a:xxxxx@b holds a user or a password":        "url: 'http://a:b@b'",
		"usage.prometheus.tokenFile: " + none:                                      "url: '" + url + "', tokenFile: " + none,
		"usage.prometheus.caFile: " + none:                                         "url: '" + url + "', caFile: " + none,
		"usage.prometheus.caFile: unable to load root certificates":                "url: '" + url + "', caFile: " + junk,
		"usage.prometheus.memoryQuery: the query is empty":                         "url: '" + url + "', memoryQuery: ''",
		`usage.prometheus.timeout: Invalid value: "-1s": must be within`:           "url: '" + url + "', timeout: -1s",
		"usage.prometheus.timeout: Invalid value: 10: must be a duration, as 10m":  "url: '" + url + "', timeout: 10",
	} {
		path := configured(t, "usage: {prometheus: {"+prometheus+"}}")
		wrongCallIs(t, path+": "+want, "run", "--config", path)
	}
}

// TestRunUsage reads usage from a Prometheus that wants a token, over TLS by an
// authority of its own, and asks no metrics-server.
func TestRunUsage(t *testing.T) {
	s := newStage(t, shadowRules)
	createForTest(t, s.env, testenv.Node("n1", "4", "16Gi"))
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.URL.Path != "/prefix/api/v1/query" || !strings.Contains(r.FormValue("query"), "container_") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		fmt.Fprintf(w,
			`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"node":"n1"},"value":[%d,"2"]}]}}`, metav1.Now().Unix())
	}))
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	token := file(t, "token", "sesame\n")
	prometheus := "usage: {prometheus: {url: '" + server.URL + "/prefix', caFile: " + ca
	mark := s.env.Mark()
	a := s.start(t, prometheus+", tokenFile: "+token+"}}", "stepInterval: 2s")
	usageIs(t, s, metav1.ConditionTrue, "Measured")
	if n := len(s.env.Audit(t, mark, func(e testenv.AuditEvent) bool { return e.User == "spotter" && e.Group == "metrics.k8s.io" })); n > 0 {
		t.Errorf("metrics-server was asked %d times beside Prometheus", n)
	}
	testenv.Eventually(t, "the metrics have the age of usage", func() error { // they are published after the status
		if body := get(t, a.metric); !strings.Contains(body, `spotter_source_age_seconds{source="usage"}`) {
			return errors.New("they lack it")
		}
		return nil
	})
	stop(t, a)
	b := s.start(t, prometheus+"}}", "stepInterval: 2s")
	usageIs(t, s, metav1.ConditionFalse, "Unauthorized")
	stop(t, b)
}

// usageIs waits until the pool says of usage what it is to say.
func usageIs(t *testing.T, s *stage, status metav1.ConditionStatus, reason string) {
	t.Helper()
	testenv.Eventually(t, "usage is "+reason, func() error {
		var p v1alpha1.CapacityPool
		if err := s.env.Client.Get(t.Context(), client.ObjectKey{Name: "web"}, &p); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(p.Status.Conditions, cluster.ConditionUsage); c == nil || c.Status != status || c.Reason != reason {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
}
