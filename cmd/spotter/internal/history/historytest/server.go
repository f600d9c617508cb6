// Package historytest is a server that answers the queries of package history as a
// Prometheus does that scrapes kube-state-metrics, for tests. It keeps no samples: series
// are functions of time.
package historytest

import (
	"bufio"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spotter-dev/spotter/policy"
)

// A Series is a value over time.
type Series struct {
	Labels []string // names and values in turn

	// At returns the value at an instant; false if it has no value then.
	At func(policy.Time) (float64, bool)
}

// A Source returns the series that a query has an answer of: that of a metric, by what is
// done with it, such as "max by (node)" of kube_node_created. Of a query that looks back,
// from and to are the slice that it looks at, and the only instant of its answer is to.
type Source func(metric, by string, from, to policy.Time) iter.Seq[Series]

// A Server is a Prometheus.
type Server struct {
	*httptest.Server
	Source Source

	// Refuse returns what a call is refused with, by its number from 1; a code of 0
	// answers it, and one of 200 cuts the answer off. Nil refuses none.
	Refuse func(call int, from, to time.Time) (code int, text string)

	mu      sync.Mutex
	queries []string
}

// New starts a server that ends with the test.
func New(t testing.TB, source Source) *Server {
	s := &Server{Source: source}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// Calls returns how many calls there were.
func (s *Server) Calls() int { return len(s.Queries()) }

// Queries returns what was asked, in that order.
func (s *Server) Queries() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.queries)
}

var (
	firstMetric = regexp.MustCompile(`\b(kube|karpenter|apiserver)_[a-z_]+`)
	renamed     = regexp.MustCompile(`, "[a-z]+", "\$1", "exported_[a-z]+", "\(\.\+\)"\)`)
	lookBack    = regexp.MustCompile(`\[([0-9]+)s\]`)
)

// ServeHTTP answers a query.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.FormValue("query")
	s.mu.Lock()
	s.queries = append(s.queries, query)
	call := len(s.queries)
	s.mu.Unlock()
	if r.URL.Path != "/api/v1/query_range" {
		http.NotFound(w, r)
		return
	}
	from, to, step := parse(r.FormValue("start")), parse(r.FormValue("end")), policy.Time(float64(parse(r.FormValue("step"))))
	if step <= 0 || (to-from)/step > 11_000 {
		http.Error(w,
			`{"status":"error","errorType":"bad_data","error":"exceeded maximum resolution of 11,000 points per timeseries"}`, http.StatusBadRequest)
		return
	}
	out := w
	if s.Refuse != nil {
		switch code, text := s.Refuse(call, from.Std(), to.Std()); code {
		case 0:
		case http.StatusOK:
			out = &short{ResponseWriter: w, left: 200}
		default:
			http.Error(w, text, code)
			return
		}
	}
	query = strings.ReplaceAll(renamed.ReplaceAllString(query, ""), "label_replace(", "")
	metric := firstMetric.FindString(query)
	by, _, _ := strings.Cut(query, metric)
	by = strings.TrimSpace(strings.TrimSuffix(by, "("))
	if strings.Contains(query, "unless on (namespace, job_name)") {
		by += "unless done before"
	}
	begin := from
	if m := lookBack.FindStringSubmatch(query); m != nil && from == to {
		n, _ := strconv.ParseInt(m[1], 10, 64)
		begin = to - policy.Time(n*1000)
	}
	write(out, s.Source(metric, by, begin, to), from, to, step)
}

func parse(text string) policy.Time {
	v, _ := strconv.ParseFloat(text, 64)
	return policy.Time(v * 1000)
}

// short forwards its number of bytes and drops the rest without an error.
type short struct {
	http.ResponseWriter
	left int
}

func (s *short) Write(p []byte) (int, error) {
	n := min(len(p), s.left)
	s.left -= n
	if _, err := s.ResponseWriter.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// write writes a matrix.
func write(w http.ResponseWriter, all iter.Seq[Series], from, to, step policy.Time) {
	b := bufio.NewWriterSize(w, 1<<16)
	defer b.Flush()
	put := func(text string) { _, _ = b.WriteString(text) } // who asked may be gone
	put(`{"status":"success","data":{"resultType":"matrix","result":[`)
	first := true
	var line []byte
	for x := range all {
		line = line[:0]
		points := 0
		for at := from; at <= to; at += step {
			v, ok := x.At(at)
			if !ok {
				continue
			}
			if points++; points > 1 {
				line = append(line, ',')
			}
			line = append(line, '[')
			line = strconv.AppendFloat(line, float64(at)/1000, 'f', -1, 64)
			line = append(line, `,"`...)
			line = strconv.AppendFloat(line, v, 'f', -1, 64)
			line = append(line, `"]`...)
		}
		if points == 0 {
			continue
		}
		if !first {
			put(",")
		}
		first = false
		put(`{"metric":{`)
		for i := 0; i+1 < len(x.Labels); i += 2 {
			if i > 0 {
				put(",")
			}
			fmt.Fprintf(b, "%q:%q", x.Labels[i], x.Labels[i+1])
		}
		put(`},"values":[`)
		put(string(line))
		put(`]}`)
	}
	put(`]}}`)
}
