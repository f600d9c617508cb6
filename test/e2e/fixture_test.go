package e2e

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/live/crd"
	backend "github.com/spotter-dev/spotter/live/karpenter"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/karpenter"
	"github.com/spotter-dev/spotter/test/testenv"
)

// The environment variables of the day. SPOTTER names the program and SPOTTER_SEED
// repeats a day, as elsewhere.
const (
	wanted = "SPOTTER_E2E"        // a day is played only where it is set
	factor = "SPOTTER_E2E_FACTOR" // how many times as fast as its clock the market goes
)

// defaultFactor makes six minutes of a day.
const defaultFactor = 240

// A fixture is a cluster, what provides its nodes, and Spotter in it.
type fixture struct {
	env    *testenv.Env
	client client.WithWatch
	seed   uint64
	draw   *rand.Rand
	dir    string // of what processes outside of the cluster share

	market    *market
	auction   *auction
	karpenter *karpenter.Karpenter
	*audience

	// interrupts says that Karpenter is warned of reclaims. Else Spotter is, by a
	// queue.
	interrupts bool
	queue      *queue

	binary, helmPath string
	claim            string // the PersistentVolumeClaim of the prices
	lead             *process
	leads            []*process  // all that ever were
	revived          []time.Time // when one was started again that had ended by itself
}

// newFixture starts all but Spotter.
func newFixture(t *testing.T, interrupts bool) *fixture {
	t.Helper()
	w := &fixture{seed: testenv.Seed(t), dir: t.TempDir(), interrupts: interrupts, binary: program(t),
		helmPath: tool(t, "helm"), claim: "prices"}
	w.draw = rand.New(rand.NewPCG(w.seed, 0))
	options := testenv.Options{ControllerManager: true, Scheduler: true, Kwok: true, PodDelete: 300 * time.Millisecond}
	options.CRDs = karpenter.CRDs()
	w.env = testenv.New(t, options)
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme), backend.AddToScheme(scheme))
	if err != nil {
		t.Fatal(err)
	}
	if w.client, err = client.NewWithWatch(w.env.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	w.withoutOurs(t)
	for _, name := range []string{"system-a", "system-b"} {
		n := testenv.Node(name, "4", "16Gi")
		n.Labels["team"] = "system"
		w.env.AddNode(t, n)
	}
	gpu := testenv.Node("accelerated", "16", "64Gi")
	gpu.Labels["team"] = "research"
	gpu.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("8")
	w.env.AddNode(t, gpu)
	w.volume(t)
	w.queue = openQueue(t)
	w.market = openMarket(t, w.draw, filepath.Join(w.dir, "trace", "prices"), speed(t))
	w.startKarpenter(t)
	w.audience = w.watch(t)
	w.auction = w.openAuction(t)
	return w
}

// speed returns the factor.
func speed(t *testing.T) int64 {
	t.Helper()
	text := os.Getenv(factor)
	if text == "" {
		return defaultFactor
	}
	k, err := strconv.ParseInt(text, 10, 64)
	if err != nil || k < 24 || k > 1440 {
		t.Fatalf("%s is %q, want a whole number from 24 (an hour) to 1440 (a minute)", factor, text)
	}
	return k
}

// program returns the program, built if SPOTTER does not name it.
func program(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("SPOTTER"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "spotter")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", path, "../../cmd/spotter").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// tool returns the path of a program that the Makefile builds into bin.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v; run make e2e", err)
	}
	return path
}

// withoutOurs takes away the definitions that the chart is to install.
func (w *fixture) withoutOurs(t *testing.T) {
	t.Helper()
	for _, d := range crd.Objects() {
		if err := w.env.Client.Delete(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, d.Name+" is gone", func() error {
			if err := w.env.Client.Get(t.Context(), client.ObjectKeyFromObject(d), d); !apierrors.IsNotFound(err) {
				return errors.Join(errors.New("it is there"), err)
			}
			return nil
		})
	}
}

// volume creates the volume of the trace, as a user who records prices has one.
func (w *fixture) volume(t *testing.T) {
	t.Helper()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	none := ""
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: w.claim}, Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: filepath.Join(w.dir, "trace")}},
			ClaimRef:               &corev1.ObjectReference{Namespace: namespace, Name: w.claim},
		}},
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.claim}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}, VolumeName: w.claim, StorageClassName: &none,
			Resources: corev1.VolumeResourceRequirements{Requests: size},
		}},
	} {
		if err := w.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// startKarpenter runs Karpenter on the market until the test ends.
func (w *fixture) startKarpenter(t *testing.T) {
	t.Helper()
	w.karpenter = karpenter.Start(t, w.env, w.client, karpenter.Options{
		Dir: w.dir, Types: w.market.types(t), Prices: w.market.prices, Interrupts: w.interrupts,
		RefusedFor: 20 * time.Second, BatchIdle: 300 * time.Millisecond, BatchMax: 2 * time.Second,
	})
}

// patience is how long is waited for what takes seconds on an idle machine.
const patience = 4 * time.Minute

// until waits until f returns nil, and keeps the controller running meanwhile, as its
// Deployment does.
func (w *fixture) until(t *testing.T, what string, f func(context.Context) error) {
	t.Helper()
	err := f(t.Context())
	for end := time.Now().Add(patience); err != nil && time.Now().Before(end); err = f(t.Context()) {
		time.Sleep(100 * time.Millisecond)
		w.revive(t)
	}
	if err != nil {
		out, _ := w.env.Kubectl("get", "cpool,nodepools,nodeclaims,nodes,pods", "-A", "-L", "karpenter.sh/capacity-type")
		t.Fatalf("waited %v in vain until %s: %v\n%s", patience, what, err, out)
	}
	t.Logf("%s  %s", w.market.clock(), what)
}

// reach waits for an hour of the day. It returns late if earlier steps took longer.
func (w *fixture) reach(t *testing.T, hour float64) {
	t.Helper()
	for time.Now().Before(w.market.at(hour)) {
		time.Sleep(min(100*time.Millisecond, time.Until(w.market.at(hour))+time.Millisecond))
		w.revive(t)
	}
}
