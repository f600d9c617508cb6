// Package karpenter runs the real core of Karpenter, with nodes of its kwok provider, on
// a cluster of testenv: what the runs of test/e2e and of test/fidelity have in common.
// Its provider is the wrapper in .ci/tools/karpenter, whose markets have prices over
// time, can refuse, and can take nodes back.
package karpenter

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kwokapis "sigs.k8s.io/karpenter/kwok/apis"
	karpenterapis "sigs.k8s.io/karpenter/pkg/apis"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/spotter-dev/spotter/test/e2e/bill"
	"github.com/spotter-dev/spotter/test/testenv"
)

// NodeClass is the name of the NodeClass that [Start] makes, of the kwok provider.
const NodeClass = "default"

// Linked is the version of Karpenter in the project's go.mod, and of the program karpenter-kwok.
// The programs of others have their version at the end of their names, as karpenter-kwok-1.15.
const Linked = "1.14"

// CRDs returns the definitions that Karpenter needs.
func CRDs() []*apiextensionsv1.CustomResourceDefinition {
	return append(slices.Clone(karpenterapis.CRDs), kwokapis.CRDs...)
}

// CRDsOf returns the definitions that a version of Karpenter needs; empty is [Linked].
func CRDsOf(t testing.TB, v string) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	if v == "" || v == Linked {
		return CRDs()
	}
	text, err := exec.CommandContext(t.Context(), program(t, v), "crds").Output()
	var all []*apiextensionsv1.CustomResourceDefinition
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		t.Fatalf("the definitions of Karpenter %s: %v", v, err)
	}
	return all
}

// program returns the path of the program of a version; empty is [Linked].
func program(t testing.TB, v string) string {
	t.Helper()
	name := "karpenter-kwok"
	if v != "" && v != Linked {
		name += "-" + v
	}
	path := filepath.Join("..", "..", "bin", "testenv", name)
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		path = filepath.Join(dir, name)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v; run make %s", err, filepath.Join("bin", "testenv", name))
	}
	return path
}

// Options are the market of a Karpenter and how it buys.
type Options struct {
	// Version is the version of Karpenter that runs, as in 1.15; empty is [Linked].
	Version string

	// Dir is a folder for its log and for the files that [Karpenter.Refuse] and
	// [Karpenter.Announce] write.
	Dir string

	// Types are what the provider sells: results of [Type].
	Types []any

	// Prices are those of every market over time.
	Prices bill.Prices

	// Interrupts says that Karpenter is warned of reclaims, as Karpenter for AWS is.
	Interrupts bool

	// RefusedFor is how long a market that refused is shown as unavailable.
	RefusedFor time.Duration

	// BatchIdle and BatchMax close the batch window of its provisioner; 0 leaves
	// Karpenter's own.
	BatchIdle, BatchMax time.Duration

	// JoinMin and JoinMax bound how long after its launch a node joins the cluster,
	// drawn evenly between the two.
	JoinMin, JoinMax time.Duration

	// MetricsPort is where it serves its metrics, 0 for nowhere.
	MetricsPort int
}

// An Offer is a market of a type, at its first price in dollars per hour.
type Offer struct {
	Zone, Capacity string
	Price          float64
}

// Type returns an instance type as the kwok provider reads it. Resources are what its
// nodes have; of these the provider keeps back [ReservedCPU] and [ReservedMemory].
func Type(name string, resources map[string]string, offers []Offer) any {
	var all []any
	for _, o := range offers {
		all = append(all, map[string]any{"Price": o.Price, "Available": true, "Requirements": []any{
			map[string]any{"key": karpv1.CapacityTypeLabelKey, "operator": "In", "values": []string{o.Capacity}},
			map[string]any{"key": corev1.LabelTopologyZone, "operator": "In", "values": []string{o.Zone}},
		}})
	}
	return map[string]any{"name": name, "offerings": all, "architecture": "amd64", "operatingSystems": []string{"linux"},
		"resources": resources}
}

// What the kwok provider keeps back of every node, in thousandths of a core and in bytes
// (kwok/cloudprovider/helpers.go of v1.14.1).
const (
	ReservedCPU    = 100
	ReservedMemory = 10 << 20
)

// A Karpenter is a running one.
type Karpenter struct{ dir string }

// Start runs Karpenter until the test ends.
func Start(t testing.TB, env *testenv.Env, c client.Client, o Options) *Karpenter {
	t.Helper()
	path := program(t, o.Version)
	class := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
		"type": "Ready", "status": "True", "reason": "Played", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
	}}}}}
	class.SetGroupVersionKind(schema.GroupVersionKind{Group: "karpenter.kwok.sh", Version: "v1alpha1",
		Kind: "KWOKNodeClass"})
	class.SetName(NodeClass)
	if err := c.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	k := &Karpenter{dir: o.Dir}
	types, prices := filepath.Join(o.Dir, "types.json"), filepath.Join(o.Dir, "prices.json")
	write(t, types, o.Types)
	write(t, prices, o.Prices)
	log, err := os.Create(k.LogFile())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "KUBECONFIG="+env.Kubeconfig, "DISABLE_LEADER_ELECTION=true",
		fmt.Sprintf("METRICS_PORT=%d", o.MetricsPort), "HEALTH_PROBE_PORT=0",
		"SYSTEM_NAMESPACE=kube-system", "INSTANCE_TYPES_FILE_PATH="+types, "PRICES_FILE="+prices,
		"REFUSED_MARKETS_FILE="+k.refusedFile(), "REFUSED_FOR="+o.RefusedFor.String(), "TAKEN_FILE="+k.takenFile(),
		"INSTANCE_IDS=true", fmt.Sprintf("INTERRUPTION_CONTROLLER=%t", o.Interrupts),
		fmt.Sprintf("JOIN_AFTER=%v-%v", o.JoinMin, o.JoinMax))
	if o.BatchIdle > 0 {
		cmd.Env = append(cmd.Env, "BATCH_IDLE_DURATION="+o.BatchIdle.String(), "BATCH_MAX_DURATION="+o.BatchMax.String())
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("Karpenter said at the end:\n%s", text[max(0, len(text)-3000):])
		}
		log.Close()
	})
	return k
}

// LogFile is where Karpenter logs.
func (k *Karpenter) LogFile() string { return filepath.Join(k.dir, "karpenter.log") }

func (k *Karpenter) refusedFile() string { return filepath.Join(k.dir, "refused") }
func (k *Karpenter) takenFile() string   { return filepath.Join(k.dir, "taken") }

// Refuse has the markets refuse that match one of the patterns, as of path.Match with
// markets named "instance-type/zone/capacity-type", and no others.
func (k *Karpenter) Refuse(patterns ...string) error {
	if len(patterns) == 0 {
		if err := os.Remove(k.refusedFile()); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	// A reader sees the old list or the new one, and never a part.
	next := k.refusedFile() + ".next"
	if err := os.WriteFile(next, []byte(strings.Join(patterns, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(next, k.refusedFile())
}

// Reclaim announces that the machine of a node is gone from an instant on. The node is named by the
// last part of its provider ID, and need not have joined yet.
func (k *Karpenter) Reclaim(node string, at time.Time) error {
	return k.announce(fmt.Sprintf("reclaim %s %s", node, at.UTC().Format(time.RFC3339Nano)))
}

// Recommend advises to leave a node.
func (k *Karpenter) Recommend(node string) error { return k.announce("recommend " + node) }

func (k *Karpenter) announce(line string) error {
	f, err := os.OpenFile(k.takenFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}

// write writes a value as JSON.
func write(t testing.TB, path string, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
