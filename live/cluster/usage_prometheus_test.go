package cluster_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/spotter-dev/spotter/live/cluster"
	"github.com/spotter-dev/spotter/policy"
)

// A promServer speaks the part of Prometheus' HTTP API that one query needs, and fails and answers
// wrongly on request.
type promServer struct {
	mu      sync.Mutex
	answer  func(w http.ResponseWriter, r *http.Request, query string)
	queries []string
	tokens  []string
}

func (p *promServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	answer := p.answer
	p.queries, p.tokens = append(p.queries, r.FormValue("query")), append(p.tokens, r.Header.Get("Authorization"))
	p.mu.Unlock()
	answer(w, r, r.FormValue("query"))
}

func (p *promServer) set(answer func(http.ResponseWriter, *http.Request, string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

// sampleOf is one sample of a vector, as of a time after the epoch.
func sampleOf(labels string, after time.Duration, value string) string {
	return fmt.Sprintf(`{"metric":{%s},"value":[%d,%q]}`, labels, epoch.Add(after).Unix(), value)
}

// vector answers both queries with samples: the first those of CPU, the second memory.
func vector(cpu, memory string) func(http.ResponseWriter, *http.Request, string) {
	return func(w http.ResponseWriter, _ *http.Request, query string) {
		samples := cpu
		if query == "memory" {
			samples = memory
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, samples)
	}
}

// says answers with a status and a body.
func says(code int, body string) func(http.ResponseWriter, *http.Request, string) {
	return func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

// A lone source is read once and then ends who follows it.
type lone struct {
	cluster.UsageSource
	end func()
}

func (l lone) Read(ctx context.Context) (cluster.Usage, error) {
	defer l.end()
	return l.UsageSource.Read(ctx)
}

// A promLab is an observer of two nodes and a server.
type promLab struct {
	*lab
	server *promServer
	source cluster.UsageSource
}

func newPromLab(t *testing.T, change func(*cluster.PrometheusConfig)) *promLab {
	t.Helper()
	p := &promLab{lab: newLab(t, capacityPool("p"), node("n"), node("m")), server: &promServer{}}
	s := httptest.NewServer(p.server)
	t.Cleanup(s.Close)
	c := cluster.DefaultPrometheusConfig()
	c.URL, c.CPU, c.Memory, c.Clock = s.URL, "cpu", "memory", clocktesting.NewFakePassiveClock(epoch)
	c.Timeout = time.Minute
	if change != nil {
		change(&c)
	}
	var err error
	if p.source, err = cluster.NewPrometheus(c); err != nil {
		t.Fatal(err)
	}
	p.observe(0)
	return p
}

// read reads once and returns what is said of it.
func (p *promLab) read() metav1.Condition {
	p.t.Helper()
	ctx, stop := context.WithCancel(p.t.Context())
	defer stop()
	if err := p.observer.FollowUsage(ctx, lone{p.source, stop}, clocktesting.NewFakeClock(epoch), time.Minute); err != nil {
		p.t.Fatal(err)
	}
	all := p.observer.Conditions("p")
	return all[slices.IndexFunc(all, func(c metav1.Condition) bool { return c.Type == cluster.ConditionUsage })]
}

// good are answers for both nodes, a minute old; n is named as by the Prometheus
// operator, m as by Prometheus itself.
var good = vector(
	sampleOf(`"node":"n","instance":"10.0.0.1:10250"`, -time.Minute, "0.25")+","+sampleOf(`"instance":"m"`, -time.Minute, "1.5"),
	sampleOf(`"node":"n"`, -2*time.Minute, "1073741824")+","+sampleOf(`"anything":"m"`, -time.Minute, "2e9"))

// TestPrometheus reads what nodes use from Prometheus: cores and bytes of nodes that
// are named in any of three ways, as of its oldest sample.
func TestPrometheus(t *testing.T) {
	p := newPromLab(t, nil)
	p.server.set(good)
	if c := p.read(); c.Status != metav1.ConditionTrue || c.Reason != "Measured" {
		t.Errorf("condition %+v", c)
	}
	used, when := p.observer.Usage()
	if want := (policy.Resources{CPU: 250, Memory: 1 << 30}); used["n"] != want {
		t.Errorf("n uses %+v", used["n"])
	}
	if want := (policy.Resources{CPU: 1500, Memory: 2e9}); used["m"] != want {
		t.Errorf("m uses %+v", used["m"])
	}
	if when != at(-2*time.Minute) || len(used) != 2 {
		t.Errorf("%v as of %v", used, when)
	}
	if want := []string{"cpu", "memory"}; !slices.Equal(p.server.queries, want) {
		t.Errorf("it was asked %q", p.server.queries)
	}
	p.server.set(func(w http.ResponseWriter, r *http.Request, query string) { // an old server knows GET alone
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		good(w, r, query)
	})
	if c := p.read(); c.Status != metav1.ConditionTrue {
		t.Errorf("by GET: %+v", c)
	}
}

// TestPrometheusFails has the server fail and answer wrongly in every way: the condition says how,
// and earlier readings stay and age.
func TestPrometheusFails(t *testing.T) {
	p := newPromLab(t, nil)
	p.server.set(good)
	p.read()
	before, when := p.observer.Usage()
	n := func(value string) string { return sampleOf(`"node":"n"`, 0, value) }
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request, string)
		reason string
		in     string // the message
	}{
		{"401", says(401, "who are you"), "Unauthorized", "401 Unauthorized"},
		{"403", says(403, "no"), "Forbidden", "403"},
		{"429", says(429, "later"), "Throttled", "429"},
		{"500", says(500, "<html>"+strings.Repeat("oops ", 1000)+"</html>"), "Failed", "500: <html>oops oops"},
		{"503 with words", says(503, `{"status":"error","errorType":"unavailable","error":"starting"}`), "Failed", "starting"},
		{"404 of something else", says(404, "not found"), "Failed", "404"},
		{"redirection", func(w http.ResponseWriter, r *http.Request, _ string) {
			http.Redirect(w, r, "https://example.com/", http.StatusFound)
		}, "BadAnswer", "302"},
		{"bad query", says(400, `{"status":"error","errorType":"bad_data","error":"parse error at char 3"}`), "BadQuery", "char 3"},
		{"query that takes long", says(503, `{"status":"error","errorType":"timeout","error":"query timed out"}`), "Failed", "timed out"},
		{"no JSON", says(200, "<html>Log in</html>"), "BadAnswer", ""},
		{"cut off", func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"status":"success"`)
		}, "BadAnswer", "EOF"},
		{"without an end", func(w http.ResponseWriter, _ *http.Request, _ string) {
			fill := []byte(strings.Repeat(" ", 1<<20))
			for range 40 {
				if _, err := w.Write(fill); err != nil {
					return
				}
			}
		}, "BadAnswer", "too large"},
		{"error with 200", says(200, `{"status":"error","errorType":"execution","error":"many-to-many"}`), "Failed", "many-to-many"},
		{"matrix", says(200, `{"status":"success","data":{"resultType":"matrix","result":[]}}`), "BadAnswer", "matrix"},
		{"scalar", says(200, `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`), "BadAnswer", "scalar"},
		{"nothing", vector("", ""), "NoMetrics", ""},
		{"CPU alone", vector(n("1"), ""), "NoMetrics", "only memory"},
		{"NaN", vector(n("NaN"), n("1")), "NoMetrics", `NaN is not a valid usage of node "n"`},
		{"infinite", vector(n("1"), n("+Inf")), "NoMetrics", "+Inf"},
		{"negative", vector(n("-1"), n("1")), "NoMetrics", "-1"},
		{"absurd", vector(n("1e300"), n("1")), "NoMetrics", "1e+300"},
		{"two values", vector(n("1")+","+n("2"), n("1")), "NoMetrics", "two values"},
		{"no node", vector(sampleOf("", 0, "3"), sampleOf("", 0, "3")), "NoMetrics", "names no node"},
		{"two labels", vector(sampleOf(`"a":"x","b":"y"`, 0, "3"), ""), "NoMetrics", "names no node"},
		{"another cluster's", vector(sampleOf(`"node":"far"`, 0, "1"), sampleOf(`"node":"far"`, 0, "1")), "NoSuchNodes", `"far"`},
		{"of last year", vector(sampleOf(`"node":"n"`, -9000*time.Hour, "1"), n("1")), "NoMetrics", "not current"},
		{"of tomorrow", vector(sampleOf(`"node":"n"`, 24*time.Hour, "1"), n("1")), "NoMetrics", "not current"},
	} {
		p.server.set(c.answer)
		if got := p.read(); got.Status != metav1.ConditionFalse || got.Reason != c.reason || !strings.Contains(got.Message, c.in) {
			t.Errorf("%s: %+v, want %s", c.name, got, c.reason)
		}
		if used, then := p.observer.Usage(); len(used) != len(before) || used["n"] != before["n"] || then != when {
			t.Errorf("%s: what was known is %v as of %v", c.name, used, then)
		}
	}
	s := p.lab.observe(time.Hour)
	i := slices.IndexFunc(s.Sources, func(x policy.Source) bool { return x.Name == cluster.SourceUsage })
	if i < 0 || s.Sources[i].At != when {
		t.Errorf("sources %+v", s.Sources)
	}
	p.server.set(good)
	if c := p.read(); c.Status != metav1.ConditionTrue {
		t.Errorf("it answers again: %+v", c)
	}
}

// TestPrometheusInPart takes what is sound, and says what is not.
func TestPrometheusInPart(t *testing.T) {
	p := newPromLab(t, nil)
	p.server.set(vector(
		sampleOf(`"node":"n"`, 0, "2")+","+sampleOf(`"node":"m"`, 0, "NaN")+","+sampleOf(`"node":"far"`, 0, "1"),
		sampleOf(`"node":"n"`, 0, "7")+","+sampleOf(`"node":"m"`, 0, "9")+","+sampleOf(`"node":"far"`, 0, "1")))
	c := p.read()
	if c.Status != metav1.ConditionTrue || c.Reason != "MeasuredInPart" {
		t.Errorf("condition %+v", c)
	}
	for _, want := range []string{"usage is known of 1 node", `NaN is not a valid usage of node "m"`,
		"only CPU or only memory is known of 1 node", "measured but not in this cluster: 1 node"} {
		if !strings.Contains(c.Message, want) {
			t.Errorf("the message lacks %q: %s", want, c.Message)
		}
	}
	if used, _ := p.observer.Usage(); len(used) != 1 || used["n"] != (policy.Resources{CPU: 2000, Memory: 7}) {
		t.Errorf("used %v", used)
	}
}

// TestPrometheusHangs gives up a server that does not answer, and one that is gone.
func TestPrometheusHangs(t *testing.T) {
	letGo := make(chan struct{})
	p := newPromLab(t, func(c *cluster.PrometheusConfig) { c.Timeout = 50 * time.Millisecond })
	p.server.set(func(_ http.ResponseWriter, r *http.Request, _ string) {
		select {
		case <-letGo:
		case <-r.Context().Done():
		}
	})
	if c := p.read(); c.Reason != "Timeout" {
		t.Errorf("it hangs: %+v", c)
	}
	close(letGo)
	gone := newPromLab(t, func(c *cluster.PrometheusConfig) { c.URL = "http://127.0.0.1:1" })
	if c := gone.read(); c.Reason != "Unreachable" {
		t.Errorf("it is gone: %+v", c)
	}
}

// TestPrometheusConfig names what is wrong.
func TestPrometheusConfig(t *testing.T) {
	for want, change := range map[string]func(*cluster.PrometheusConfig){
		`URL: "prometheus:9090" does not have the form`: func(c *cluster.PrometheusConfig) { c.URL = "prometheus:9090" },
		`URL: "" does not have the form`:                func(c *cluster.PrometheusConfig) { c.URL = "" },
		"holds a user":                                  func(c *cluster.PrometheusConfig) { c.URL = "http://a:b@c" },
		"is the address of a page":                      func(c *cluster.PrometheusConfig) { c.URL = "http://c/graph?x=1" },
		"CPU: the query is empty":                       func(c *cluster.PrometheusConfig) { c.CPU = " " },
		"Memory: the query is empty":                    func(c *cluster.PrometheusConfig) { c.Memory = "" },
		"Timeout: 0s is not positive":                   func(c *cluster.PrometheusConfig) { c.Timeout = 0 },
	} {
		c := cluster.DefaultPrometheusConfig()
		c.URL = "https://prometheus.example.com/prefix"
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&c)
		if _, err := cluster.NewPrometheus(c); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "a:b@") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
