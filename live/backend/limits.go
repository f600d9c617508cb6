package backend

import "github.com/spotter-dev/spotter/policy"

// Limits returns the effective limits of a pool: the user's limits, lowered by those of a steer. A
// component of zero means no limit.
func Limits(user, steer policy.Resources) policy.Resources {
	least := func(a, b int64) int64 {
		if a == 0 || b == 0 {
			return max(a, b)
		}
		return min(a, b)
	}
	return policy.Resources{CPU: least(user.CPU, steer.CPU), Memory: least(user.Memory, steer.Memory),
		GPU: least(user.GPU, steer.GPU)}
}
