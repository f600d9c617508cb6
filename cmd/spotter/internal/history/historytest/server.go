// Package historytest is a fake Prometheus for tests of package history. It answers their range
// queries as a Prometheus that scrapes kube-state-metrics would. Series are functions of time; no
// samples are stored.
package historytest

import (
	"bufio"
	"encoding/json"
	"errors"
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

// A Query is the part of a range query that a Source interprets.
type Query struct {
	Metric      string // the first metric in the query
	Aggregation string // the text before it, such as "max by (node)"

	// Unfinished reports that jobs are included which started before From and were unfinished then.
	Unfinished bool

	// From and To are the range of the query. For a query with a range selector they are the range
	// of the selector, and the answer has only the instant To.
	From, To policy.Time
}

// A Source returns the series that answer a query.
type Source func(Query) iter.Seq[Series]

// A Fault is a failure to answer a call.
type Fault struct {
	Code int // of the response, unless Truncate is set
	Text string

	// Truncate sends the start of the right answer with the code 200.
	Truncate bool
}

// A Server is a fake Prometheus that answers from Source.
type Server struct {
	*httptest.Server
	Source Source

	// Fault returns the fault of a call, numbered from 1, or nil if the call is answered. A nil
	// function answers every call.
	Fault func(call int, from, to time.Time) *Fault

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

// Calls returns the number of queries received.
func (s *Server) Calls() int { return len(s.Queries()) }

// Queries returns the queries received, in order.
func (s *Server) Queries() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.queries)
}

var (
	firstMetric    = regexp.MustCompile(`\b(kube|karpenter|apiserver)_[a-z_]+`)
	exportedLabels = regexp.MustCompile(`, "[a-z]+", "\$1", "exported_[a-z]+", "\(\.\+\)"\)`) // end of a label_replace
	rangeSelector  = regexp.MustCompile(`\[([0-9]+)s\]`)
)

// ServeHTTP answers a range query.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/api/v1/query_range" {
		http.NotFound(w, r)
		return
	}
	query := r.FormValue("query")
	s.mu.Lock()
	s.queries = append(s.queries, query)
	call := len(s.queries)
	s.mu.Unlock()
	from, errFrom := parseSeconds(r.FormValue("start"))
	to, errTo := parseSeconds(r.FormValue("end"))
	step, errStep := parseSeconds(r.FormValue("step"))
	if err := errors.Join(errFrom, errTo, errStep); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if step <= 0 || (to-from)/step > 11_000 {
		http.Error(w, `{"status":"error","errorType":"bad_data","error":`+
			`"exceeded maximum resolution of 11,000 points per timeseries"}`, http.StatusBadRequest)
		return
	}
	if s.Fault != nil {
		if fault := s.Fault(call, from.Std(), to.Std()); fault != nil {
			if !fault.Truncate {
				http.Error(w, fault.Text, fault.Code)
				return
			}
			w = &truncatingWriter{ResponseWriter: w, left: truncatedAt}
		}
	}
	write(w, s.Source(parseQuery(query, from, to)), from, to, step)
}

// parseQuery interprets a query for the instants between from and to.
func parseQuery(query string, from, to policy.Time) Query {
	query = strings.ReplaceAll(exportedLabels.ReplaceAllString(query, ""), "label_replace(", "")
	q := Query{Metric: firstMetric.FindString(query), From: from, To: to,
		Unfinished: strings.Contains(query, "unless on (namespace, job_name)")}
	before, _, _ := strings.Cut(query, q.Metric)
	q.Aggregation = strings.TrimSpace(strings.TrimSuffix(before, "("))
	if m := rangeSelector.FindStringSubmatch(query); m != nil && from == to {
		n, _ := strconv.ParseInt(m[1], 10, 64) // rangeSelector matches only digits
		q.From = to - policy.Time(n*1000)
	}
	return q
}

// parseSeconds reads an instant or a duration.
func parseSeconds(text string) (policy.Time, error) {
	v, err := strconv.ParseFloat(text, 64)
	return policy.Time(v * 1000), err
}

// truncatedAt is the number of bytes of a truncated answer that are sent.
const truncatedAt = 200

// A truncatingWriter drops what exceeds its number of bytes, without an error.
type truncatingWriter struct {
	http.ResponseWriter
	left int // bytes still forwarded
}

func (w *truncatingWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	w.left -= n
	if _, err := w.ResponseWriter.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// write writes a matrix.
func write(w http.ResponseWriter, series iter.Seq[Series], from, to, step policy.Time) {
	b := bufio.NewWriterSize(w, 1<<16)
	defer b.Flush()
	writeString := func(text string) { _, _ = b.WriteString(text) } // errors: the client may have gone
	writeString(`{"status":"success","data":{"resultType":"matrix","result":[`)
	first := true
	var line []byte
	for x := range series {
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
			writeString(",")
		}
		first = false
		writeString(`{"metric":{`)
		for i := 0; i+1 < len(x.Labels); i += 2 {
			if i > 0 {
				writeString(",")
			}
			writeString(quoted(x.Labels[i]) + ":" + quoted(x.Labels[i+1]))
		}
		writeString(`},"values":[`)
		writeString(string(line))
		writeString(`]}`)
	}
	writeString(`]}}`)
}

// quoted returns text as a string of JSON.
func quoted(text string) string {
	b, _ := json.Marshal(text) // a string has no error
	return string(b)
}
