package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	karpenterapis "sigs.k8s.io/karpenter/pkg/apis"
	"sigs.k8s.io/yaml"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
	"github.com/spotter-dev/spotter/test/testenv"
)

// TestTryCluster tries a cluster with rights to read and no others: nothing is written in
// it, a program reads what it costs, and the API server takes the CapacityPool, which is for
// the nodes that had none and does no more than show.
func TestTryCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an API server and processes")
	}
	env := testenv.New(t, testenv.Options{ControllerManager: true, Scheduler: true, Kwok: true, CRDs: karpenterapis.CRDs})
	recentPrices(t)
	crew(t, env)
	reader := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}}
	kubeconfig := testenv.Kubeconfig(t, env.User(t, "reader", reader))
	mark := env.Mark()
	dir := filepath.Join(t.TempDir(), "try")
	code, stdout, stderr := call(t, "try", "--dir", dir, "--kubeconfig", kubeconfig, "-o", "json")
	if code != cli.ExitOK {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if writes := env.Audit(t, mark, func(e testenv.AuditEvent) bool { return e.User == "reader" && e.Writes() }); len(writes) > 0 {
		t.Errorf("it wrote %v", writes)
	}
	var out struct {
		Now struct {
			Nodes     int     `json:"nodes"`
			SpotNodes int     `json:"spot_nodes"`
			Month     float64 `json:"usd_month"`
		} `json:"now"`
		Policies []struct {
			Month float64 `json:"usd_month"`
		} `json:"policies"`
	}
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		t.Fatalf("%v\n%s", err, stdout)
	}
	if out.Now.Nodes != 4 || out.Now.SpotNodes != 2 || out.Now.Month <= 0 || len(out.Policies) != 4 {
		t.Errorf("it found %+v", out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "capacitypool.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	documents := bytes.Split(text, []byte("\n---\n"))
	for _, d := range documents {
		var pool v1alpha1.CapacityPool
		if err := yaml.UnmarshalStrict(d, &pool); err != nil {
			t.Fatalf("%v\n%s", err, d)
		}
		if pool.Spec.Mode != v1alpha1.ModeShadow || pool.Name == "web" {
			t.Errorf("CapacityPool %s is %s", pool.Name, pool.Spec.Mode)
		}
		if err := env.Client.Create(t.Context(), &pool); err != nil {
			t.Errorf("the API server refuses it: %v\n%s", err, d)
		}
	}
	if len(documents) != 1 || !strings.Contains(string(text), "eks.amazonaws.com/nodegroup: batch") {
		t.Errorf("nodes of one group are in no pool, and these are written:\n%s", text)
	}
}
