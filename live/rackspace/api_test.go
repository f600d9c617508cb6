package rackspace_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/market"
	"github.com/spotter-dev/spotter/live/rackspace"
	"github.com/spotter-dev/spotter/live/rackspace/fake"
	"github.com/spotter-dev/spotter/policy/driver"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// Shadow reads, and writes nothing: not to the cloud, and not to the cluster.
func TestRule13ShadowWritesNothing(t *testing.T) {
	w, _ := two(t)
	w.server.AddPool("by-hand", "cs", "gp.vs1.large-iad", 2, 90_000,
		map[string]string{"spotter.dev/spotnode": "x", "spotter.dev/pool": poolName})
	w.restart()
	before, wrote := len(w.cloudWrites()), len(w.wrote)
	for range 40 {
		w.clock.Step(w.config.Poll)
		if err := w.b.Poll(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.read()
		w.b.Conditions(poolName)
	}
	w.server.SetPrice("gp.vs1.medium-iad", 900_000)
	if err := w.b.Poll(w.ctx); err != nil {
		t.Fatal(err)
	}
	if got := w.cloudWrites()[before:]; len(got) != 0 || len(w.wrote) != wrote {
		t.Errorf("it wrote %v and %v", got, w.wrote[wrote:])
	}
	if len(w.sink.Notices) != 2 {
		t.Errorf("it saw %d notices, want 2", len(w.sink.Notices))
	}
}

// A pool whose own mode is not active is left alone by the leader of others, also
// when it was active before; only bids that are lost are withdrawn.
func TestRule13PoolModeHoldsTheLeader(t *testing.T) {
	for _, mode := range []v1alpha1.Mode{v1alpha1.ModeShadow, v1alpha1.ModeOff} {
		w, _ := two(t)
		p := capacityPool(mode)
		if err := w.store.Get(w.ctx, client.ObjectKeyFromObject(p), p); err != nil {
			t.Fatal(err)
		}
		p.Spec.Mode = mode
		if err := w.store.Update(w.ctx, p); err != nil {
			t.Fatal(err)
		}
		before, wrote := len(w.cloudWrites()), len(w.wrote)
		w.mustRun(20 * time.Minute)
		if got := w.cloudWrites()[before:]; len(got) != 0 || len(w.wrote) != wrote {
			t.Errorf("mode %s: it wrote %v and %v", mode, got, w.wrote[wrote:])
		}
		w.server.SetPrice("gp.vs1.medium-iad", 900_000)
		w.mustRun(20 * time.Minute)
		if got := w.cloudWrites()[before:]; len(got) != 2 || len(w.server.Pools()) != 0 {
			t.Errorf("mode %s: it wrote %v, want the two lost bids withdrawn", mode, got)
		}
	}
}

// Deleting the CapacityPool leaves nodes, node pools and the ledger as they are.
func TestRule03DeletedPoolLeavesNodes(t *testing.T) {
	w, _ := two(t)
	if err := w.store.Delete(w.ctx, capacityPool(v1alpha1.ModeActive)); err != nil {
		t.Fatal(err)
	}
	w.mustRun(time.Hour)
	if len(w.nodes()) != 2 || len(w.server.Pools()) != 2 || len(w.ledger()) != 2 {
		t.Errorf("left are nodes %v, pools %v, %d entries", w.nodes(), w.server.Pools(), len(w.ledger()))
	}
	for _, n := range w.ledger() {
		if len(n.OwnerReferences) != 0 {
			t.Errorf("SpotNode %s has owners %v", n.Name, n.OwnerReferences)
		}
	}
	if err := w.store.Create(w.ctx, capacityPool(v1alpha1.ModeActive)); err != nil {
		t.Fatal(err)
	}
	w.mustRun(5 * time.Minute) // and one that comes back finds them
	if w.sink.Alive() != 2 || len(w.nodes()) != 2 {
		t.Errorf("%d machines are alive", w.sink.Alive())
	}
}

// Credentials that are wrong are a condition and a Hold, are not tried again and
// again, and a rotated secret is taken up. Neither token is ever logged.
func TestCredentials(t *testing.T) {
	w := newFixture(t)
	var log bytes.Buffer
	w.config.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.restart()
	set := func(token string) {
		t.Helper()
		if err := w.store.Update(w.ctx, secret(token)); err != nil {
			t.Fatal(err)
		}
	}
	set("stolen-refresh-token")
	w.run(5 * time.Minute)
	if _, err := w.b.Feed().Read(w.ctx, market.Ask{}); !errors.Is(err, market.ErrNothingWanted) ||
		!strings.Contains(err.Error(), "refresh token") {
		t.Errorf("the feed of prices says %v", err)
	}
	if c := w.condition(rackspace.CredentialsInvalid); c.Status != metav1.ConditionTrue || c.Reason != "Refused" || c.ObservedGeneration != 1 {
		t.Errorf("the condition is %+v", c)
	}
	if got := heldFor(w.launch("t1", 40_000, "gp.vs1.medium-iad")); got != rackspace.CredentialsInvalid {
		t.Errorf("a launch is held for %q", got)
	}
	logins := 0
	for _, c := range w.server.Calls() {
		if strings.HasPrefix(c.Path, "/oauth/") {
			logins++
		}
	}
	if logins != 1 || len(w.ledger()) != 0 {
		t.Errorf("%d logins and %d entries, want 1 and none", logins, len(w.ledger()))
	}
	set("refresh-1")
	w.mustRun(time.Minute)
	if c := w.condition(rackspace.CredentialsInvalid); c.Status != metav1.ConditionFalse {
		t.Errorf("after rotation the condition is %+v", c)
	}
	w.mustLaunch("t1", 40_000, "gp.vs1.medium-iad")

	w.server.Change(func(s *fake.State) { s.Refresh = "refresh-2" }) // rotated at Rackspace first
	w.server.Revoke()
	w.run(2 * time.Minute)
	if c := w.condition(rackspace.CredentialsInvalid); c.Status != metav1.ConditionTrue {
		t.Errorf("with an old token the condition is %+v", c)
	}
	if w.sink.Alive() != 1 {
		t.Error("a machine is lost with the credentials")
	}
	set("refresh-2")
	w.mustRun(10 * time.Minute)
	if len(w.nodes()) != 1 || w.only().Status.Phase != v1alpha1.SpotNodeRunning {
		t.Errorf("nodes %v, phase %s", w.nodes(), w.only().Status.Phase)
	}
	for _, word := range []string{"stolen-refresh", "refresh-1", "refresh-2", "eyJ"} {
		if strings.Contains(log.String(), word) {
			t.Errorf("the log holds %q:\n%s", word, log.String())
		}
	}
}

func TestSecretIsMissing(t *testing.T) {
	for name, spoil := range map[string]func(*corev1.Secret) *corev1.Secret{
		"SecretNotFound": func(*corev1.Secret) *corev1.Secret { return nil },
		"Refused":        func(s *corev1.Secret) *corev1.Secret { s.Data = map[string][]byte{"password": []byte("x")}; return s },
	} {
		w := newFixture(t)
		if err := w.store.Delete(w.ctx, secret("")); err != nil {
			t.Fatal(err)
		}
		if s := spoil(secret("refresh-1")); s != nil {
			if err := w.store.Create(w.ctx, s); err != nil {
				t.Fatal(err)
			}
		}
		w.run(time.Minute)
		c := w.condition(rackspace.CredentialsInvalid)
		if c.Status != metav1.ConditionTrue || c.Reason != name || !strings.Contains(c.Message, "system/spot") {
			t.Errorf("%s: the condition is %+v", name, c)
		}
		if got := heldFor(w.launch("t1", 40_000, "gp.vs1.medium-iad")); got != rackspace.CredentialsInvalid {
			t.Errorf("%s: a launch is held for %q", name, got)
		}
	}
}

// An access token that ends, or is refused in the middle of a run, is renewed.
func TestTokenExpires(t *testing.T) {
	w := newFixture(t)
	w.server.Change(func(s *fake.State) { s.TokenLife = 10 * time.Minute })
	w.mustRun(time.Hour)
	for _, c := range w.server.Calls() {
		if c.Status == http.StatusUnauthorized {
			t.Fatalf("%s %s was sent with a token that had ended", c.Method, c.Path)
		}
	}
	w.server.Revoke()
	w.mustRun(time.Minute)
	if c := w.condition(rackspace.CloudspaceReachable); c.Status != metav1.ConditionTrue {
		t.Errorf("after a revoked token the condition is %+v", c)
	}
}

// Lists come in pages, objects with unknown fields.
func TestPages(t *testing.T) {
	w := newFixture(t)
	w.server.Change(func(s *fake.State) { s.PageMax = 1 })
	for _, token := range []string{"a", "b", "c"} {
		w.mustLaunch(token, 40_000, "gp.vs1.medium-iad")
	}
	w.mustRun(10 * time.Minute)
	if len(w.nodes()) != 3 || w.sink.Alive() != 3 {
		t.Errorf("nodes %v, %d alive", w.nodes(), w.sink.Alive())
	}
}

// Answers of each kind to an order: what it becomes, and that nothing is left
// behind once the API is well again.
func TestAPIErrorsOnLaunch(t *testing.T) {
	k8s := func(reason, message string) string {
		return `{"kind":"Status","reason":"` + reason + `","message":"` + message + `"}`
	}
	for name, x := range map[string]struct {
		status int
		body   string
		held   string
		kept   bool // in the ledger, since it is not known what became of it
	}{
		"bad request":   {400, k8s("Invalid", "spec.serverClass: unknown"), "", false},
		"no access":     {403, k8s("Forbidden", "user cannot create spotnodepools"), "Forbidden", false},
		"no cloudspace": {404, k8s("NotFound", "namespace not found"), "CloudspaceNotFound", false},
		"throttled":     {429, "slow down", "", false},
		"conflict":      {409, k8s("Conflict", "modified"), "", false},
		"internal":      {500, k8s("InternalError", "etcd"), "", true},
		"proxy":         {503, "<html>\n</html>", "", true},
		"teapot":        {418, "", "", false},
		"no billing":    {403, k8s("Forbidden", `admission webhook \"v\" denied the request: billing is not enabled`), "Refused", true},
		"unauthorized":  {401, k8s("Unauthorized", "Unauthorized"), rackspace.CredentialsInvalid, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.mustRun(time.Minute)
			w.server.SetFaults(fake.Faults{Hook: func(r *http.Request) (int, string) {
				if r.Method == http.MethodPost && !strings.HasPrefix(r.URL.Path, "/oauth/") {
					return x.status, x.body
				}
				return 0, ""
			}})
			err := w.launch("t1", 40_000, "gp.vs1.medium-iad")
			if err == nil || heldFor(err) != x.held {
				t.Errorf("it gives %v, held for %q, want %q", err, heldFor(err), x.held)
			}
			if got := len(w.ledger()) == 1; got != x.kept {
				t.Errorf("kept in the ledger: %v, want %v", got, x.kept)
			}
			w.server.SetFaults(fake.Faults{})
			w.run(20 * time.Minute)
			if len(w.ledger()) != 0 || len(w.server.Pools()) != 0 || len(w.sink.Machines) != 0 {
				t.Errorf("left are %d entries, pools %v, machines %v", len(w.ledger()), w.server.Pools(), keys(w.sink.Machines))
			}
		})
	}
}

// Errors of the Kubernetes API at each verb are a Hold or an error of that call, and
// the next rounds put things right.
func TestKubernetesErrors(t *testing.T) {
	noMatch := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "spotter.dev", Kind: "SpotNode"}}
	for name, x := range map[string]struct {
		verb string
		err  error
		held string
	}{
		"forbidden create": {"create", forbidden(), "Forbidden"},
		"no CRD":           {"list", noMatch, "LedgerMissing"},
		"timeout":          {"create", errors.New("timeout"), ""},
		"status lost":      {"patch/status", errors.New("conflict"), "-"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.mustRun(time.Minute)
			w.kube = func(verb string, _ client.Object) error {
				if verb == x.verb {
					return x.err
				}
				return nil
			}
			err := w.launch("t1", 40_000, "gp.vs1.medium-iad")
			if x.held == "-" && err != nil || x.held != "-" && (err == nil || heldFor(err) != x.held) {
				t.Errorf("it gives %v", err)
			}
			w.kube = nil
			if x.held != "-" {
				w.mustLaunch("t1", 40_000, "gp.vs1.medium-iad")
			}
			w.mustRun(10 * time.Minute)
			if len(w.nodes()) != 1 || w.only().Status.Phase != v1alpha1.SpotNodeRunning {
				t.Errorf("nodes %v, phase %s", w.nodes(), w.only().Status.Phase)
			}
		})
	}
}

// A status that is written keeps what others put on the object.
func TestFaultStatusKeepsAnnotations(t *testing.T) {
	w := newFixture(t)
	w.mustLaunch("t1", 40_000, "gp.vs1.medium-iad")
	n := w.only()
	n.Annotations["example.com/note"] = "keep"
	if err := w.store.Update(w.ctx, n); err != nil {
		t.Fatal(err)
	}
	w.mustRun(10 * time.Minute)
	if n := w.only(); n.Annotations["example.com/note"] != "keep" || n.Annotations["spotter.dev/token"] != "t1" {
		t.Errorf("the annotations are %v", n.Annotations)
	}
}

// A node pool that the ledger lost is adopted, with its token and bid. One that has Spotter's label
// and matches no order is named and left.
func TestStraysAreAdoptedOrNamed(t *testing.T) {
	w := newFixture(t)
	w.mustLaunch("t1", 40_000, "gp.vs1.medium-iad")
	w.mustRun(10 * time.Minute)
	if err := w.store.Delete(w.ctx, w.only()); err != nil {
		t.Fatal(err)
	}
	w.server.AddPool("odd", "cs", "gp.vs1.large-iad", 1, 90_000, map[string]string{"spotter.dev/spotnode": "x", "spotter.dev/pool": poolName})
	w.mustRun(time.Minute)
	if got := len(w.ledger()); got != 0 {
		t.Errorf("the ledger has %d entries: a list that lags would bring back what was given back", got)
	}
	w.mustRun(4 * time.Minute)
	n := w.only()
	if n.Spec.Token != "t1" || n.Spec.BidPerHour != "0.040" || n.Status.Phase != v1alpha1.SpotNodeRunning {
		t.Errorf("adopted was %+v in phase %s", n.Spec, n.Status.Phase)
	}
	if len(w.server.Pools()) != 2 {
		t.Errorf("the node pools are %v", w.server.Pools())
	}
	if c := w.condition(rackspace.NodePoolUnknown); c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "odd") {
		t.Errorf("the condition is %+v", c)
	}
}

// Somebody who deletes our node pool ends the machine without a reclaim.
func TestNodePoolDeletedByAPerson(t *testing.T) {
	w := newFixture(t)
	w.mustLaunch("t1", 40_000, "gp.vs1.medium-iad")
	w.mustRun(10 * time.Minute)
	w.server.Remove(w.server.Pools()[0])
	w.mustRun(5 * time.Minute)
	w.mustRun(w.config.Keep)
	if len(w.ledger()) != 0 || len(w.sink.Machines) != 0 || len(w.sink.Events) != 1 || len(w.sink.Notices) != 0 {
		t.Errorf("left are %d entries, machines %v, events %v, notices %v", len(w.ledger()), w.sink.Machines, w.sink.Events, w.sink.Notices)
	}
}

// A slow API is given up at the timeout, and a server that asks to wait for longer
// than a step may take is asked by a later one.
func TestSlowAndThrottled(t *testing.T) {
	w := newFixture(t)
	w.mustRun(time.Minute)
	calls := len(w.server.Calls())
	w.server.SetFaults(fake.Faults{Throttle: 1, RetryAfter: time.Hour})
	if err := w.b.Poll(w.ctx); err != nil {
		t.Fatal(err)
	}
	if got := len(w.server.Calls()) - calls; got != 1 {
		t.Errorf("%d requests although the first was asked to wait an hour", got)
	}
	if c := w.condition(rackspace.CloudspaceReachable); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "429") {
		t.Errorf("the condition is %+v", c)
	}
	before := w.clock.Now()
	w.server.SetFaults(fake.Faults{Throttle: 1, RetryAfter: 3 * time.Second})
	if err := w.b.Poll(w.ctx); err != nil {
		t.Fatal(err)
	}
	if got := w.clock.Since(before); got != 9*time.Second {
		t.Errorf("three waits of 3 s took %v", got)
	}
	w.config.Timeout = 50 * time.Millisecond
	w.config.Attempts = 1
	w.restart()
	w.server.SetFaults(fake.Faults{Slow: 2 * time.Second})
	if err := w.b.Poll(w.ctx); err != nil {
		t.Fatal(err)
	}
	if c := w.condition(rackspace.CloudspaceReachable); c.Status != metav1.ConditionFalse {
		t.Errorf("the condition is %+v", c)
	}
}

// A wrong setting is named.
func TestConfigIsChecked(t *testing.T) {
	good := rackspace.DefaultConfig()
	for name, spoil := range map[string]func(*rackspace.Config){
		"Endpoint": func(c *rackspace.Config) { c.Endpoint = "spot.rackspace.com" }, "ClientID": func(c *rackspace.Config) { c.ClientID = "" },
		"Poll": func(c *rackspace.Config) { c.Poll = 0 }, "Attempts": func(c *rackspace.Config) { c.Attempts = 0 },
		"BackoffMax": func(c *rackspace.Config) { c.BackoffMax = 1 }, "JoinMax": func(c *rackspace.Config) { c.JoinMax = time.Second },
		"Clock": func(c *rackspace.Config) { c.Clock = nil }, "Log": func(c *rackspace.Config) { c.Log = nil },
	} {
		c := good
		spoil(&c)
		if _, err := rackspace.New(c, nil, nil, nil); !errors.Is(err, rackspace.ErrConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := rackspace.New(good, nil, nil, nil); err != nil {
		t.Errorf("the default: %v", err)
	}
}

// In calm the leader writes nothing.
func TestCalmWritesNothing(t *testing.T) {
	w, _ := two(t)
	w.mustRun(time.Minute)
	before, wrote := len(w.cloudWrites()), len(w.wrote)
	w.mustRun(30 * time.Minute)
	if len(w.cloudWrites()) != before || len(w.wrote) != wrote {
		t.Errorf("it wrote %v and %v", w.cloudWrites()[before:], w.wrote[wrote:])
	}
}

// A loser carries out the first order, loses its answer, and answers what comes
// after it with a status of its own.
type loser struct {
	send   http.RoundTripper
	status int
	body   string
	orders int
}

func (l *loser) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPost || strings.HasPrefix(r.URL.Path, "/oauth/") {
		return l.send.RoundTrip(r)
	}
	if l.orders++; l.orders == 1 {
		answer, err := l.send.RoundTrip(r)
		if err == nil {
			answer.Body.Close()
		}
		return nil, errors.New("connection reset")
	}
	return &http.Response{StatusCode: l.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(l.body)), Request: r}, nil
}

// An order whose answer was lost may have been carried out, whatever a later attempt
// is known: it stays on its way, is counted, and is found.
func TestOrderWhoseAnswerWasLost(t *testing.T) {
	for name, x := range map[string]struct {
		status int
		body   string
	}{
		"throttled": {429, ""},
		"refused": {403,
			`{"message":"admission webhook \"v\" denied the request: BidPrice must be greater than or equal to the market price of 0.050000, but got 0.040000"}`},
		"unauthorized": {401, ""},
		"not found":    {404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			send := w.config.Transport
			w.config.Transport = &loser{send: send, status: x.status, body: x.body}
			w.restart()
			if err := w.launch("t1", 40_000, "gp.vs1.medium-iad"); err == nil || errors.Is(err, driver.ErrNoCapacity) {
				t.Errorf("it gives %v", err)
			}
			if w.sink.Alive() != 1 || len(w.ledger()) != 1 {
				t.Errorf("%d machines and %d entries, want one of each", w.sink.Alive(), len(w.ledger()))
			}
			w.config.Transport = send
			w.restart()
			w.mustRun(12 * time.Minute)
			if n := w.only(); n.Status.Phase != v1alpha1.SpotNodeRunning || len(w.server.Pools()) != 1 {
				t.Errorf("the entry is %s, the node pools are %v", n.Status.Phase, w.server.Pools())
			}
		})
	}
}
