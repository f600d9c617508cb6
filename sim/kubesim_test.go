package sim

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/policytest"
)

// kubesimDay is the load of two runs of Karpenter with its kwok provider that the KubeSim
// project recorded: two Deployments that grow to 500 replicas each and shrink twice. The types
// are those of the sizes of kwok's m-4x and m-8x, whose prices are in proportion to the size.
// The nodes' limit of 1,000 cores is left out: kwok states as a node's capacity what its pods
// request, so that it never binds. Ten minutes go before, in which the first node joins.
const kubesimDay = `
apiVersion: spotter.dev/v1alpha1
kind: Scenario
metadata: {name: kubesim, annotations: {spotter.dev/karpenter-version: "1.12"}}
spec: {duration: 36m11s, warmUp: %ds, market: {intensity: 0, slots: 500}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      expireAfter: Never
      requirements:
        - {key: kubernetes.io/arch, operator: In, values: [amd64]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}
        - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.xlarge, m5.2xlarge]}
  disruption: {consolidationPolicy: %s, consolidateAfter: 30s, budgets: [{nodes: 10%%}]}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec: {amiSelectorTerms: [{alias: al2023@latest}]}
`

const kubesimWorkload = `---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: workload-%s
  annotations: {spotter.dev/replica-schedule: "+0s=1 +16s=500 +16m19s=350 +26m20s=10"}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}, annotations: {spotter.dev/startup-time: 1s}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: pause, resources: {requests: {cpu: 950m, memory: 3.5Gi}}}]
`

// A trajectory is how many nodes there were at instants, ascending.
type trajectory struct {
	at    []time.Duration
	nodes []float64
}

// nodeTime returns the integral over time, straight lines between instants.
func (tr *trajectory) nodeTime() (sum float64) {
	for i := 1; i < len(tr.at); i++ {
		sum += (tr.nodes[i-1] + tr.nodes[i]) / 2 * (tr.at[i] - tr.at[i-1]).Seconds()
	}
	return sum
}

// readTrajectory reads a recorded one.
func readTrajectory(t *testing.T, file string) (tr trajectory) {
	t.Helper()
	f, err := os.Open(policytest.Recording(t, file))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		at, err := strconv.ParseFloat(row[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.ParseFloat(row[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		tr.at, tr.nodes = append(tr.at, time.Duration(at*float64(time.Second))), append(tr.nodes, n)
	}
	return tr
}

// A nodeCounter counts the nodes of a run by its log: what is launched and not yet gone.
type nodeCounter struct {
	start       policy.Time
	nodes, gone int
	changes     trajectory
}

func (*nodeCounter) Settled(*Moment) {}

func (nc *nodeCounter) Happened(e Entry) {
	switch e.Kind {
	case "registered":
		nc.nodes++
	case "deleted":
		if nc.nodes--; e.At >= nc.start {
			nc.gone++
		}
	default:
		return
	}
	nc.changes.at = append(nc.changes.at, e.At.Sub(nc.start))
	nc.changes.nodes = append(nc.changes.nodes, float64(nc.nodes))
}

// sampled returns the nodes at the instants of another trajectory.
func (tr *trajectory) sampled(like *trajectory) trajectory {
	out, i := trajectory{at: like.at}, 0
	n := 0.0
	for _, at := range like.at {
		for ; i < len(tr.at) && tr.at[i] <= at; i++ {
			n = tr.nodes[i]
		}
		out.nodes = append(out.nodes, n)
	}
	return out
}

// trajectoryError returns the integral of the difference over that of the real one.
func trajectoryError(simulated, real *trajectory) float64 {
	apart := trajectory{at: real.at}
	for i := range real.at {
		apart.nodes = append(apart.nodes, math.Abs(simulated.nodes[i]-real.nodes[i]))
	}
	return apart.nodeTime() / real.nodeTime()
}

// TestKubeSim holds the simulator against two recorded runs of a real Karpenter. Nothing is
// fitted to them: the delays are those of Karpenter, of the kwok provider, which needs no time to
// start or to end a machine, and of kube-controller-manager.
func TestKubeSim(t *testing.T) {
	for _, c := range []struct {
		file, mode string
		most       float64
	}{
		{"when-empty", "WhenEmpty", 0.02},
		// After the first shrinkage the real one ended after six minutes and the simulated one
		// after two, with as many nodes.
		{"when-underutilized", "WhenEmptyOrUnderutilized", 0.05},
	} {
		t.Run(c.mode, func(t *testing.T) {
			recorded := readTrajectory(t, "kubesim/"+c.file+".csv")
			delays := DefaultDelays()
			delays.RegisterMin, delays.RegisterMax, delays.Initialize = 0, 0, time.Second
			delays.Pull, delays.Start, delays.Ready, delays.Shutdown = 0, 0, 0, 0
			delays.PodWrites, delays.PodWritesBurst = 20, 30
			var sum, gone float64
			const seeds = 10
			for seed := range uint64(seeds) {
				// What the load is to the rhythm of the controller, which looks every ten seconds,
				// is not known: each seed has another.
				bound := boundText(t, fmt.Sprintf(kubesimDay, 600+seed, c.mode)+fmt.Sprintf(kubesimWorkload, "a")+fmt.Sprintf(kubesimWorkload, "b"))
				count := &nodeCounter{start: bound.Start}
				mustRun(t, Config{Prepared: mustPrepare(t, bound), Policy: mustPolicy(t, "karpenter"), Seed: 1 + seed, Observer: count,
					Delays: &delays, LowestPrice: true})
				ours := count.changes.sampled(&recorded)
				sum, gone = sum+trajectoryError(&ours, &recorded), gone+float64(count.gone)
			}
			t.Logf("%s: trajectory error %.1f%%, %.0f nodes removed", c.mode, 100*sum/seeds, gone/seeds)
			if sum/seeds > c.most {
				t.Errorf("the trajectory is %.1f%% off, want %.0f%% at most", 100*sum/seeds, 100*c.most)
			}
		})
	}
}
