package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// startControlPlane starts etcd and the API server and installs the definitions.
func (e *Env) startControlPlane() error {
	policy := filepath.Join(e.Dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	for _, d := range []string{"etcd", "certs"} {
		if err := os.Mkdir(filepath.Join(e.Dir, d), 0o700); err != nil {
			return err
		}
	}
	api := &envtest.APIServer{CertDir: filepath.Join(e.Dir, "certs")}
	etcd := &envtest.Etcd{DataDir: filepath.Join(e.Dir, "etcd")}
	var err error
	if api.Path, err = e.wrap(APIServer); err != nil {
		return err
	}
	if etcd.Path, err = e.wrap(Etcd); err != nil {
		return err
	}
	api.Configure().
		Disable("disable-admission-plugins"). // service accounts as in a real cluster
		Set("audit-policy-file", policy).
		Set("audit-log-path", e.auditLog()).
		Set("audit-log-maxsize", "100000"). // megabytes: one file, so that offsets hold
		Set("max-requests-inflight", "2000").
		Set("max-mutating-requests-inflight", "1000")
	for _, arg := range e.options.Args[APIServer] {
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		api.Configure().Append(name, value)
	}
	for _, arg := range e.options.Args[Etcd] {
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		etcd.Configure().Append(name, value)
	}
	e.control = &envtest.Environment{CRDs: e.options.definitions(), ControlPlaneStartTimeout: startTimeout,
		ControlPlaneStopTimeout: startTimeout}
	e.control.CRDInstallOptions.MaxTime = startTimeout
	e.control.ControlPlane.APIServer, e.control.ControlPlane.Etcd = api, etcd
	e.control.ControlPlane.KubectlPath = filepath.Join(e.binaries, "kubectl")
	if e.Config, err = e.control.Start(); err != nil {
		return err
	}
	return os.WriteFile(e.Kubeconfig, e.control.KubeConfig, 0o600)
}

// wrap returns a script that becomes the server, after it has written down its
// process for the guard. Its output goes to a file and to no pipe, which a test
// that dies would leave behind open.
func (e *Env) wrap(name string) (string, error) {
	script := filepath.Join(e.Dir, name)
	text := fmt.Sprintf("#!/bin/sh\ncase \"$1\" in --help) exec '%[1]s' --help;; esac\necho $$ > '%[2]s.pid'\nexec '%[1]s' \"$@\" > '%[2]s.log' 2>&1\n",
		filepath.Join(e.binaries, name), filepath.Join(e.Dir, name))
	if name == Etcd {
		script = filepath.Join(e.Dir, "etcd.sh") // next to its data folder
	}
	return script, os.WriteFile(script, []byte(text), 0o700)
}

// startOthers starts the servers other than etcd and the API server, each as its own user so that
// the audit log distinguishes them.
func (e *Env) startOthers() error {
	certs := e.control.ControlPlane.APIServer.CertDir
	ca := filepath.Join(e.Dir, "ca.crt")
	if err := os.WriteFile(ca, e.Config.CAData, 0o600); err != nil {
		return err
	}
	stages := filepath.Join(e.Dir, "stages.yaml")
	if err := os.WriteFile(stages, stagesFor(e.options.PodDelete), 0o600); err != nil {
		return err
	}
	for _, name := range e.options.servers()[2:] {
		file, err := e.kubeconfigOf("system:" + name)
		if err != nil {
			return err
		}
		args := map[string][]string{
			ControllerManager: {"--kubeconfig=" + file, "--leader-elect=false", "--secure-port=0", "--root-ca-file=" + ca,
				"--service-account-private-key-file=" +
					filepath.Join(certs, "sa-signer.key"), "--kube-api-qps=1000", "--kube-api-burst=2000"},
			Scheduler: {"--kubeconfig=" + file, "--leader-elect=false", "--secure-port=0", "--kube-api-qps=1000",
				"--kube-api-burst=2000"},
			Kwok: {"--kubeconfig=" + file, "--config=" + stages, "--manage-nodes-with-annotation-selector=" + kwokNode + "=fake",
				"--node-lease-duration-seconds=40", "--cidr=10.0.0.1/8", "--node-ip=10.0.0.1"},
		}[name]
		if err := e.spawn(name, append(args, e.options.Args[name]...)); err != nil {
			return err
		}
	}
	return nil
}

// spawn starts a server.
func (e *Env) spawn(name string, args []string) error {
	script, err := e.wrap(name)
	if err != nil {
		return err
	}
	cmd := exec.Command(script, args...)
	ownGroup(cmd)
	cmd.Env = append(os.Environ(), "HOME="+e.Dir)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		err := cmd.Wait()
		if !e.guard.ended() {
			fmt.Fprintf(os.Stderr, "testenv: %s ended: %v%s\n", name, err, e.logs())
		}
	}()
	return nil
}

// kubeconfigOf writes a file for a user who may do everything.
func (e *Env) kubeconfigOf(user string) (string, error) {
	u, err := e.control.ControlPlane.AddUser(envtest.User{Name: user, Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return "", fmt.Errorf("adding user %s: %w", user, err)
	}
	data, err := u.KubeConfig()
	if err != nil {
		return "", fmt.Errorf("adding user %s: %w", user, err)
	}
	file := filepath.Join(e.Dir, strings.ReplaceAll(user, ":", "-")+".kubeconfig")
	return file, os.WriteFile(file, data, 0o600)
}

// logs returns the ends of the servers' logs.
func (e *Env) logs() string {
	const most = 600
	var b strings.Builder
	for _, name := range e.options.servers() {
		data, err := os.ReadFile(filepath.Join(e.Dir, name+".log"))
		if err == nil {
			fmt.Fprintf(&b, "\n--- end of the log of %s\n%s", name, data[max(0, len(data)-most):])
		}
	}
	return b.String()
}

// Restart kills a server and starts it again with what it was started with, and once more
// whenever it ends from then on: others may have taken its port meanwhile.
func (e *Env) Restart(t testing.TB, server string) {
	t.Helper()
	args, err := e.kill(server)
	if err != nil {
		t.Fatalf("testenv: restarting %s: %v", server, err)
	}
	if e.kept[server] {
		return
	}
	if e.kept == nil {
		e.kept = map[string]bool{}
	}
	e.kept[server] = true
	script := filepath.Join(e.Dir, server)
	if server == Etcd {
		script = filepath.Join(e.Dir, "etcd.sh")
	}
	go func() { // until the guard ends it
		for ; !e.guard.ended(); time.Sleep(200 * time.Millisecond) {
			cmd := exec.Command(script, args...)
			ownGroup(cmd)
			cmd.Env = append(os.Environ(), "HOME="+e.Dir)
			_ = cmd.Run()
		}
	}()
}

// Freeze stops a server in its tracks, as a machine that hangs, until the function
// that it returns is called or the test ends.
func (e *Env) Freeze(t testing.TB, server string) (thaw func()) {
	t.Helper()
	if err := e.signal(server, true); err != nil {
		t.Fatalf("testenv: freezing %s: %v", server, err)
	}
	thaw = func() {
		if err := e.signal(server, false); err != nil {
			t.Errorf("testenv: thawing %s: %v", server, err)
		}
	}
	t.Cleanup(thaw)
	return thaw
}
