package capture

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/spotter-dev/spotter/cmd/spotter/internal/history"
	"github.com/spotter-dev/spotter/cmd/spotter/internal/progress"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/internal/input"
	"github.com/spotter-dev/spotter/policy"
	"github.com/spotter-dev/spotter/policy/figures"
	"github.com/spotter-dev/spotter/scenarios"
	"github.com/spotter-dev/spotter/scenarios/trace"
)

// sinceFlags are the flags for capturing a history.
type sinceFlags struct {
	since, from, to string

	prometheus, tokenFile, caFile, selector, cache string
	headers                                        []string
	logs                                           []string
	interruptions, bills                           []string
}

func (f *sinceFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.since, "since", "",
		"write what the cluster did for `TIME`, as 7d or 36h, and not a still picture; from --prometheus or --audit")
	flags.StringVar(&f.from, "from", "", "in place of --since: begin at `T`, a date or a time")
	flags.StringVar(&f.to, "to", "", "end at `T` (default: now, or the step of --run)")
	flags.StringVar(&f.prometheus, "prometheus", "",
		"read metrics of kube-state-metrics and Karpenter below `URL`, of whatever speaks the HTTP API of Prometheus")
	flags.StringVar(&f.tokenFile, "prometheus-token-file", "", "send the bearer token in `FILE`")
	flags.StringVar(&f.caFile, "prometheus-ca-file", "", "trust the certificates in `FILE`")
	flags.StringArrayVar(&f.headers, "prometheus-header", nil,
		"send the header `NAME=VALUE`, as X-Scope-OrgID=team; may be given again")
	flags.StringVar(&f.selector, "selector", "",
		"read only the series of --prometheus with the labels `M`, as 'cluster=\"prod\"', where it has several clusters")
	flags.StringVar(&f.cache, "cache", "",
		"keep answers of --prometheus in the folder `DIR`, so that an interrupted capture resumes where it was")
	flags.StringArrayVar(&f.logs, "audit", nil,
		"read audit logs of the API server, logs of Karpenter, the CSV of LogParserForKarpenter or a capture of kubereplay, as lines or as a logging service exports them, in `FILE|DIR|s3://…`; may be given again")
	flags.StringArrayVar(&f.interruptions, "interruptions", nil,
		"count interruptions by logs of CloudTrail (BidEvictedEvent), entries of Cloud Logging (compute.instances.preempted) or a data export of EC2 Capacity Manager in `FILE|DIR|s3://…`; may be given again")
	flags.StringArrayVar(&f.bills, "bill", nil,
		"compare dollars with the AWS Cost and Usage Report or FOCUS export in `FILE|DIR|s3://…|URL`, or with OpenCost's allocations there or at its /allocation; may be given again")
	cli.Section(flags, "What the cluster did", "since", "from", "to", "prometheus", "prometheus-token-file",
		"prometheus-ca-file", "prometheus-header", "selector", "cache", "audit", "interruptions", "bill")
}

// on reports whether a history is requested.
func (f *sinceFlags) on() bool { return f.since != "" || f.from != "" }

func (f *sinceFlags) check() error {
	switch {
	case !f.on() && (f.to != "" || f.prometheus != "" || len(f.logs) > 0 || len(f.interruptions) > 0 || len(f.bills) > 0 || f.cache != ""):
		return cli.Invalid(errors.New("--since is missing: how far back to read"), captureAdvice)
	case !f.on():
		return nil
	case f.since != "" && f.from != "":
		return cli.Invalid(errors.New("--since and --from say the same"), "leave one out")
	case (f.prometheus == "") == (len(f.logs) == 0):
		return cli.Invalid(errors.New("--since reads one of --prometheus and --audit"), "give one of them")
	case f.selector != "" && f.prometheus == "":
		return cli.Invalid(errors.New("--selector: logs have no labels to select by"), "leave --selector out")
	}
	if f.since != "" {
		if _, err := parseSpan(f.since); err != nil {
			return cli.Invalid(fmt.Errorf("--since: %w", err), captureAdvice)
		}
	}
	for name, text := range map[string]string{"--from": f.from, "--to": f.to} {
		if text == "" {
			continue
		}
		if _, err := input.ParseTime(text); err != nil {
			return cli.Invalid(fmt.Errorf("%s: %w", name, err), captureAdvice)
		}
	}
	for _, path := range f.bills {
		if u, err := url.Parse(path); isURL(path) && (err != nil || u.Host == "") {
			return cli.Invalid(fmt.Errorf("--bill: %q is not an address such as http://opencost:9003/allocation", path),
				captureAdvice)
		}
	}
	_, err := f.client()
	return err
}

// parseSpan parses a duration such as 7d, 2w, 36h or 1h30m.
func parseSpan(text string) (time.Duration, error) {
	units := map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour}
	d, err := time.ParseDuration(text)
	if n := len(text); n > 1 && units[text[n-1:]] > 0 {
		var count float64
		count, err = strconv.ParseFloat(text[:n-1], 64)
		d = time.Duration(count * float64(units[text[n-1:]]))
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a time such as 7d or 36h", text)
	case d < durationCaptured || d > spanMost:
		return 0, fmt.Errorf("%q is not from %v to %v", text, durationCaptured, spanMost)
	}
	return d, nil
}

// spanMost is the longest history that can be captured.
const spanMost = 3 * 366 * 24 * time.Hour

// span returns the requested interval. now is the time of the snapshot. A recorded snapshot
// provides only the rules, so the interval may end after it.
func (f *sinceFlags) span(now policy.Time, recorded bool) (from, to policy.Time, err error) {
	to = now
	if f.to != "" {
		to, _ = input.ParseTime(f.to) // check has validated it
	}
	unit := policy.Time(time.Hour / time.Millisecond)
	if f.from != "" {
		from, _ = input.ParseTime(f.from)
		unit = policy.Time(time.Minute / time.Millisecond)
	} else {
		d, _ := parseSpan(f.since)
		from = to.Add(-d)
	}
	from -= from % unit
	switch {
	case to > now && !recorded:
		err = fmt.Errorf("--to: %v is after %v, when the cluster is read", to, now)
	case to.Sub(from) < durationCaptured:
		err = fmt.Errorf("--from: from %v to %v is less than %v", from, to, durationCaptured)
	case to.Sub(from) > spanMost:
		err = fmt.Errorf("--from: from %v to %v is more than %v", from, to, spanMost)
	}
	if err != nil {
		return 0, 0, cli.Invalid(err, captureAdvice)
	}
	return from, to, nil
}

// The number of attempts for a call to Prometheus, and the wait before the second.
const (
	callTries = 5
	callWait  = time.Second
)

// client returns a Prometheus client, or nil if none is configured.
func (f *sinceFlags) client() (*history.Prometheus, error) {
	if f.prometheus == "" {
		return nil, nil
	}
	at, err := url.Parse(f.prometheus)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, cli.Invalid(fmt.Errorf("--prometheus: %q is not an address such as http://prometheus:9090",
			f.prometheus), captureAdvice)
	}
	p := &history.Prometheus{Match: strings.Trim(f.selector, "{} "),
		Client: history.Client{URL: at, Cache: f.cache, Tries: callTries, Wait: callWait, Header: http.Header{}}}
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return nil, cli.Invalid(fmt.Errorf("--prometheus-header: %q is not of the form NAME=VALUE", h), captureAdvice)
		}
		p.Header.Add(name, value)
	}
	if f.tokenFile != "" {
		token, err := os.ReadFile(f.tokenFile)
		if err != nil {
			return nil, cli.Invalid(fmt.Errorf("--prometheus-token-file: %w", err), captureAdvice)
		}
		p.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	if f.caFile != "" {
		pem, err := os.ReadFile(f.caFile)
		if err != nil {
			return nil, cli.Invalid(fmt.Errorf("--prometheus-ca-file: %w", err), captureAdvice)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, cli.Invalid(fmt.Errorf("--prometheus-ca-file: %s holds no certificate", f.caFile), captureAdvice)
		}
		transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		p.HTTP = &http.Client{Transport: transport}
	}
	return p, nil
}

// read returns the history of a cluster, and a description of its source.
func (f *sinceFlags) read(ctx context.Context, p *cli.Program, of *captureSource, o *Options) (h *history.History,
	source string, err error) {
	if h, source, err = f.recorded(ctx, p, of, o.JobDuration); err != nil {
		return nil, "", err
	}
	describe(h, of.snapshot, o.Instances)
	if err := f.interrupted(ctx, h, &o.Capacity); err != nil {
		return nil, "", cli.Invalid(fmt.Errorf("--interruptions: %w", err),
			"give files of the time and the account of the cluster, or leave --interruptions out")
	}
	if err := f.billed(ctx, h); err != nil {
		return nil, "",
			cli.Invalid(fmt.Errorf("--bill: %w", err),
				"give the bill of the time and the account of the cluster, or leave --bill out")
	}
	return h, source, nil
}

// recorded returns the history of a cluster from metrics or logs.
func (f *sinceFlags) recorded(ctx context.Context, p *cli.Program, of *captureSource,
	jobDuration time.Duration) (h *history.History, source string, err error) {
	from, to, err := f.span(of.snapshot.Now, of.recording != nil)
	if err != nil {
		return nil, "", err
	}
	if len(f.logs) > 0 {
		logs := history.Logs{Paths: f.logs, JobDuration: jobDuration}
		if h, err = logs.Read(ctx, from, to); err != nil {
			return nil, "",
				cli.Invalid(fmt.Errorf("--audit: %w", err),
					"use files that cover the requested time, or choose another with --from and --to")
		}
		goOn(h, of.snapshot)
		goOnPods(h, of.snapshot)
		return h, "logs", nil
	}
	metrics, err := f.client()
	if err != nil {
		return nil, "", err
	}
	shown := progress.Show(ctx, p, "reading metrics")
	defer shown.Close(p)
	metrics.Progress = func(part float64) { shown.Enter(fmt.Sprintf("reading metrics: %s", figures.Share(part, 0))) }
	metrics.Nodes = map[string]bool{}
	for i := range of.snapshot.Nodes {
		metrics.Nodes[of.snapshot.Nodes[i].Name] = of.snapshot.Nodes[i].Live()
	}
	h, err = metrics.Read(ctx, from, to)
	var several *history.SeveralClustersError
	if errors.As(err, &several) {
		one := strings.Trim(metrics.Match+","+several.Selector(), ",")
		return nil, "", cli.Invalid(fmt.Errorf("--prometheus: %w", err), "give --selector "+cli.Shell([]string{one}))
	}
	if err != nil {
		return nil, "",
			cli.Invalid(err,
				"check that api/v1/query_range is below the address, that kube-state-metrics is scraped there, and that --selector selects it")
	}
	return h, "the metrics at " + metrics.URL.Redacted(), nil
}

// covered sets the interval of a run to that of a history. The trace must have prices for it.
func (f *sinceFlags) covered(t *trace.Trace, h *history.History, run *Run) error {
	const day = policy.Time(24 * time.Hour / time.Millisecond)
	if end := (t.To + day - 1) / day * day; t.From > h.From || end < h.To {
		return cli.Invalid(fmt.Errorf("--trace: %s has prices from %v to %v, and what was captured went on from %v to %v",
			t.Name, t.From, t.To, h.From, h.To),
			"give a trace of that time, as `spotter trace record` writes one of the last 90 days, or none for prices that are drawn")
	}
	run.Start, run.Duration = h.From, h.To.Sub(h.From)
	return nil
}

// compared simulates the captured scenario under the policy as-is, adjusts the rate of reclaims,
// and returns the scenario with its deviation from the history.
func (f *captureFlags) compared(ctx context.Context, taken *Captured, run *Run, prices *trace.Trace) ([]byte, error) {
	was := figureOf(f.History, &f.Capacity)
	bound := func() (*scenarios.BoundScenario, error) {
		text, err := taken.Write(*run)
		if err != nil {
			return nil, err
		}
		return f.bind(text, prices)
	}
	w, err := bound()
	if err != nil {
		return nil, err
	}
	is, err := simulateSeeds(ctx, f.Name, w)
	if err != nil {
		return nil, err
	}
	if w.Reclaims() == "modelled" {
		x, said := intensity(was, is)
		run.Head = append(run.Head, said)
		if x != 1 {
			run.Intensity = &x
			if w, err = bound(); err != nil {
				return nil, err
			}
			if is, err = simulateSeeds(ctx, f.Name, w); err != nil {
				return nil, err
			}
		}
	}
	is.synthetic = prices.Synthetic
	if f.History.Bill != "" {
		run.Head = append(run.Head, f.History.Bill)
	}
	if how := w.Reclaims(); how != "modelled" {
		run.Head = append(run.Head, "Reclaims are "+how+" with these prices, however many there were.")
	}
	run.Compared, run.Deviation = compared(was, is), deviation(was, is)
	return taken.Write(*run)
}

// readPast reads the history of a cluster, and returns a line that describes its interval and
// source.
func (f *captureFlags) readPast(ctx context.Context, p *cli.Program, of *captureSource) (line string, err error) {
	var source string
	if f.History, source, err = f.then.read(ctx, p, of, &f.Options); err != nil {
		return "", err
	}
	if f.Anonymise {
		source = "its records"
	}
	return fmt.Sprintf("What it did from %v to %v by %s.", f.History.From.Std().Format(time.RFC3339),
		f.History.To.Std().Format(time.RFC3339), source), nil
}

// goOn adds the current nodes and workloads that no log names, since they existed all the time.
func goOn(h *history.History, s *policy.Snapshot) {
	named := map[string]bool{}
	for i := range h.Nodes {
		named[h.Nodes[i].Name] = true
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if from := max(h.From, n.Launched, n.Registered); n.Live() && !named[n.Name] && from < h.To {
			h.Nodes = append(h.Nodes, history.Node{Name: n.Name, From: from, To: h.To})
		}
	}
	unended(h, s)
	for i := range h.Workloads {
		named[h.Workloads[i].Kind.String()+h.Workloads[i].Name] = true
	}
	for i := range s.Workloads {
		w := &s.Workloads[i]
		if k := w.Kind; (k == policy.KindDeployment || k == policy.KindStatefulSet) && !named[k.String()+w.Name] {
			h.Workloads = append(h.Workloads, history.Workload{Name: w.Name, Kind: k,
				Replicas: []history.Change{{At: h.From, N: w.Replicas}}})
		}
	}
}

// unended records the number of nodes that the history does not end and that no longer exist.
func unended(h *history.History, s *policy.Snapshot) {
	now := map[string]bool{}
	for i := range s.Nodes {
		now[s.Nodes[i].Name] = s.Nodes[i].Live()
	}
	gone := 0
	for i := range h.Nodes {
		if n := &h.Nodes[i]; n.To >= s.Now && !now[n.Name] {
			gone++
		}
	}
	if gone > 0 {
		h.Uncertain = append(h.Uncertain,
			fmt.Sprintf("%d nodes no longer exist and no log has their deletion: they are assumed to have stayed", gone))
	}
}

// describe sets the kinds of nodes that still exist, and their instances, by the names of the
// nodes.
func describe(h *history.History, s *policy.Snapshot, instances map[string]string) {
	now := map[string]*history.NodeKind{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if !n.Live() {
			continue
		}
		k := &history.NodeKind{Labels: map[string]string{}}
		for _, l := range n.Labels {
			k.Labels[l.Key] = l.Value
		}
		if n.Market >= 0 {
			m := &s.Markets[n.Market]
			k.Labels[corev1.LabelInstanceTypeStable], k.Labels[corev1.LabelTopologyZone] = s.Types[m.Type].Name, s.Zones[m.Zone]
			k.Labels[corev1.LabelTopologyRegion], k.Labels[keyCapacity] = m.Region, m.Capacity.String()
		}
		now[n.Name] = k
	}
	for i := range h.Nodes {
		n := &h.Nodes[i]
		if k := now[n.Name]; k != nil {
			n.Kind = k        // the cluster has more labels than a source
			if n.To >= h.To { // not an earlier node with the same name
				n.Instance = cmp.Or(n.Instance, instances[n.Name])
			}
		}
	}
}
