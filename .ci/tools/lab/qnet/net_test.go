package qnet

import (
	"math"
	"testing"

	"github.com/spotter-dev/spotter/scenarios/chance"
)

// row draws a state.
func row(key chance.Key) []float32 {
	x := make([]float32, inputs)
	for i := range x {
		x[i] = float32(key.At1(uint64(i)).Float())
	}
	return x
}

// plain is what a network answers, computed in the plainest way and in doubles.
func plain(n *Net, x []float32) (q [actions]float64) {
	apply := func(k int, in []float64, relu bool) []float64 {
		l := &n.layers[k]
		out := make([]float64, l.out)
		for o := range out {
			out[o] = float64(l.b[o])
			for i, v := range in {
				out[o] += v * float64(l.w[o*l.in+i])
			}
			if relu {
				out[o] = max(0, out[o])
			}
		}
		return out
	}
	in := make([]float64, len(x))
	for i, v := range x {
		in[i] = float64(v)
	}
	h := apply(trunk2, apply(trunk1, in, true), true)
	v := apply(value2, apply(value1, h, true), false)[0]
	a := apply(advantage2, apply(advantage1, h, true), false)
	mean := 0.0
	for _, y := range a {
		mean += y / actions
	}
	for i := range q {
		q[i] = v + a[i] - mean
	}
	return q
}

func TestValuesArePlain(t *testing.T) {
	for seed := range uint64(20) {
		n, x := NewNet(seed), row(chance.Stream(seed, "row"))
		want := plain(n, x)
		for i, q := range n.Values(x) {
			if math.Abs(float64(q)-want[i]) > 1e-5 {
				t.Errorf("seed %d: value %d is %v, want %v", seed, i, q, want[i])
			}
		}
	}
}

// TestGradients compares gradients with differences of the plain values.
func TestGradients(t *testing.T) {
	n, x := NewNet(3), row(chance.Stream(3, "row"))
	for a := range actions {
		g := zeroNet()
		var p pass
		n.run(x, &p)
		n.learn(g, x, &p, a, 1)
		for k := range 400 {
			i := chance.Stream(5, "parameter").At2(uint64(a), uint64(k)).IntN(len(n.parameters))
			const d = 1e-3
			up, down := n.Clone(), n.Clone()
			up.parameters[i] += d
			down.parameters[i] -= d
			width := float64(up.parameters[i]) - float64(down.parameters[i])
			want := (plain(up, x)[a] - plain(down, x)[a]) / width
			if got := float64(g.parameters[i]); math.Abs(got-want) > 2e-3+0.02*math.Abs(want) {
				t.Errorf("action %d, parameter %d: the gradient is %v, want %v", a, i, got, want)
			}
		}
	}
}

// TestLearns gives a network something simple to learn: action 3 is worth what
// the first feature says, every other one nothing, and nothing follows.
func TestLearns(t *testing.T) {
	c := DefaultConfig()
	c.Rate = 2e-3
	l := newLearner(&c)
	var list []lesson
	for i := range uint64(2000) {
		key := chance.Stream(1, "lesson").At1(i)
		x := lesson{action: int8(key.At1(100).IntN(actions))}
		copy(x.row[:], row(key))
		if x.action == 3 {
			x.saved = x.row[0]
		}
		list = append(list, x)
	}
	l.remember(list)
	first := l.learn()
	last := 0.0
	for range 600 {
		last = l.learn()
	}
	if !(last < first/10) {
		t.Errorf("the loss goes from %v to %v", first, last)
	}
	for i := range uint64(20) {
		x := row(chance.Stream(2, "row").At1(i))
		q := l.net.Values(x)
		if math.Abs(float64(q[3]-x[0])) > 0.15 || math.Abs(float64(q[1])) > 0.15 {
			t.Errorf("of %v the values are %v", x[0], q)
		}
	}
}

func TestRemembersTheLatest(t *testing.T) {
	c := DefaultConfig()
	c.Memory = 10
	l := newLearner(&c)
	for i := range 25 {
		l.remember([]lesson{{saved: float32(i)}})
	}
	if l.seen != 25 || len(l.memory) != 10 {
		t.Fatalf("%d seen, %d kept", l.seen, len(l.memory))
	}
	for _, x := range l.memory {
		if x.saved < 15 {
			t.Errorf("lesson %v is still there", x.saved)
		}
	}
}

// TestLessons counts by hand: four steps of 1, 2, 3, 4 with a discount of 0.9
// are worth 1 + 1.8 + 2.43 + 2.916 = 8.146, times 0.1, and what follows counts
// 0.9⁴ = 0.6561; of the last but one only what was seen is counted.
func TestLessons(t *testing.T) {
	moves := make([]move, 6)
	for i := range moves {
		moves[i].saved, moves[i].row[0], moves[i].action = float32(i+1), float32(i), int8(i)
	}
	list := lessons(moves, nil)
	if len(list) != 5 {
		t.Fatalf("%d lessons of 6 moves, the last of which has no end", len(list))
	}
	near := func(what string, got float32, want float64) {
		if math.Abs(float64(got)-want) > 1e-5 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	near("what the first saved", list[0].saved, 0.8146)
	near("what its rest counts", list[0].left, 0.6561)
	near("the state after it", list[0].next[0], 4)
	near("what the last saved", list[4].saved, 0.5)
	near("what its rest counts", list[4].left, 0.9)
	if list[2].action != 2 {
		t.Errorf("the third action is %d", list[2].action)
	}
}

func BenchmarkLearn(b *testing.B) {
	c := DefaultConfig()
	l := newLearner(&c)
	l.remember(make([]lesson, 100))
	for b.Loop() {
		l.learn()
	}
}
