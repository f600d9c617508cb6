package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spotter-dev/spotter/test/testenv"
)

// An agent is what a kubelet is to the Jobs of a comparison: it runs the container of every
// pod that is bound to its nodes as a process, and reports what becomes of it.
type agent struct {
	t      *testing.T
	client client.Client
	binary string
	env    []string
	dir    string
	nodes  []string

	// killNext is how many processes to kill soon after they start.
	mu        sync.Mutex
	killNext  int
	killed    int
	disrupted int
	running   map[types.UID]*exec.Cmd
	begun     map[types.UID]bool
}

// newAgent creates nodes with cpus CPUs and plays their kubelets until the test ends.
func newAgent(t *testing.T, c client.Client, binary string, env []string, cpus string, nodes ...string) *agent {
	a := &agent{t: t, client: c, binary: binary, env: env, dir: t.TempDir(), nodes: nodes,
		running: map[types.UID]*exec.Cmd{}, begun: map[types.UID]bool{}}
	for _, name := range nodes {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
		if err := c.Create(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		size := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpus),
			corev1.ResourceMemory: resource.MustParse("64Gi"), corev1.ResourcePods: resource.MustParse("110")}
		before := n.DeepCopy()
		n.Status = corev1.NodeStatus{Capacity: size, Allocatable: size,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
				LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(), Reason: "KubeletReady"}}}
		if err := c.Status().Patch(t.Context(), n, client.MergeFrom(before)); err != nil { // others write to it too
			t.Fatal(err)
		}
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name}}
		testenv.Eventually(t, "the node has a lease", func() error { return client.IgnoreAlreadyExists(c.Create(t.Context(), lease)) })
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for t.Context().Err() == nil {
			a.step(t.Context())
			time.Sleep(200 * time.Millisecond)
		}
	}()
	t.Cleanup(func() {
		<-done
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, cmd := range a.running {
			_ = cmd.Process.Kill()
		}
	})
	return a
}

// step renews the leases, starts new pods and ends those that are being deleted.
func (a *agent) step(ctx context.Context) {
	for _, name := range a.nodes {
		lease := &coordinationv1.Lease{}
		if err := a.client.Get(ctx, types.NamespacedName{Namespace: corev1.NamespaceNodeLease, Name: name}, lease); err == nil {
			lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = ptr.To(name), ptr.To(int32(40)), ptr.To(metav1.NowMicro())
			_ = a.client.Update(ctx, lease) // the next step does it again
		}
	}
	var pods corev1.PodList
	if err := a.client.List(ctx, &pods); err != nil {
		return
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if !slices.Contains(a.nodes, p.Spec.NodeName) {
			continue
		}
		a.mu.Lock()
		begun, cmd := a.begun[p.UID], a.running[p.UID]
		a.begun[p.UID] = true
		a.mu.Unlock()
		switch {
		case p.DeletionTimestamp != nil && cmd != nil:
			_ = cmd.Process.Signal(syscall.SIGTERM) // its end is reported as that of any
		case p.DeletionTimestamp != nil && (!begun || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed):
			if !begun {
				a.report(ctx, p, corev1.PodFailed, 137, "never started")
			}
			_ = a.client.Delete(ctx, p, client.GracePeriodSeconds(0))
		case !begun:
			if err := a.start(ctx, p); err != nil {
				a.mu.Lock()
				a.begun[p.UID] = false // as the ConfigMap may not be there yet
				a.mu.Unlock()
			}
		}
	}
}

// start runs the container of p.
func (a *agent) start(ctx context.Context, p *corev1.Pod) error {
	box, dir := &p.Spec.Containers[0], filepath.Join(a.dir, string(p.UID))
	for i := range p.Spec.Volumes {
		source := p.Spec.Volumes[i].ConfigMap
		if source == nil {
			continue
		}
		m := &corev1.ConfigMap{}
		if err := a.client.Get(ctx, types.NamespacedName{Namespace: p.Namespace, Name: source.Name}, m); err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for name, text := range m.Data {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				return err
			}
		}
	}
	args := slices.Clone(box.Args)
	for i := range args {
		args[i] = strings.Replace(args[i], box.VolumeMounts[0].MountPath+"/", dir+"/", 1) // it has the root of the machine
	}
	cmd := exec.Command(a.binary, args...)
	cmd.Env = append(slices.Clone(a.env),
		"JOB_COMPLETION_INDEX="+p.Annotations["batch.kubernetes.io/job-completion-index"], "PATH="+os.Getenv("PATH"))
	for _, e := range box.Env {
		if e.ValueFrom == nil {
			cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
		}
	}
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return err
	}
	a.mu.Lock()
	a.running[p.UID] = cmd
	kill := a.killNext > 0
	if kill {
		a.killNext--
		a.killed++
	}
	a.mu.Unlock()
	if kill {
		_ = cmd.Process.Kill()
	}
	a.report(ctx, p, corev1.PodRunning, 0, "")
	go func() {
		_ = cmd.Wait() // its state says how it ended
		a.mu.Lock()
		delete(a.running, p.UID)
		a.mu.Unlock()
		phase, code := corev1.PodSucceeded, cmd.ProcessState.ExitCode()
		if code != 0 {
			phase = corev1.PodFailed
		}
		if code < 0 {
			code = 137
		}
		text := said.String()
		a.report(context.WithoutCancel(ctx), p, phase, int32(code), text[max(0, len(text)-2048):])
	}()
	return nil
}

// report posts what became of p.
func (a *agent) report(ctx context.Context, p *corev1.Pod, phase corev1.PodPhase, code int32, text string) {
	for range 50 {
		now := &corev1.Pod{}
		err := a.client.Get(ctx, client.ObjectKeyFromObject(p), now)
		if err != nil || now.UID != p.UID {
			return
		}
		s := corev1.ContainerStatus{Name: p.Spec.Containers[0].Name, Image: p.Spec.Containers[0].Image,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}
		if phase != corev1.PodRunning {
			s.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Ended",
				Message: text, FinishedAt: metav1.Now()}}
			for _, c := range now.Status.Conditions {
				if c.Type == corev1.DisruptionTarget && phase == corev1.PodFailed {
					a.mu.Lock()
					a.disrupted++
					a.mu.Unlock()
				}
			}
		}
		now.Status.Phase, now.Status.ContainerStatuses = phase, []corev1.ContainerStatus{s}
		if err = a.client.Status().Update(ctx, now); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	a.t.Errorf("pod %s: its status cannot be reported", p.Name)
}

// kill has the next processes killed when they start.
func (a *agent) kill(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.killNext = n
}

// counts returns how many processes were killed, and how many pods failed that a
// disruption ended.
func (a *agent) counts() (killed, disrupted int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.killed, a.disrupted
}

// busy returns the pods of a node that run.
func (a *agent) busy(node string) ([]*corev1.Pod, error) {
	var pods corev1.PodList
	if err := a.client.List(a.t.Context(), &pods); err != nil {
		return nil, err
	}
	var out []*corev1.Pod
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Spec.NodeName == node && a.running[p.UID] != nil {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("nothing runs on %s", node)
	}
	return out, nil
}
