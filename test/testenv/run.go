package testenv

import (
	"bytes"
	"net"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A Process is a program that runs alongside a test. Its output is kept.
type Process struct {
	Cmd *exec.Cmd

	// End receives the result of [exec.Cmd.Wait] once.
	End <-chan error

	mu  sync.Mutex
	log bytes.Buffer
}

// saidMax bounds what a test that fails tells of a process, in bytes.
const saidMax = 1 << 16

// Run starts cmd, which ends with the test at the latest. A test that fails logs what
// it said at the end.
func Run(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	end := make(chan error, 1)
	p := &Process{Cmd: cmd, End: end}
	cmd.Stdout, cmd.Stderr = p, p
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { end <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		if t.Failed() {
			said := p.Said()
			t.Logf("process %d, %v, said at the end:\n%s", cmd.Process.Pid, cmd.Args[:min(len(cmd.Args), 2)],
				said[max(0, len(said)-saidMax):])
		}
	})
	return p
}

// Write keeps what the process says.
func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

// Said returns all that the process has said.
func (p *Process) Said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// FreeAddress returns an address of this machine at which no process listens.
func FreeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Kubeconfig writes how cfg reaches a cluster to a file that ends with the test, and
// returns its path.
func Kubeconfig(t testing.TB, cfg *rest.Config) string {
	t.Helper()
	if err := rest.LoadTLSFiles(cfg); err != nil {
		t.Fatal(err)
	}
	k := clientcmdapi.NewConfig()
	k.Clusters["c"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	k.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData,
		Token: cfg.BearerToken}
	k.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	k.CurrentContext = "x"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*k, path); err != nil {
		t.Fatal(err)
	}
	return path
}
