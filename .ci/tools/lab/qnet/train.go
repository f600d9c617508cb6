package qnet

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/spotter-dev/spotter/scenarios/chance"
)

// A Config says how to train. Start from [DefaultConfig].
type Config struct {
	// Seed chooses the scenarios, what is dared in them, and the first weights.
	Seed uint64

	// Rounds is how often scenarios are played and learned from, Scenarios how many
	// are played in a round, Steps how often the network is moved after each.
	// Raising any of them takes longer and learns more.
	Rounds, Scenarios, Steps int

	// Held is how many scenarios are kept for measuring the network.
	Held int

	// Traces is how many sets of prices there are to play on.
	Traces int

	// Memory is how many lessons are kept to learn from. Raising it takes more
	// memory and holds on to older ones.
	Memory int

	// Rate is how far one step moves the weights. It falls to a tenth in the
	// course of training.
	Rate float64

	// Parallel is how many scenarios are played at once; the result does not
	// depend on it.
	Parallel int

	// Progress is called after every round, where it is not nil.
	Progress func(Round)
}

// A Round is what one round came to.
type Round struct {
	N, Of   int
	Lessons int
	Dare    float64
	Saved   float64 // mean over the moves, as a part of what pools are worth
	Loss    float64
	Share   float64 // mean Spot share of the moves
}

// DefaultConfig returns the configuration that the shipped network was trained
// with.
func DefaultConfig() Config {
	return Config{Seed: 1, Rounds: 24, Scenarios: 40, Steps: 1000, Held: 40, Traces: 24, Memory: 400_000, Rate: 1e-3,
		Parallel: 1}
}

// Validate names the first parameter that is out of its range, and its value.
func (c *Config) Validate() error {
	for _, f := range [...]struct {
		name string
		n    int
	}{{"rounds", c.Rounds}, {"worlds", c.Scenarios}, {"steps", c.Steps}, {"held", c.Held}, {"traces",
		c.Traces}, {"memory", c.Memory}, {"parallel", c.Parallel}} {
		if f.n < 1 || f.n > 10_000_000 {
			return fmt.Errorf("%s %d is not from 1 to 10,000,000", f.name, f.n)
		}
	}
	if !(c.Rate > 0 && c.Rate <= 1) {
		return fmt.Errorf("rate %v is not in (0, 1]", c.Rate)
	}
	return nil
}

// A Trained is a network with what it was trained on.
type Trained struct {
	Net  *Net
	Seed uint64

	// Scenarios and Lessons count what it learned from, and Fingerprint is the
	// SHA-256 of all lessons in their order.
	Scenarios, Lessons int
	Fingerprint        [sha256.Size]byte

	// Metrics are medians over scenarios that it did not learn from.
	Metrics map[string]float64
}

// Train returns a trained network. Equal configurations give equal networks.
func Train(ctx context.Context, c Config) (*Trained, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("training: %w", err)
	}
	s, err := newSource(c.Seed, c.Traces)
	if err != nil {
		return nil, fmt.Errorf("drawing prices: %w", err)
	}
	l := newLearner(&c)
	t := &Trained{Seed: c.Seed, Scenarios: c.Rounds * c.Scenarios}
	for r := range c.Rounds {
		done := float64(r) / float64(c.Rounds)
		report := Round{N: r + 1, Of: c.Rounds, Dare: max(0.1, 1-2*done)}
		l.optimiser.rate = float32(c.Rate * (1 - 0.9*done))
		if err := playRound(ctx, &c, s, l, r, &report); err != nil {
			return nil, fmt.Errorf("round %d: %w", r+1, err)
		}
		for range c.Steps {
			report.Loss += l.learn() / float64(c.Steps)
		}
		report.Lessons = len(l.memory)
		if c.Progress != nil {
			c.Progress(report)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	t.Net, t.Lessons = l.net, l.seen
	l.digest.Sum(t.Fingerprint[:0])
	t.Metrics, err = hold(ctx, &c, s, l.net)
	return t, err
}

// each calls f with 0…n-1 on c.Parallel goroutines and returns the error of the lowest number.
func (c *Config) each(n int, f func(int) error) error {
	failed := make([]error, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(c.Parallel, n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				failed[i] = f(i)
			}
		})
	}
	wg.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// playRound plays the scenarios of round r and remembers them in their order.
func playRound(ctx context.Context, c *Config, s *source, l *learner, r int, report *Round) error {
	all := make([][][]move, c.Scenarios)
	err := c.each(c.Scenarios, func(k int) error {
		i := r*c.Scenarios + k
		key := chance.Stream(c.Seed, "dare").At1(uint64(i))
		w, err := s.scenario(chance.Stream(c.Seed, "world"), i)
		if err == nil {
			// Some scenarios are played as the network would, others by chance.
			all[k], _, err = play(ctx, w, &agent{net: l.net, key: key, dare: report.Dare * key.At1(1<<33).Float() * 2})
		}
		if err != nil {
			return fmt.Errorf("world %d: %w", i, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	moves := 0
	for k := range all {
		for _, pool := range all[k] {
			l.remember(lessons(pool, nil))
			for i := range pool[:max(0, len(pool)-1)] {
				report.Saved += float64(pool[i].saved)
				report.Share += float64(pool[i].row[0])
				moves++
			}
		}
	}
	if moves == 0 {
		return errors.New("no world gave a lesson")
	}
	report.Saved /= float64(moves)
	report.Share /= float64(moves)
	return nil
}
