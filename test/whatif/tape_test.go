package whatif

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// A tape is what a capture was answered, by what it asked: of the API server below /api and
// /apis, and of Prometheus below /prometheus.
type tape struct {
	mu      sync.Mutex
	Answers map[string]answer `json:"answers"`
}

// An answer is one of them.
type answer struct {
	Code int    `json:"code"`
	Type string `json:"type,omitempty"`
	Body string `json:"body"`
}

// question returns what a call asks, and its body.
func question(r *http.Request) (key string, body []byte, err error) {
	if body, err = io.ReadAll(r.Body); err != nil {
		return "", nil, err
	}
	return strings.TrimSpace(r.URL.RequestURI() + " " + string(body)), body, nil
}

// record serves a stack and its Prometheus until the test ends, and keeps on the tape what it
// answers. Objects are kept without who wrote which field, which is most of them.
func (x *tape) record(t testing.TB, api *rest.Config, prometheus string) *httptest.Server {
	t.Helper()
	x.Answers = map[string]answer{}
	client, err := rest.HTTPClientFor(api)
	if err != nil {
		t.Fatal(err)
	}
	return x.serve(t, func(key string, r *http.Request, body []byte) (answer, error) {
		to, by := api.Host, client
		if path, metrics := strings.CutPrefix(r.URL.Path, "/prometheus"); metrics {
			to, by = prometheus, http.DefaultClient
			r.URL.Path = path
		}
		req, err := http.NewRequestWithContext(r.Context(), r.Method, strings.TrimSuffix(to, "/")+r.URL.RequestURI(), bytes.NewReader(body))
		if err != nil {
			return answer{}, err
		}
		req.Header.Set("Accept", "application/json")
		req.Header.Set("Content-Type", r.Header.Get("Content-Type"))
		reply, err := by.Do(req)
		if err != nil {
			return answer{}, err
		}
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		if err != nil {
			return answer{}, err
		}
		a := answer{reply.StatusCode, reply.Header.Get("Content-Type"), string(unmanaged(text))}
		x.mu.Lock()
		defer x.mu.Unlock()
		x.Answers[key] = a
		return a, nil
	})
}

// play answers from the tape until the test ends.
func (x *tape) play(t testing.TB) *httptest.Server {
	t.Helper()
	return x.serve(t, func(key string, _ *http.Request, _ []byte) (answer, error) {
		a, known := x.Answers[key]
		if !known {
			return answer{}, fmt.Errorf("this was not asked when the tape was recorded: %s", key)
		}
		return a, nil
	})
}

// apiGroup is the path of the discovery of one version of an API group.
var apiGroup = regexp.MustCompile(`^/apis/[^/]+/[^/]+$`)

func (x *tape) serve(t testing.TB, of func(key string, r *http.Request, body []byte) (answer, error)) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, body, err := question(r)
		var a answer
		if err == nil {
			a, err = of(key, r, body)
		}
		if err != nil && apiGroup.MatchString(r.URL.Path) {
			http.NotFound(w, r) // an API group that the recorded cluster did not serve
			return
		}
		if err != nil {
			t.Error(err)
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", a.Type)
		w.WriteHeader(a.Code)
		_, _ = io.WriteString(w, a.Body) // who asked may be gone
	}))
	t.Cleanup(s.Close)
	return s
}

// unmanaged leaves out of a list who wrote which field of its items.
func unmanaged(text []byte) []byte {
	var list map[string]any
	if json.Unmarshal(text, &list) != nil || list["items"] == nil {
		return text
	}
	all, _ := list["items"].([]any)
	for _, x := range all {
		if o, ok := x.(map[string]any); ok {
			if m, ok := o["metadata"].(map[string]any); ok {
				delete(m, "managedFields")
			}
		}
	}
	items, err := json.Marshal(list)
	if err != nil {
		return text
	}
	return items
}

// read and write keep a tape, or anything else, as compressed JSON.
func write(t testing.TB, path string, v any) {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		err = json.NewEncoder(z).Encode(v)
	}
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = os.WriteFile(path, b.Bytes(), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string, into any) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err == nil {
		err = json.NewDecoder(z).Decode(into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// kubeconfig writes the kubeconfig of a server without authentication.
func kubeconfig(t testing.TB, path string, s *httptest.Server) {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{name: c, cluster: {server: 'http://%s'}}]\nusers: [{name: u, user: {}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n", u.Host)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
