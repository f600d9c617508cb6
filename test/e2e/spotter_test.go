package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/test/testenv"
)

// The name and the namespace of the release.
const (
	release   = "spotter"
	namespace = "spotter-system"
)

// pricesEvery is how often prices are read: every eight minutes of a day.
const pricesEvery = 2 * time.Second

// username is whom the audit log names for what the release does.
const username = "system:serviceaccount:" + namespace + ":" + release

// helm runs Helm as administrator.
func (w *fixture) helm(args ...string) (string, error) {
	home := filepath.Join(w.dir, "helm")
	c := exec.Command(w.helmPath, args...)
	c.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home, "KUBECONFIG="+w.env.Kubeconfig)
	out, err := c.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("helm %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// values are those of the release, in a mode.
func (w *fixture) values(mode string) []string {
	all := []string{
		// Karpenter would make a node of the users' own for a pod of the release that waits for
		// its volume.
		"nodeSelector.team=system",
		"backends={karpenter,rackspace}", "rackspace.credentialsSecrets[0].name=" + tokenSecret,
		"mode=" + mode, "step=5s", "prices.traceClaim=" + w.claim, "prices.tracePath=prices",
		"karpenter.nodeClassGroups={karpenter.kwok.sh}", "aws.regions={" + region +
			"}", "metrics.secure=false", "prices.interval=" + pricesEvery.String(),
	}
	env := []string{"HTTPS_PROXY=" + w.auction.street.proxy, "SSL_CERT_FILE=" + w.auction.street.trust}
	if !w.interrupts {
		all = append(all, "aws.queueURL="+w.queue.url, "aws.credentials.method=podIdentity")
		env = append(env, "AWS_ENDPOINT_URL="+w.queue.server, "AWS_ACCESS_KEY_ID=played", "AWS_SECRET_ACCESS_KEY=played")
	}
	for i, e := range env {
		name, value, _ := strings.Cut(e, "=")
		all = append(all, fmt.Sprintf("extraEnv[%d].name=%s", i, name), fmt.Sprintf("extraEnv[%d].value=%s", i, value))
	}
	args := []string{"--namespace", namespace, "--wait", "--timeout", "4m"}
	for _, v := range all {
		args = append(args, "--set", v)
	}
	return args
}

// install brings the release to a mode, and starts what its Deployment then runs.
func (w *fixture) install(t *testing.T, mode string) {
	t.Helper()
	chart := filepath.Join("..", "..", "charts", "spotter")
	if _, err := w.helm(append([]string{"upgrade", "--install", release, chart}, w.values(mode)...)...); err != nil {
		t.Fatal(err)
	}
	w.stop(t)
	w.start(t)
	t.Logf("%s  Spotter is installed: %s", w.market.clock(), mode)
}

// start runs the controller as its Deployment says, as the service account that it
// names.
func (w *fixture) start(t *testing.T) {
	t.Helper()
	var d appsv1.Deployment
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: release}, &d); err != nil {
		t.Fatal(err)
	}
	w.lead = w.run(t, &d.Spec.Template.Spec)
	w.leads = append(w.leads, w.lead)
}

// A process is what the container of a pod would run.
type process struct {
	*testenv.Process
	metrics string // the address of its metrics
}

// run starts what the container of a pod runs: its arguments, its configuration and its
// environment. Only folders and addresses differ, since it is in no container.
func (w *fixture) run(t *testing.T, pod *corev1.PodSpec) *process {
	t.Helper()
	container := pod.Containers[0]
	folder := t.TempDir()
	metrics := testenv.FreeAddress(t)
	places := strings.NewReplacer(
		"/var/lib/spotter/trace", filepath.Join(w.dir, "trace"), "/var/lib/spotter/record", filepath.Join(w.dir,
			"record"), "/var/lib/spotter", folder,
		"/etc/spotter", folder, `bindAddress: ":8443"`, `bindAddress: "`+metrics+`"`, `bindAddress: ":8081"`, `bindAddress: "0"`,
	)
	for _, m := range container.VolumeMounts {
		if err := os.MkdirAll(places.Replace(m.MountPath), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/etc/spotter/config" }) { // not of the Job that cleans up
		var settings corev1.ConfigMap
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: release + "-config"}, &settings); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "config", "config.yaml"),
			[]byte(places.Replace(settings.Data["config.yaml"])), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var args []string
	for _, a := range container.Args {
		args = append(args, places.Replace(a))
	}
	account := testenv.Kubeconfig(t, w.env.ServiceAccount(t, namespace, pod.ServiceAccountName))
	c := exec.Command(w.binary, append(args, "--kubeconfig", account)...)
	c.Env = append(os.Environ(), "HOME="+folder)
	for _, e := range container.Env {
		c.Env = append(c.Env, e.Name+"="+e.Value)
	}
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return &process{testenv.Run(t, c), metrics}
}

// stop ends the controller as a kubelet does, if it runs.
func (w *fixture) stop(t *testing.T) {
	t.Helper()
	p := w.lead
	if w.lead = nil; p == nil {
		return
	}
	if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	if err := <-p.End; err != nil && !strings.Contains(p.Said(), lostLease) {
		t.Errorf("asked to end the controller says %v", err)
	}
}

// lostLease is what a controller says that ends since the machine was too busy for it
// to renew its lease in time.
const lostLease = "leader election lost"

// revive starts the controller again, as a kubelet does, where it lost its lease.
func (w *fixture) revive(t *testing.T) {
	t.Helper()
	if w.lead == nil {
		return
	}
	select {
	case err := <-w.lead.End:
		if !strings.Contains(w.lead.Said(), lostLease) {
			t.Fatalf("the controller ended by itself: %v", err)
		}
		t.Logf("%s  the controller lost its lease, since the machine is busy, and is started again", w.market.clock())
		w.revived = append(w.revived, time.Now())
		w.start(t)
	default:
	}
}

// hook runs what the Job of a chart's hook would run while Helm waits for it, and ends its pod.
func (w *fixture) hook(t *testing.T, job string) {
	t.Helper()
	pod := &corev1.Pod{}
	testenv.Eventually(t, "the pod of Job "+job+" runs", func() error {
		var pods corev1.PodList
		if err := w.client.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{batchv1.JobNameLabel: job}); err != nil {
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
	p := w.run(t, &pod.Spec)
	w.unscaled(t)
	w.stop(t)
	if err := <-p.End; err != nil {
		t.Fatalf("%s: %v\n%s", job, err, p.Said())
	}
	before := pod.DeepCopy()
	pod.Status.Phase = corev1.PodSucceeded
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].Ready = false
		pod.Status.ContainerStatuses[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}
	}
	if err := w.client.Status().Patch(t.Context(), pod, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// unscaled waits until no replica of the controller is wanted any more.
func (w *fixture) unscaled(t *testing.T) {
	t.Helper()
	testenv.Eventually(t, "the Deployment is scaled to none", func() error {
		var d appsv1.Deployment
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: release}, &d); err != nil {
			return err
		}
		if *d.Spec.Replicas != 0 {
			return fmt.Errorf("%d replicas are wanted", *d.Spec.Replicas)
		}
		return nil
	})
}
