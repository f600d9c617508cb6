package objectstest

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/spotter-dev/spotter/live/aws/s3"
)

// A Bucket is a bucket of a store that refuses, fails and hangs on demand. See [NewBucket].
type Bucket struct {
	// URL is that of the store, and Name is s3://BUCKET.
	URL, Name string

	// Direct sends requests past everything that Down, Fail and Before order.
	Direct *s3.Client

	mu       sync.Mutex
	requests []string
	down     int
	fail     []int
	hook     func(*http.Request)
}

// NewBucket makes the test use a store with one empty bucket, whose listings have pages of
// pageMax names.
func NewBucket(t *testing.T, name string, pageMax int) *Bucket {
	t.Helper()
	b := &Bucket{Name: s3.Scheme + name}
	around := func(inner http.Handler) http.Handler {
		b.Direct = &s3.Client{Endpoint: serve(t, inner)}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if q := r.URL.Query(); q.Has("list-type") {
				q.Set("max-keys", strconv.Itoa(pageMax))
				r.URL.RawQuery = q.Encode()
			}
			if status := b.next(r); status != 0 {
				w.WriteHeader(status)
				return
			}
			inner.ServeHTTP(w, r)
		})
	}
	b.URL = Serve(t, around, name)
	Use(t, b.URL)
	return b
}

// next notes a request, waits for the hook, and returns the status to answer, 0 for what the store answers.
func (b *Bucket) next(r *http.Request) int {
	b.mu.Lock()
	key := strings.TrimPrefix(r.URL.Path, "/"+strings.TrimPrefix(b.Name, s3.Scheme))
	if q := r.URL.Query(); q.Has("list-type") {
		key = "?" + q.Get("prefix")
	}
	b.requests = append(b.requests, r.Method+" "+strings.TrimPrefix(key, "/"))
	hook, status := b.hook, b.down
	if status == 0 && len(b.fail) > 0 {
		status, b.fail = b.fail[0], b.fail[1:]
	}
	b.mu.Unlock()
	if hook != nil {
		hook(r)
	}
	return status
}

// Down makes every request answer with a status, until it is called with 0.
func (b *Bucket) Down(status int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = status
}

// Fail makes the next requests answer with these statuses, one each.
func (b *Bucket) Fail(statuses ...int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = append(b.fail, statuses...)
}

// Before has f called ahead of each request, which waits for it.
func (b *Bucket) Before(f func(*http.Request)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hook = f
}

// Requests returns the requests so far, each "METHOD KEY", and "GET ?PREFIX" where names
// are listed.
func (b *Bucket) Requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requests)
}

// Objects returns the contents of the objects under a prefix, by the rest of their keys.
func (b *Bucket) Objects(t *testing.T, prefix string) map[string]string {
	t.Helper()
	all, err := b.Direct.List(t.Context(), b.Name)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, x := range all {
		rest, ok := strings.CutPrefix(x.Name, b.Name+"/"+prefix)
		if !ok {
			t.Fatalf("%s is outside of %s", x.Name, prefix)
		}
		o, err := b.Direct.Open(t.Context(), x.Name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(io.NewSectionReader(o, 0, o.Size()))
		if err != nil {
			t.Fatal(err)
		}
		out[rest] = string(text)
	}
	return out
}
