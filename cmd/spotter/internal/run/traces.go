package run

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/spotter-dev/spotter/internal/cli"
)

const (
	// traceFlush bounds how long an unreachable collector delays the exit of the process.
	traceFlush = 2 * time.Second

	// traceTimeout bounds the upload of a batch including retries, unless
	// OTEL_EXPORTER_OTLP_TIMEOUT is set.
	traceTimeout = 10 * time.Second

	// traceRetry is the delay before the first retry. It doubles with each retry.
	traceRetry = 500 * time.Millisecond

	// traceReplyMax is the maximum number of bytes read from a response of the collector.
	traceReplyMax = 64 << 10
)

// traces enables a trace of each step if the environment names a collector.
func (w *wiring) traces(ctx context.Context) error {
	if endpoint, _ := otlpSetting("ENDPOINT"); endpoint == "" {
		return nil
	}
	collector, err := newTraceClient()
	if err != nil {
		return cli.Invalid(err,
			"name a collector that accepts OTLP over HTTP, as in OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318")
	}
	if protocol, _ := otlpSetting("PROTOCOL"); collector.url.Port() == "4317" && protocol == "" {
		w.log.Warn("traces are sent by OTLP over HTTP, but 4317 is by convention the port of OTLP over gRPC; that of HTTP is 4318", "endpoint", collector.url.Redacted())
	}
	exporter, err := otlptrace.New(ctx, collector)
	if err != nil {
		return err
	}
	about, err := resource.New(ctx, resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return cli.Invalid(fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err), "write it as key=value,key=value")
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { w.log.Warn("sending traces", "error", err) }))
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	w.closers = append(w.closers, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), traceFlush)
		defer cancel()
		return provider.Shutdown(ctx)
	})
	w.parts.Tracer = provider.Tracer("spotter", trace.WithInstrumentationVersion(w.f.version))
	return nil
}

// A traceClient is an otlptrace.Client that sends spans by OTLP over HTTP, as protobuf. The client
// of the SDK would link all of gRPC.
type traceClient struct {
	url     *url.URL
	headers http.Header
	gzip    bool
	timeout time.Duration
	http    *http.Client
}

// otlpSetting returns a setting of the exporter and the name of its environment variable. The
// variable for traces takes precedence over that for all signals.
func otlpSetting(name string) (value, variable string) {
	for _, prefix := range [...]string{"OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"} {
		variable = prefix + name
		if value = strings.TrimSpace(os.Getenv(variable)); value != "" {
			break
		}
	}
	return value, variable
}

// newTraceClient returns a client with the configuration in the environment.
func newTraceClient() (*traceClient, error) {
	c := &traceClient{timeout: traceTimeout, headers: http.Header{}}
	if v, name := otlpSetting("PROTOCOL"); v != "" && v != "http/protobuf" {
		return nil, fmt.Errorf("%s: %q is not supported; traces are sent by http/protobuf", name, v)
	}
	v, name := otlpSetting("COMPRESSION")
	if c.gzip = v == "gzip"; v != "" && v != "none" && v != "gzip" {
		return nil, fmt.Errorf("%s: %q is neither gzip nor none", name, v)
	}
	if v, name := otlpSetting("TIMEOUT"); v != "" {
		ms, err := strconv.Atoi(v)
		if err != nil || ms <= 0 {
			return nil, fmt.Errorf("%s: %q is not a positive number of milliseconds", name, v)
		}
		c.timeout = time.Duration(ms) * time.Millisecond
	}
	if err := c.address(); err != nil {
		return nil, err
	}
	if err := c.readHeaders(); err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	var err error
	if transport.TLSClientConfig, err = traceTLS(); err != nil {
		return nil, err
	}
	c.http = &http.Client{Transport: transport}
	return c, nil
}

// address sets the URL of the collector. The endpoint for traces is complete; that for all signals
// is extended by the path for traces.
func (c *traceClient) address() error {
	v, name := otlpSetting("ENDPOINT")
	u, err := url.Parse(v)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%s: %q is not a URL with http:// or https://", name, v)
	}
	if name == "OTEL_EXPORTER_OTLP_ENDPOINT" {
		u = u.JoinPath("v1", "traces")
	}
	c.url = u
	return nil
}

// readHeaders parses headers such as "api-key=secret,team=a%20b".
func (c *traceClient) readHeaders() error {
	v, name := otlpSetting("HEADERS")
	if v == "" {
		return nil
	}
	for i, pair := range strings.Split(v, ",") {
		key, value, ok := strings.Cut(pair, "=")
		key = strings.TrimSpace(key)
		plain, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || key == "" || err != nil { // the value may be a secret and is not repeated
			return fmt.Errorf("%s: header %d is not written as key=value, with %%20 for a space", name, i+1)
		}
		c.headers.Set(key, plain)
	}
	return nil
}

// traceTLS returns the TLS configuration from the environment, or nil for the default.
func traceTLS() (*tls.Config, error) {
	var cfg tls.Config
	if file, name := otlpSetting("CERTIFICATE"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: %s has no certificate in PEM", name, file)
		}
	}
	cert, name := otlpSetting("CLIENT_CERTIFICATE")
	key, _ := otlpSetting("CLIENT_KEY")
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%s, with its CLIENT_KEY: %w", name, err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	if cfg.RootCAs == nil && cfg.Certificates == nil {
		return nil, nil
	}
	return &cfg, nil
}

// Start implements otlptrace.Client. The first upload opens the connection.
func (*traceClient) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *traceClient) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client. It retries temporary errors until the timeout.
func (c *traceClient) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// TracesData has the same encoding as the OTLP request, whose package links gRPC.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	if c.gzip {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, err := z.Write(body)
		if err := errors.Join(err, z.Close()); err != nil {
			return err
		}
		body = packed.Bytes()
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	for delay := traceRetry; ; delay *= 2 {
		again, after, err := c.post(ctx, body)
		if err == nil || !again {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(max(delay, after)):
		}
	}
}

// post sends a batch once. again reports whether a retry may succeed, and after is the minimum
// delay before it.
func (c *traceClient) post(ctx context.Context, body []byte) (again bool, after time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url.String(), bytes.NewReader(body))
	if err != nil {
		return false, 0, err
	}
	r.Header = c.headers.Clone()
	r.Header.Set("Content-Type", "application/x-protobuf")
	if c.gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	reply, err := c.http.Do(r)
	if err != nil {
		return true, 0, err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, traceReplyMax))
	switch {
	case err != nil:
		return true, 0, err
	case reply.StatusCode/100 == 2:
		return false, 0, rejectedSpans(text)
	}
	switch reply.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
		if seconds, err := strconv.Atoi(reply.Header.Get("Retry-After")); err == nil {
			after = time.Duration(min(max(seconds, 0), 3600)) * time.Second
		}
	}
	return again, after, fmt.Errorf("%s: %s: %.200q", c.url.Redacted(), reply.Status, text)
}

// rejectedSpans returns an error for spans that a collector did not accept, or nil. Field 1 of its
// response (ExportTraceServiceResponse) contains their number and the reason.
func rejectedSpans(reply []byte) error {
	_, partial := protoField(reply, 1)
	n, _ := protoField(partial, 1)
	_, reason := protoField(partial, 2)
	if n == 0 && len(reason) == 0 {
		return nil
	}
	return fmt.Errorf("the collector rejected %d spans: %.200q", n, reason)
}

// protoField returns the value of a field, a number or bytes depending on its type. Both are zero
// if the field is missing.
func protoField(message []byte, field protowire.Number) (number uint64, content []byte) {
	for len(message) > 0 {
		found, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			break
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(found, kind, message); n < 0 {
			break
		}
		if found == field && kind == protowire.VarintType {
			number, _ = protowire.ConsumeVarint(message)
		} else if found == field && kind == protowire.BytesType {
			content, _ = protowire.ConsumeBytes(message)
		}
		message = message[n:]
	}
	return number, content
}
