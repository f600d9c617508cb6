package chance

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/spotter-dev/spotter/policy/portable"
)

const draws = 200_000

// sample returns draws of one kind, ascending.
func sample(stream string, draw func(Key) float64) []float64 {
	s, out := Stream(7, stream), make([]float64, draws)
	for i := range out {
		out[i] = draw(s.At1(uint64(i)))
	}
	slices.Sort(out)
	return out
}

// distance returns the greatest distance between the share of the sample below
// a value and the distribution there (Kolmogorov–Smirnov), times √n. Of one
// right sample in a million it is above 2.7.
func distance(sorted []float64, cdf func(float64) float64) float64 {
	worst, n := 0.0, float64(len(sorted))
	for i, x := range sorted {
		c := cdf(x)
		worst = max(worst, c-float64(i)/n, float64(i+1)/n-c)
	}
	return worst * math.Sqrt(n)
}

func TestDistributions(t *testing.T) {
	for _, c := range []struct {
		name string
		draw func(Key) float64
		cdf  func(float64) float64
	}{
		{"Float", Key.Float, func(x float64) float64 { return x }},
		{"Exp1", Key.Exp1, func(x float64) float64 { return 1 - math.Exp(-x) }},
		{"Normal", Key.Normal, func(x float64) float64 { return (1 + math.Erf(x/math.Sqrt2)) / 2 }},
		{
			"LogNormal", func(k Key) float64 { return k.LogNormal(0.8) },
			func(x float64) float64 { return (1 + math.Erf(math.Log(x)/0.8/math.Sqrt2)) / 2 },
		},
		{
			"Weibull", func(k Key) float64 { return k.Weibull(0.6, 1.75) },
			func(x float64) float64 { return 1 - math.Exp(-math.Pow(x/1.75, 0.6)) },
		},
		{
			"Beta(2, 1)", func(k Key) float64 { return k.Beta(2, 1) },
			func(x float64) float64 { return x * x },
		},
		{
			"Beta(1, 3)", func(k Key) float64 { return k.Beta(1, 3) },
			func(x float64) float64 { return 1 - (1-x)*(1-x)*(1-x) },
		},
		{
			"Beta(½, ½)", func(k Key) float64 { return k.Beta(0.5, 0.5) },
			func(x float64) float64 { return 2 / math.Pi * math.Asin(math.Sqrt(x)) },
		},
	} {
		if d := distance(sample(c.name, c.draw), c.cdf); d > 2.7 {
			t.Errorf("%s: the sample is %.2f from its distribution, want at most 2.7", c.name, d)
		}
	}
}

// The quantiles are those of published tables, out to the far tail.
func TestQuantiles(t *testing.T) {
	for _, c := range [][2]float64{
		{0.5, 0}, {0.6, 0.2533471031357997}, {0.975, 1.959963984540054}, {0.0001, -3.719016485455709},
		{0.9999, 3.719016485455709}, {1e-20, -9.262340089798408},
	} {
		if got := NormalQuantile(c[0]); math.Abs(got-c[1]) > 1e-14*math.Abs(c[1]) {
			t.Errorf("NormalQuantile(%v) = %v, want %v", c[0], got, c[1])
		}
	}
}

func TestIntN(t *testing.T) {
	var counts [7]int
	s := Stream(1, "whole")
	for i := range uint64(70_000) {
		counts[s.At1(i).IntN(7)]++
	}
	for v, n := range counts {
		if n < 9_600 || n > 10_400 {
			t.Errorf("%d was drawn %d times of 70,000, want about 10,000", v, n)
		}
	}
}

// Draws at neighbouring keys are as good as independent: by seed, by stream, by
// name and by ordinal.
func TestNeighboursAreIndependent(t *testing.T) {
	for _, c := range []struct {
		name string
		key  func(i uint64) Key
	}{
		{"seeds", func(i uint64) Key { return New(i, "s", "n") }},
		{"names", func(i uint64) Key { return New(1, "s", fmt.Sprint(i)) }},
		{"streams", func(i uint64) Key { return New(1, fmt.Sprint(i), "n") }},
		{"first ordinals", func(i uint64) Key { return New(1, "s", "n").At2(i, 5) }},
		{"last ordinals", func(i uint64) Key { return New(1, "s", "n").At2(1, 5).At1(i) }},
		{"derived keys", func(i uint64) Key { return New(1, "s", "n").At1(i % 2).At1(i / 2) }},
	} {
		const n = 20_000
		sum, before := 0.0, c.key(0).Float()-0.5
		for i := range uint64(n) {
			next := c.key(i+1).Float() - 0.5
			sum += before * next
			before = next
		}
		if r := sum / n * 12; math.Abs(r) > 5/math.Sqrt(n) {
			t.Errorf("%s: correlation of neighbours is %.3f, want 0", c.name, r)
		}
	}
}

func TestKeysAgree(t *testing.T) {
	k := New(3, "stream", "name")
	if k != Stream(3, "stream").At1(portable.HashString("name")) {
		t.Error("New is not Stream at the hash of the name")
	}
	if k.At2(1, 2) != k.At1(1).At1(2) {
		t.Error("At2 differs from At1 twice")
	}
	if k.At2(1, 2) == k.At2(2, 1) {
		t.Error("the order of ordinals does not matter")
	}
}

// The numbers are pinned: a change of one of them changes every run ever made.
func TestPinned(t *testing.T) {
	k := New(1, "weather", "aws/us-east-1/use1-az1/m5.large/spot")
	got := fmt.Sprintf("%016x %v %v %v %v", uint64(k), k.Exp1(), k.Normal(), k.Weibull(0.6, 1.75), k.Beta(1.2, 2))
	if want := "2a8d644efb3dd7d7 0.18178566214504502 -0.9692109752064151 0.10208707472174733 0.364241876246151"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestNoAllocation(t *testing.T) {
	k, sum := Stream(1, "s"), 0.0
	n := testing.AllocsPerRun(100, func() {
		sum += New(1, "s", "n").At2(1, 2).Exp1() + k.Weibull(0.7, 2) + k.Normal() + k.Beta(0.5, 2)
	})
	if n != 0 {
		t.Errorf("drawing allocates %v times", n)
	}
}

func TestIntNPanicsWithoutChoice(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("IntN(0) did not panic")
		}
	}()
	Key(1).IntN(0)
}

func BenchmarkExp1(b *testing.B) {
	k := Stream(1, "s")
	for i := uint64(0); b.Loop(); i++ {
		k.At1(i).Exp1()
	}
}

func BenchmarkWeibull(b *testing.B) {
	k := Stream(1, "s")
	for i := uint64(0); b.Loop(); i++ {
		k.At1(i).Weibull(0.6, 2)
	}
}
