package qnet

import (
	"math"

	"github.com/spotter-dev/spotter/models"
	"github.com/spotter-dev/spotter/scenarios/chance"
)

// Sizes of the layers: a trunk of two, and a stream of one each for the value of
// the state and for the advantages of the actions.
const (
	inputs  = 31
	trunk   = 64
	stream  = 32
	actions = models.ActionCount
)

// A layer is y = Wx + b. Weights are stored row by row, one row for each output, as in
// ONNX's Gemm with transB.
type layer struct {
	in, out int
	w, b    []float32
}

func (l *layer) forward(x, y []float32, relu bool) {
	for o := range l.out {
		sum := l.b[o] + dot(l.w[o*l.in:(o+1)*l.in], x[:l.in])
		if relu && sum < 0 {
			sum = 0
		}
		y[o] = sum
	}
}

// dot returns the product of x and y, summed in four lanes, which is several times
// faster than in one.
func dot(x, y []float32) float32 {
	var a, b, c, d float32
	n := len(x) &^ 3
	x, y = x[:len(x):len(x)], y[:len(x):len(x)]
	for i := 0; i < n; i += 4 {
		u, v := x[i:i+4:i+4], y[i:i+4:i+4]
		a += float32(u[0] * v[0])
		b += float32(u[1] * v[1])
		c += float32(u[2] * v[2])
		d += float32(u[3] * v[3])
	}
	for i := n; i < len(x); i++ {
		a += float32(x[i] * y[i])
	}
	return (a + b) + (c + d)
}

// backward adds the gradients of l for one row to g, where dy is that of its
// output, and writes the gradient of its input to dx unless that is nil.
func (l *layer) backward(g *layer, x, dy, dx []float32) {
	clear(dx)
	for o, d := range dy[:l.out] {
		if d == 0 {
			continue
		}
		row, grad := l.w[o*l.in:(o+1)*l.in], g.w[o*l.in:(o+1)*l.in]
		g.b[o] += d
		for i, v := range x[:l.in] {
			grad[i] += float32(d * v)
		}
		if dx == nil {
			continue
		}
		for i, v := range row {
			dx[i] += float32(d * v)
		}
	}
}

// The layers of a network, in the order of its parameters.
const (
	trunk1 = iota
	trunk2
	value1
	value2
	advantage1
	advantage2
	layers
)

// shapes are inputs and outputs of each layer.
var shapes = [layers][2]int{
	{inputs, trunk}, {trunk, trunk}, {trunk, stream}, {stream, 1}, {trunk, stream}, {stream, actions},
}

// A Net is a dueling network: the value of an action is that of the state and
// what the action's advantage exceeds the mean of all advantages by.
type Net struct {
	parameters []float32
	layers     [layers]layer
}

// zeroNet returns a network of zeros.
func zeroNet() *Net {
	n := &Net{}
	size := 0
	for _, s := range shapes {
		size += s[0]*s[1] + s[1]
	}
	n.parameters = make([]float32, size)
	rest := n.parameters
	for k, s := range shapes {
		n.layers[k] = layer{in: s[0], out: s[1], w: rest[:s[0]*s[1]], b: rest[s[0]*s[1] : s[0]*s[1]+s[1]]}
		rest = rest[s[0]*s[1]+s[1]:]
	}
	return n
}

// NewNet returns a network with random weights (He's), drawn from seed.
func NewNet(seed uint64) *Net {
	n := zeroNet()
	for k := range n.layers {
		l := &n.layers[k]
		scale := math.Sqrt(2 / float64(l.in))
		if k == value2 || k == advantage2 {
			scale /= 10 // values begin near 0
		}
		key := chance.Stream(seed, "weights").At1(uint64(k))
		for i := range l.w {
			l.w[i] = float32(key.At1(uint64(i)).Normal() * scale)
		}
	}
	return n
}

// Clone returns a copy of n.
func (n *Net) Clone() *Net {
	c := zeroNet()
	copy(c.parameters, n.parameters)
	return c
}

// A pass holds what the layers answered to one row, which gradients need.
type pass struct {
	h1, h2     [trunk]float32
	hv, ha     [stream]float32
	v          [1]float32
	a, q       [actions]float32
	dv, da     [stream]float32
	d1, d2, dx [trunk]float32
}

// Values returns the values of the actions in the state of row.
func (n *Net) Values(row []float32) [actions]float32 {
	var t pass
	n.run(row, &t)
	return t.q
}

func (n *Net) run(row []float32, t *pass) {
	n.layers[trunk1].forward(row, t.h1[:], true)
	n.layers[trunk2].forward(t.h1[:], t.h2[:], true)
	n.layers[value1].forward(t.h2[:], t.hv[:], true)
	n.layers[value2].forward(t.hv[:], t.v[:], false)
	n.layers[advantage1].forward(t.h2[:], t.ha[:], true)
	n.layers[advantage2].forward(t.ha[:], t.a[:], false)
	mean := float32(0)
	for _, a := range t.a {
		mean += a
	}
	mean /= actions
	for i, a := range t.a {
		t.q[i] = t.v[0] + (a - mean)
	}
}

// learn adds the gradients of value a in the state of row to g, where d is that
// of the value. The row went through run into t before.
func (n *Net) learn(g *Net, row []float32, t *pass, a int, d float32) {
	var dv [1]float32
	var da [actions]float32
	dv[0] = d
	for i := range da {
		da[i] = -d / actions
	}
	da[a] += d
	n.layers[value2].backward(&g.layers[value2], t.hv[:], dv[:], t.dv[:])
	n.layers[advantage2].backward(&g.layers[advantage2], t.ha[:], da[:], t.da[:])
	rectified(t.dv[:], t.hv[:])
	rectified(t.da[:], t.ha[:])
	n.layers[value1].backward(&g.layers[value1], t.h2[:], t.dv[:], t.d2[:])
	n.layers[advantage1].backward(&g.layers[advantage1], t.h2[:], t.da[:], t.dx[:])
	for i := range t.d2 {
		t.d2[i] += t.dx[i]
	}
	rectified(t.d2[:], t.h2[:])
	n.layers[trunk2].backward(&g.layers[trunk2], t.h1[:], t.d2[:], t.d1[:])
	rectified(t.d1[:], t.h1[:])
	n.layers[trunk1].backward(&g.layers[trunk1], row, t.d1[:], nil)
}

// rectified takes away the gradient where a unit was silent.
func rectified(d, h []float32) {
	for i := range d {
		if h[i] <= 0 {
			d[i] = 0
		}
	}
}

// An adam is the optimiser of Kingma and Ba with its usual decays.
type adam struct {
	rate   float32
	m, v   []float32
	b1, b2 float64 // powers of the decays
}

func newAdam(n *Net, rate float64) *adam {
	return &adam{rate: float32(rate), m: make([]float32, len(n.parameters)), v: make([]float32, len(n.parameters)),
		b1: 1, b2: 1}
}

// normMax bounds the length of one gradient, so that a rare loss does not throw
// the network over.
const normMax = 1.0

// step moves n against the gradients g and clears these.
func (a *adam) step(n, g *Net) {
	const decay1, decay2, tiny = 0.9, 0.999, 1e-8
	square := 0.0
	for _, d := range g.parameters {
		square += float64(float64(d) * float64(d))
	}
	cut := float32(1)
	if norm := math.Sqrt(square); norm > normMax {
		cut = float32(normMax / norm)
	}
	a.b1, a.b2 = a.b1*decay1, a.b2*decay2
	m1, m2 := float32(1/(1-a.b1)), float32(1/(1-a.b2))
	for i, d := range g.parameters {
		d *= cut
		a.m[i] = float32(decay1*a.m[i]) + float32((1-decay1)*d)
		a.v[i] = float32(decay2*a.v[i]) + float32(float32((1-decay2)*d)*d)
		n.parameters[i] -= float32(a.rate*float32(a.m[i]*m1)) / (float32(math.Sqrt(float64(a.v[i]*m2))) + tiny)
	}
	clear(g.parameters)
}
