package main

import (
	"cmp"
	"fmt"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spotter-dev/spotter/live/karpenter"
	"github.com/spotter-dev/spotter/live/queue/fake"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/scenarios/catalog"
	"github.com/spotter-dev/spotter/test/testenv"
)

// What a mass reclaim is held to.
const (
	reclaimPods    = 20
	reclaimLead    = 120 * time.Second // from the notice until AWS takes the node
	replacementAim = 5 * time.Second
	evictionAim    = time.Minute
	takeoverAim    = 15 * time.Second
	reclaimBudgets = 100
)

// BenchmarkMassReclaim measures a controller when AWS announces through its queue that it
// reclaims every node of a cluster of 200 nodes and 4,000 pods at once, with a real API server
// and scheduler. It measures the time until replacements are requested (aim: 5 s) and until the
// eviction of every pod is requested (aim: 60 s), the writes, and the same while 100 GPUBudgets
// close their gates. In takeover the leader is killed 3 s after the notices: the aim is that its
// successor requests an eviction within 15 s.
//
// Half of the Deployments have a disruption budget of 10%. A pod counts from the first request
// for its eviction, whatever the response. SPOTTER_NODES=N sets another number of nodes.
func BenchmarkMassReclaim(b *testing.B) {
	nodes := cmp.Or(scaleOf(b, "SPOTTER_NODES", 20), 200)
	for _, x := range []reclaimCase{{name: "plain"}, {name: "flood", budgets: reclaimBudgets}, {name: "takeover", kill: 3 * time.Second}} {
		b.Run(x.name, func(b *testing.B) {
			for b.Loop() {
				x.measure(b, newScaleCluster(b, size{nodes: nodes, perNode: reclaimPods, spot: true}))
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// A reclaimCase is one mass reclaim that is measured.
type reclaimCase struct {
	name    string
	budgets int           // GPUBudgets that are made while the notices arrive
	kill    time.Duration // how long after the notices the leader is killed; 0 does not
}

func (x *reclaimCase) measure(b *testing.B, c *scaleCluster) {
	b.Helper()
	sqs := fake.New()
	web := httptest.NewServer(sqs)
	b.Cleanup(web.Close)
	c.makeSpace(b, "spotter")
	env := []string{"AWS_ENDPOINT_URL=" + web.URL, "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_REGION=" + scaleRegion}
	settings := []string{"namespace: spotter", "mode: active", "policies: portfolio", "prices: {trace: " +
		scaleTrace(b) + "}", "notices: {queueURL: '" + web.URL + "/123456789012/spotter'}"}
	lead := c.startAs(b, "spotter-a", env, settings...)
	stop := c.play(b)
	defer stop()
	lead.await(b, 1)
	after := lead
	if x.kill > 0 {
		after = c.startAs(b, "spotter-b", env, settings...)
	}
	pods := c.evictable(b)
	mark, begun := c.env.Mark(), time.Now()
	sqs.Send(c.interruptions(begun)...)
	x.flood(b, c)
	if x.kill > 0 {
		time.Sleep(time.Until(begun.Add(x.kill)))
		if err := lead.cmd.Process.Kill(); err != nil {
			b.Fatal(err)
		}
		x.takenOver(b, c, mark, time.Now())
		return
	}
	seen := c.watchReclaim(b, mark, begun, pods)
	seen.report(b)
	after.reportWrites(b)
	b.Logf("written: %s; complaints: %d\n%s", c.written(b, mark, "spotter-a"), len(after.tail),
		strings.Join(after.tail[:min(len(after.tail), 3)], "\n"))
	if err := after.cmd.Process.Signal(syscall.SIGKILL); err != nil { // what it would take back is not measured
		b.Fatal(err)
	}
	<-after.done
}

// interruptions are the notices for all nodes.
func (c *scaleCluster) interruptions(at time.Time) (all []string) {
	for i := range c.nodes {
		machine := "i-" + strings.TrimPrefix(c.nodeName(i), "node-")
		all = append(all,
			fmt.Sprintf(`{"version":"0","id":"%d","detail-type":"EC2 Spot Instance Interruption Warning","source":"aws.ec2","account":"123456789012","time":%q,"region":%q,"resources":[],"detail":{"instance-id":%q,"instance-action":"terminate"}}`,
				i, at.UTC().Format(time.RFC3339), scaleRegion, machine))
	}
	return all
}

// flood makes GPUBudgets that are spent at once, each with a gate to close, a ledger and a
// status.
func (x *reclaimCase) flood(b *testing.B, c *scaleCluster) {
	b.Helper()
	err := many(x.budgets, func(i int) error {
		app, quota := i%len(c.apps), 0.001
		return c.client.Create(b.Context(), &v1alpha1.GPUBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: scaleSpace(app), Name: fmt.Sprintf("budget-%d", i)},
			Spec: v1alpha1.GPUBudgetSpec{
				Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("app-%d", app)}}, ResourceName: "cpu",
				Quota: v1alpha1.Quota{GPUHours: &quota, WindowHours: 1}, Gate: true,
			},
		})
	})
	if err != nil {
		b.Fatal(err)
	}
}

// evictable returns the pods of Deployments, and how many milli-CPUs they need together.
func (c *scaleCluster) evictable(b *testing.B) (pods map[string]int64) {
	b.Helper()
	var l corev1.PodList
	if err := c.client.List(b.Context(), &l); err != nil {
		b.Fatal(err)
	}
	pods = map[string]int64{}
	for i := range l.Items {
		p := &l.Items[i]
		if owner := metav1.GetControllerOf(p); owner != nil && owner.Kind == "ReplicaSet" {
			pods[p.Namespace+"/"+p.Name] = p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		}
	}
	return pods
}

// A reclaimSeen is what a controller did in a mass reclaim, as times after the notices.
type reclaimSeen struct {
	firstClaim, lastClaim time.Duration
	claims                int
	markets               map[string]int // first of each claim
	replaced              time.Duration  // when as many CPUs were requested as the pods need

	evictions  []time.Duration // first request of each pod, ascending
	pods, gone int             // gone were deleted without one
}

// watchReclaim waits until the provider takes the nodes, or the eviction of all pods has
// been requested, and reads the audit log.
func (c *scaleCluster) watchReclaim(b *testing.B, mark testenv.Mark, begun time.Time, pods map[string]int64) (seen reclaimSeen) {
	b.Helper()
	for {
		seen = c.readReclaim(b, mark, begun, pods)
		if len(seen.evictions)+seen.gone >= seen.pods && seen.replaced != 0 || time.Since(begun) > reclaimLead {
			return seen
		}
		time.Sleep(2 * time.Second)
	}
}

func (c *scaleCluster) readReclaim(b *testing.B, mark testenv.Mark, begun time.Time, pods map[string]int64) reclaimSeen {
	b.Helper()
	seen := reclaimSeen{pods: len(pods), markets: map[string]int{}}
	var need, asked int64
	left := map[string]bool{}
	for name, cpu := range pods {
		need += cpu
		left[name] = true
	}
	for _, e := range c.env.Audit(b, mark, func(e testenv.AuditEvent) bool {
		return e.Writes() && (e.Resource == "pods" || e.Resource == "nodeclaims")
	}) {
		at, name := e.Time.Sub(begun), e.Namespace+"/"+e.Name
		switch ours := strings.HasPrefix(e.User, "spotter-"); {
		case ours && e.Subresource == "eviction" && left[name]:
			seen.evictions = append(seen.evictions, at)
			delete(left, name)
		case !ours && e.Verb == "delete" && left[name] && e.Code < 300:
			seen.gone++
			delete(left, name)
		case ours && e.Resource == "nodeclaims" && e.Verb == "create" && e.Code < 300:
			seen.claims++
			seen.lastClaim = at
			if seen.firstClaim == 0 {
				seen.firstClaim = at
			}
			market, cpu := claimMarket(string(e.Request))
			seen.markets[market]++
			if asked += cpu; asked >= need && seen.replaced == 0 {
				seen.replaced = at
			}
		}
	}
	slices.Sort(seen.evictions)
	return seen
}

var marketsOf = regexp.MustCompile(regexp.QuoteMeta(karpenter.MarketsAnnotation) + `":"([^",]+)`)

// claimMarket returns the first market that a NodeClaim requests, and its milli-CPUs.
func claimMarket(claim string) (market string, cpu int64) {
	m := marketsOf.FindStringSubmatch(claim)
	if m == nil {
		return "", 0
	}
	for _, part := range strings.Split(m[1], "/") {
		if t, ok := catalog.Lookup(catalog.AWS, part); ok {
			cpu = t.Allocatable.CPU
		}
	}
	return m[1], cpu
}

// report prints the figures, and which aims were missed.
func (s *reclaimSeen) report(b *testing.B) {
	b.Helper()
	b.Logf("replacements: %v", s.markets)
	b.ReportMetric(s.firstClaim.Seconds(), "first-replacement-s")
	b.ReportMetric(s.replaced.Seconds(), "replaced-s") // 0: not within the time of the notice
	b.ReportMetric(s.lastClaim.Seconds(), "last-replacement-s")
	b.ReportMetric(float64(s.claims), "replacements")
	b.ReportMetric(float64(s.pods), "pods")
	b.ReportMetric(float64(len(s.evictions)), "evictions")
	if n := len(s.evictions); n > 0 {
		b.ReportMetric(s.evictions[0].Seconds(), "first-eviction-s")
		b.ReportMetric(s.evictions[n/2].Seconds(), "median-eviction-s")
		b.ReportMetric(s.evictions[n*9/10].Seconds(), "p90-eviction-s")
		b.ReportMetric(s.evictions[n*99/100].Seconds(), "p99-eviction-s")
		b.ReportMetric(s.evictions[n-1].Seconds(), "last-eviction-s")
	}
	if s.replaced == 0 || s.replaced > replacementAim {
		b.Logf("missed: replacements are asked for after %v, aim %v", s.replaced, replacementAim)
	}
	if missing := s.pods - s.gone - len(s.evictions); missing > 0 || len(s.evictions) > 0 && s.evictions[len(s.evictions)-1] > evictionAim {
		b.Logf("missed: no eviction of %d pods of %d was requested, of the others within %v, aim %v; %d went without",
			missing, s.pods, slices.Max(append(s.evictions, 0)), evictionAim, s.gone)
	}
}

var urgentOf = regexp.MustCompile(`(?m)^spotter_api_writes_urgent_total\{verb="(\w+)"\} (\S+)$`)

// reportWrites prints what the process has written, by priority.
func (r *scaleRun) reportWrites(b *testing.B) {
	b.Helper()
	urgent := 0.0
	for _, m := range urgentOf.FindAllStringSubmatch(string(r.fetch(b, r.metrics)), -1) {
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			b.Fatal(err)
		}
		urgent += n
	}
	b.ReportMetric(urgent, "urgent-writes")
	b.ReportMetric(r.writes(b)-urgent, "ordinary-writes")
}

// takenOver waits for the first eviction that the successor of a killed leader requests.
func (x *reclaimCase) takenOver(b *testing.B, c *scaleCluster, mark testenv.Mark, killed time.Time) {
	b.Helper()
	for time.Since(killed) < reclaimLead {
		evicted := c.env.Audit(b, mark, func(e testenv.AuditEvent) bool { return e.User == "spotter-b" && e.Subresource == "eviction" })
		if len(evicted) > 0 {
			took := evicted[0].Time.Sub(killed)
			b.ReportMetric(took.Seconds(), "takeover-s")
			if took > takeoverAim {
				b.Logf("missed: the successor requests an eviction after %v, aim %v", took, takeoverAim)
			}
			return
		}
		time.Sleep(time.Second)
	}
	b.Errorf("the successor requests no eviction within %v", reclaimLead)
}
