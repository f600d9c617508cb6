package run

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/spotter-dev/spotter/models"
)

// The failures of a graph other than an error.
var (
	errModelLate     = errors.New("the model is late")
	errModelPanicked = errors.New("the model panicked")
)

// A boundedSession waits for the results of a graph for a limited time, so that a graph that hangs
// does not delay a step: nodes under notice wait for it too. A late call keeps running while steps
// are taken, and its result is dropped. No other call starts until it has ended, so that late calls
// do not accumulate.
type boundedSession struct {
	models.Session
	limit time.Duration
	clock clock.WithTicker

	mu   sync.Mutex
	busy bool
}

// Run evaluates the graph for rows of input. It returns an error if the graph is late.
func (b *boundedSession) Run(rows int, in []float32, out [][]float32) error {
	if !b.begin() {
		return fmt.Errorf("%w: what it was asked before has no answer after %v yet", errModelLate, b.limit)
	}
	// a late call must have its own input and output
	question, answer := append([]float32(nil), in...), make([][]float32, len(out))
	for i := range out {
		answer[i] = make([]float32, len(out[i]))
	}
	timer := b.clock.NewTimer(b.limit)
	defer timer.Stop()
	ended := make(chan error, 1)
	go func() { ended <- b.ask(rows, question, answer) }()
	select {
	case err := <-ended:
		if err == nil {
			for i := range out {
				copy(out[i], answer[i])
			}
		}
		return err
	case <-timer.C():
		return fmt.Errorf("%w: %d rows have no answer after %v", errModelLate, rows, b.limit)
	}
}

// begin reports whether a call may start, and marks the session as busy if so.
func (b *boundedSession) begin() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy {
		return false
	}
	b.busy = true
	return true
}

// ask evaluates the graph and then allows the next call.
func (b *boundedSession) ask(rows int, in []float32, out [][]float32) (err error) {
	defer func() {
		if bug := recover(); bug != nil {
			err = fmt.Errorf("%w: %v", errModelPanicked, bug)
		}
		b.mu.Lock()
		b.busy = false
		b.mu.Unlock()
	}()
	return b.Session.Run(rows, in, out)
}
