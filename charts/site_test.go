package charts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kwokapis "sigs.k8s.io/karpenter/kwok/apis"
	karpenterapis "sigs.k8s.io/karpenter/pkg/apis"

	"github.com/spotter-dev/spotter/cmd/spotter/config"
	"github.com/spotter-dev/spotter/live/crd"
	"github.com/spotter-dev/spotter/test/testenv"
)

// A site is a cluster that the chart is installed in. Its nodes are played, so that
// pods become ready and run nothing: what a pod would run is run by the test, with the
// arguments and the service account that the chart gives it.
type site struct {
	env    *testenv.Env
	helm   *helm
	binary string

	// lead is the controller that was started last.
	lead *process
}

// newSite starts a cluster that has the definitions of Karpenter's kinds and not those of
// Spotter's.
func newSite(t *testing.T) *site {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	h := newHelm(t, "")
	options := testenv.Options{ControllerManager: true, Scheduler: true, Kwok: true, PodDelete: 100 * time.Millisecond}
	options.CRDs = append(slices.Concat(karpenterapis.CRDs, kwokapis.CRDs), nodeMetrics())
	env := testenv.New(t, options)
	h.kubeconfig = env.Kubeconfig
	s := &site{env: env, helm: h, binary: build(t)}
	for _, d := range crd.Objects() {
		if err := env.Client.Delete(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, d.Name+" is gone", func() error {
			if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(d), d); !apierrors.IsNotFound(err) {
				return errors.Join(errors.New("it is there"), err)
			}
			return nil
		})
	}
	for _, name := range []string{"chart-a", "chart-b"} {
		env.AddNode(t, testenv.Node(name, "4", "16Gi"))
	}
	return s
}

// nodeMetrics is what metrics-server serves, without it: a list that is empty.
func nodeMetrics() *apiextensionsv1.CustomResourceDefinition {
	keep := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "nodes.metrics.k8s.io",
			Annotations: map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "unapproved, in place of metrics-server"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "metrics.k8s.io", Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "nodes", Singular: "nodemetrics", Kind: "NodeMetrics"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1beta1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}},
			}},
		},
	}
}

// build returns the program, built if SPOTTER does not name it.
func build(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("SPOTTER"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "spotter")
	if out, err := exec.Command("go", "build", "-o", path, "../cmd/spotter").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// account returns a file by which a process is the service account of the chart.
func (s *site) account(t *testing.T, name string) string {
	t.Helper()
	return testenv.Kubeconfig(t, s.env.ServiceAccount(t, namespace, name))
}

// A process is what a container of the chart would run.
type process struct {
	*testenv.Process
	metrics string // the address of its metrics
}

// start runs the program with the arguments of the container and the mounted configuration. Only
// folders and addresses differ, because it does not run in a container.
func (s *site) start(t *testing.T, args []string, configuration, kubeconfig string) *process {
	t.Helper()
	metrics := testenv.FreeAddress(t)
	folder := t.TempDir()
	places := strings.NewReplacer("/var/lib/spotter", folder, "/etc/spotter/config", folder, `bindAddress: ":8443"`,
		`bindAddress: "`+metrics+`"`, `bindAddress: ":8081"`, `bindAddress: "0"`)
	if err := os.WriteFile(filepath.Join(folder, "config.yaml"), []byte(places.Replace(configuration)), 0o600); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, a := range args {
		all = append(all, places.Replace(a))
	}
	return &process{testenv.Run(t, exec.Command(s.binary, append(all, "--kubeconfig", kubeconfig)...)), metrics}
}

// settings returns a configuration of lines.
func settings(lines ...string) string {
	return "apiVersion: " + config.APIVersion + "\nkind: " + config.Kind + "\n" + strings.Join(lines, "\n") + "\n"
}

// stop asks a process to end, as a kubelet does, and waits until it has.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.Cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	if err := <-p.End; err != nil && !strings.Contains(p.Said(), lostLease) {
		t.Fatalf("asked to end it says %v\n%s", err, p.Said())
	}
}

// controller starts what the Deployment runs, as the service account that it names.
func (s *site) controller(t *testing.T) *process {
	t.Helper()
	var d appsv1.Deployment
	s.get(t, release, &d)
	pod := d.Spec.Template.Spec
	var settings corev1.ConfigMap
	s.get(t, release+"-config", &settings)
	s.lead = s.start(t, pod.Containers[0].Args, settings.Data["config.yaml"], s.account(t, pod.ServiceAccountName))
	return s.lead
}

// lostLease is what a controller says that ends since the machine was too busy for it
// to renew its lease in time.
const lostLease = "leader election lost"

// revive starts the controller again, as a kubelet does, where it has lost its lease.
func (s *site) revive(t *testing.T) {
	t.Helper()
	c := s.lead
	select {
	case err := <-c.End:
		if !strings.Contains(c.Said(), lostLease) {
			t.Fatalf("the controller ended by itself: %v\n%s", err, c.Said())
		}
		t.Log("the controller lost its lease, since the machine is busy, and is started again")
		*c = *s.controller(t)
		s.lead = c
	default:
	}
}

func (s *site) get(t *testing.T, name string, o client.Object) {
	t.Helper()
	if err := s.env.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
		t.Fatal(err)
	}
}

// job waits until the pod of a hook's Job runs, and starts what it would run.
func (s *site) job(t *testing.T, name string) (*process, *corev1.Pod) {
	t.Helper()
	pod := &corev1.Pod{}
	testenv.Eventually(t, "the pod of Job "+name+" runs", func() error {
		var pods corev1.PodList
		if err := s.env.Client.List(t.Context(), &pods, client.InNamespace(namespace),
			client.MatchingLabels{batchv1.JobNameLabel: name}); err != nil {
			return err
		}
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning {
				pod = &pods.Items[i]
				return nil
			}
		}
		return fmt.Errorf("none of %d pods", len(pods.Items))
	})
	return s.start(t, pod.Spec.Containers[0].Args, "", s.account(t, pod.Spec.ServiceAccountName)), pod
}

// ended says of a pod that its container has ended well.
func (s *site) ended(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	before := pod.DeepCopy()
	pod.Status.Phase = corev1.PodSucceeded
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].Ready = false
		pod.Status.ContainerStatuses[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}
	}
	if err := s.env.Client.Status().Patch(t.Context(), pod, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// inBackground runs Helm concurrently with the test.
func (s *site) inBackground(args ...string) chan error {
	end := make(chan error, 1)
	go func() {
		_, err := s.helm.run(args...)
		end <- err
	}()
	return end
}

// kept returns the UIDs of what is remembered, by the names of the objects.
func (s *site) kept(ctx context.Context) (map[string]string, error) {
	var all corev1.ConfigMapList
	if err := s.env.Client.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	kept := map[string]string{}
	for i := range all.Items {
		if x := &all.Items[i]; strings.HasPrefix(x.Name, "spotter-memory-") || strings.HasPrefix(x.Name, "spotter-ledger-") {
			kept[x.Name] = string(x.UID)
		}
	}
	if len(kept) == 0 {
		return nil, errors.New("nothing is remembered")
	}
	return kept, nil
}

// head returns the version of what is written at every step.
func (s *site) head(ctx context.Context) string {
	var x corev1.ConfigMap
	if err := s.env.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "spotter-memory-head"}, &x); err != nil {
		return ""
	}
	return x.ResourceVersion
}

// uses returns what a service account asked the API server for since a mark, and
// fails the test for every request that was denied.
func (s *site) uses(t *testing.T, since testenv.Mark, account string) map[grant]bool {
	t.Helper()
	user := "system:serviceaccount:" + namespace + ":" + account
	used := map[grant]bool{}
	for _, e := range s.env.Audit(t, since, func(e testenv.AuditEvent) bool { return e.User == user }) {
		if e.Code == 403 || e.Code == 401 {
			t.Errorf("denied: %v %s", e, e.URI)
		}
		if e.Resource == "" {
			continue // discovery, which everybody may
		}
		resource := e.Resource
		if e.Subresource != "" {
			resource += "/" + e.Subresource
		}
		used[grant{e.Group, resource, "", e.Verb}] = true
	}
	if len(used) == 0 {
		t.Errorf("%s asked for nothing", user)
	}
	return used
}
