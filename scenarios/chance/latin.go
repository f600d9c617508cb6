package chance

import "slices"

// LatinHypercube draws n points in [0, 1)^dims such that, in each dimension, each of n equal
// intervals contains one of them (McKay, Beckman and Conover, 1979). The points are determined by
// seed and stream.
func LatinHypercube(seed uint64, stream string, n, dims int) [][]float64 {
	points := make([][]float64, n)
	for i := range points {
		points[i] = make([]float64, dims)
	}
	key := Stream(seed, stream)
	for d := range dims {
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		rank := key.At2(uint64(d), 0)
		slices.SortFunc(order, func(a, b int) int {
			x, y := rank.At1(uint64(a)), rank.At1(uint64(b))
			switch {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return a - b
		})
		for part, i := range order {
			points[i][d] = (float64(part) + key.At2(uint64(d), 1).At1(uint64(i)).Float()) / float64(n)
		}
	}
	return points
}
