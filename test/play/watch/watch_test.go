package watch

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var t0 = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return t0.Add(time.Duration(seconds * float64(time.Second))) }

// A scene is what a watcher is shown.
type scene struct{ *Watcher }

func newScene() scene {
	cfg := DefaultConfig()
	cfg.Namespace = "spotter"
	cfg.Releases = map[string]string{"spotter": "spotter", "second": "other"}
	return scene{New(cfg)}
}

// lease has the controllers of a release lead for 15 s from then on, or give it up.
func (s scene) lease(seconds float64, namespace string, held bool) {
	r := Request{Received: at(seconds), Answered: at(seconds), Verb: "update", Group: "coordination.k8s.io", Resource: "leases",
		Namespace: namespace, Name: "spotter-leader", Code: 200}
	if held {
		r.Until = at(seconds + 15)
	}
	s.Request(&r)
}

// claim has a release claim the pool.
func (s scene) claim(seconds float64, user, namespace string) {
	s.Request(&Request{Received: at(seconds), Answered: at(seconds), User: user, Verb: "update", Group: "spotter.dev",
		Resource:    "capacitypools",
		Subresource: "status", Name: "web", Controller: namespace, Code: 200})
}

// first has the first release lead and claim the pool.
func (s scene) first() {
	s.lease(0, "spotter", true)
	s.claim(1, "spotter", "spotter")
}

// write has a release write an object.
func (s scene) write(seconds float64, user, resource, namespace, name string) {
	s.Request(&Request{Received: at(seconds), Answered: at(seconds), User: user, Verb: "patch", Resource: resource,
		Namespace: namespace, Name: name, Code: 200})
}

// launch has the first release make a NodeClaim, and delete it when it is so old.
func (s scene) launch(age float64, machine bool) {
	s.Node(at(0), Node{Name: claimPrefix + "c", Launch: !machine, Created: at(0)})
	s.Request(&Request{Received: at(age), Answered: at(age), User: "spotter", Verb: "delete", Group: "karpenter.sh",
		Resource: "nodeclaims", Name: "c", Code: 200})
}

func (s scene) pool(seconds float64, mode, budget string) {
	s.Request(&Request{Received: at(seconds), Answered: at(seconds), User: "admin", Verb: "patch", Group: "spotter.dev",
		Resource: "capacitypools", Name: "web", Mode: mode, Budget: budget, Code: 200})
}

func (s scene) kill(seconds float64, on string) {
	s.Request(&Request{Received: at(seconds), Answered: at(seconds), User: "admin", Verb: "update",
		Resource: "configmaps", Namespace: "spotter", Name: "spotter-kill-switch",
		Annotations: map[string]string{annotationSwitch: on}, Code: 200})
}

func (s scene) node(seconds float64, name string, marks ...string) {
	n := Node{Name: name, Pool: "web", NodePool: "web-spot", Ours: marks}
	for _, m := range marks {
		n.Draining = n.Draining || m == annotationCordon
	}
	s.Node(at(seconds), n)
}

func (s scene) notice(seconds float64, name string) {
	s.Node(at(seconds), Node{Name: name, Pool: "web", NodePool: "web-spot", Ours: []string{annotationCordon}, Draining: true, Notice: true})
}

func (s scene) pod(name, node string) {
	s.Pod(at(0), Pod{Namespace: "default", Name: name, Node: node, Labels: map[string]string{"app": "web"}})
}

func (s scene) keep(seconds float64, name, node string) {
	s.Pod(at(seconds), Pod{Namespace: "default", Name: name, Node: node, Kept: true})
}

func (s scene) release(seconds float64, user, node string) {
	s.Node(at(0), Node{Name: claimPrefix + "claim-" + node, Host: node})
	s.Request(&Request{Received: at(seconds), Answered: at(seconds), User: user, Verb: "delete", Group: "karpenter.sh",
		Resource: "nodeclaims", Name: "claim-" + node, Code: 200})
}

func (s scene) evict(seconds float64, pod string, code int) {
	s.Request(&Request{Received: at(seconds), Answered: at(seconds), User: "spotter", Verb: "create", Resource: "pods",
		Subresource: "eviction", Namespace: "default", Name: pod, Code: code})
}

func (s scene) remove(seconds float64, user, pod string) {
	s.Request(&Request{Received: at(seconds), Answered: at(seconds), User: user, Verb: "delete", Resource: "pods",
		Namespace: "default", Name: pod, Code: 200})
}

func (s scene) healthy(seconds float64, n int32) {
	s.PDB(at(seconds), PDB{Namespace: "default", Name: "web", Selector: map[string]string{"app": "web"}, Observed: true,
		Expected: 4, Healthy: n, Desired: 3})
}

// TestRules shows each rule what it must find, and what it must not.
func TestRules(t *testing.T) {
	for name, x := range map[string]struct {
		show func(scene)
		want string // the rules that are broken, in order
	}{
		"a budget of one, and two drains": {func(s scene) {
			s.pool(0, "active", "1")
			s.node(1, "a")
			s.node(1, "b")
			s.node(5, "a", annotationCordon)
			s.node(6, "b", annotationCordon)
		}, "budget"},
		"one after the other": {func(s scene) {
			s.pool(0, "active", "1")
			s.node(1, "a")
			s.node(1, "b")
			s.node(5, "a", annotationCordon)
			s.node(6, "a")
			s.node(7, "b", annotationCordon)
			s.NodeGone("b")
			s.node(8, "a", annotationCordon)
		}, ""},
		"a budget of a NodePool": {func(s scene) {
			s.NodePool(at(0), "web-spot", "50%", "1")
			s.node(1, "a")
			s.node(1, "b")
			s.node(5, "a", annotationCordon)
			s.node(6, "b", annotationCordon)
		}, "budget"},
		"half of three nodes, rounded up": {func(s scene) {
			s.pool(0, "active", "50%")
			for _, n := range []string{"a", "b", "c"} {
				s.node(1, n)
			}
			s.node(5, "a", annotationCordon)
			s.node(5, "b", annotationCordon)
		}, ""},
		"all of three at half": {func(s scene) {
			s.pool(0, "active", "50%")
			for _, n := range []string{"a", "b", "c"} {
				s.node(1, n)
			}
			for _, n := range []string{"a", "b", "c"} {
				s.node(5, n, annotationCordon)
			}
		}, "budget"},
		"nodes under notice do not count": {func(s scene) {
			s.pool(0, "active", "1")
			s.notice(5, "a")
			s.notice(5, "b")
			s.node(6, "c", annotationCordon)
		}, ""},
		"a budget that was edited a second ago": {func(s scene) {
			s.pool(0, "active", "2")
			s.node(5, "a", annotationCordon)
			s.pool(5, "active", "1")
			s.node(6, "b", annotationCordon)
		}, ""},
		"a budget that was edited long ago": {func(s scene) {
			s.pool(0, "active", "2")
			s.node(5, "a", annotationCordon)
			s.pool(5, "active", "1")
			s.node(8, "b", annotationCordon)
		}, "budget"},
		"an eviction in an active pool": {func(s scene) {
			s.pool(0, "active", "")
			s.node(1, "a")
			s.pod("p", "a")
			s.evict(5, "p", 201)
		}, ""},
		"within the grace of a mode": {func(s scene) {
			s.pool(0, "active", "")
			s.node(1, "a")
			s.pod("p", "a")
			s.pool(5, "off", "")
			s.evict(6.9, "p", 201)
		}, ""},
		"after the grace of a mode": {func(s scene) {
			s.pool(0, "active", "")
			s.node(1, "a")
			s.pod("p", "a")
			s.pool(5, "shadow", "")
			s.evict(7.1, "p", 429)
		}, "stop"},
		"after the end of a pool": {func(s scene) {
			s.pool(0, "active", "")
			s.node(1, "a")
			s.pod("p", "a")
			s.Request(&Request{Received: at(5), Answered: at(5), User: "admin", Verb: "delete", Resource: "capacitypools", Name: "web", Code: 200})
			s.evict(8, "p", 201)
		}, "stop"},
		"after a pool came again": {func(s scene) {
			s.pool(0, "off", "")
			s.node(1, "a")
			s.pod("p", "a")
			s.pool(5, "active", "")
			s.evict(6, "p", 201)
		}, ""},
		"after the kill switch": {func(s scene) {
			s.pool(0, "active", "")
			s.kill(0, "false")
			s.node(1, "a")
			s.pod("p", "a")
			s.kill(5, "true")
			s.evict(6, "p", 201)
			s.evict(7.1, "p", 201)
			s.kill(8, "false")
			s.evict(9, "p", 201)
		}, "stop"},
		"while the kill switch cannot be read": {func(s scene) {
			s.pod("p", "a")
			s.Unread(at(5), 10*time.Second)
			s.evict(6, "p", 201)
			s.evict(7.1, "p", 201)
			s.evict(16, "p", 201)
		}, "stop"},
		"a pod that is to be left alone": {func(s scene) {
			s.node(0, "a")
			s.keep(1, "p", "a")
			s.keep(5, "p", "a") // something else of it has changed
			s.evict(2.9, "p", 201)
			s.evict(6, "p", 429)
			s.pod("p", "a")
			s.evict(7, "p", 201)
		}, "keep"},
		"a pod that is to be left alone, under notice": {func(s scene) {
			s.notice(0, "a")
			s.keep(1, "p", "a")
			s.evict(6, "p", 201)
		}, ""},
		"a node given back with a pod": {func(s scene) {
			s.node(0, "a")
			s.pod("p", "a")
			s.pod("q", "b")
			s.release(5, "spotter", "a")
		}, "release"},
		"a node given back by others": {func(s scene) {
			s.node(0, "a")
			s.pod("p", "a")
			s.release(5, "karpenter", "a")
		}, ""},
		"a node given back after its pods": {func(s scene) {
			s.pool(0, "active", "")
			s.node(0, "a")
			for _, name := range []string{"p", "q", "r"} {
				s.pod(name, "a")
			}
			s.Pod(at(0), Pod{Namespace: "default", Name: "agent", Node: "a", Stays: true})
			s.evict(2, "p", 201)
			s.remove(3, "admin", "q")
			s.PodGone(at(4), "default", "r")
			s.release(5, "spotter", "a")
		}, ""},
		"a node given back after an eviction that was refused": {func(s scene) {
			s.pool(0, "active", "")
			s.node(0, "a")
			s.pod("p", "a")
			s.evict(2, "p", 429)
			s.release(5, "spotter", "a")
		}, "release"},
		"a node under notice given back with a pod": {func(s scene) {
			s.notice(0, "a")
			s.pod("p", "a")
			s.release(5, "spotter", "a")
		}, ""},
		"a mark nobody needs": {func(s scene) {
			s.node(0, "a", annotationDrain)
			s.Rest(at(59))
			s.Rest(at(61))
		}, "mark"},
		"a protection nobody needs": {func(s scene) {
			s.Node(at(0), Node{Name: "nodeclaim/a", Ours: []string{annotationProtected}})
			s.Rest(at(61))
		}, "mark"},
		"a mark on a node that is emptied": {func(s scene) {
			s.pool(0, "active", "")
			s.node(0, "a", annotationCordon)
			s.pod("p", "a")
			s.evict(30, "p", 429)
			s.Rest(at(61))
			s.node(62, "a")
			s.Rest(at(200))
		}, ""},
		"a mark where nothing may be done": {func(s scene) {
			s.node(0, "a", annotationCordon)
			s.Unmarked(at(1))
		}, "mark"},
		"a disruption budget that we broke": {func(s scene) {
			s.pool(0, "active", "")
			s.pod("p", "a")
			s.pod("q", "a")
			s.healthy(1, 4)
			s.evict(2, "p", 201)
			s.evict(2, "q", 201)
			s.healthy(3, 2)
			s.healthy(4, 2)
		}, "pdb"},
		"a disruption budget that others broke": {func(s scene) {
			s.pool(0, "active", "")
			s.pod("p", "a")
			s.pod("q", "a")
			s.healthy(1, 4)
			s.evict(2, "p", 201)
			s.remove(2, "admin", "q")
			s.healthy(3, 2)
		}, ""},
		"a disruption budget that is not whole yet": {func(s scene) {
			s.pool(0, "active", "")
			s.pod("p", "a")
			s.healthy(1, 2)
			s.evict(2, "p", 201)
			s.healthy(3, 1)
		}, ""},
		"two releases that act in turn": {func(s scene) {
			s.first()
			s.lease(0, "other", true)
			s.write(5, "spotter", "nodes", "", "a")
			s.write(6, "second", "nodes", "", "b")
			s.write(7, "spotter", "nodes", "", "a")
		}, "rival"},
		"a second release that has the status of a budget written": {func(s scene) {
			s.first()
			s.write(5, "second", "gpubudgets", "ml", "b")
		}, "rival"},
		"a second release that writes its own objects": {func(s scene) {
			s.first()
			for _, x := range [][2]string{{"leases", "spotter-leader"}, {"configmaps", "spotter-memory-head"}, {"events", "e"},
				{"tokenreviews", ""}} {
				s.write(5, "second", x[0], "other", x[1])
			}
			s.write(6, "spotter", "nodes", "", "a")
		}, ""},
		"a second release that writes the first's memory": {func(s scene) {
			s.first()
			s.write(5, "second", "configmaps", "spotter", "spotter-memory-head")
		}, "rival"},
		"a second release after the lease of the first has run out": {func(s scene) {
			s.first()
			s.lease(10, "spotter", true)
			s.write(12, "spotter", "nodes", "", "a")
			s.claim(25.5, "second", "other")
			s.write(26, "second", "nodes", "", "a")
			s.lease(27, "spotter", true)
			s.write(28, "spotter", "configmaps", "spotter", "spotter-memory-head")
		}, ""},
		"a second release half a second before the lease of the first runs out": {func(s scene) {
			s.first()
			s.lease(10, "spotter", true)
			s.write(12, "spotter", "nodes", "", "a")
			s.claim(24.5, "second", "other")
		}, "rival"},
		"a second release after the first gave up its lease": {func(s scene) {
			s.first()
			s.write(3, "spotter", "nodes", "", "a")
			s.lease(4, "spotter", false)
			s.claim(5, "second", "other")
		}, ""},
		"a first release that is back and acts beside the second": {func(s scene) {
			s.first()
			s.lease(4, "spotter", false)
			s.lease(4, "other", true)
			s.claim(5, "second", "other")
			s.lease(6, "spotter", true)
			s.write(7.5, "spotter", "nodes", "", "a")
		}, "rival"},
		"a second release as soon as it has claimed the first pool": {func(s scene) {
			s.first()
			s.Request(&Request{Received: at(3), Answered: at(3), User: "admin", Verb: "delete", Resource: "capacitypools", Name: "web", Code: 200})
			s.lease(4, "other", true)
			s.claim(5, "second", "other")
			s.write(6, "spotter", "nodes", "", "a")
		}, ""},
		"a second release once the pool of the first is gone": {func(s scene) {
			s.first()
			s.Request(&Request{Received: at(3), Answered: at(3), User: "admin", Verb: "delete", Resource: "capacitypools", Name: "web", Code: 200})
			s.claim(5, "second", "other")
		}, ""},
		"a release that ended and keeps its pools": {func(s scene) {
			s.first()
			s.Ended(at(10), "spotter")
			s.Taken(at(46))
			s.Ended(at(10), "spotter")
			s.Taken(at(48))
		}, "takeover"},
		"a release that ended and has its pools taken": {func(s scene) {
			s.first()
			s.lease(10, "spotter", false)
			s.Ended(at(10), "spotter")
			s.claim(12, "second", "other")
			s.Taken(at(48))
		}, ""},
		"a launch given up early":    {func(s scene) { s.launch(30, false) }, "launch"},
		"a launch given up in time":  {func(s scene) { s.launch(59, false) }, ""},
		"a NodeClaim with a machine": {func(s scene) { s.launch(30, true) }, ""},
		"a pod that is deleted": {func(s scene) {
			s.pod("p", "a")
			s.remove(2, "spotter", "p")
		}, "delete"},
	} {
		s := newScene()
		x.show(s)
		var rules []string
		for _, f := range s.Findings() {
			rules = append(rules, f.Rule)
		}
		if got := strings.Join(rules, " "); got != x.want {
			t.Errorf("%s: found %q, want %q: %v", name, got, x.want, s.Findings())
		}
	}
}

// TestLedger: a ledger holds what pods used, ended ones too, and no more.
func TestLedger(t *testing.T) {
	for _, x := range []struct {
		consumed float64
		unseen   time.Duration
		apart    float64 // since when, for a minute
		broken   bool
	}{
		{3, 0, 0, false}, {3.0035, 0, 0, false}, {2.9965, 0, 0, false}, {3.01, 0, 0, true}, {2.99, 0, 0, true}, {2.99, time.Minute, 0, false},
		{2.9, time.Minute, 0, true}, {number("much"), 0, 0, true}, {3.01, time.Minute, 0, true}, {3.01, time.Minute, 3590, false},
		{3.04, time.Minute, 3590, true}, {3.01, time.Minute, 3601, true}, {3.01, time.Minute, 3400, true},
	} {
		s := newScene()
		s.Apart(at(x.apart), time.Minute)
		need := map[string]float64{"gpu": 1}
		labels := map[string]string{"team": "ml"}
		s.Pod(at(0), Pod{Namespace: "ml", Name: "a", Labels: labels, Start: at(0), Requests: need})
		s.Pod(at(0), Pod{Namespace: "ml", Name: "b", Labels: labels, Start: at(0), End: at(3600), Requests: need})
		s.Pod(at(0), Pod{Namespace: "ml", Name: "other", Start: at(0), Requests: need})
		s.Pod(at(0), Pod{Namespace: "web", Name: "a", Labels: labels, Start: at(0), Requests: need})
		s.PodGone(at(4000), "ml", "b")
		s.Ledger(at(7300), Budget{Namespace: "ml", Name: "m", Resource: "gpu", Selector: labels, Consumed: x.consumed,
			CountedAt: at(7200)}, x.unseen)
		if got := len(s.Findings()) > 0; got != x.broken {
			t.Errorf("%.4f, %v unseen, apart since %v s: found %v, want %t", x.consumed, x.unseen, x.apart, s.Findings(), x.broken)
		}
	}
}

// TestBooked: a ledger grows no faster than time passes, whatever time it says that it was
// counted at, and a pod that is seen later than the ledger that counts it is counted too.
func TestBooked(t *testing.T) {
	for _, x := range []struct {
		consumed float64
		broken   bool
	}{{0.1, false}, {0.9, false}, {1.0009, false}, {1.01, true}, {6, true}} {
		s := newScene()
		s.Pod(at(0), Pod{Namespace: "ml", Name: "a", Start: at(0), Requests: map[string]float64{"gpu": 0.5}})
		b := Budget{Namespace: "ml", Name: "m", Resource: "gpu", Consumed: x.consumed, CountedAt: at(6 * 3600)}
		s.Booked(at(3600), b, time.Minute)
		s.Pod(at(3601), Pod{Namespace: "ml", Name: "b", Start: at(0), Requests: map[string]float64{"gpu": 0.5}})
		s.JudgeBooked(at(3629))
		early := len(s.Findings())
		s.JudgeBooked(at(3631))
		s.JudgeBooked(at(3700))
		if got := len(s.Findings()); early > 0 || got > 1 || (got > 0) != x.broken {
			t.Errorf("%.4f: found %v, %d of them at once, want %t", x.consumed, s.Findings(), early, x.broken)
		}
	}
}

// TestAuditOfReleases reads leases and claims in an audit log.
func TestAuditOfReleases(t *testing.T) {
	for line, want := range map[string]Request{
		`{"objectRef":{"resource":"leases"},"responseObject":{"spec":{"holderIdentity":"a_1","renewTime":"2026-01-01T12:00:00.500000Z","leaseDurationSeconds":15}}}`: {Resource: "leases", Until: at(15.5)},
		`{"objectRef":{"resource":"leases"},"responseObject":{"spec":{"holderIdentity":"","renewTime":"2026-01-01T12:00:00.500000Z","leaseDurationSeconds":1}}}`:     {Resource: "leases"},
		`{"objectRef":{"resource":"capacitypools","subresource":"status"},"responseObject":{"status":{"controller":"other","mode":"active"}}}`:                       {Resource: "capacitypools", Subresource: "status", Controller: "other"},
		`{"objectRef":{"resource":"capacitypools"},"responseObject":{"kind":"Status","status":"Success"}}`:                                                           {Resource: "capacitypools"},
		`{"objectRef":{"resource":"pods"},"responseObject":{"status":{"controller":"other"}}}`:                                                                       {Resource: "pods"},
	} {
		r, err := parse([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(*r) != fmt.Sprint(want) {
			t.Errorf("%s: %+v, want %+v", line, *r, want)
		}
	}
}

// TestAudit reads an audit log that grows, also one whose last line is half written.
func TestAudit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(file, []byte("what was before is not read\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := openTail(file)
	if err != nil {
		t.Fatal(err)
	}
	defer log.file.Close()
	line := `{"requestReceivedTimestamp":"2026-01-01T12:00:00.5Z","stageTimestamp":"2026-01-01T12:00:01Z","verb":"patch","user":{"username":"admin"},"requestURI":"/x",` +
		`"objectRef":{"resource":"capacitypools","name":"web","apiGroup":"spotter.dev"},"responseStatus":{"code":200},"responseObject":{"metadata":{"annotations":{"a":"b"}},"spec":{"mode":"off","disruption":{"budget":2}}}}` + "\n"
	add := func(text string) {
		t.Helper()
		f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	add(`{"verb":"get"}` + "\n" + line[:40])
	if r, err := log.next(); r != nil || err != nil {
		t.Errorf("half a line is %v, %v", r, err)
	}
	add(line[40:])
	want := Request{Received: at(0.5), Answered: at(1), User: "admin", Verb: "patch", Group: "spotter.dev",
		Resource: "capacitypools", Name: "web", Code: 200, Mode: "off", Budget: "2"}
	r, err := log.next()
	if err != nil || r == nil {
		t.Fatal(r, err)
	}
	if r.Annotations["a"] != "b" {
		t.Errorf("annotations %v", r.Annotations)
	}
	r.Annotations = nil
	if fmt.Sprint(*r) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", *r, want)
	}
	add("this is not JSON\n")
	if _, err := log.next(); err == nil {
		t.Error("a line that is not JSON is read")
	}
}

// TestOrders: orders are answered, with what was found before.
func TestOrders(t *testing.T) {
	var out bytes.Buffer
	s := newScene()
	s.node(0, "a", annotationCordon)
	r := &runner{w: s.Watcher, out: &out, budgets: map[string]Budget{"ml/b": {Namespace: "ml", Name: "b", Resource: "gpu", Consumed: 5}}}
	for order := range lines(context.Background(), strings.NewReader("rest\nunmarked\nledgers\nended spotter\n")) {
		r.obey(order)
	}
	if got := strings.Count(out.String(), "done: 1 drains and 0 evictions seen\n"); got != 4 || len(s.Findings()) != 3 ||
		strings.Count(out.String(), "\n") != 7 || s.ended["spotter"].IsZero() {
		t.Errorf("it says\n%s", out.String())
	}
}
