package access

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/spotter-dev/spotter/internal/cli"
)

// TestAsk: a server that does not answer, or refuses the user, is an error in plain words that
// ends with 2.
func TestAsk(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	defer refuses.Close()
	for host, want := range map[string]string{
		"http://127.0.0.1:1": "the API server at http://127.0.0.1:1 does not answer: connection refused",
		refuses.URL:          "the API server refuses the credentials: they are wrong or have expired",
	} {
		_, err := Ask(t.Context(), &rest.Config{Host: host})
		var said strings.Builder
		if code := cli.Report(&said, err); code != cli.ExitInvalid || !strings.Contains(said.String(), want) {
			t.Errorf("%s: exit %d: %s", host, code, said.String())
		}
	}
}
