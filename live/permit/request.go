package permit

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// Request returns the deadline of a write to the API server, zero for none, or the error of
// [Authority.Check] if the write is not permitted. Writes of objects that Spotter owns need no
// permit: Leases, Events, the API group spotter.dev and ConfigMaps in its namespace. The same
// applies to requests that change nothing.
func (a *Authority) Request(ctx context.Context, r *http.Request) (deadline time.Time, err error) {
	if a.own(r) {
		return time.Time{}, nil
	}
	p, ok := ctx.Value(permitKey{}).(permit)
	if !ok {
		return time.Time{}, &Unpermitted{What: r.Method + " " + r.URL.Path}
	}
	return a.check(ctx, p)
}

func (a *Authority) own(r *http.Request) bool {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return true
	}
	if r.URL.Query().Get("dryRun") == "All" {
		return true
	}
	_, path, _ := strings.Cut(r.URL.Path, "/api") // the address of the server may include a path
	for _, group := range [...]string{"coordination.k8s.io", "events.k8s.io", "authentication.k8s.io",
		"authorization.k8s.io", v1alpha1.GroupVersion.Group} {
		if strings.HasPrefix(path, "s/"+group+"/") {
			return true
		}
	}
	parts := strings.Split(strings.TrimPrefix(path, "/v1/namespaces/"), "/") // namespace, resource, name
	switch {
	case !strings.HasPrefix(path, "/v1/namespaces/") || len(parts) < 2:
		return false
	case parts[1] == "events":
		return true
	}
	return parts[1] == "configmaps" && parts[0] == a.cfg.Namespace
}
