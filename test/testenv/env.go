package testenv

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/spotter-dev/spotter/live/crd"
	"github.com/spotter-dev/spotter/policy/v1alpha1"
)

// Options say what runs in addition to etcd and the API server.
type Options struct {
	// ControllerManager makes the pods of Deployments and Jobs, the status of
	// disruption budgets and the service accounts of namespaces, and collects
	// garbage. Without it none of these happens: [Env.Namespace] makes the
	// default service account, and every eviction under a disruption budget is
	// refused.
	ControllerManager bool

	// Scheduler binds pods to nodes.
	Scheduler bool

	// Kwok plays the kubelets of the nodes of [Env.AddNode] and of all others
	// with its annotation: nodes become ready, pods run, and are gone some time
	// after they were deleted.
	Kwok bool

	// PodDelete is how long a deleted pod stays Terminating on a node that kwok
	// plays; a pod's annotation [DeleteAfter] overrides it.
	PodDelete time.Duration

	// CRDs are installed in addition to Spotter's.
	CRDs []*apiextensionsv1.CustomResourceDefinition

	// Args are further flags by server, such as {"kwok": {"--v=2"}}.
	Args map[string][]string
}

// servers returns the names of what is to run.
func (o *Options) servers() []string {
	names := []string{Etcd, APIServer}
	if o.ControllerManager {
		names = append(names, ControllerManager)
	}
	if o.Scheduler {
		names = append(names, Scheduler)
	}
	if o.Kwok {
		names = append(names, Kwok)
	}
	return names
}

// An Env is a running cluster.
type Env struct {
	// Config is that of an administrator, with wide limits.
	Config *rest.Config

	// Client is the administrator's. It reads from the server, and knows the
	// kinds of Kubernetes, CustomResourceDefinition and ours.
	Client client.Client

	// Scheme is the client's.
	Scheme *runtime.Scheme

	// Kubeconfig is a file for the administrator.
	Kubeconfig string

	// Dir holds the logs of the servers, NAME.log, and is removed in the end.
	Dir string

	options  Options
	binaries string
	control  *envtest.Environment
	guard    *guard
	uses     collection
	kept     map[string]bool // servers that are started again when they end
}

var shared struct {
	sync.Mutex
	env *Env
	err error
}

// Start returns the cluster of this test package, and starts it at the first call.
// Every call must give the same options.
func Start(t testing.TB, o Options) *Env {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.env == nil && shared.err == nil {
		shared.env, shared.err = launch(binaries(t, o), o)
	}
	if shared.err != nil {
		t.Fatalf("testenv: %v", shared.err)
	}
	if !reflect.DeepEqual(shared.env.options, o) {
		t.Fatalf("testenv: the cluster of this package runs with the options %+v, and not with %+v", shared.env.options, o)
	}
	shared.env.collect(t)
	return shared.env
}

// New starts a cluster for this test alone, and ends it with the test.
func New(t testing.TB, o Options) *Env {
	t.Helper()
	env, err := launch(binaries(t, o), o)
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	t.Cleanup(env.stop)
	env.collect(t)
	return env
}

// startTimeout is long since many packages may start servers at once.
const startTimeout = 3 * time.Minute

// launch starts all servers that o requires. If it fails it ends those that it started.
func launch(binaries string, o Options) (_ *Env, err error) {
	dir, err := os.MkdirTemp("", "testenv-")
	if err != nil {
		return nil, err
	}
	e := &Env{Dir: dir, options: o, binaries: binaries, Kubeconfig: filepath.Join(dir, "admin.kubeconfig")}
	if e.guard, err = newGuard(dir); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w%s", err, e.logs())
			e.stop()
		}
	}()
	if err := e.startControlPlane(); err != nil {
		return nil, err
	}
	e.Scheme = runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme,
		v1alpha1.AddToScheme} {
		if err := add(e.Scheme); err != nil {
			return nil, err
		}
	}
	if e.Client, err = client.New(e.Config, client.Options{Scheme: e.Scheme}); err != nil {
		return nil, err
	}
	if err := e.startOthers(); err != nil {
		return nil, err
	}
	return e, e.settle()
}

// settle waits until pods can be made in the namespace default.
func (e *Env) settle() error {
	return poll(startTimeout, func() error {
		if e.options.ControllerManager {
			return e.Client.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: "default"},
				&corev1.ServiceAccount{})
		}
		return e.serviceAccount("default")
	})
}

// serviceAccount makes the default service account of a namespace, which pods
// need in order to be admitted.
func (e *Env) serviceAccount(namespace string) error {
	err := e.Client.Create(context.Background(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// stop ends all servers and removes what they wrote.
func (e *Env) stop() { e.guard.end() }

// Namespace makes a namespace, named after the test, in which pods can be made. It is deleted after
// the test; only a controller manager completes the deletion.
func (e *Env) Namespace(t testing.TB) string {
	t.Helper()
	name := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, t.Name()), "-")
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: name[:min(len(name), 40)] + "-"}}
	if err := e.Client.Create(t.Context(), ns); err != nil {
		t.Fatalf("testenv: making a namespace: %v", err)
	}
	t.Cleanup(func() { _ = e.Client.Delete(context.Background(), ns) })
	Eventually(t, "the namespace "+ns.Name+" has its service account", func() error {
		if e.options.ControllerManager {
			return e.Client.Get(t.Context(), client.ObjectKey{Namespace: ns.Name, Name: "default"}, &corev1.ServiceAccount{})
		}
		return e.serviceAccount(ns.Name)
	})
	return ns.Name
}

// Kubectl runs kubectl as administrator and returns what it printed.
func (e *Env) Kubectl(args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(e.binaries, "kubectl"), append([]string{"--kubeconfig", e.Kubeconfig}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+e.Dir)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Eventually calls f until it returns nil, for up to two minutes, since the machine may be busy
// with other tests. After that the test fails with the last error.
func Eventually(t testing.TB, what string, f func() error) {
	t.Helper()
	if err := poll(2*time.Minute, f); err != nil {
		t.Fatalf("waited in vain until %s: %v", what, err)
	}
}

func poll(timeout time.Duration, f func() error) error {
	for end := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
		err := f()
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

// definitions returns all definitions to install.
func (o *Options) definitions() []*apiextensionsv1.CustomResourceDefinition {
	all := crd.Objects()
	for _, d := range o.CRDs {
		all = append(all, d.DeepCopy())
	}
	return all
}
