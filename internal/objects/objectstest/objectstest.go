// Package objectstest serves an object store that speaks S3 to tests.
package objectstest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// Serve starts a store with empty buckets, kept in memory, and returns its URL. around, if
// not nil, is asked to handle every request, as to count it or to refuse it.
func Serve(t *testing.T, around func(http.Handler) http.Handler, buckets ...string) string {
	t.Helper()
	backend := s3mem.New()
	for _, b := range buckets {
		if err := backend.CreateBucket(b); err != nil {
			t.Fatal(err)
		}
	}
	handler := gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	if around != nil {
		handler = around(handler)
	}
	return serve(t, handler)
}

func serve(t *testing.T, handler http.Handler) string {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// Env is the environment of a program that is to use the store at url and nothing else of
// the machine's configuration of AWS.
func Env(url string) map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL_S3": url, "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "",
		"AWS_REGION": "", "AWS_PROFILE": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
	}
}

// Use makes the test use the store at url.
func Use(t *testing.T, url string) {
	t.Helper()
	for name, value := range Env(url) {
		t.Setenv(name, value)
	}
}
