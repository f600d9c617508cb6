package fake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/spotter-dev/spotter/policy"
)

// An api answers requests by what the server holds. The lock of the server is held.
type api struct{ s *Server }

// text writes an amount as the API does, with six decimals.
func text(m policy.Money) string { return strings.TrimPrefix(m.String(), "$") }

// classes lists the server classes.
func (a api) classes(w http.ResponseWriter, r *http.Request) {
	var all []any
	for i := range a.s.state.Classes {
		c := &a.s.state.Classes[i]
		spec := map[string]any{
			"category": c.Category, "displayName": c.Name, "region": c.Region, "availability": "available",
			"resources":       map[string]any{"cpu": c.CPU, "memory": c.Memory},
			"onDemandPricing": map[string]any{"cost": c.OnDemand, "interval": "hour"},
		}
		if c.MinBid != "" {
			spec["minBidPricePerHour"] = c.MinBid
		}
		all = append(all, map[string]any{
			"metadata": map[string]any{"name": c.Name}, "spec": spec,
			"status": map[string]any{"available": 5,
				"spotPricing": map[string]any{"marketPricePerHour": text(c.price(a.s.now())), "hammerPricePerHour": "0"}},
		})
	}
	a.page(w, r, all)
}

// page answers with a part of a list.
func (a api) page(w http.ResponseWriter, r *http.Request, all []any) {
	from := 0
	if t := r.URL.Query().Get("continue"); t != "" {
		n, err := strconv.Atoi(t)
		if err != nil || n < 0 || n > len(all) {
			refuse(w, http.StatusGone, "Expired", "the continue token is not valid")
			return
		}
		from = n
	}
	to, next := len(all), ""
	if a.s.state.PageMax > 0 && from+a.s.state.PageMax < to {
		to = from + a.s.state.PageMax
		next = strconv.Itoa(to)
	}
	send(w, map[string]any{"apiVersion": "ngpc.rxt.io/v1", "kind": "List",
		"metadata": map[string]any{"continue": next, "resourceVersion": "1"}, "items": append([]any{}, all[from:to]...)})
}

// prices serves the public feed. Market prices are text there and percentiles
// numbers.
func (a api) prices(w http.ResponseWriter) {
	regions := map[string]any{}
	for i := range a.s.state.Classes {
		c := &a.s.state.Classes[i]
		r, _ := regions[c.Region].(map[string]any)
		if r == nil {
			r = map[string]any{"generation": "v1", "serverclasses": map[string]any{}}
			regions[c.Region] = r
		}
		p := c.price(a.s.now())
		r["serverclasses"].(map[string]any)[c.Name] = map[string]any{
			"display_name": c.Name, "category": c.Category, "cpu": c.CPU, "memory": c.Memory, "market_price": text(p),
			"20_percentile": p.Float(), "50_percentile": 2 * p.Float(), "80_percentile": 4 * p.Float(),
		}
	}
	send(w, map[string]any{"regions": regions})
}

// nodePools answers requests for node pools of one kind.
func (a api) nodePools(w http.ResponseWriter, r *http.Request, part []string, body []byte) {
	kind, name := part[0], ""
	if len(part) == 2 {
		name = part[1]
	}
	p := a.s.pools[name]
	found := name != "" && p != nil && p.kind == kind
	switch {
	case r.Method == http.MethodGet && name == "":
		a.list(w, r, kind)
	case r.Method == http.MethodPost && name == "":
		a.create(w, kind, body)
	case r.Method == http.MethodGet && found && a.visible(p):
		send(w, a.object(p))
	case r.Method == http.MethodDelete && found && p.undone == 0:
		p.undone = a.s.now()
		send(w, map[string]any{"kind": "Status", "status": "Success"})
	default:
		refuse(w, http.StatusNotFound, "NotFound", fmt.Sprintf("%s.ngpc.rxt.io %q not found", kind, name))
	}
}

// visible reports whether reads show a pool.
func (a api) visible(p *pool) bool {
	now := a.s.now()
	return now.Sub(p.made) >= a.s.state.Lag && (p.undone == 0 || now.Sub(p.undone) < a.s.state.Lag)
}

func (a api) list(w http.ResponseWriter, r *http.Request, kind string) {
	_, want, _ := strings.Cut(r.URL.Query().Get("labelSelector"), cloudspaceLabel+"=")
	var all []any
	for _, name := range a.s.sorted() {
		p := a.s.pools[name]
		if p.kind == kind && a.visible(p) && (want == "" || p.labels[cloudspaceLabel] == want) {
			all = append(all, a.object(p))
		}
	}
	a.page(w, r, all)
}

// object writes a pool as the API does, including fields that clients do not set.
func (a api) object(p *pool) map[string]any {
	status := map[string]any{"customMetadataStatus": map[string]any{}}
	if p.kind == spotPools {
		status["bidStatus"], status["wonCount"] = "Won", p.given()
		if p.given() == 0 {
			status["bidStatus"] = "Lost"
		}
	} else {
		status["reservedStatus"], status["reservedCount"] = "Reserved", p.given()
	}
	return map[string]any{
		"apiVersion": "ngpc.rxt.io/v1", "kind": map[string]string{spotPools: "SpotNodePool",
			onDemandPools: "OnDemandNodePool"}[p.kind],
		"metadata": map[string]any{"name": p.name, "namespace": p.namespace, "labels": p.labels,
			"creationTimestamp": p.made.Std(), "generation": 1},
		"spec": p.spec, "status": status,
	}
}

// create takes an order, or refuses it as the admission webhook does.
func (a api) create(w http.ResponseWriter, kind string, body []byte) {
	var in struct {
		Metadata struct {
			Name   string            `json:"name"`
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
		Spec poolSpec `json:"spec"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	if a.s.pools[in.Metadata.Name] != nil {
		refuse(w, http.StatusConflict, "AlreadyExists", fmt.Sprintf("%s.ngpc.rxt.io %q already exists", kind,
			in.Metadata.Name))
		return
	}
	c, why := a.s.class(in.Spec.ServerClass), ""
	bid := policy.Money(0)
	switch {
	case c == nil || c.Region != a.s.state.Regions[in.Spec.CloudSpace]:
		why = "serverclass " + in.Spec.ServerClass + " is not sold in the region of cloudspace " + in.Spec.CloudSpace
	case !a.s.state.Billing:
		why = "billing is not enabled for the organization"
	case in.Spec.Desired < 1:
		why = "desired must be at least 1"
	case kind == onDemandPools && c.OnDemand == "":
		why = "no capacity for on demand servers of class " + c.Name
	case kind == spotPools:
		bid, why = a.admit(c, in.Spec.BidPrice)
	}
	if why != "" {
		refuse(w, http.StatusForbidden, "Forbidden", "admission webhook \"v"+strings.TrimSuffix(kind,
			"s")+".ngpc.rxt.io\" denied the request: "+why)
		return
	}
	a.s.pools[in.Metadata.Name] = &pool{
		kind: kind, name: in.Metadata.Name, namespace: a.s.namespace(), labels: in.Metadata.Labels, spec: in.Spec, bid: bid, made: a.s.now(),
	}
	w.WriteHeader(http.StatusCreated)
	send(w, a.object(a.s.pools[in.Metadata.Name]))
}

// admit reads a bid and says why it is not taken.
func (a api) admit(c *Class, bid any) (policy.Money, string) {
	words, ok := bid.(string)
	x, err := strconv.ParseFloat(words, 64)
	if !ok || err != nil {
		return 0, "BidPrice validation failed: failed to parse bid price"
	}
	if _, err := strconv.ParseFloat(c.MinBid, 64); err != nil {
		return 0,
			fmt.Sprintf("BidPrice validation failed: failed to parse serverclass min bid price while validating bid price: %v", err)
	}
	if m, p := policy.Dollars(x), c.price(a.s.now()); m < p {
		return 0,
			fmt.Sprintf("BidPrice validation failed: BidPrice must be greater than or equal to the market price of %s, but got %s", text(p), text(m))
	}
	return policy.Dollars(x), ""
}
