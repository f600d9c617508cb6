// Package qnet trains the network behind the policy model against the simulator
// itself: a dueling network, learned by double Q-learning from thousands of
// random small scenarios, whose weights are written as an ONNX graph in a bundle.
//
// Everything is a function of the configuration: scenarios are drawn from keys,
// runs are merged in the order of their numbers however many are played at once,
// and the arithmetic of learning is in a fixed order on one goroutine. Prices are
// generated, by laws that were fitted to recordings of 2020 and 2021, so that no
// week that anybody compares policies on was seen.
package qnet
