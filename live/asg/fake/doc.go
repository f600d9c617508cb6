// Package fake imitates the Auto Scaling, EC2 and EKS services of AWS at the wire, for
// tests: groups that reach their desired size, each in its own time.
//
// A [Server] is an http.Handler that speaks the query protocol of Auto Scaling and EC2 and
// the REST protocol of EKS. Its clock moves by [Server.Advance]: a group reacts to a new
// desired size after a while, and its instances boot, wait for hooks, end slowly, and are
// refused where the provider has no capacity. To shrink, a group ends any instance that is
// not protected, drawn from a seed, since no caller may rely on which. Reads may be stale,
// responses get lost, and calls are refused as [Faults] say.
package fake
