package portable

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// units returns how many representable numbers apart a and b are.
func units(a, b float64) uint64 {
	switch {
	case a == b || math.IsNaN(a) && math.IsNaN(b):
		return 0
	case math.IsNaN(a) != math.IsNaN(b) || math.IsInf(a, 0) != math.IsInf(b, 0):
		return math.MaxUint64
	}
	x, y := order(a), order(b)
	return max(x, y) - min(x, y)
}

// order maps the floats to whole numbers of the same order.
func order(f float64) uint64 {
	b := math.Float64bits(f)
	if b>>63 == 1 {
		return 1<<63 - (b &^ (1 << 63))
	}
	return 1<<63 + b
}

// Arguments over the range of each function stay within the stated error of
// package math, whose own error is up to one unit. Results near the end of the
// range are left out: the assembly of package math overflows early on amd64.
func TestNearMath(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	wide := func() float64 { return (r.Float64() - 0.5) * 1400 }
	tiny := func() float64 { return (r.Float64() - 0.5) * 0x1p-6 }
	positive := func() float64 { return math.Exp2((r.Float64() - 0.5) * 2040) }
	common := func() float64 { return r.Float64() * 8 }
	for _, c := range []struct {
		name       string
		ours, math func(float64) float64
		from       func() float64
		most       uint64
	}{
		{"Exp", Exp, math.Exp, wide, 2},
		{"Exp", Exp, math.Exp, tiny, 1},
		{"Log", Log, math.Log, positive, 1},
		{"Log", Log, math.Log, common, 1},
		{"Log1p", Log1p, math.Log1p, tiny, 2},
		{"Log1p", Log1p, math.Log1p, common, 2},
		{"Expm1", Expm1, math.Expm1, tiny, 3},
		{"Expm1", Expm1, math.Expm1, wide, 3},
	} {
		worst, at := uint64(0), 0.0
		for range 50_000 {
			x := c.from()
			if d := units(c.ours(x), c.math(x)); d > worst {
				worst, at = d, x
			}
		}
		if worst > c.most {
			t.Errorf("%s(%v) is %d units off, want at most %d", c.name, at, worst, c.most)
		}
	}
}

// A whole power is known exactly by multiplying.
func TestPowNearProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		x, y := math.Exp2((r.Float64()-0.5)*40), 3+r.IntN(18)
		exact := new(big.Float).SetPrec(2000).SetInt64(1)
		for range y {
			exact.Mul(exact, new(big.Float).SetPrec(2000).SetFloat64(x))
		}
		want, _ := exact.Float64()
		if d := units(Pow(x, float64(y)), want); d > uint64(1+y) {
			t.Fatalf("Pow(%v, %d) is %d units off, want at most %d", x, y, d, 1+y)
		}
		back, _ := exact.Quo(big.NewFloat(1), exact).Float64()
		if d := units(Pow(x, -float64(y)), back); d > uint64(1+y) {
			t.Fatalf("Pow(%v, -%d) is %d units off, want at most %d", x, y, d, 1+y)
		}
	}
}

func TestPowLimits(t *testing.T) {
	for _, c := range [][3]float64{
		{2, 1023, 0x1p1023}, {2, -1074, 0x1p-1074}, {2, 1024, math.Inf(1)}, {2, -1100, 0},
		{0.5, 1074, 0x1p-1074}, {0, 3, 0}, {0, -1, math.Inf(1)}, {0, 0, 1}, {1, math.Inf(1), 1},
		{math.Inf(1), -2, 0}, {math.Inf(1), 2, math.Inf(1)}, {3, math.Inf(-1), 0}, {0.3, math.Inf(-1), math.Inf(1)},
		{-1, 2, math.NaN()}, {2, math.NaN(), math.NaN()}, {1 + 0x1p-52, 1e300, math.Inf(1)}, {9, 0.5, 3}, {7, 2, 49},
	} {
		if got := Pow(c[0], c[1]); units(got, c[2]) != 0 {
			t.Errorf("Pow(%v, %v) = %v, want %v", c[0], c[1], got, c[2])
		}
	}
	// An exponent of a thousand would cost hundreds of units in the rounding of
	// its product with 0.7; the value was computed to 60 digits.
	if got, want := Pow(0x1.4p1000, 0.7), 0x1.2b478d874a7ecp+700; units(got, want) > 2 {
		t.Errorf("Pow(0x1.4p1000, 0.7) = %x, want %x", got, want)
	}
	for _, y := range []float64{2047, -2047, 2100, 2148} {
		x := 0.70710679
		if got, want := Pow(x, y), math.Pow(x, y); math.Abs(got-want) > 1e-12*want {
			t.Errorf("Pow(%v, %v) = %v, want about %v", x, y, got, want)
		}
	}
}

func TestLimits(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"Exp(0)", Exp(0), 1},
		{"Exp(1)", Exp(1), math.E},
		{"Exp(Inf)", Exp(inf), inf},
		{"Exp(-Inf)", Exp(-inf), 0},
		{"Exp(710)", Exp(710), inf},
		{"Exp(-746)", Exp(-746), 0},
		{"Exp(NaN)", Exp(nan), nan},
		{"Log(1)", Log(1), 0},
		{"Log(0)", Log(0), -inf},
		{"Log(-1)", Log(-1), nan},
		{"Log(Inf)", Log(inf), inf},
		{"Log of the least number", Log(0x1p-1074), -744.4400719213812},
		{"Log1p(-1)", Log1p(-1), -inf},
		{"Log1p(-2)", Log1p(-2), nan},
		{"Log1p(1e-300)", Log1p(1e-300), 1e-300},
		{"Expm1(-800)", Expm1(-800), -1},
		{"Expm1(800)", Expm1(800), inf},
		{"Expm1(1e-300)", Expm1(1e-300), 1e-300},
	} {
		if units(c.got, c.want) != 0 {
			t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
		}
	}
}

// The bits below hold on every processor; a fused multiply-add or an assembly
// function in the way would change some of them. Each digest covers two
// thousand results.
func TestBits(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(float64) float64
		want string
	}{
		{"Exp", Exp, "3e18d8d8c8f86525"},
		{"Log", Log, "f83f412beaf41050"},
		{"Log1p", Log1p, "aaa71288842440fb"},
		{"Expm1", Expm1, "179d3ab8cd7a31fe"},
		{"Pow", func(x float64) float64 { return Pow(x, 1/0.6) }, "f7b945b0e1473e38"},
	} {
		h, z := uint64(0), uint64(0)
		for range 2000 {
			z = Mix(z, 1)
			h = Mix(h, math.Float64bits(c.f(float64(z>>11)*0x1p-50)))
		}
		if got := fmt.Sprintf("%016x", h); got != c.want {
			t.Errorf("%s: digest %s, want %s", c.name, got, c.want)
		}
	}
}

// The vectors are those of the reference implementation, as github.com/cespare/xxhash
// pins them.
func TestHashVectors(t *testing.T) {
	for _, c := range []struct {
		in   string
		want uint64
	}{
		{"", 0xef46db3751d8e999},
		{"a", 0xd24ec4f1a98c6e5b},
		{"as", 0x1c330fb2d66be179},
		{"asd", 0x631c37ce72a97393},
		{"asdf", 0x415872f599cea71e},
		{"Call me Ishmael. Some years ago--never mind how long precisely-", 0x02a2e85470d6fd96},
	} {
		if got := HashString(c.in); got != c.want {
			t.Errorf("HashString(%q) = %#x, want %#x", c.in, got, c.want)
		}
		if got := Hash([]byte(c.in)); got != c.want {
			t.Errorf("Hash(%q) = %#x, want %#x", c.in, got, c.want)
		}
	}
}

func TestMix(t *testing.T) {
	// Turning over one bit of either argument turns over half of the result.
	turned := [2]int{}
	for i := range uint64(256) {
		a, b := Mix(i, 7), Mix(9, i)
		for bit := range 64 {
			turned[0] += ones(a ^ Mix(i^1<<bit, 7))
			turned[1] += ones(b ^ Mix(9, i^1<<bit))
		}
	}
	for arg, n := range turned {
		if mean := float64(n) / (256 * 64); math.Abs(mean-32) > 0.2 {
			t.Errorf("argument %d: one bit turns over %.2f bits, want 32", arg, mean)
		}
	}
	if Mix(1, 2) == Mix(2, 1) {
		t.Error("Mix(1, 2) and Mix(2, 1) are equal")
	}
}

func ones(x uint64) (n int) {
	for ; x != 0; x &= x - 1 {
		n++
	}
	return n
}

func TestNoAllocation(t *testing.T) {
	name, raw := "aws/us-east-1/use1-az1/m5.large/spot and more", []byte("some bytes")
	sum := uint64(0)
	if n := testing.AllocsPerRun(100, func() { sum += HashString(name) + Hash(raw) }); n != 0 {
		t.Errorf("hashing allocates %v times", n)
	}
}

func BenchmarkExp(b *testing.B) {
	for b.Loop() {
		Exp(1.234)
	}
}

func BenchmarkLog(b *testing.B) {
	for b.Loop() {
		Log(1.234)
	}
}

func BenchmarkPow(b *testing.B) {
	for b.Loop() {
		Pow(1.234, 1/0.6)
	}
}

func BenchmarkHashString(b *testing.B) {
	for b.Loop() {
		HashString("aws/us-east-1/use1-az1/m5.large/spot")
	}
}

// TestQuantile has figures of R's quantile(c(1, 2, 4, 8), …), type 7.
func TestQuantile(t *testing.T) {
	list := []float64{1, 2, 4, 8}
	for _, x := range []struct{ q, want float64 }{{0, 1}, {0.05, 1.15}, {0.25, 1.75}, {0.5, 3}, {0.75, 5}, {0.95, 7.4}, {1, 8}} {
		if got := Quantile(list, x.q); math.Abs(got-x.want) > 1e-12 {
			t.Errorf("quantile %v of %v is %v, want %v", x.q, list, got, x.want)
		}
	}
	if got := Quantile([]float64{5}, 0.95); got != 5 {
		t.Errorf("quantile of one value 5 is %v", got)
	}
	if got := Quantile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("quantile of no value is %v", got)
	}
}
