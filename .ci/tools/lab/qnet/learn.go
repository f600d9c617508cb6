package qnet

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"math"
	"slices"

	"github.com/spotter-dev/spotter/scenarios/chance"
)

// A lesson is what one state and action led to: what was saved in the steps that
// follow, each counting discount times as much as the one before, and the state
// after them.
type lesson struct {
	row, next [inputs]float32
	action    int8
	saved     float32
	left      float32 // what the value of the state after counts
}

const (
	// discount is what the next step counts: with 0.9 what is saved within
	// five hours decides.
	discount = 0.9

	// horizon is how many steps are counted as they were, before the network
	// is asked what the rest is worth.
	horizon = 4
)

// lessons cuts the moves of one pool into lessons. Savings are taken times
// (1 - discount), so that values are means over time.
func lessons(moves []move, to []lesson) []lesson {
	for i := 0; i+1 < len(moves); i++ {
		l := lesson{row: moves[i].row, action: moves[i].action, left: 1}
		k := i
		for ; k < min(i+horizon, len(moves)-1); k++ {
			l.saved += float32(l.left*moves[k].saved) * (1 - discount)
			l.left *= discount
		}
		l.next = moves[k].row
		to = append(to, l)
	}
	return to
}

// A learner holds the network that learns and what it learns from.
type learner struct {
	net, target, grad *Net
	optimiser         *adam
	memory            []lesson
	most, at          int // size of memory and where it is written next
	key               chance.Key
	steps             uint64

	// seen counts all lessons so far, which digest has read.
	seen   int
	digest hash.Hash
}

func newLearner(cfg *Config) *learner {
	n := NewNet(cfg.Seed)
	return &learner{
		net: n, target: n.Clone(), grad: zeroNet(), optimiser: newAdam(n,
			cfg.Rate), most: cfg.Memory, key: chance.Stream(cfg.Seed, "learn"), digest: sha256.New(),
	}
}

// remember keeps lessons, in place of the oldest where there are too many.
func (l *learner) remember(list []lesson) {
	l.seen += len(list)
	for _, x := range list {
		l.read(&x)
		if len(l.memory) < l.most {
			l.memory = append(l.memory, x)
			continue
		}
		l.memory[l.at] = x
		l.at = (l.at + 1) % l.most
	}
}

// read lets the digest read x.
func (l *learner) read(x *lesson) {
	b := make([]byte, 0, 4*(2*inputs+3))
	for _, v := range slices.Concat(x.row[:], x.next[:], []float32{x.saved, x.left, float32(x.action)}) {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	l.digest.Write(b) // it never fails
}

const (
	// batch is how many lessons one step learns from.
	batch = 64

	// followed is how fast the network that values the state after follows the
	// one that learns.
	followed = 0.005
)

// learn takes one step of double Q-learning: the action after is the best one of
// the network that learns, its value that of the one that follows. It returns the
// mean loss.
func (l *learner) learn() float64 {
	var t pass
	sum := 0.0
	key := l.key.At1(l.steps)
	l.steps++
	for i := range uint64(batch) {
		x := &l.memory[key.At1(i).IntN(len(l.memory))]
		l.net.run(x.next[:], &t)
		best := 0
		for a, q := range t.q {
			if q > t.q[best] {
				best = a
			}
		}
		l.target.run(x.next[:], &t)
		want := x.saved + float32(x.left*t.q[best])
		l.net.run(x.row[:], &t)
		d := t.q[x.action] - want
		loss, slope := huber(d)
		sum += loss
		l.net.learn(l.grad, x.row[:], &t, int(x.action), slope/batch)
	}
	l.optimiser.step(l.net, l.grad)
	for i, v := range l.net.parameters {
		l.target.parameters[i] += float32(followed * (v - l.target.parameters[i]))
	}
	return sum / batch
}

// bend is the error from which the loss grows evenly: an outage counts, and no
// more than that.
const bend = 0.5

// huber returns the loss of an error and its slope.
func huber(d float32) (loss float64, slope float32) {
	switch {
	case d > bend:
		return bend * (float64(d) - bend/2), bend
	case d < -bend:
		return bend * (-float64(d) - bend/2), -bend
	}
	return float64(d) * float64(d) / 2, d
}
