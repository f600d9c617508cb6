package run

import (
	"compress/gzip"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// oneSpan is a batch.
var oneSpan = []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{Name: "decide"}}}}}}

// spanName reads a batch and returns the name of its first span.
func spanName(r *http.Request) (string, error) {
	body := r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return "", err
		}
		body = z
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return "", err
	}
	var batch tracepb.TracesData
	if err := proto.Unmarshal(text, &batch); err != nil {
		return "", err
	}
	return batch.ResourceSpans[0].ScopeSpans[0].Spans[0].Name, nil
}

func TestTraceClient(t *testing.T) {
	refusal := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 3)
	refusal = protowire.AppendString(protowire.AppendTag(refusal, 2, protowire.BytesType), "too old")
	refusal = protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), refusal)
	for _, c := range []struct {
		name   string
		env    map[string]string // URL is replaced by that of the collector
		path   string
		answer func(w http.ResponseWriter, nth int32)
		posts  int32
		err    string
	}{
		{name: "all signals", env: map[string]string{"ENDPOINT": "URL"}, path: "/v1/traces", posts: 1},
		{name: "a path for all signals", env: map[string]string{"ENDPOINT": "URL/otlp/"}, path: "/otlp/v1/traces", posts: 1},
		{name: "traces alone", env: map[string]string{"ENDPOINT": "http://nowhere.invalid", "TRACES_ENDPOINT": "URL/mine"},
			path: "/mine", posts: 1},
		{name: "headers and compression", env: map[string]string{"ENDPOINT": "URL", "HEADERS": "x-key=a%20b, x-team=c=d",
			"COMPRESSION": "gzip"}, path: "/v1/traces", posts: 1},
		{name: "busy", env: map[string]string{"ENDPOINT": "URL"}, path: "/v1/traces", posts: 2, answer: func(w http.ResponseWriter, nth int32) {
			if nth == 1 {
				http.Error(w, "busy", http.StatusServiceUnavailable)
			}
		}},
		{name: "busy for too long", env: map[string]string{"ENDPOINT": "URL", "TIMEOUT": "200"}, path: "/v1/traces",
			posts: 1, err: "429", answer: func(w http.ResponseWriter, _ int32) {
				w.Header().Set("Retry-After", "60")
				http.Error(w, "busy", http.StatusTooManyRequests)
			}},
		{name: "refused", env: map[string]string{"ENDPOINT": "URL"}, path: "/v1/traces", posts: 1, err: "no such tenant",
			answer: func(w http.ResponseWriter, _ int32) {
				http.Error(w, "no such tenant", http.StatusBadRequest)
			}},
		{name: "rejected in part", env: map[string]string{"ENDPOINT": "URL"}, path: "/v1/traces", posts: 1,
			err: `rejected 3 spans: "too old"`, answer: func(w http.ResponseWriter, _ int32) {
				_, _ = w.Write(refusal)
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var posts atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				nth := posts.Add(1)
				name, err := spanName(r)
				if err != nil || name != "decide" || r.Method != http.MethodPost || r.URL.Path != c.path ||
					r.Header.Get("Content-Type") != "application/x-protobuf" {
					t.Errorf("%s %s (%s): span %q, %v", r.Method, r.URL.Path, r.Header.Get("Content-Type"), name, err)
				}
				if c.env["HEADERS"] != "" && (r.Header.Get("X-Key") != "a b" || r.Header.Get("X-Team") != "c=d" ||
					r.Header.Get("Content-Encoding") != "gzip") {
					t.Errorf("headers %v", r.Header)
				}
				if c.answer != nil {
					c.answer(w, nth)
				}
			}))
			defer server.Close()
			for name, v := range c.env {
				t.Setenv("OTEL_EXPORTER_OTLP_"+name, strings.Replace(v, "URL", server.URL, 1))
			}
			client, err := newTraceClient()
			if err != nil {
				t.Fatal(err)
			}
			err = client.UploadTraces(t.Context(), oneSpan)
			if (err == nil) != (c.err == "") || !strings.Contains(fmt.Sprint(err), c.err) && err != nil {
				t.Errorf("error %v, want %q", err, c.err)
			}
			if n := posts.Load(); n != c.posts {
				t.Errorf("%d requests, want %d", n, c.posts)
			}
		})
	}
}

func TestTraceClientTrusts(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	server.Config.ErrorLog = nil
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "300")
	for _, trusts := range []bool{false, true} {
		if trusts {
			file := filepath.Join(t.TempDir(), "ca.pem")
			text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", file)
		}
		client, err := newTraceClient()
		if err != nil {
			t.Fatal(err)
		}
		if err := client.UploadTraces(t.Context(), oneSpan); (err == nil) != trusts {
			t.Errorf("with the certificate %v: %v", trusts, err)
		}
	}
}

func TestTraceSettingsAreRefused(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, value, want string }{
		{"PROTOCOL", "grpc", `OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" is not supported`},
		{"TRACES_PROTOCOL", "http/json", `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/json"`},
		{"ENDPOINT", "collector:4318", `OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318"`},
		{"TRACES_ENDPOINT", "grpc://collector", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"},
		{"COMPRESSION", "zstd", `"zstd" is neither gzip nor none`},
		{"TIMEOUT", "10s", `"10s" is not a positive number of milliseconds`},
		{"TIMEOUT", "0", "OTEL_EXPORTER_OTLP_TIMEOUT"},
		{"HEADERS", "x-a=b,secret", "OTEL_EXPORTER_OTLP_HEADERS: header 2"},
		{"CERTIFICATE", empty, "has no certificate"},
		{"CERTIFICATE", empty + ".missing", "OTEL_EXPORTER_OTLP_CERTIFICATE"},
		{"CLIENT_CERTIFICATE", empty, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"},
	} {
		t.Run(c.name+"="+filepath.Base(c.value), func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
			t.Setenv("OTEL_EXPORTER_OTLP_"+c.name, c.value)
			if _, err := newTraceClient(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
