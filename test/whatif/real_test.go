package whatif

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/spotter-dev/spotter/test/testenv"
)

// The environment variables of real runs.
const (
	playFor = "SPOTTER_WHATIF_FOR"  // how long is played, up to two hours; real runs are played only where it is set
	keptIn  = "SPOTTER_WHATIF_KEEP" // a folder for all that they leave behind
	only    = "SPOTTER_WHATIF_ONLY" // the names of variants, where not all are played
	held    = "SPOTTER_WHATIF_HOLD" // for how long the clusters are there afterwards
)

// TestReal plays the script on a stack of each variant, in parallel.
func TestReal(t *testing.T) {
	if os.Getenv(playFor) == "" {
		t.Skipf("it plays for hours: `make whatif` does, by %s=2h", playFor)
	}
	span, hold := duration(t, playFor), duration(t, held)
	folder := os.Getenv(keptIn)
	if folder == "" {
		folder = t.TempDir()
	}
	seed := testenv.Seed(t)
	all := script(seed)
	m := newMarket(t)
	var stacks []*stack
	for _, v := range variants { // one after another: a cluster that comes up takes all of a small machine
		if names := os.Getenv(only); names == "" || slices.Contains(strings.Fields(names), v.name) {
			stacks = append(stacks, startStack(t, v, folder, m))
		}
	}
	address := startPrometheus(t, folder, stacks)
	begin := time.Now().Add(45 * time.Second).Truncate(time.Minute).Add(time.Minute)
	note(t, filepath.Join(folder, "run.json"), map[string]any{"begin": begin.UTC(), "end": begin.Add(span).UTC(),
		"seed": seed, "prometheus": "http://" + address})
	time.Sleep(time.Until(begin))
	var parts sync.WaitGroup
	for _, s := range stacks {
		parts.Go(func() { s.play(t.Context(), t, all, begin, span) })
	}
	parts.Wait()
	x := take(t, folder, stacks[0].env.Config, "http://"+address, begin, begin.Add(span))
	write(t, filepath.Join(folder, "run.json.gz"), x)
	x.hold(t)
	time.Sleep(hold)
}

// take records the capture of the first stack in a run that was scraped by a Prometheus, and
// measures them all.
func take(t *testing.T, folder string, api *rest.Config, prometheus string, from, to time.Time) *recording {
	t.Helper()
	x := &recording{From: from.UTC(), To: to.UTC(), Match: fmt.Sprintf("stack=%q", variants[0].name), Tape: &tape{},
		Real: map[string]figures{}}
	m := newMarket(t)
	for _, v := range variants {
		x.Real[v.name] = measure(t, filepath.Join(folder, v.name, "audit.log"), m, from, to)
	}
	dir := t.TempDir()
	server := x.Tape.record(t, api, prometheus)
	kubeconfig(t, filepath.Join(dir, "kubeconfig"), server)
	x.capture(t, program(t), dir, filepath.Join(dir, "captured.yaml"), server.URL)
	return x
}

func duration(t *testing.T, variable string) time.Duration {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		t.Fatalf("%s is %q, want a time such as 2h", variable, text)
	}
	return d
}

func note(t *testing.T, path string, v any) {
	t.Helper()
	text, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// startPrometheus has one server scrape all stacks every 15 s, as is usual, each with its
// name in the label stack. It returns its address.
func startPrometheus(t *testing.T, folder string, stacks []*stack) string {
	t.Helper()
	var jobs []any
	for _, s := range stacks {
		target := func(address string) []any {
			return []any{map[string]any{"targets": []string{address}, "labels": map[string]string{"stack": s.name}}}
		}
		certs := func(name string, text []byte) string {
			path := s.file(name)
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
		c := s.env.Config
		jobs = append(jobs,
			map[string]any{"job_name": s.name + "-state", "honor_labels": true, "static_configs": target(s.state)},
			map[string]any{"job_name": s.name + "-karpenter", "static_configs": target(fmt.Sprintf("127.0.0.1:%d", s.karpenter))},
			map[string]any{
				"job_name": s.name + "-api", "scheme": "https", "static_configs": target(strings.Trim(strings.TrimPrefix(c.Host, "https:"), "/")),
				"tls_config": map[string]any{"ca_file": certs("ca.crt", c.CAData),
					"cert_file": certs("admin.crt", c.CertData), "key_file": certs("admin.key", c.KeyData)},
				"metric_relabel_configs": []any{map[string]any{"action": "keep",
					"source_labels": []string{"__name__", "subresource"}, "regex": "apiserver_request_total;eviction"}},
			})
	}
	config := filepath.Join(folder, "prometheus.yaml") // JSON is YAML
	note(t, config, map[string]any{"global": map[string]any{"scrape_interval": "15s"}, "scrape_configs": jobs})
	address := testenv.FreeAddress(t)
	testenv.Run(t, exec.Command(binary(t, "prometheus"), "--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(folder, "prometheus"), "--web.listen-address="+address, "--storage.tsdb.retention.time=10y"))
	testenv.Eventually(t, "every target is scraped", func() error { return scraped("http://"+address, 3*len(stacks)) })
	return address
}

// scraped returns an error while not all of a number of targets are up.
func scraped(address string, want int) error {
	r, err := http.Get(address + "/api/v1/query?query=count(up==1)")
	if err != nil {
		return err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), fmt.Sprintf(",%q]", fmt.Sprint(want))) {
		return fmt.Errorf("%s, want %d", text, want)
	}
	return nil
}
