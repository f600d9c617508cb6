//go:build cgo && (linux || darwin)

package onnx

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/spotter-dev/spotter/models"
)

// buckets are the numbers of rows of reusable tensors. A call is divided into chunks of these
// sizes, so that the runtime sees few different shapes.
var buckets = []int{1, 8, 64, 256}

// A session runs one graph.
type session struct {
	net     *models.Net
	graph   *ort.DynamicAdvancedSession
	buckets []int

	mu     sync.Mutex
	closed bool
	idle   [][]*buffers // by bucket
	busy   int
}

// buffers are the tensors of one call.
type buffers struct {
	in      *ort.Tensor[float32]
	out     []*ort.Tensor[float32]
	inputs  []ort.Value
	outputs []ort.Value
	pins    runtime.Pinner // the runtime stores the addresses of the tensors' data
}

// Open creates a session for a graph. [Start] must have been called.
func Open(net *models.Net) (models.Session, error) {
	options, err := ort.NewSessionOptions()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer func() { _ = options.Destroy() }() // it never fails
	if err := oneThread(options); err != nil {
		return nil, err
	}
	names := make([]string, len(net.Outputs))
	for i, t := range net.Outputs {
		names[i] = t.Name
	}
	graph, err := ort.NewDynamicAdvancedSessionWithONNXData(net.ONNX, []string{net.Model.Input}, names, options)
	if err != nil {
		return nil, fmt.Errorf("%s: ONNX Runtime does not take it: %w", net.Model.Graph, err)
	}
	s := &session{net: net, graph: graph, buckets: buckets}
	if net.Batch > 0 {
		s.buckets = []int{net.Batch}
	}
	s.idle = make([][]*buffers, len(s.buckets))
	// A session that is not closed is closed by its finalizer, because pinned memory must be
	// unpinned before it is collected.
	runtime.SetFinalizer(s, func(s *session) { _ = s.Close() })
	return s, nil
}

// oneThread makes a session use only the calling thread, so that equal inputs have bit-identical
// results and a controller's CPU is not shared.
func oneThread(o *ort.SessionOptions) error {
	return errors.Join(
		o.SetIntraOpNumThreads(1),
		o.SetInterOpNumThreads(1),
		o.SetExecutionMode(ort.ExecutionModeSequential),
		o.AddSessionConfigEntry("session.intra_op.allow_spinning", "0"),
		o.AddSessionConfigEntry("session.inter_op.allow_spinning", "0"),
	)
}

// Run implements models.Session.
func (s *session) Run(rows int, in []float32, out [][]float32) error {
	width := s.net.Width
	if len(in) < rows*width || len(out) != len(s.net.Widths) {
		return fmt.Errorf("%s: %d numbers and %d outputs for %d rows", s.net.Model.Graph, len(in), len(out), rows)
	}
	for done := 0; done < rows; {
		k := s.bucket(rows - done)
		n := min(s.buckets[k], rows-done)
		b, err := s.take(k)
		if err != nil {
			return err
		}
		data := b.in.GetData()
		clear(data[copy(data, in[done*width:(done+n)*width]):])
		if err = s.graph.Run(b.inputs, b.outputs); err == nil {
			for i, w := range s.net.Widths {
				copy(out[i][done*w:(done+n)*w], b.out[i].GetData())
			}
		}
		if err := errors.Join(err, s.release(k, b)); err != nil {
			return fmt.Errorf("%s: %w", s.net.Model.Graph, err)
		}
		done += n
	}
	return nil
}

// bucket returns the index of the largest bucket that rows fill, or of the smallest that can hold
// them if they fill more than half of it.
func (s *session) bucket(rows int) int {
	for i, n := range s.buckets {
		if n >= rows && (i == 0 || rows > n/2) {
			return i
		}
		if n > rows {
			return i - 1
		}
	}
	return len(s.buckets) - 1
}

// take returns unused tensors.
func (s *session) take(k int) (*buffers, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("%s: the session is closed", s.net.Model.Graph)
	}
	if n := len(s.idle[k]); n > 0 {
		b := s.idle[k][n-1]
		s.idle[k] = s.idle[k][:n-1]
		s.busy++
		return b, nil
	}
	b, err := s.newBuffers(s.buckets[k])
	if err == nil {
		s.busy++
	}
	return b, err
}

// release makes tensors available again. In a closed session it frees them, and the last call frees
// the graph.
func (s *session) release(k int, b *buffers) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	if !s.closed {
		s.idle[k] = append(s.idle[k], b)
		return nil
	}
	err := b.destroy()
	if s.busy == 0 {
		err = errors.Join(err, s.graph.Destroy())
	}
	return err
}

func (s *session) newBuffers(rows int) (*buffers, error) {
	in, err := ort.NewEmptyTensor[float32](append(ort.Shape{int64(rows)}, s.net.Row...))
	if err != nil {
		return nil, err
	}
	b := &buffers{in: in, inputs: []ort.Value{in}}
	b.pins.Pin(&in.GetData()[0])
	for _, t := range s.net.Outputs {
		shape := slices.Clone(t.Shape)
		shape[0] = int64(rows)
		out, err := ort.NewEmptyTensor[float32](shape)
		if err != nil {
			return nil, errors.Join(err, b.destroy())
		}
		b.pins.Pin(&out.GetData()[0])
		b.out, b.outputs = append(b.out, out), append(b.outputs, out)
	}
	return b, nil
}

func (b *buffers) destroy() error {
	err := b.in.Destroy()
	for _, t := range b.out {
		err = errors.Join(err, t.Destroy())
	}
	b.pins.Unpin()
	return err
}

// Close frees the session once no call is in progress. Later calls of Run fail.
func (s *session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var err error
	for _, idle := range s.idle {
		for _, b := range idle {
			err = errors.Join(err, b.destroy())
		}
	}
	s.idle = nil
	if s.busy == 0 {
		err = errors.Join(err, s.graph.Destroy())
	}
	return err
}
